# SPDX-License-Identifier: BSD-3-Clause
"""Tree files, the format of all records of SCR (docs/formats/kvtree.md). Reads them without libscr.

The bytes are untrusted: each count is compared with the number of bytes left before it is
used, and the limit of the caller bounds memory.
"""
from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from types import MappingProxyType
from typing import BinaryIO, Dict, List, Mapping, Union

from ._errors import FormatError, VersionError

MAGIC, TYPE, VERSION, HAS_CRC = 0x951fc3f5, 1, 1, 1
HEADER = struct.Struct(">IHHQI")
COUNT = struct.Struct(">I")
ELEMENT_MIN = 5   # an empty key with its NUL, and the count of an empty tree
COUNT_MAX = 0x7fffffff
DEPTH_MAX = 1000  # more than any record has; more deeply nested dictionaries do not work well
SMALL, INDEX, LIMIT = 1 << 20, 1 << 27, 1 << 24  # bytes of small records, of an index, of any tree

Tree = Mapping[str, "Tree"]
FilePath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_EMPTY: Tree = MappingProxyType({})


class _Unpacker:
    def __init__(self, data: memoryview) -> None:
        self.data = bytes(data)
        self.at = 0
        self.owed = 0  # elements that the counts so far promise and that are not read yet

    def count(self) -> int:
        left = len(self.data) - self.at - COUNT.size
        if left < 0:
            raise FormatError(f"packed tree ends within the count at byte {self.at}")
        count: int = COUNT.unpack_from(self.data, self.at)[0]
        self.owed += count
        if count > COUNT_MAX or (count and self.owed > left // ELEMENT_MIN):
            raise FormatError(f"packed tree: count {count} at byte {self.at} is more than {left} bytes can hold")
        self.at += COUNT.size
        return count

    def key(self, tree: Mapping[str, object]) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise FormatError(f"packed tree: key at byte {self.at} has no end")
        key = self.data[self.at:end].decode(errors="surrogateescape")
        if key in tree:
            raise FormatError(f"packed tree: key at byte {self.at} is there for the second time")
        self.at = end + 1
        self.owed -= 1
        return key

    def tree(self) -> Tree:
        root: Dict[str, Tree] = {}
        above: List[Dict[str, Tree]] = []
        levels: List[int] = []  # number of elements that each of them still gets
        tree, left = root, self.count()
        while True:
            while not left:
                if not levels:
                    return root
                tree, left = above.pop(), levels.pop()
            key = self.key(tree)
            below = self.count()
            left -= 1
            if not below:
                tree[key] = _EMPTY
                continue
            if len(levels) + 1 >= DEPTH_MAX:
                raise FormatError(f"packed tree: more than {DEPTH_MAX} levels at byte {self.at}")
            above.append(tree)
            levels.append(left)
            child: Dict[str, Tree] = {}
            tree[key] = child
            tree, left = child, below


def _check_header(data: bytes, there: int, limit: int) -> str:
    """Returns why a file is of another version; "" if it is of this version."""
    if len(data) < HEADER.size:
        raise FormatError(f"cut off: {len(data)} bytes where {HEADER.size} were expected")
    magic, kind, version, size, flags = HEADER.unpack(data)
    if magic != MAGIC:
        raise FormatError(f"not a tree file: magic number 0x{magic:08x}, not 0x{MAGIC:08x}")
    other = ""
    if kind != TYPE:
        other = f"file type {kind}; this program knows type {TYPE}"
    elif version != VERSION:
        other = f"file version {version}; this program knows version {VERSION}"
    elif flags & ~HAS_CRC:
        other = f"unknown flags 0x{flags & ~HAS_CRC:08x}"
    if size < HEADER.size + COUNT.size + (4 if flags & HAS_CRC else 0):
        raise FormatError(f"size field {size} is too small for a tree")
    if size != there:
        raise FormatError(f"{'cut off' if size > there else 'trailing bytes'}: size field {size}, but {there} bytes")
    if size > limit:
        if other:
            raise VersionError(other)
        raise FormatError(f"too large: {size} bytes, but only {limit} are accepted")
    return other


def _parse(file: BinaryIO, there: int, limit: int) -> Tree:
    header = file.read(HEADER.size)
    other = _check_header(header, there, limit)
    data = header + file.read(there - HEADER.size)
    if len(data) != there:
        raise FormatError(f"cut off: {len(data)} bytes where {there} were expected")
    end = there
    if HEADER.unpack(header)[4] & HAS_CRC:
        end -= 4
        stored, real = COUNT.unpack_from(data, end)[0], zlib.crc32(memoryview(data)[:end])
        if stored != real:
            raise FormatError(f"damaged: checksum 0x{stored:08x}, but the bytes have 0x{real:08x}")
    if other:
        raise VersionError(other)
    unpacker = _Unpacker(memoryview(data)[HEADER.size:end])
    tree = unpacker.tree()
    if unpacker.at != len(unpacker.data):
        raise FormatError(f"{len(unpacker.data) - unpacker.at} bytes too many between the tree and the end")
    return tree


def open_regular(path: FilePath) -> BinaryIO:
    """Opens a file of a prefix directory. Refuses a pipe or device in its place at once."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FormatError(f"{os.fsdecode(path)}: not a regular file")
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def read_tree(path: FilePath, limit: int = LIMIT) -> Tree:
    """Returns the tree in a file: mappings of texts to mappings, in the order of the file.

    Bytes that are not UTF-8 are decoded as by os.fsdecode(). limit: maximum size of the file
    in bytes; a tree takes up to 40 times its bytes in memory. Raises OSError, FormatError for
    a damaged file, and VersionError for an intact file of another version.
    """
    with open_regular(path) as file:
        try:
            return _parse(file, os.fstat(file.fileno()).st_size, limit)
        except FormatError as error:
            raise type(error)(f"{os.fsdecode(path)}: {error}") from None


def missing(path: FilePath) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(path))
