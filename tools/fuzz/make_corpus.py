#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the inputs from which the fuzz targets of tools start.

    tools/fuzz/make_corpus.py

Inputs named found-* were found by fuzzing (tests/fuzz.py --merge) and stay.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import corpus  # noqa: E402

INPUTS = {
    "empty": "",
    "one": "atlas3",
    "ranges": "atlas[3,5-7,9-11]",
    "zeros": "n[008-011,1,01],n08",
    "two-brackets": "r[1-2]n[01-3]-ib.site",
    "blanks": " a, b\tc\n,d ",
    "large": "n[999999999999999998-999999999999999999,1234567890123456789]",
    "many": "n[0-262144]",
    "product": "a[0-99][0-99][0-99]",
    "down": "a[2-1]",
    "open": "a[1,",
    "nothing": "a[],,",
    "long": "n" * 252 + "[098-101]",
}


# ---- rank filemaps: a line for each key, with as many blanks before it as it stands deep ----

def lines(tree, depth=0):
    return "".join(" " * depth + key + "\n" + lines(value if isinstance(value, dict) else {str(value): {}}, depth + 1)
                   for key, value in tree.items())


def rank_filemap(rank=2, number=6, files=None, **more):
    about = {"ID": number, "NAME": "ckpt.6", "CREATED": 1312850690668536, "CKPT": 6, "RANKS": 4, "FILES": 4,
             "SIZE": 2097182, "COMPLETE": 1}
    files = files if files is not None else {
        "3_of_4_in_0.xor": {"FILE": "3_of_4_in_0.xor", "TYPE": "XOR", "RANKS": 4, "COMPLETE": 1, "SIZE": 175693},
        "ckpt.6/rank_2": {"FILE": "ckpt.6/rank_2", "TYPE": "FULL", "SIZE": 524296, "CRC": "0x738bb68f", "ORIG": "rank_2"}}
    entry = {"DSETDESC": about, "FILES": len(files), "FILE": {name: {"META": meta} for name, meta in files.items()}, **more}
    return {"DSET": {str(number): {"RANK": rank}}, "RANK": {str(rank): {"DSET": {str(number): entry}}}}


def one_file(name, **meta):
    return rank_filemap(files={name: {"TYPE": "FULL", "SIZE": 1, **meta}})


RANKMAPS = {
    "sample": rank_filemap(),
    "no-files": rank_filemap(files={}),
    "more-files": rank_filemap(FILES=3),
    "other-rank": rank_filemap(rank=4),
    "two-ranks": {"RANK": {**rank_filemap()["RANK"], **rank_filemap(rank=3)["RANK"]}},
    "up": one_file("../victim"),
    "absolute": one_file("/etc/passwd"),
    "hidden": one_file("ckpt.6/.scr/summary.scr"),
    "control": one_file("a\x1b[2J"),
    "large": one_file("f", SIZE=2 ** 63 - 1),
    "too-large": one_file("f", SIZE=2 ** 63),
    "no-crc": one_file("f", CRC="blue"),
    "scheme": rank_filemap(files={"1_of_2_in_0.rs": {"TYPE": "XOR", "SIZE": 1}}),
}

if __name__ == "__main__":
    corpus.write(__file__, {"fuzz_hostlist": {name: text.encode() for name, text in INPUTS.items()},
                            "fuzz_rankmap": {name: lines(tree).encode() for name, tree in RANKMAPS.items()}})
