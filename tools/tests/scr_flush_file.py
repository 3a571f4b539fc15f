#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_flush_file: queries of scripts, with good, old, damaged and hostile flush files."""
import json
import os
import socket

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import FLUSH, damage, put_tree, value, without_scr_variables

without_scr_variables()


def entry(name, *places, **kinds):
    return {'LOCATION': {place: {} for place in places}, 'DIR': value(name), **{kind: value(flag) for kind, flag in kinds.items()}}


def sample():
    put_tree(FLUSH, {'DSET': {'9': entry('c9', 'CACHE', 'FLUSHING'), '18': entry('scr.dataset.18', 'PFS', 'CACHE'),
                              '17': entry('scr.dataset.17', 'CACHE'), '20': entry('a/b', 'CACHE')},
                     'FLUSH': {'0123456789abcdef': {}}})


def test_questions():
    sample()
    expect(run('--latest'), 0, '20\n')
    expect(run('-dir', '.', '-latest'), 0, '20\n')
    expect(run('--before', '20'), 0, '18\n')
    expect(run('--before', '19', '.'), 0, '18\n')
    expect(run('--before', '9'), 1)
    expect(run('--needflush', '18'), 1)
    expect(run('--needflush', '17'), 0)
    expect(run('--needflush', '9'), 0)
    expect(run('--location', '18'), 0, 'CACHE\nPFS\n')
    expect(run('--location', '9'), 0, 'CACHE\nFLUSHING\n')
    expect(run('--subdir', '20'), 0, 'a/b\n')
    for question in ('--needflush', '--location', '--subdir'):
        expect(run(question, '5'), 1, '', ['DATASET_UNKNOWN', 'dataset 5 '])


def test_kinds():
    """Checkpoints and outputs on one line, in the order of SCR 3."""
    put_tree(FLUSH, {'DSET': {'9': entry('c9', 'CACHE', CKPT=1), '18': entry('o18', 'PFS', OUTPUT=1), '7': entry('c7', 'CACHE', CKPT=1, OUTPUT=1),
                              '20': entry('x', 'CACHE'), '5': entry('o5', 'CACHE', CKPT=0, OUTPUT=1)}})
    expect(run('--list-output'), 0, '5 7 18\n')
    expect(run('-o', '-d', '.'), 0, '5 7 18\n')
    expect(run('--list-ckpt'), 0, '9 7\n')
    expect(run('--list-ckpt', '--before', '9', '--prefix', '.'), 0, '7\n')
    expect(run('--list-output', '--before', '18'), 0, '5 7\n')
    expect(run('--before', '0', '--list-ckpt'), 0, '9 7\n')
    expect(run('--list-ckpt', '--before', '7'), 1)
    expect(run('--latest', '--before', '20'), 0, '18\n')
    put_tree(FLUSH, {'DSET': {'20': entry('x', 'CACHE')}})
    expect(run('--list-output'), 1)
    expect(run('--list-ckpt'), 1)


def test_as_in_scr_3():
    sample()
    expect(run('--need-flush', '18'), 1)
    expect(run('-n', '17'), 0)
    expect(run('--name', '20'), 0, 'a/b\n')
    expect(run('-s', '20', '-d', '.'), 0, 'a/b\n')
    expect(run('-L', '17'), 0, 'CACHE\n')
    # nothing is left to do
    for task in ('--resume', '-r', '--summary', '-S'):
        expect(run(task, '--name', '18'), 0, 'scr.dataset.18\n')
        expect(run(task, '--name', '5'), 1, '', ['DATASET_UNKNOWN', 'dataset 5 '])
    # there is no node to copy from, and nothing was copied
    os.environ['SCR_NODELIST'] = socket.gethostname()
    done = run('--resume', '--name', '17')
    assert done.returncode == 3 and done.stdout.startswith(b'scr.dataset.17\n'), done
    done = run('--summary', '--name', '17')
    assert done.returncode == 1 and done.stdout == b'scr.dataset.17\n' and b'INDEX_MISSING' in done.stderr, done


def test_list():
    sample()
    expect(run('--list'), 0, 'DSET  NAME            LOCATION\n   9  c9              CACHE FLUSHING\n'
           '  17  scr.dataset.17  CACHE\n  18  scr.dataset.18  CACHE PFS\n  20  a/b             CACHE\n')
    assert [json.loads(line) for line in run('--list', '--json').stdout.splitlines()][2] == {
        'dset': 18, 'name': 'scr.dataset.18', 'locations': ['CACHE', 'PFS']}
    put_tree(FLUSH, {})
    expect(run('--list'), 0, 'DSET  NAME  LOCATION\n')
    expect(run('--latest'), 1)


def test_unusable():
    expect(run('--latest'), 1, '', ['FLUSH_FILE_UNUSABLE', 'PREFIX_UNUSED', 'flush.scr', 'No such file'])
    for _ in damage(sample, FLUSH):
        for question in (['--latest'], ['--needflush', '17'], ['--list']):
            expect(run(*question), 1, '', ['FLUSH_FILE_UNUSABLE', '.scr/flush.scr'])
    put_tree(FLUSH, {'DSET': {'seven': entry('a', 'CACHE')}})
    expect(run('--latest'), 1, '', ['FLUSH_FILE_UNUSABLE'])
    put_tree(FLUSH, {'DSET': {'-3': entry('a', 'CACHE')}})
    expect(run('--latest'), 1)


def test_hostile_names():
    """Names cannot mislead scripts or terminals."""
    for name in ('../x', '/etc', 'a/../b', '', '.scr/x', 'a\nb', 'x' * 2000):
        put_tree(FLUSH, {'DSET': {'1': entry(name, 'CACHE')}})
        expect(run('--subdir', '1'), 1, '', ['FLUSH_FILE_UNUSABLE', 'dataset 1 '])
    put_tree(FLUSH, {'DSET': {'1': entry('a\x1b[2J', 'CACHE')}})
    assert b'\x1b' not in run('--list').stdout + run('--list', '--json').stdout
    put_tree(FLUSH, {'DSET': {'1': {'LOCATION': {'CACHE': {}}, 'DIR': {'a': {}, 'b': {}}}, '2': {}}})
    expect(run('--subdir', '1'), 1, '', ['FLUSH_FILE_UNUSABLE'])
    expect(run('--location', '2'), 0, 'NONE\n')
    expect(run('--list'), 0, 'DSET  NAME  LOCATION\n   1  -     CACHE\n   2  -     -\n')


def test_usage():
    sample()
    expect_output_fails(['--latest'], ['--list'], ['--list', '--json'], ['--subdir', '18'], ['--location', '18'])
    expect_wrong_usage([], ['.'], ['--latest', '--list'], ['--latest', '--needflush', '3'], ['--location', '3', '--subdir', '3'],
                       ['--needflush', '0'], ['--needflush', '-1'], ['--needflush', 'x'], ['--subdir', '1000000001'],
                       ['--before', ''], ['--json', '--latest'], ['--latest', 'a', 'b'], ['--latest', '-d', 'a', 'b'], ['--before', '0'],
                       ['--before', '3', '--name', '4'], ['--resume'], ['--summary', '--latest'], ['--resume', '--summary', '--name', '17'],
                       ['--list-output', '--list-ckpt'], ['--name', '0'], ['--need-flush', '18', '--needflush', '18'])
    expect_documented(17, {'--dir': 'x', '--prefix': 'x', '--before': '1', '--needflush': '1', '--need-flush': '1', '--name': '1', '--location': '1', '--subdir': '1'})
    expect_well_formed_page()


run_tests(globals())
