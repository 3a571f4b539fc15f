#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the inputs from which the fuzz target of tools starts.

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

if __name__ == "__main__":
    corpus.write(__file__, {"fuzz_hostlist": {name: text.encode() for name, text in INPUTS.items()}})
