#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the inputs from which the fuzz targets of libscr-core start.

    libscr-core/fuzz/make_corpus.py

The inputs are configuration files in both forms; settings and queries of SCR_Config;
records as in docs/formats/scr.md, and invalid ones. Inputs named found-* were found by
fuzzing (tests/fuzz.py --merge) and stay.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import corpus  # noqa: E402

INPUTS = {
    "empty": "",
    "comment": "# nothing\n\n",
    "lines-param": "SCR_FLUSH=3\nSCR_JOB_NAME = 'a b'\t# c\r\nSCR_PREFIX=$A/x${A}$$\n",
    "lines-mark": "\ufeffSCR_FLUSH=3",
    "lines-quotes": "SCR_JOB_NAME=\"it's\"\nSCR_CLUSTER_NAME='\"'\n",
    "lines-locked": "SCR_LOCKED=SCR_FLUSH,SCR_FETCH\n",
    "lines-groups": "GROUPS=n1 A=1 B='x y'\nGROUPS=n2 A=1\nSCR_GROUP=A\nGROUPS=n3\n",
    "lines-stores": "STORE=/a/../b//c/. COUNT=3 GROUP=WORLD\nSTORES=/ FLUSH=sync MKDIR=0 VIEW=GLOBAL ENABLED=1\n",
    "lines-ckpts": "CKPT=1 INTERVAL=4 TYPE=RS SET_SIZE=4 SET_FAILURES=3\nCKPT=+0 OUTPUT=1 BYPASS=1 ENABLED=1\n"
                   "STORE=/b\nCKPT=2 STORE=/b GROUP=NODE TYPE=PARTNER\n",
    "lines-file": "SCR_COPY_TYPE=FILE\nCKPT=0\n",
    "lines-mistakes": "SCR_FLUSH\n=1\nSCR_FLUSH=1 2\nCKPT=x\nCKPT=0 Q=1 TYPE=ZOR TYPE=XOR\nSTORE=b\nGROUPS=a NODE=1\n"
                      "SCR_X=1\nSCR_FLUSH='\nSCR_PREFIX=$NO\nSCR_PREFIX=\n\1\n",
    "lines-gaps": "CKPT=1 INTERVAL=2\nCKPT=3 STORE=/no GROUP=no\n",
    "yaml-param": "SCR_FLUSH: 3\nSCR_JOB_NAME: 'a b'\nSCR_PREFIX: $A/x\n",
    "yaml-locked": "SCR_LOCKED: [SCR_FLUSH, SCR_FETCH]\n",
    "yaml-mappings": "GROUPS: {n1: {A: 1}, n2: {A: 2}}\nSTORE:\n  /a: {COUNT: 3}\n  /b/: {}\nCKPT: {0: {STORE: /b}}\n",
    "yaml-lists": "STORES:\n- STORE: /a\n  GROUP: A\n- {STORES: /b}\nGROUPS:\n- A: 1\n  GROUPS: n1\nCKPT:\n- CKPT: 0\n",
    "yaml-escapes": 'GROUPS: {"n 1": {"A = #1": "x\\ty"}}\nSCR_JOB_NAME: "\\x27\\x22\\n"\n',
    "yaml-mistakes": "CKPT: {0: 1, x: {}, [1]: {}, 2: {TYPE: [1]}}\nSTORE: [1, {GROUP: A}, {STORE: [1]}]\nGROUPS: 1\n"
                     "SCR_LOCKED: 1\nSCR_FLUSH: {}\nSCR_X: 1\n",
    "yaml-aliases": "CKPT: &a\n  0: {TYPE: RS}\nSCR_JOB_NAME: &b x\nSCR_CLUSTER_NAME: *b\nSTORE: *a\n",
    "yaml-documents": "SCR_FLUSH: 1\n---\nSCR_FLUSH: 2\n",
    "yaml-no": "SCR_FLUSH: [1\n",
    "question": "SCR_FLUSH",
    "question-keys": "CKPT",
    "question-field": "CKPT = 0  SET_SIZE ",
    "question-store": "STORE=/dev/shm COUNT",
    "set-field": "CKPT=0 TYPE=RS SET_SIZE=",
    "unset-kind": "CKPT=",
    "unset-last": "CKPT=0 SET_SIZE=",
    "set-group": "GROUPS=n1 RACK='a b'",
    "set-wrong": "CKPT=0 TYPE=XOR NONE",
}

