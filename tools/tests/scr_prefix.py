#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_prefix: the prefix directory that a run would have."""
import os
import pathlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import without_scr_variables

without_scr_variables()


def test_each_place():
    here = os.getcwd()
    expect(run(), 0, here + '\n')
    for name in ('one', 'two'):
        os.mkdir(name)
    pathlib.Path('.scrconf').write_text(f'SCR_PREFIX={here}/two\n')
    expect(run(), 0, f'{here}/two\n')
    os.symlink('one', 'link')
    os.environ['SCR_PREFIX'] = 'link/../link'
    expect(run(), 0, f'{here}/one\n')
    os.environ['SCR_PREFIX'] = here + '/no'
    expect(run(), 1, '', ['DIRECTORY_UNUSABLE', '/no: No such file'])
    os.environ['SCR_PREFIX'] = '/dev/null'
    expect(run(), 1, '', ['DIRECTORY_UNUSABLE', 'Not a directory'])
    del os.environ['SCR_PREFIX']
    pathlib.Path('.scrconf').write_text('SCR_PREFIX\n')
    expect(run(), 1, '', ['CONFIG_MISTAKE', 'PREFIX_UNCERTAIN', '.scrconf:1:'])
    os.unlink('.scrconf')
    os.mkdir('a\u202eb')
    os.chdir('a\u202eb')
    assert run().stdout.endswith(b'a\\xe2\\x80\\xaeb\n')


def test_usage():
    expect_output_fails([])
    expect_wrong_usage(['x'], ['--no'])
    expect_documented(2)
    expect_well_formed_page()


run_tests(globals())
