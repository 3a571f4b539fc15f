# SPDX-License-Identifier: BSD-3-Clause
"""The bytes of packed trees and of files, compared with an independent encoder.

usage: golden.py libscr-kvtree.so

The encoder below was written from the byte tables of the SCR Developer Guide 1.2, section
2.3.4, and shares no code with the library. Trees are dicts of dicts.
"""
import ctypes
import os
import pathlib
import random
import re
import struct
import sys
import tempfile
import zlib

lib = ctypes.CDLL(sys.argv[1])
tree_t = ctypes.c_void_p
for name, result, arguments in (
        ('new', tree_t, ()),
        ('delete', ctypes.c_int, (ctypes.POINTER(tree_t),)),
        ('set', tree_t, (tree_t, ctypes.c_char_p, tree_t)),
        ('pack_size', ctypes.c_size_t, (tree_t,)),
        ('pack', ctypes.c_size_t, (ctypes.c_char_p, tree_t)),
        ('unpack_n', ctypes.c_ssize_t, (ctypes.c_char_p, ctypes.c_size_t, tree_t)),
        ('write_file', ctypes.c_int, (ctypes.c_char_p, tree_t)),
        ('read_file', ctypes.c_int, (ctypes.c_char_p, tree_t)),
        ('elem_first', ctypes.c_void_p, (tree_t,)),
        ('elem_next', ctypes.c_void_p, (ctypes.c_void_p,)),
        ('elem_key', ctypes.c_char_p, (ctypes.c_void_p,)),
        ('elem_hash', tree_t, (ctypes.c_void_p,))):
    function = getattr(lib, 'scr_kvtree_' + name)
    function.restype, function.argtypes = result, arguments


def packed(tree):
    return struct.pack('>I', len(tree)) + b''.join(
        key + b'\0' + packed(value) for key, value in tree.items())


def file_bytes(tree, crc=True):
    data = packed(tree)
    size = 20 + len(data) + (4 if crc else 0)
    head = struct.pack('>IHHQI', 0x951fc3f5, 1, 1, size, 1 if crc else 0)
    return head + data + (struct.pack('>I', zlib.crc32(head + data)) if crc else b'')


def build(tree, into=None):
    into = into or lib.scr_kvtree_new()
    for key, value in tree.items():
        build(value, lib.scr_kvtree_set(into, key, None))
    return into


def content(handle):
    tree, elem = {}, lib.scr_kvtree_elem_first(handle)
    while elem:
        tree[lib.scr_kvtree_elem_key(elem)] = content(lib.scr_kvtree_elem_hash(elem))
        elem = lib.scr_kvtree_elem_next(elem)
    return tree


def random_tree(rng, depth):
    keys = {bytes(rng.choices(range(1, 256), k=rng.randrange(12)))
            for _ in range(rng.choice((0, 1, 2, 3, 30)))}
    return {key: random_tree(rng, depth - 1) if depth else {} for key in keys}


def same_order(a, b):
    return list(a) == list(b) and all(same_order(a[key], b[key]) for key in a)


def check(tree, folder):
    path = os.path.join(folder, b'tree')
    handle = build(tree)
    buffer = ctypes.create_string_buffer(lib.scr_kvtree_pack_size(handle))
    assert lib.scr_kvtree_pack(buffer, handle) == len(buffer.raw)
    assert buffer.raw == packed(tree), 'kvtree_pack'
    assert lib.scr_kvtree_write_file(path, handle) == 0
    with open(path, 'rb') as file:
        assert file.read() == file_bytes(tree), 'kvtree_write_file'
    lib.scr_kvtree_delete(ctypes.byref(tree_t(handle)))

    for read in ('unpacked', 'with checksum', 'without'):
        handle, data = lib.scr_kvtree_new(), packed(tree)
        if read == 'unpacked':
            assert lib.scr_kvtree_unpack_n(data, len(data), handle) == len(data)
        else:
            with open(path, 'wb') as file:
                file.write(file_bytes(tree, read == 'with checksum'))
            assert lib.scr_kvtree_read_file(path, handle) == 0, read
        assert same_order(content(handle), tree), read
        lib.scr_kvtree_delete(ctypes.byref(tree_t(handle)))


guide = {b'RANK': {b'0': {b'FILES': {b'2': {}},
                          b'FILE': {b'foo_0.txt': {b'SIZE': {b'1024': {}}, b'COMPLETE': {b'1': {}}},
                                    b'bar_0.txt': {b'SIZE': {b'2048': {}}, b'COMPLETE': {b'1': {}}}}},
                   b'1': {b'FILES': {b'1': {}},
                          b'FILE': {b'foo_1.txt': {b'SIZE': {b'3072': {}}, b'COMPLETE': {b'1': {}}}}}}}
assert file_bytes({b'a': {}}) == bytes.fromhex(
    '951fc3f5 0001 0001 0000000000000022 00000001 00000001 6100 00000000 888a852b')

# The example in the description of the format.
text = (pathlib.Path(__file__).parents[2] / 'docs/formats/kvtree.md').read_text()
listed = re.findall(r'^[0-9a-f]{2}  ((?:[0-9a-f]{2} {1,2})+)', text, flags=re.MULTILINE)
assert bytes.fromhex(''.join(listed)) == file_bytes(
    {b'RANK': {b'0': {b'FILES': {b'2': {}}}}}), 'docs/formats/kvtree.md'

rng = random.Random(1)
with tempfile.TemporaryDirectory(prefix='scr-test-') as scratch:
    trees = [{}, {b'': {}}, guide, {b'%d' % i: {} for i in range(2000)}]
    trees += [random_tree(rng, 2) for _ in range(40)]
    for one in trees:
        check(one, os.fsencode(scratch))
print(len(trees), 'trees')
