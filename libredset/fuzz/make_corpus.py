#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the initial inputs of the fuzz target of libredset.

    libredset/fuzz/make_corpus.py

Headers of redundancy files as text, a line for each key, indented by its depth in blanks. They were
written from docs/formats/redset.md and share no code with the library. Inputs named found-*
were found by fuzzing (tests/fuzz.py --merge) and stay.
"""
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/support"))

import corpus  # noqa: E402


def file_entry(name, size, **meta):
    return {**meta, "FILE": name, "SIZE": size, "CRC": f"{zlib.crc32(name.encode()):#010x}"}


def file_list(rank, files):
    entries = {i: file_entry(*file[:2], **(file[2] if file[2:] else {})) for i, file in enumerate(files)}
    return {"RANK": rank, "FILES": len(files)} | ({"FILE": entries} if entries else {})


def one_each(rank):
    return [(f"rank_{rank}.ckpt", 100 + rank)]


def header(kind, failures, members, member, *, sets=1, index=0, files=one_each, about=None):
    """The header of one member. files(rank) returns the files of a process: names, sizes and meta data."""
    ranks = [index + i * sets for i in range(members)]
    largest = max(sum(file[1] for file in files(rank)) for rank in ranks)
    coded = kind in ("XOR", "RS")
    lists = [file_list(ranks[(member - d) % members], files(ranks[(member - d) % members]))
             for d in range(failures + 1)]
    tree = {"DSET": about or {}, "TYPE": kind}
    if kind in ("PARTNER", "RS"):
        tree["FAILURES"] = failures
    tree["RANKS"] = members * sets
    tree["GROUP"] = {"RANKS": members, "ID": min(ranks), "GROUPS": sets, "INDEX": index,
                     "RANK": dict(enumerate(ranks))}
    tree["CHUNK"] = -(-largest // (members - failures)) if coded else 0
    tree["CURRENT"] = lists[0]
    if failures > 0:
        tree["PARTNER"] = lists[1]
    if failures > 1:
        tree["PARTNERS"] = {d: lists[d] for d in range(2, failures + 1)}
    return tree | {"ENCODE": "0000000b5e2a91c7", "CRC": "0xc3a07703"}


def unchecked(tree):
    """The tree without checksums."""
    if not isinstance(tree, dict):
        return tree
    return {key: unchecked(value) for key, value in tree.items() if key != "CRC"}


def no_files(_):
    return []


def some_files(rank):
    """None to four files, with directories, meta data, and an empty one."""
    return [("a", 1), ("folder/b", 0, {"COLOUR": "blue"}), ("x" * 60, 4096, {"MODE": 33188, "T": {"s": 1, "ns": 2}}),
            ("spaces and \N{LATIN SMALL LETTER E WITH ACUTE}", 7)][:rank % 5]


def of_size(size, count=1):
    return lambda rank: [(f"{rank}-{i}", size) for i in range(count)]


HEADERS = {
    "single": header("SINGLE", 0, 1, 0),
    "single-of-many": header("SINGLE", 0, 1, 0, sets=1000, index=999, files=some_files),
    "partner": header("PARTNER", 1, 2, 1),
    "partner-several-files": header("PARTNER", 1, 4, 0, sets=3, index=2, files=some_files),
    "partner-two-copies": header("PARTNER", 2, 4, 1, files=some_files),
    "partner-all-others": header("PARTNER", 3, 4, 2),
    "xor": header("XOR", 1, 4, 1),
    "xor-of-two": header("XOR", 1, 2, 0, sets=2, index=1),
    "xor-several-files": header("XOR", 1, 5, 4, files=some_files, about={"ID": 6, "NAME": "ckpt.6"}),
    "xor-no-files": header("XOR", 1, 3, 1, files=no_files),
    "xor-many-files": header("XOR", 1, 3, 1, files=of_size(10, 20)),
    "rs-one": header("RS", 1, 3, 2),
    "rs-two": header("RS", 2, 5, 1, files=some_files, about={"ID": 6}),
    "rs-all-others": header("RS", 3, 4, 0),
    "single-unchecked": unchecked(header("SINGLE", 0, 1, 0)) | {"CHECKSUMS": 0},
    "rs-unchecked": unchecked(header("RS", 2, 5, 1, files=some_files)) | {"CHECKSUMS": 0},
    "rs-255": header("RS", 1, 255, 254, files=no_files),
    # at the limits of number types
    "rs-256": header("RS", 1, 256, 255, files=no_files),
    "partner-256": header("PARTNER", 1, 256, 255, files=no_files),
    "single-largest": header("SINGLE", 0, 1, 0, files=of_size(2**63 - 1)),
    "single-too-large": header("SINGLE", 0, 1, 0, files=of_size(2**62, 2)),
    "partner-largest": header("PARTNER", 1, 2, 1, files=of_size(2**63 - 1)),
    "partner-too-large": header("PARTNER", 2, 3, 1, files=of_size(2**62)),
    "xor-largest": header("XOR", 1, 2, 1, files=of_size(2**63 - 1)),
    "xor-largest-of-three": header("XOR", 1, 3, 1, files=of_size(2**63 - 1)),
    "rs-too-large": header("RS", 2, 3, 1, files=of_size(2**63 - 1)),
}


def changed(name, *path, to):
    """A header with another value below path, or none."""
    def inside(tree, keys):
        if keys:
            return tree | {keys[0]: inside(tree.get(keys[0], {}), keys[1:])}
        return to
    return inside(HEADERS[name], path)


LIES = {
    "lie-scheme-in-small-letters": changed("xor", "TYPE", to="xor"),
    "lie-scheme": changed("xor", "TYPE", to="RAID"),
    "lie-failures-of-xor": changed("xor", "FAILURES", to=1),
    "lie-failures-of-all": changed("rs-all-others", "FAILURES", to=4),
    "lie-signs": changed("xor", "GROUP", "RANK", to={0: "-0", 1: "+1", 2: "02", 3: "3"}),
    "lie-checksum-decimal": changed("xor", "CRC", to=4294967295),
    "lie-unchecked-without-a-word": unchecked(HEADERS["xor"]),
    "lie-unchecked-with-checksums-of-files": {key: value for key, value in HEADERS["xor"].items() if key != "CRC"}
    | {"CHECKSUMS": 0},
    "lie-unchecked-with-checksum-of-data": unchecked(HEADERS["xor"]) | {"CHECKSUMS": 0, "CRC": "0xc3a07703"},
    "lie-unchecked-but-checked": changed("rs-unchecked", "CHECKSUMS", to=1),
    "lie-encode-short": changed("xor", "ENCODE", to="0b5e2a91c7"),
    "lie-encode-large-letters": changed("xor", "ENCODE", to="0000000B5E2A91C7"),
    "lie-encode-sign": changed("xor", "ENCODE", to="+000000b5e2a91c7"),
    "lie-rank-twice": changed("xor", "GROUP", "RANK", 3, to=2),
    "lie-member-too-many": changed("xor", "GROUP", "RANK", 4, to=5),
    "lie-set-of-all": changed("xor", "GROUP", "RANKS", to=2147483647),
    "lie-other-rank": changed("xor", "CURRENT", "RANK", to=2),
    "lie-wrong-neighbour": changed("rs-two", "PARTNERS", 2, "RANK", to=3),
    "lie-list-too-many": changed("rs-two", "PARTNERS", 3, to=file_list(3, [])),
    "lie-chunk-too-small": changed("xor", "CHUNK", to=33),
    "lie-chunk-of-copies": changed("partner", "CHUNK", to=1),
    "lie-files": changed("xor", "CURRENT", "FILES", to=2),
    "lie-own-name": changed("xor", "CURRENT", "FILE", 0, "FILE", to="2_of_4_in_0.xor"),
    "lie-name-of-neighbours-file": changed("xor", "PARTNER", "FILE", 0, "FILE", to="1_of_4_in_0.xor"),
    "lie-name-above": changed("xor", "CURRENT", "FILE", 0, "FILE", to="a/../../b"),
    "lie-name-absolute": changed("xor", "CURRENT", "FILE", 0, "FILE", to="/etc/passwd"),
    "lie-name-too-long": changed("xor", "CURRENT", "FILE", 0, "FILE", to="x" * 1024),
    "lie-name-longest": changed("xor", "CURRENT", "FILE", 0, "FILE", to="x" * 1023),
    "lie-name-control": changed("xor", "CURRENT", "FILE", 0, "FILE", to="\x1b[2J"),
    "lie-unknown-key": changed("xor", "COLOUR", to="blue"),
    "lie-unknown-key-in-group": changed("single", "GROUP", "COLOUR", to="blue"),
    "lie-unknown-key-in-list": changed("single", "CURRENT", "COLOUR", to="blue"),
    "lie-file-among-none": changed("xor-no-files", "CURRENT", "FILE", to={}),
    # allocates the most memory for its number of bytes
    "lie-files-of-nothing": changed("single", "CURRENT", to={"RANK": 0, "FILES": 400, "FILE": {
        chr(i): {} for i in range(0x100, 0x100 + 400)}}),
}

if __name__ == "__main__":
    corpus.write(__file__, {"fuzz_redset_header": {
        name: corpus.lines(tree) for name, tree in (HEADERS | LIES).items()} | {
            "no-bytes": b"", "not-a-header": b"a\n b\n  c\n d\n\ne\0f\n     g"}})
