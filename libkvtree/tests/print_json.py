# SPDX-License-Identifier: BSD-3-Clause
"""The JSON form, read by Python's parser and compared with the tree.

usage: print_json.py libscr-kvtree.so
"""
import ctypes
import json
import os
import random
import sys
import tempfile

FORM_JSON = 3

lib = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None)
tree_t = file_t = ctypes.c_void_p
for owner, name, result, arguments in (
        (lib, 'scr_kvtree_new', tree_t, ()),
        (lib, 'scr_kvtree_delete', ctypes.c_int, (ctypes.POINTER(tree_t),)),
        (lib, 'scr_kvtree_set', tree_t, (tree_t, ctypes.c_char_p, tree_t)),
        (lib, 'scr_kvtree_fprint', ctypes.c_int, (file_t, tree_t, ctypes.c_int, ctypes.c_int)),
        (libc, 'fopen', file_t, (ctypes.c_char_p, ctypes.c_char_p)),
        (libc, 'fclose', ctypes.c_int, (file_t,))):
    function = getattr(owner, name)
    function.restype, function.argtypes = result, arguments


def build(tree, into=None):
    into = into or lib.scr_kvtree_new()
    for key, value in tree.items():
        build(value, lib.scr_kvtree_set(into, key, None))
    return into


def text_of(key):
    """Keeps valid UTF-8, and replaces any other byte by the character with its number."""
    return ''.join(chr(ord(c) - 0xdc00) if '\udc80' <= c <= '\udcff' else c
                   for c in key.decode('utf-8', errors='surrogateescape'))


def expected(tree):
    """Returns pairs, so that the order and keys that became equal are visible."""
    def value(below):
        only = list(below)[0] if len(below) == 1 else None
        return text_of(only) if only is not None and not below[only] else expected(below)
    return [(text_of(key), value(below)) for key, below in tree.items()]


def printed(tree, indent, path):
    handle = build(tree)
    file = libc.fopen(path, b'w')
    assert file and lib.scr_kvtree_fprint(file, handle, FORM_JSON, indent) == 0
    libc.fclose(file)
    lib.scr_kvtree_delete(ctypes.byref(tree_t(handle)))
    with open(path, 'rb') as read:
        return read.read()


def refuse(text):
    raise ValueError(text)


def check(tree, indent, path):
    data = printed(tree, indent, path)
    text = data.decode('utf-8', errors='strict')
    assert not any(ord(c) < 0x20 and c != '\n' or 0x7f <= ord(c) < 0xa0 for c in text), text
    read = json.loads(text, strict=True, object_pairs_hook=list, parse_constant=refuse)
    assert read == expected(tree), (read, expected(tree))
    # the layout is that of Python, except for the escapes
    if text.isascii() and '\\' not in text:
        objects = json.loads(text)
        assert text == json.dumps(objects, indent=indent) + '\n', text


PARTS = [b'"', b'\\', b'/', b'\n', b'\t', b'\x01', b'\x1f', b'\x7f', b' ', b'a', b'=', b'{', b'\\u0041',
         '\u00e9'.encode(), '\u20ac'.encode(), '\U0001f333'.encode(), '\U000e0041'.encode(), b'\xc2\x85',
         b'\xc3', b'\xa9', b'\xff', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', '\u2028'.encode(), '\uffff'.encode()]


def random_tree(rng, depth):
    keys = {b''.join(rng.choices(PARTS, k=rng.randrange(5))) for _ in range(rng.choice((0, 1, 1, 2, 5)))}
    return {key: random_tree(rng, depth - 1) if depth else {} for key in sorted(keys)}


guide = {b'RANK': {b'0': {b'FILES': {b'2': {}},
                          b'FILE': {b'foo_0.txt': {b'SIZE': {b'1024': {}}, b'COMPLETE': {b'1': {}}},
                                    b'bar_0.txt': {b'SIZE': {b'2048': {}}, b'COMPLETE': {b'1': {}}}}},
                   b'1': {b'FILES': {b'1': {}},
                          b'FILE': {b'foo_1.txt': {b'SIZE': {b'3072': {}}, b'COMPLETE': {b'1': {}}}}}}}
deep = {}
for _ in range(200):
    deep = {b'x': deep, b'y': {}}

rng = random.Random(1)
with tempfile.TemporaryDirectory(prefix='scr-test-') as scratch:
    trees = [guide, {b'': {}}, {b'': {b'': {}}}, {b'a': {}, b'b': {}}]
    trees += [{bytes([n]) + bytes([m]): {} for m in range(1, 256)} for n in (0x41, 0xc2, 0xc3, 0xe2, 0xff)]
    trees += [random_tree(rng, 4) for _ in range(300)]
    for number, one in enumerate(trees):
        check(one, 1 + number % 5, os.fsencode(os.path.join(scratch, 'text')))
    data = printed(deep, 2, os.fsencode(os.path.join(scratch, 'text')))
    assert json.loads(data, object_pairs_hook=list) == expected(deep)
    assert printed({}, 2, os.fsencode(os.path.join(scratch, 'text'))) == b'{}\n'
print(len(trees), 'trees')
