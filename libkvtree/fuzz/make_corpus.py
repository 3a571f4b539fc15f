#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the inputs from which the fuzz targets of libkvtree start.

    libkvtree/fuzz/make_corpus.py

Trees are dicts of dicts; the encoder was written from docs/formats/kvtree.md and shares no code with
the library. Inputs named found-* were found by fuzzing (tests/fuzz.py --merge) and stay.
"""
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/support"))

import corpus  # noqa: E402

MAGIC = 0x951FC3F5


def u32(number):
    return struct.pack(">I", number)


def packed(tree):
    """Packs a tree without recursion: one of the trees is deep."""
    out, todo = [], [iter([(None, tree)])]
    while todo:
        for key, value in todo[-1]:
            out.append((b"" if key is None else key + b"\0") + u32(len(value)))
            todo.append(iter(value.items()))
            break
        else:
            todo.pop()
    return b"".join(out)


def file_bytes(data, *, magic=MAGIC, kind=1, version=1, size=0, flags=1, crc=0):
    """Returns the file of a packed tree. size and crc are added to the right values."""
    whole = 20 + len(data) + (4 if flags & 1 else 0)
    head = struct.pack(">IHHQI", magic, kind, version, (whole + size) % 2**64, flags)
    checksum = u32((zlib.crc32(head + data) + crc) % 2**32) if flags & 1 else b""
    return head + data + checksum


def chain(depth, key=b"x"):
    tree = {}
    for _ in range(depth):
        tree = {key: tree}
    return tree


def wide(width):
    return {b"%d" % i: {} for i in range(width)}


GUIDE = {b"RANK": {
    b"0": {b"FILES": {b"2": {}}, b"FILE": {
        b"foo_0.txt": {b"SIZE": {b"1024": {}}, b"COMPLETE": {b"1": {}}},
        b"bar_0.txt": {b"SIZE": {b"2048": {}}, b"COMPLETE": {b"1": {}}}}},
    b"1": {b"FILES": {b"1": {}}, b"FILE": {
        b"foo_1.txt": {b"SIZE": {b"3072": {}}, b"COMPLETE": {b"1": {}}}}}}}

TREES = {
    "empty": {},
    "empty-key": {b"": {}},
    "one": {b"a": {}},
    "guide": GUIDE,
    "chain": chain(3),
    "chain-of-empty-keys": chain(40, b""),
    "deep": chain(200),
    "width-8": wide(8),
    "width-9": wide(9),
    "width-10-with-values": {b"%d" % i: {b"v": {b"w": {}}} for i in range(10)},
    "wide": wide(100),
    "wide-in-deep": chain(6) | {b"y": {b"z": wide(30)}},
    "numbers": {b"10": {}, b"-5": {}, b"9223372036854775807": {}, b"01": {}, b"1": {}},
    "long-key": {b"k" * 300: {b"v": {}}},
    "odd-keys": {b"\x01\n\t\x1b[31m": {b"\\": {}, b" ": {}, b" a ": {}},
                 b"\xff\xfe\x80": {b"\xc3\xa9": {}, b"\xe2\x82\xac": {}, b"\xf0\x9f\x98\x80": {}},
                 b"\xc2\x85": {b"\xed\xa0\x80": {}, b"\xc0\xaf": {}, b"\"/": {}}},
}

# Keys that look like the characters around keys in the text of a tree.
LOOKS = [b"(level 5) x", b"(level ", b"a = b", b"=", b"= a", b"a =", b"a =  = b", b" = ", b"a=b", b"\\x41",
         b"\\0", b"+- a", b"| +- a", b"|", b"{", b"\"a\": {}", b"a\nb", b"\r", b"  a", b"a  ", b"\\",
         b"\xf4\x90\x80\x80", b"\xf3\xa0\x80\x81", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xc2", b"\xc3\xa9\xc3"]
PRINTED = {
    "looks": {key: {} for key in LOOKS},
    "looks-of-keys-and-values": {key: {key: {}} for key in LOOKS},
    "looks-deep": chain(63, b"=") | {b"y": chain(70, b"(level 66) ")},
    "guides": {b"a": {b"b": {b"c": {b"d": {}}, b"e": {}}, b"f": {}}, b"g": {b"h": {}, b"i": {b"j": {b"k": {}}}}},
}

# After a packed tree: the operations of the fuzz target on it.
WORK = {
    "work": packed(GUIDE) + bytes(range(24)),
    "work-wide": packed(wide(20)) + b"\x07\x01\x02" * 8,
    "work-widen": packed(GUIDE) + b"\x00\x00\x00\x08\x00\x00\x05" * 4,
}

DAMAGED = {
    "no-bytes": b"",
    "half-a-count": b"\0\0",
    "count-without-elements": u32(1),
    "count-of-all": u32(0xFFFFFFFF) + b"a\0" + u32(0),
    "count-of-int-max": u32(0x7FFFFFFF) + b"a\0" + u32(0),
    "count-one-too-many": u32(3) + b"\0" + u32(0) + b"a\0" + u32(0),
    "count-inside": u32(1) + b"a\0" + u32(2) + b"b\0" + u32(0),
    # the elements owed to the outer tree have no room after this long key
    "count-behind-long-key": u32(3) + b"a" * 10 + b"\0" + u32(0x0FFFFFFF) + b"\0" + u32(0),
    "no-nul": u32(1) + b"abcdefgh",
    "twice": u32(2) + (b"a\0" + u32(0)) * 2,
    "twice-empty": u32(2) + (b"\0" + u32(0)) * 2,
    "twice-wide": u32(21) + packed(wide(20))[4:] + b"7\0" + u32(0),
    "no-last-count": u32(1) + b"a\0",
    "deep-cut": packed(chain(50))[:-5],
    "behind": packed({b"a": {}}) + b"behind",
}

TEXTS = [
    "", "0", "1", "-1", "+1", "-0", "007", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "18446744073709551616", "9" * 60, "0" * 40 + "5",
    " 1", "1 ", "1\n", "\t1", "--1", "+-1", "- 1", "1-", "0x", "0x0", "0xffffffff", "0x100000000", "0XFF",
    "0xFfFfFfFfFfFfFfFf", "0x10000000000000000", "0x-1", "0x 1", "0x0x1", "-0x1", "+0x1", "x1", "ff",
    "1.5", ".5", "5.", ".", "-.5", "+.", "1e5", "1E+5", "1e-5", "1e", "1e+", "e5", ".e1", "1.5.5", "1,5",
    "1e308", "1.7976931348623157e308", "1.7976931348623159e308", "1e309", "-1e400", "1e99999", "0e99999",
    "2.2250738585072014e-308", "4.9e-324", "1e-400", "0.000000e-999", "inf", "nan", "infinity", "0x1p3",
    "1_000", "1'000", "\N{ARABIC-INDIC DIGIT FIVE}", "a string", "twenty-four bytes of it."]

DOUBLES = [0.0, -0.0, 0.1, -2.5, 1e-7, 4294967296.000001, 1e22, 1.7976931348623157e308, 5e-324,
           float("inf"), float("nan")]


def unpack_inputs():
    return {name: packed(tree) for name, tree in TREES.items()} | WORK | DAMAGED


def file_inputs():
    guide, small = packed(GUIDE), packed({b"a": {b"b": {}}})
    inputs = {name: file_bytes(packed(tree)) for name, tree in TREES.items()}
    inputs |= {"damaged-" + name: file_bytes(data) for name, data in DAMAGED.items()}
    inputs |= {
        "without-checksum": file_bytes(guide, flags=0),
        "wrong-checksum": file_bytes(small, crc=1),
        "wrong-magic": file_bytes(small, magic=MAGIC + 1),
        "wrong-type": file_bytes(small, kind=2),
        "wrong-version": file_bytes(small, version=2),
        "wrong-flags": file_bytes(small, flags=3),
        "size-too-small": file_bytes(small, size=-1),
        "size-too-large": file_bytes(small, size=1),
        "size-of-nothing": file_bytes(small, size=-len(small) - 24),
        "size-of-terabytes": file_bytes(small, size=1 << 40),
        "size-of-all": file_bytes(small, size=-len(small) - 25),
        "header-only": file_bytes(b"", flags=0),
        "trailing-bytes": file_bytes(small) + b"behind",
        "no-bytes": b"",
    }
    return inputs


def print_inputs():
    return {name: packed(tree) for name, tree in (TREES | PRINTED).items()}


def util_inputs():
    inputs = {f"text-{i:02}": text.encode() for i, text in enumerate(TEXTS)}
    inputs |= {f"numbers-{i:02}": struct.pack("<qd", (-1) ** i * (1 << 5 * i), double)
               for i, double in enumerate(DOUBLES)}
    return inputs


if __name__ == "__main__":
    corpus.write(__file__, {"fuzz_kvtree_unpack": unpack_inputs(), "fuzz_kvtree_file": file_inputs(),
                            "fuzz_kvtree_print": print_inputs(), "fuzz_kvtree_util": util_inputs()})
