# SPDX-License-Identifier: BSD-3-Clause
"""The command kvtree_print.

usage: kvtree_print.py kvtree_print kvtree_print.1
"""
import json
import os
import pathlib
import struct
import subprocess
import zlib

from command import (COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page,
                     expect_wrong_usage, image, run, run_tests)

GUIDE = {'RANK': {'0': {'FILES': {'2': {}}, 'NOTE': {'a = b\x1b': {}}}}}
TREE = 'RANK\n  0\n    FILES\n      2\n    NOTE\n      a = b\\x1b\n'
MARGIN = ''.join(f'  {line}\n' for line in TREE.splitlines())  # as KVTree prints it
SMALL = {'RANK': {'0': {'FILES': {'2': {}}}}}


def test_forms():
    pathlib.Path('f').write_bytes(image(GUIDE))
    pairs = 'RANK\n  0\n    FILES = 2\n    NOTE = a \\x3d b\\x1b\n'
    lines = '+- RANK\n  +- 0\n    +- FILES = 2\n    +- NOTE = a \\x3d b\\x1b\n'
    for options in ([], ['--mode', 'tree'], ['-mtree'], ['-k', '--mode=tree']):
        expect(run(*options, 'f'), 0, MARGIN)
    for options in (['--tree'], ['-t'], ['--json', '--tree'], ['--mode=keyval', '-t']):
        expect(run(*options, 'f'), 0, TREE)
    for options in (['--mode', 'keyval'], ['-m', 'keyval'], ['-j', '-m', 'keyval']):
        expect(run(*options, 'f'), 0, ''.join(f'  {line}\n' for line in pairs.splitlines()))
    for options in (['--key-value'], ['-k'], ['--tree', '-k']):
        expect(run(*options, 'f'), 0, pairs)
    for options in (['--lines'], ['-l']):
        expect(run(*options, 'f'), 0, lines)
    expect(run('f', '-i', '1'), 0, MARGIN.replace('  ', ' '))
    expect(run('--indent=3', 'f'), 0, MARGIN.replace('  ', '   '))
    expect(run('--indent=3', '-t', 'f'), 0, TREE.replace('  ', '   '))
    for options, indent in ((['--json'], 2), (['-j', '-i5'], 5)):
        objects = {'RANK': {'0': {'FILES': '2', 'NOTE': 'a = b\x1b'}}}
        expect(run(*options, 'f'), 0, json.dumps(objects, indent=indent) + '\n')
    assert pathlib.Path('f').read_bytes() == image(GUIDE)


def test_scr_print():
    """The command of SCR 3: sorted at all levels."""
    os.symlink(COMMAND, 'scr_print')
    alias = pathlib.Path('scr_print').absolute()
    pathlib.Path('f').write_bytes(image({'b': {'2': {'y': {}, 'x': {}}, '10': {}}, 'a': {'1': {}}}))
    expect(run('f', command=alias), 0, '  a = 1\n  b\n    10\n    2\n      x\n      y\n')
    expect(run('-m', 'tree', 'f', command=alias), 0, '  a\n    1\n  b\n    10\n    2\n      x\n      y\n')
    expect(run('--json', 'f', command=alias), 0, '{\n  "a": "1",\n  "b": {\n    "10": {},\n    "2": {\n      "x": {},\n      "y": {}\n    }\n  }\n}\n')
    expect(run('no', command=alias), 1, '', ['scr_print: read no: '])
    expect(run('-t', 'f'), 0, 'b\n  2\n    y\n    x\n  10\na\n  1\n')
    assert run(command=alias).returncode == 2 and run('-m', 'xml', 'f', command=alias).returncode == 2


def test_verify():
    pathlib.Path('with').write_bytes(image(SMALL))
    pathlib.Path('without').write_bytes(image(SMALL, crc=False))
    pathlib.Path('empty tree').write_bytes(image({}))
    crc = zlib.crc32(image({})[:-4])
    expect(run('--verify', 'with', 'without', 'empty tree'), 0,
           'with: good, 59 bytes, 4 elements, checksum 0xb234eb30\n'
           'without: good, 55 bytes, 4 elements, without checksum\n'
           f'empty tree: good, 28 bytes, 0 elements, checksum 0x{crc:08x}\n')
    expect(run('-v', '--json', 'with'), 0, 'with: good, 59 bytes, 4 elements, checksum 0xb234eb30\n')
    expect(run('--verify', '-', input=image(SMALL)), 0,
           '-: good, 59 bytes, 4 elements, checksum 0xb234eb30\n')


def refused(data, *reasons, verify=True):
    """Reads the same file by its name, through standard input, and through a pipe."""
    pathlib.Path('bad').write_bytes(data)
    options = ['--verify'] if verify else []
    expect(run(*options, 'bad'), 1, '', ['KVTREE_FILE_UNREADABLE', 'kvtree_print: read bad: ', *reasons])
    with open('bad', 'rb') as file:
        expect(run(*options, '-', stdin=file), 1, '', ['kvtree_print: read -: ', *reasons])
    expect(run(*options, '-', input=data), 1, '', ['kvtree_print: read -: ', *reasons])
    assert pathlib.Path('bad').read_bytes() == data


