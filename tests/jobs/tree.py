# SPDX-License-Identifier: BSD-3-Clause
"""Tree files (docs/formats/kvtree.md) as dicts of dicts, written and read without the library."""
import struct
import zlib

MAGIC, TYPE, VERSION, HAS_CRC = 0x951fc3f5, 1, 1, 1
HEADER = struct.Struct(">IHHQI")


def packed(tree):
    return struct.pack(">I", len(tree)) + b"".join(
        key.encode() + b"\0" + packed(value) for key, value in tree.items())


def unpacked(data, at=0):
    """Returns the tree that begins at a place in data, and its end."""
    (count,), at = struct.unpack_from(">I", data, at), at + 4
    tree = {}
    for _ in range(count):
        end = data.index(b"\0", at)
        key = data[at:end].decode()
        tree[key], at = unpacked(data, end + 1)
    return tree, at


def write(path, tree):
    data = packed(tree)
    data = HEADER.pack(MAGIC, TYPE, VERSION, HEADER.size + len(data) + 4, HAS_CRC) + data
    path.write_bytes(data + struct.pack(">I", zlib.crc32(data)))


def read(path):
    data = path.read_bytes()
    assert struct.unpack(">I", data[-4:])[0] == zlib.crc32(data[:-4]), f"{path} is damaged"
    return unpacked(data, HEADER.size)[0]


def only(tree):
    """Returns the only key of a tree."""
    assert len(tree) == 1, tree
    return next(iter(tree))