OWNER = "u/scr.1"
LAST = 2**31 - 1


def description(number=5, name="d", **more):
    return {"ID": number, "NAME": name, "CREATED": 1795257190731827, "USER": "u", "JOBNAME": "heat", "JOBID": "1",
            "CLUSTER": "atlas", "CKPT": number, "RANKS": 2, "FILES": 3, "SIZE": 12, "COMPLETE": 1} | more


def without(tree, *keys):
    return {key: value for key, value in tree.items() if key not in keys}


def path(name, number=5, store="/c"):
    return f"{store}/{OWNER}/scr.dataset.{number}/{name}"


META = {"FILE": "f", "TYPE": "FULL", "RANKS": 2, "COMPLETE": 1, "SIZE": 4, "CRC": "0x00000001", "ORIG": "f",
        "ORIGPATH": "/p/d", "ORIGNAME": "f"}
REDDESC = {"INDEX": 0, "BASE": "/c", "TYPE": "XOR", "GROUP": "NODE", "HOP_DISTANCE": 1, "ENABLED": 1, "INTERVAL": 1,
           "OUTPUT": 0, "BYPASS": 0, "SET_SIZE": 8, "SET_FAILURES": 2, "DIRECTORY": "/c/" + OWNER, "GROUPS": 2,
           "GROUP_ID": 1, "GROUP_SIZE": 4, "GROUP_RANK": 1}


def filemap(files=None, rank=3, number=5):
    files = {path("f"): META, path("2_of_4_in_1.xor"): {"TYPE": "XOR"}} if files is None else files
    return {"DSET": {number: {"RANK": {rank: {}}}},
            "RANK": {rank: {"DSET": {number: {"FILE": files, "FILES": len(files), "REDDESC": REDDESC,
                                              "DATADESC": description()}}}}}


def index(*entries, **more):
    """entries: (id, name, the rest of the entry)."""
    dirs, dsets = {}, {}
    for number, name, rest in entries:
        dirs[name] = {"DSET": number}
        dsets.setdefault(number, {"DIR": {}})["DIR"][name] = {"DSET": description(number, name), "COMPLETE": 1} | rest
    return {"VERSION": 1, "DIR": dirs, "DSET": dsets} | more


NOW = "2026-11-21T10:33:10"
USUAL = index((1, "a", {"FLUSHED": NOW, "FAILED": NOW}), (2, "b", {"ATTEMPTS": 2}), (3, "c/d", {"FETCHED": NOW}),
              (4, "e", {"COMPLETE": 0, "REASON": "files of 1 rank are lost"}),
              (5, "f/g", {"COMPLETE": 0}),
              CURRENT="c/d")


FLUSH = {"DSET": {1: {"DIR": "a", "LOCATION": {"CACHE": {}, "PFS": {}}}, 2: {"DIR": "b", "LOCATION": {"FLUSHING": {}}}},
         "OWNER": OWNER}
SUMMARY = {"VERSION": 6, "COMPLETE": 1, "DSET": description()}


def packed(*segments, size=None):
    return {"SIZE": sum(length for _, length in segments) if size is None else size, "MODE": "0644",
            "SEG": {i: {"FILE": ".scr/ctr.0.scr", "OFFSET": offset, "LENGTH": length}
                    for i, (offset, length) in enumerate(segments)}}


def root(files, level=1, ranks=2):
    return {"LEVEL": level, "RANKS": ranks, "RANK": {rank: {"OFFSET": 0, "FILE": name} for rank, name in files.items()}}


def leaf(ranks):
    return {"RANK2FILE": {"LEVEL": 0, "RANKS": len(ranks), "RANK": {rank: {"FILE": files} for rank, files in ranks.items()}}}


LEAF = leaf({0: {"f": {"SIZE": 5, "CRC": "0x00000007"}, "g": {"SIZE": 0}}, 1: {"h": packed((0, 3), (9, 4))}})
MAP = {"rank2file.scr": root({0: ".scr/rank2file.0.0.scr"}), "rank2file.0.0.scr": LEAF}


