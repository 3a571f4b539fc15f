#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_log_transfer: transfers, and nothing else."""
from command import expect, expect_wrong_usage, run, run_tests
from log import check_owner, check_places, check_targets_that_fail, check_usage, logged, switch_on


def test_transfer():
    switch_on()
    expect(run('-T', 'FLUSH', '-X', '/cache', '-Y', '/p', '-D', '3', '-n', 'ckpt.3', '-F', '8', '-B', '8000', '-L', '2',
               'method=scavenge', '-S', '1298937600'), 0)
    expect(run('--type', 'FETCH_FAILED', '--from', '/p', '--note', 'no space'), 0)
    first, second = logged()
    assert first == {'time': '2011-03-01T00:00:00.000000Z', 'event': 'FLUSH_COMPLETE', 'user': 'tester', 'jobid': '17',
                     'host': 'n1', 'dset': 3, 'name': 'ckpt.3', 'from': '/cache', 'to': '/p', 'method': 'scavenge', 'files': 8,
                     'bytes': 8000, 'secs': 2, 'bw': 4000}, first
    assert second['event'] == 'FETCH_FAILED' and second['from'] == '/p' and second['note'] == 'no space'


def test_places():
    switch_on()
    check_places(['-T', 'FLUSH', '--from', '/x'])


def test_by_root():
    check_owner(['-T', 'FLUSH', '--from', '/x'])


def test_targets_that_fail():
    switch_on()
    check_targets_that_fail(['-T', 'FLUSH', '--from', '/x'])


def test_kinds():
    lines = run('--kinds').stdout.decode().splitlines()
    assert len(lines) > 5 and all(' from to' in line for line in lines), lines


def test_usage():
    switch_on()
    expect_wrong_usage(['--type', 'NO_SUCH'], ['-T', 'NODE_LOST'], ['-T', 'RUN'], ['-T', 'FLUSH', '-B', '-1'], ['-T', 'FLUSH', '-D', '-1'],
                       ['-T', 'FLUSH', '--bytes', 'many'], ['-T', 'FLUSH', '-F', ''])
    check_usage('FLUSH')


run_tests(globals())
