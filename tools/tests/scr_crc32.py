#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_crc32, against zlib."""
import json
import os
import pathlib
import zlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)


def crc(data):
    return f'0x{zlib.crc32(data):08x}'


def test_files():
    contents = {'empty': b'', 'one': b'x', 'large': bytes(range(256)) * 10000, '\u202ename': b'y'}
    for name, data in contents.items():
        pathlib.Path(name).write_bytes(data)
    shown = {'\u202ename': '\\xe2\\x80\\xaename'}
    expect(run(*contents), 0, ''.join(f'{crc(data)}  {shown.get(name, name)}\n' for name, data in contents.items()))
    expect(run('-', input=contents['large']), 0, f'{crc(contents["large"])}  -\n')
    found = [json.loads(line) for line in run('--json', *contents).stdout.splitlines()]
    assert found == [{'file': name, 'crc32': crc(data), 'size': len(data)} for name, data in contents.items()]
    expect_output_fails(['one'], ['--json', 'one'])


def test_what_cannot_be_read():
    os.mkdir('folder')
    pathlib.Path('one').write_bytes(b'x')
    expect(run('no', 'one', 'folder'), 1, f'{crc(b"x")}  one\n', ['FILE_UNREADABLE', 'scr_crc32: no: No such file', 'folder: Is a directory'])
    os.mkfifo('pipe')
    os.symlink('/dev/zero', 'device')
    os.symlink('one', 'link')
    expect(run('pipe', 'device', 'link'), 1, f'{crc(b"x")}  link\n', ['FILE_UNREADABLE', 'pipe ', 'device '])
    pathlib.Path('--odd').write_bytes(b'x')
    expect(run('--', '--odd'), 0, f'{crc(b"x")}  --odd\n')


def test_usage():
    expect_wrong_usage([], ['--json'], ['--odd', 'x'], [''])
    expect_documented(3)
    expect_well_formed_page()


run_tests(globals())