def filled(files):
    """A map of two ranks with these files on the first rank."""
    return MAP | {"rank2file.0.0.scr": leaf({0: files, 1: {}})}


RECORDS = {
    "dataset": {"dataset": description()},
    "dataset-least": {"dataset": {"ID": 1, "NAME": "a"}},
    "dataset-output": {"dataset": description(OUTPUT=1, BYPASS=1, SCATTERED=1, CKPT=0, SIZE=2**64 - 1)},
    "filemap": {"filemap": filemap()},
    "filemap-two": {"filemap": {"RANK": {0: {"DSET": {1: {"FILE": {path("a/b", 1): META}}, 2: {}}}, 7: {"DSET": {1: {}}}}}},
    "filemap-nested": {"filemap": filemap({path("x" + path("f")): META})},
    "filemap-empty": {"filemap": {}},
    "master": {"master": {"Filemap": {f"/c/{OWNER}/filemap_0.scriinfo": {}, "filemap_1.scriinfo": {}}}},
    "master-and-filemap": {"master": {"Filemap": {"/x/filemap_0.scriinfo": {}, "filemap_0.scriinfo": {}}},
                           "filemap": filemap()},
    "flush": {"flush": FLUSH},
    "halt": {"halt": {"CheckpointsLeft": 7, "ExitAfter": 4102444800, "ExitBefore": 4102448400, "HaltSeconds": 1200,
                      "ExitReason": "SCR_FINALIZE_CALLED"}},
    "halt-left": {"halt": {"CheckpointsLeft": -1}},
    "halt-before": {"halt": {"ExitBefore": 1700000100, "HaltSeconds": 100}},
    "halt-after": {"halt": {"ExitAfter": 1700000000}},
    "halt-end": {"halt": {"HaltSeconds": 600}},
    "halt-signal": {"halt": {"ExitReason": "SCR_SIGNAL: SIGTERM came to rank 3"}},
    "halt-far": {"halt": {"ExitBefore": 2**63 - 1, "ExitAfter": -2**63, "HaltSeconds": 2**63 - 1}},
    "nodes": {"nodes": {"NODES": 4}},
    "index": {"index": USUAL},
    "index-empty": {"index": {"VERSION": 1}},
    "index-same-name": {"index": index((1, "a", {}), (2, "a", {"COMPLETE": 0}))},
    "index-same-id": {"index": index((1, "a", {}), (1, "b", {"DELETING": 1}), CURRENT="b")},
    "summary": {"summary": SUMMARY},
    "map": {"map": MAP},
    "map-levels": {"map": MAP | {"rank2file.scr": root({0: ".scr/rank2file.1.0.scr"}, 2),
                                 "rank2file.1.0.scr": root({0: ".scr/rank2file.0.0.scr"})}},
    "scan": {"summary": SUMMARY, "map": MAP},
    "scan-scattered": {"summary": {"VERSION": 6, "DSET": description(SCATTERED=1)}, "map": MAP},
    "scan-other-map": {"summary": {"VERSION": 6, "DSET": description(SIZE=13)}, "map": MAP},
    "all": {"index": USUAL, "summary": SUMMARY, "map": MAP, "flush": FLUSH, "nodes": {"NODES": 1}},
}

