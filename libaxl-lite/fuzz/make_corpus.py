#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the inputs from which the fuzz target of libaxl-lite starts.

    libaxl-lite/fuzz/make_corpus.py

Transfer files as text, one line per key. They were written from docs/formats/transfer.md and share
no code with the library. Inputs named found-* were found by fuzzing (tests/fuzz.py --merge) and stay.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/support"))

import corpus  # noqa: E402

LAST = 2**63 - 1


def entry(destination="/pfs/a", size=100, **more):
    return {"DESTINATION": destination, "SIZE": size} | more


def part(source_offset, destination_offset, size=100, **more):
    return entry("/pfs/container", size, SOURCE_OFFSET=source_offset, DESTINATION_OFFSET=destination_offset, **more)


def begun(written, **more):
    return {"WRITTEN": written, "MTIME": "1700000000.123456789", "CRC": "0x01234567"} | more


def transfer(files, **more):
    return {"FILES": files} | more


OPTIONS = {"PERCENT": "5.000000", "BW": "50000000.000000", "COMMAND": "RUN", "STATE": "RUNNING",
           "ID": "0123456789abcdef", "WORKERS": 4, "BUFFER": 262144, "OPTIONS": {"CHECKSUM": {}, "KEEP_MODE": {}}}

FILES = {
    "documented": transfer({"/a": entry(WRITTEN=0)}, PERCENT=0, BW=0, COMMAND="STOP", STATE="STOPPED"),
    "begun": transfer({"/a": entry(**begun(50))}, **OPTIONS),
    "several": transfer({f"/shm/{i}": entry(f"/pfs/{i}", i, **begun(i, FLAG="DONE")) for i in range(4)}
                        | {"/shm/x": entry("/pfs/x", **begun(0))}, **OPTIONS),
    "same-source": transfer({"/a": entry("/1"), "/./a": entry("/2"), "/.//a": entry("/3"), "/././a": entry("/4")}),
    "parts": transfer({"/a": part(0, 7, SOURCE_SIZE=1000, **begun(30)), "/./a": part(100, 0, 7, **begun(7, FLAG="DONE")),
                       "/b": part(0, 107, 0)}, **OPTIONS),
    "parts-and-files": transfer({"/a": part(5, 5), "//a": part(5, 6), "/b": entry()}),
    "part-to-the-end": transfer({"/a": part(LAST - 100, 0, SOURCE_SIZE=LAST), "/b": part(0, LAST - 100)}),
    "no-files": transfer({}, **OPTIONS),
    "no-list": OPTIONS,
    "failed": transfer({"/a": entry()}, CODE=-28, ERROR="write /pfs/a: No space left on device", FLAG="DONE"),
    "limits-small": transfer({}, PERCENT="0.000001", BW="1e-6"),
    "limits-large": transfer({}, PERCENT="1e308", BW="123456789012345678901234567890.5", WORKERS=256, BUFFER=2**30),
    "size-largest": transfer({"/a": entry(size=LAST, **begun(LAST, FLAG="DONE"))}),
    "time-before-1970": transfer({"/a": entry(**begun(1, MTIME="-9223372036854775808.000000001"))}),
}

LIES = {
    "source-relative": transfer({"a": entry()}),
    "source-empty": transfer({"": entry()}),
    "destination-relative": transfer({"/a": entry("pfs/a")}),
    "destination-missing": transfer({"/a": {"SIZE": 1}}),
    "destination-two": transfer({"/a": {"DESTINATION": {"/b": {}, "/c": {}}, "SIZE": 1}}),
    "destination-twice": transfer({"/a": entry("/x"), "/b": entry("/x")}),
    "part-twice": transfer({"/a": part(0, 1), "/b": part(1, 1)}),
    "part-and-file": transfer({"/a": part(0, 1), "/b": entry("/pfs/container")}),
    "file-and-part": transfer({"/b": entry("/pfs/container"), "/a": part(0, 1)}),
    "part-without-offset": transfer({"/a": entry(SOURCE_OFFSET=1)}),
    "part-too-far": transfer({"/a": part(0, LAST - 99)}),
    "part-too-far-in-source": transfer({"/a": part(2**64 - 1, 0)}),
    "part-source-size": transfer({"/a": part(0, 1, SOURCE_SIZE="x")}),
    "size-missing": transfer({"/a": {"DESTINATION": "/b"}}),
    "size-negative": transfer({"/a": entry(size=-1)}),
    "size-too-large": transfer({"/a": entry(size=2**63)}),
    "size-far-too-large": transfer({"/a": entry(size=2**64)}),
    "written-too-much": transfer({"/a": entry(**begun(101))}),
    "done-in-part": transfer({"/a": entry(**begun(99, FLAG="DONE"))}),
    "crc-missing": transfer({"/a": entry(WRITTEN=1, MTIME="1.000000000")}, OPTIONS={"CHECKSUM": {}}),
    "crc-too-large": transfer({"/a": entry(**begun(1, CRC="0x100000000"))}, OPTIONS={"CHECKSUM": {}}),
    "time-short": transfer({"/a": entry(**begun(1, MTIME="1700000000.5"))}),
    "time-blanks": transfer({"/a": entry(**begun(1, MTIME="1700000000. 12345678"))}),
    "time-sign": transfer({"/a": entry(**begun(1, MTIME="1700000000.+12345678"))}),
    "time-too-large": transfer({"/a": entry(**begun(1, MTIME="9223372036854775808.000000000"))}),
    "bw-negative": transfer({}, BW=-1),
    "bw-tiny": transfer({}, BW="0.0000001"),
    "bw-infinite": transfer({}, BW="1e999"),
    "percent-no-number": transfer({}, PERCENT="nan"),
    "workers": transfer({}, WORKERS=257),
    "buffer": transfer({}, BUFFER=0),
    "buffer-large": transfer({}, BUFFER=2**30 + 1),
    "id-short": transfer({}, ID="0123456789abcde"),
    "id-large-letters": transfer({}, ID="0123456789ABCDEF"),
    "id-two": transfer({}, ID={"0123456789abcdef": {}, "0123456789abcde0": {}}),
    "error-long": transfer({}, CODE=-5, ERROR="x" * 1000),
    "path-long": transfer({"/" + "x" * 1500: entry("y" * 1500)}),
    # the most memory that so few bytes can request
    "entries-small": transfer({f"/{i:x}": {"DESTINATION": f"/{i:x}", "SIZE": 0, "SOURCE_OFFSET": 0,
                                           "DESTINATION_OFFSET": 0} for i in range(40)}),
}

if __name__ == "__main__":
    corpus.write(__file__, {"fuzz_axl_state": {
        name: corpus.lines(tree) for name, tree in (FILES | {f"lie-{name}": tree for name, tree in LIES.items()}).items()}
        | {"no-bytes": b"", "not-a-transfer": b"FILES\n\n /\n  DESTINATION\n e\0f\n     g"}})
