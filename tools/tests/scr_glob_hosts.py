#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_glob_hosts: the examples of the Developer Guide, and invalid or extreme lists."""
import json

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)

ATLAS = 'atlas[3,5-7,9-11]'


def test_developer_guide():
    expect(run('--count', ATLAS), 0, '7\n')
    expect(run('--nth', '3', ATLAS), 0, 'atlas6\n')
    expect(run('--minus', ATLAS + ':atlas[5,7,20]'), 0, 'atlas[3,6,9-11]\n')
    expect(run('--intersection', ATLAS + ':atlas[5,7,20]'), 0, 'atlas[5,7]\n')
    expect(run('-minus', ATLAS + ':atlas[5,7,20]', '-count'), 0, '5\n')


def test_forms():
    expect(run('--expand', 'n[08-10]', 'login1'), 0, 'n08\nn09\nn10\nlogin1\n')
    expect(run('--compress', 'n3 n1,n2', 'm1'), 0, 'm1,n[1-3]\n')
    expect(run('--count', '--hosts', ATLAS), 0, '7\n')
    expect(run('-H', 'n2', '-C', 'n3'), 0, 'n[2-3]\n')
    expect(run('n2,n1,n1'), 0, 'n[1,1-2]\n')
    expect(run('--union', 'n[1-2]:n[2-4],m'), 0, 'm,n[1-4]\n')
    expect(run('--union', ATLAS + ':x', '--nth', '8'), 0, 'x\n')
    assert json.loads(run('--json', 'n[2,1]').stdout) == {'hosts': 'n[1-2]', 'count': 2, 'names': ['n2', 'n1']}
    expect(run('--count', ''), 0, '0\n')
    expect(run('--minus', 'a:a'), 0, '\n')
    assert json.loads(run('--intersection', 'a:b', '--json').stdout) == {'hosts': '', 'count': 0, 'names': []}


def test_answers():
    expect(run('--contains', ATLAS + ':atlas10'), 0)
    expect(run('--contains', ATLAS + ':atlas[10-12]'), 1)
    expect(run('--nth', '8', ATLAS), 1, '', ['NODELIST_NO_SUCH', ' 7 ', ' 8 '])
    expect(run('--nth', '1', ''), 1, '', ['NODELIST_NO_SUCH', ' 0 '])


def test_what_is_no_list():
    for text, reason in (('a[', 'no number'), ('a[1', 'bracket without its end at byte 4'), ('a[3-1]', 'a range that goes down'),
                         ('a/b', 'no character of a name at byte 2'), ('a;rm', 'no character of a name'),
                         ('a\x1b[2J', 'no character'), ('a,,b', 'a name is missing'), ('n[0-262144]', 'more than 262144'),
                         ('a[1-99][1-99][1-99][1-99][1-99][1-99]', 'more than 262144'), ('x' * 256, 'a name too long'),
                         ('n[1-' + '9' * 19 + ']', 'at most 18 digits')):
        for arguments in (['--count', text], ['--minus', 'a:' + text], ['--union', text + ':a']):
            done = run(*arguments)
            assert done.returncode == 1 and not done.stdout and reason.encode() in done.stderr, (text, done)
            assert b'\x1b' not in done.stderr
    for text in ('a', 'a:b:c'):
        expect(run('--minus', text), 1, '', ['NODELIST_INVALID'])
    expect(run('--count', 'n[0-262143]'), 0, '262144\n')


def test_usage():
    expect_output_fails([ATLAS], ['--count', ATLAS], ['--json', ATLAS], ['--expand', ATLAS])
    expect_wrong_usage([], ['--count'], ['--count', '--expand', 'a'], ['--nth', '0', 'a'], ['--nth', '-1', 'a'],
                       ['--nth', 'x', 'a'], ['--minus', 'a:b', 'c'], ['--minus', 'a:b', '--union', 'a:b'],
                       ['--nth', '1', '--count', 'a'], ['--hosts', 'a', '--minus', 'a:b'])
    expect_documented(12, {'--hosts': 'a', '--nth': '1', '--minus': 'a:b', '--intersection': 'a:b', '--union': 'a:b', '--contains': 'a:b'})
    expect_well_formed_page()


run_tests(globals())