LIES = {
    "dataset-id": {"dataset": description(0)},
    "dataset-id-large": {"dataset": description(1000000001)},
    "dataset-no-name": {"dataset": without(description(), "NAME")},
    "dataset-name-up": {"dataset": description(name="../d")},
    "dataset-name-ours": {"dataset": description(name=".scr/d")},
    "dataset-name-bell": {"dataset": description(name="a\7b")},
    "dataset-two-values": {"dataset": description(SIZE={1: {}, 2: {}})},
    "dataset-no-value": {"dataset": description(CREATED={})},
    "dataset-text-long": {"dataset": description(USER="x" * 128)},
    "dataset-name-long": {"dataset": description(name="x" * 1024)},
    "filemap-path-up": {"filemap": filemap({path("../f"): META})},
    "filemap-path-other": {"filemap": filemap({path("f", 6): META})},
    "filemap-path-relative": {"filemap": filemap({path("f")[1:]: META})},
    "filemap-path-bell": {"filemap": filemap({path("a\7"): META})},
    "filemap-rank": {"filemap": filemap(rank="x")},
    "filemap-rank-zeros": {"filemap": filemap(rank="03")},
    "filemap-rank-twice": {"filemap": {"RANK": {"3": {"DSET": {"5": {}}}, "+3": {"DSET": {"5": {}}}}}},
    "filemap-id-twice": {"filemap": {"RANK": {"3": {"DSET": {"5": {}, "05": {}}}}}},
    "filemap-id-zero": {"filemap": filemap({}, number=0)},
    "master-names": {"master": {"Filemap": {"": {}, "/": {}, "..": {}, "/x/..": {}, "prefix.scriinfo": {}, "a\7": {}}}},
    "flush-id": {"flush": {"DSET": {"x": {"DIR": "a"}}}},
    "flush-id-zeros": {"flush": {"DSET": {"01": {"DIR": "a", "LOCATION": {"PFS": {}}}}}},
    "flush-id-negative": {"flush": {"DSET": {"-1": {"DIR": "a", "LOCATION": {"PFS": {}}}}}},
    "flush-name": {"flush": {"DSET": {"1": {"DIR": "../a"}}}},
    "halt-words": {"halt": {"CheckpointsLeft": "x", "ExitAfter": "", "ExitBefore": {}, "ExitReason": {"a\7": {}, "b": {}}}},
    "nodes-none": {"nodes": {"NODES": 0}},
    "nodes-two": {"nodes": {"NODES": {1: {}, 2: {}}}},
    "index-version": {"index": index(VERSION=2)},
    "index-id-zeros": {"index": {"VERSION": 1, "DSET": {"01": {"DIR": {"a": {"DSET": description(1, "a"), "COMPLETE": 1}}}}}},
    "index-id-word": {"index": {"VERSION": 1, "DSET": {"x": {"DIR": {"a": {"DSET": description(1, "a")}}}}}},
    "index-id-both": {"index": {"VERSION": 1, "DSET": {key: {"DIR": {"a": {"DSET": description(1, "a"), "COMPLETE": 1}}}
                                                      for key in ("1", "+1", "x")}}},
    "index-name": {"index": index((1, "../a", {}))},
    "index-attempts": {"index": index((1, "a", {"ATTEMPTS": -5}), (2, "b", {"ATTEMPTS": LAST}), CURRENT="gone")},
    "summary-version": {"summary": SUMMARY | {"VERSION": 5}},
    "summary-name": {"summary": SUMMARY | {"DSET": description(name="..")}},
    "map-name": {"map": filled({"../f": {"SIZE": 1}})},
    "map-container": {"map": filled({"f": {"SIZE": 1, "SEG": {0: {"FILE": "../c", "OFFSET": 0, "LENGTH": 1}}}})},
    "map-sum": {"map": filled({"f": packed((0, 3), size=4)})},
    "map-far": {"map": filled({"f": packed((2**63 - 1, 1))})},
    "map-mode": {"map": filled({"f": packed((0, 1)) | {"MODE": "7777"}})},
    "map-its-own": {"map": filled({"m.scr": {"SIZE": 1}, "m.x": {"SIZE": 1}})},
    "map-round": {"map": {"rank2file.scr": root({0: ".scr/rank2file.scr"}, 1)}},
    "map-up": {"map": {"rank2file.scr": root({0: "../x"})}},
    "map-twice": {"map": MAP | {"rank2file.scr": root({0: ".scr/rank2file.0.0.scr", 1: ".scr/rank2file.0.0.scr"}, 1, 4)}},
    "map-ranks": {"map": MAP | {"rank2file.scr": root({0: ".scr/rank2file.0.0.scr"}, 1, LAST)}},
    # the most memory that this number of bytes can request
    "index-entries": {"index": {"VERSION": 1, "DSET": {1: {"DIR": {i: {} for i in range(100)}}}}},
}

if __name__ == "__main__":
    corpus.write(__file__, {
        "fuzz_scr_config": {name: text.encode() for name, text in INPUTS.items()},
        "fuzz_scr_records": {name: corpus.lines(tree) for name, tree in
                             (RECORDS | {f"lie-{name}": tree for name, tree in LIES.items()}).items()}
        | {"no-bytes": b""}})
