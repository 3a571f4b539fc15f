#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_log_event: events of job scripts have the form of a run's events."""
import subprocess

from command import COMMAND, expect, expect_wrong_usage, run, run_tests
from log import check_owner, check_places, check_targets_that_fail, check_usage, logged, switch_on

WHO = {'user': 'tester', 'jobid': '17', 'host': 'n1'}


def test_event():
    switch_on()
    expect(run('--type', 'NODE_LOST', 'node=n3', '--note', 'no answer', '--start', '2026-11-22T18:30'), 0)
    expect(run('-T', 'RUN_END', '-i', '18', '-u', 'else', '--secs', '12.5', 'code=3', 'host=login', 'run=x'), 0)
    first, second = logged()
    assert first == {'time': '2026-11-22T18:30:00.000000Z', 'event': 'NODE_LOST', **WHO, 'node': 'n3', 'note': 'no answer'}
    del second['time']
    assert second == {'event': 'RUN_END', 'run': 'x', 'user': 'else', 'jobid': '18', 'host': 'login', 'secs': 12.5, 'code': 3}


def test_script_of_scr_3():
    """Options of SCR 3, and events that only its script knows."""
    switch_on()
    job = ['-p', '.', '-u', 'else', '-i', '18', '-j', 'heat', '-s', '1298937600']
    expect(run(*job, '-T', 'RUN_END', '-N', 'run=1', '-L', '12'), 0)
    expect(run(*job, '-T', 'FAILED NODE', '-N', 'n3: no answer', '-S', '1298937700', '-D', '5', '-n', 'ckpt.5', '-L', '3'), 0)
    expect(run(*job, '-T', 'BACKUP'), 0)
    end, failed, backup = logged()
    assert (end['event'], end['note'], end['secs'], end['user'], end['jobid']) == ('RUN_END', 'run=1', 12, 'else', '18') and 'jobname' not in end, end
    assert failed == {'time': '2011-03-01T00:01:40.000000Z', 'event': 'SCRIPT', 'user': 'else', 'jobid': '18', 'host': 'n1', 'jobname': 'heat',
                      'dset': 5, 'name': 'ckpt.5', 'secs': 3, 'note': 'FAILED NODE: n3: no answer'}, failed
    assert (backup['event'], backup['note']) == ('SCRIPT', 'BACKUP'), backup
    expect_wrong_usage([*job, '-T', 'ERROR', '-s', 'soon'], [*job, '-T', 'BACKUP', '-X', '/tmp'])


def test_hostile_texts():
    """Each text stays within its line, and control characters do not reach a terminal."""
    switch_on()
    for text in ('a\nb', '\x1b[2J', 'a"b\\', '\u202e', 'x' * 5000, ''):
        expect(run('-T', 'ERROR', 'note=' + text), 0)
    events = logged()
    assert [event.get('note', '') for event in events] == ['a\nb', '\x1b[2J', 'a"b\\', '\u202e', 'x' * 1023, '']


def test_at_once():
    switch_on()
    processes = [subprocess.Popen([COMMAND, '-T', 'ERROR', f'code={i}']) for i in range(8)]
    assert not any([process.wait() for process in processes])
    assert sorted(event['code'] for event in logged()) == list(range(8))


def test_places():
    switch_on()
    check_places(['-T', 'ERROR', 'note=x'])


def test_by_root():
    check_owner(['-T', 'ERROR', 'note=x'])


def test_targets_that_fail():
    switch_on()
    check_targets_that_fail(['-T', 'ERROR', 'note=x'])


def test_kinds():
    lines = run('--kinds').stdout.decode().splitlines()
    assert 'NODE_LOST: time run user jobid host node note' in lines and len(lines) > 20


def test_usage():
    switch_on()
    expect_wrong_usage(['-T', 'ERROR', 'code=x'], ['-T', 'ERROR', '--dset', '3'], ['-T', 'RUN_END', '--secs', '-1'],
                       ['-T', 'RUN_END', '--secs', 'x'])
    check_usage('ERROR')


run_tests(globals())
