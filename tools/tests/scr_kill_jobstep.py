#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_kill_jobstep: ends the given job step, gently first, and never anything else."""
import os
import signal
import subprocess

from command import expect, expect_documented, expect_well_formed_page, expect_wrong_usage, run, run_tests, run_unread
from prefix import put_program, without_scr_variables

without_scr_variables()


def start_of(pid):
    return open(f'/proc/{pid}/stat').read().rsplit(') ', 1)[1].split()[19]


def started(script):
    """A shell that has reported that it is ready."""
    process = subprocess.Popen(['sh', '-c', script], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b'ready\n'
    return process, f'pid:{process.pid}:{start_of(process.pid)}'


def test_ends():
    process, step = started('echo ready; read never')
    expect(run(step), 0)
    assert process.wait(60) == -signal.SIGTERM
    expect(run('--jobStepId', step), 0, '', ['JOBSTEP_OVER', f'process {process.pid} '])


def test_unread():
    process, step = started('echo ready; read never')
    process.stdin.close()
    process.wait(60)
    assert run_unread(step).returncode == 0


def test_does_not_want_to_end():
    process, step = started('trap "" TERM; echo ready; read never')
    expect(run('--seconds', '0', '-j', step), 0)
    assert process.wait(60) == -signal.SIGKILL


def test_another_process_of_that_number():
    process, step = started('echo ready; read never')
    expect(run(f'pid:{process.pid}:{int(start_of(process.pid)) + 1}'), 0, '', ['JOBSTEP_OVER'])
    assert process.poll() is None
    process.stdin.close()
    process.wait(60)


def test_slurm():
    put_program('scancel', 'echo "$@" >told')
    for step in ('17.3', '17_2.0', '17+1.0'):
        expect(run('--jobStepId', step), 0)
        assert open('told').read() == step + '\n'
    put_program('scancel', 'echo no >&2; exit 225')
    for script, code, told in (('echo 17.2; echo 17.3', 1, 'scancel: exit code 225'), ('exit 1', 1, 'scancel: exit code 225'),
                               ('echo 17.2; echo 17.30', 0, ' 17.3 '), ('', 0, ' 17.3 ')):
        put_program('squeue', f'[ "$*" = "--noheader --steps --format=%i --job 17" ] || exit 2; {script}')
        expect(run('17.3'), code, '', ['JOBSTEP_NOT_ENDED' if code else 'JOBSTEP_OVER', 'no\n', told])


def test_usage():
    expect_wrong_usage([], ['17.3', '17.4'], ['-j', '17.3', '17.3'])
    put_program('scancel', 'echo "$@" >>told')
    # a job as a whole, init, all processes, other programs' options
    for step in ('17', '17.', '.3', '17.batch', '17.3 18', '-u', 'pid:1:5', 'pid:0:5', 'pid:-1:5', 'pid:5', 'pid:5:', 'pid::5',
                 'pid:x:5', 'pid:99999999999:5', 'pid:5:5x', '17_.3', '', '1' * 80 + '.1'):
        expect_wrong_usage(['--jobStepId=' + step])
    assert not os.path.exists('told')
    expect_documented(4, {'--jobStepId': '17.3', '--seconds': '1'})
    expect_well_formed_page()


run_tests(globals())
