#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_list_dir: the directories that a run with the same configuration would have."""
import json
import os
import pathlib
import zlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import without_scr_variables


def clean(**variables):
    without_scr_variables()
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='17', **variables)


def test_folders():
    clean()
    expect(run('control'), 0, '/dev/shm/me/scr.17\n')
    expect(run('cache'), 0, '/dev/shm/me/scr.17\n')
    clean(SCR_CNTL_BASE='/c', SCR_CACHE_BASE='/')
    expect(run('control'), 0, '/c/me/scr.17\n')
    expect(run('cache'), 0, '/me/scr.17\n')
    expect(run('all', '--base'), 0, '/c\n/\n')
    expect(run('control', '--user', 'you', '--jobid', '18'), 0, '/c/you/scr.18\n')
    assert [json.loads(line) for line in run('--json', 'all').stdout.splitlines()] == [
        {'kind': 'control', 'path': '/c/me/scr.17'}, {'kind': 'cache', 'path': '/me/scr.17'}]
    # a simulated node has its own control directory
    os.environ['SCR_NODE_NAME'] = 'n3'
    expect(run('all'), 0, '/c/me/scr.17/n3\n/me/scr.17\n')


def test_stores():
    """The stores of enabled redundancy descriptors, each once."""
    clean()
    pathlib.Path('scr.yaml').write_text(
        'SCR_COPY_TYPE: FILE\nSTORE:\n  /ssd: {COUNT: 3}\n  /tmp: {COUNT: 1}\n  /off: {COUNT: 1}\nCKPT:\n'
        '  0: {INTERVAL: 1, STORE: /ssd}\n  1: {INTERVAL: 4, STORE: /tmp}\n  2: {INTERVAL: 8, STORE: /ssd}\n'
        '  3: {INTERVAL: 16, STORE: /off, ENABLED: 0}\n')
    expect(run('cache', '--base'), 0, '/ssd\n/tmp\n')
    expect(run('cache'), 0, '/ssd/me/scr.17\n/tmp/me/scr.17\n')
    pathlib.Path('scr.yaml').write_text('CKPT:\n  0: {STORE: /no}\n')
    done = run('cache')
    assert done.returncode == 1 and not done.stdout and b'/no' in done.stderr, done
    pathlib.Path('scr.yaml').write_text('SCR_NO: 1\n')
    expect(run('cache'), 1, '', ['CONFIG_MISTAKE', 'scr.yaml:1:1'])


def test_second_calculation():
    """Its directories have the prefix directory in their names, if they exist."""
    here = os.getcwd()
    clean(SCR_CNTL_BASE=here, SCR_CACHE_BASE=here)
    other = f'{here}/me/scr.17.prefix-{zlib.crc32(here.encode()):08x}'
    os.makedirs(here + '/me/scr.17')
    expect(run('cache'), 0, here + '/me/scr.17\n')
    os.makedirs(other)
    expect(run('all'), 0, f'{other}\n{other}\n')
    os.mkdir('elsewhere')
    expect(run('cache', '-p', 'elsewhere'), 0, here + '/me/scr.17\n')


def test_usage():
    clean()
    expect_output_fails(['all'], ['--json', 'all'])
    expect_wrong_usage([], ['caches'], ['cache', 'control'], ['cache', '-u', ''], ['cache', '-u', 'a/b'], ['cache', '-j', '..'],
                       ['cache', '-u', 'x' * 128])
    clean(SCR_CNTL_BASE='/c')
    os.environ['SCR_USER_NAME'] = 'a/b'
    expect(run('cache'), 1, '', ['IDENTITY_INVALID', 'SCR_USER_NAME=a/b'])
    expect_documented(7, {'--prefix': '.', '--user': 'x', '--jobid': '1'})
    expect_well_formed_page()


run_tests(globals())