def test_damage():
    good = image(SMALL)
    for length in range(len(good)):
        refused(good[:length], 'cut off', verify=length % 2)
    for at in range(len(good)):
        refused(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
    for more in (b'\0', good):
        refused(good + more, 'trailing bytes')
        expect(run('-', input=good + more), 1, '', ['trailing bytes'])
    refused(b'not a tree at all, but some text', 'not a tree file: magic number')
    refused(b'\0' * 3000000, 'magic number')
    huge = good[:8] + struct.pack('>Q', 1 << 60) + good[16:]
    refused(huge, 'cut off')
    refused(good[:8] + b'\xff' * 8 + good[16:], 'size field 18446744073709551615')


def test_things_that_are_no_files():
    os.mkdir('folder')
    expect(run('folder'), 1, '', ['kvtree_print: read folder: ', 'Is a directory'])
    expect(run('missing'), 1, '', ['kvtree_print: read missing: No such file or directory'])
    expect(run('mis\x1b\nsing'), 1, '', ['read mis\\x1b\\nsing: No such'])
    expect(run('/dev/zero'), 1, '', ['read /dev/zero: not a tree file'])
    expect(run('missing', ''), 2, '', ['USAGE_WRONG'])
    expect(run('-', stdin=None, preexec_fn=lambda: os.close(0)), 1, '', ['read -: ', 'Bad file descriptor'])
    pathlib.Path('private').write_bytes(image(SMALL))
    os.chmod('private', 0)
    if os.geteuid() != 0:
        expect(run('private'), 1, '', ['read private: Permission denied'])
    pathlib.Path('private').unlink()


def test_links_and_pipes():
    pathlib.Path('f').write_bytes(image(GUIDE))
    os.symlink('f', 'link')
    os.symlink('nowhere', 'dangling')
    expect(run('link'), 0, MARGIN)
    expect(run('dangling'), 1, '', ['read dangling: No such file'])
    expect(run('-', input=image(GUIDE)), 0, MARGIN)
    expect(run('-', input=image(GUIDE, crc=False)), 0, MARGIN)
    large = {f'{n:0100}': {} for n in range(30000)}  # more than a pipe holds, and than the first allocation
    done = run('-', input=image(large))
    assert done.returncode == 0 and done.stdout.decode().split() == list(large)
    expect(run('-', input=image(large)[:-1]), 1, '', ['cut off'])
    os.mkfifo('fifo')
    with subprocess.Popen(['sh', '-c', 'cat f >fifo']):
        expect(run('fifo'), 0, MARGIN)
    with open('f', 'rb') as file:
        expect(run('-', '-', stdin=file), 1, '-:\n' + MARGIN, ['read -: cut off: 0 bytes'])


def test_several_files():
    pathlib.Path('a').write_bytes(image({'A': {}}))
    pathlib.Path('b').write_bytes(image({'B': {'1': {}}}))
    pathlib.Path('bad').write_bytes(b'nothing of that kind')
    expect(run('a', 'b', '-t'), 0, 'a:\nA\nb:\nB\n  1\n')
    expect(run('a', 'bad', 'missing', 'b', '-k'), 1, 'a:\nA\nb:\nB = 1\n', ['read bad: ', 'read missing: '])
    expect(run('--json', 'a', 'bad', 'b'), 1, '{\n  "A": {}\n}\n{\n  "B": "1"\n}\n', ['read bad: '])
    expect(run('--verify', 'bad', 'missing'), 1, '', ['read bad: ', 'read missing: '])


def test_output_fails():
    pathlib.Path('f').write_bytes(image(GUIDE))
    expect_output_fails(['f'], ['-j', 'f'], ['f', 'f'], ['--verify', 'f'])


def test_wrong_usage():
    pathlib.Path('f').write_bytes(image(GUIDE))
    expect_wrong_usage([], ['--json'], ['f', ''], ['--wrong', 'f'], ['-x', 'f'], ['f', '--indent'], ['--indent=0', 'f'],
                       ['--mode', 'f'], ['--mode=', 'f'], ['-m', 'json', 'f'],
                       ['--indent=65', 'f'], ['--indent=2x', 'f'], ['--indent=', 'f'],
                       ['-i', '99999999999999999999', 'f'], ['--json=1', 'f'], ['--mode=json', 'f'], ['-m', '', 'f'], ['f', '-m'])
    expect(run('--indent=64', 'f', '-k'), 0, (f"RANK\n{' ' * 64}0\n{' ' * 128}FILES = 2\n"
                                              f"{' ' * 128}NOTE = a \\x3d b\\x1b\n"))


def test_alias():
    pathlib.Path('f').write_bytes(image(GUIDE))
    os.symlink(COMMAND, 'scr_print_hash_file')
    alias = pathlib.Path('scr_print_hash_file').absolute()
    expect(run('f', command=alias), 0, MARGIN)
    assert run('--help', command=alias).stdout.startswith(b'usage: scr_print_hash_file [')
    assert run('--version', command=alias).stdout.startswith(b'scr_print_hash_file 4.')
    expect(run('no', command=alias), 1, '', ['scr_print_hash_file: read no: '])


def test_help_and_man_page():
    expect_documented(9, {'--indent': '3', '--mode': 'keyval'})
    expect_well_formed_page()


run_tests(globals())
