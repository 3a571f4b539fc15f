#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_watchdog: a job step is ended when it completes no dataset for too long, and not before."""
import os
import signal
import subprocess
import time

from command import COMMAND, expect, expect_documented, expect_well_formed_page, expect_wrong_usage, identifiers, run, run_tests, run_unread
from prefix import FLUSH, INDEX, Prefix, put, put_program, put_tree, value, without_scr_variables

without_scr_variables()


def started():
    process = subprocess.Popen(['sleep', '1000'])
    start = open(f'/proc/{process.pid}/stat').read().rsplit(') ', 1)[1].split()[19]
    return process, f'pid:{process.pid}:{start}'


def put_datasets(count, location='CACHE'):
    put_tree('new.scr', {'DSET': {str(i): {'DIR': value(f'c{i}'), 'LOCATION': value(location)} for i in range(1, count + 1)}})
    os.makedirs('.scr', exist_ok=True)
    os.rename('new.scr', FLUSH)


def test_hangs():
    process, step = started()
    os.environ['SCR_WATCHDOG_TIMEOUT'] = '1'
    done = run('--jobStepId', step)
    assert done.returncode == 0 and identifiers(done) == ['JOBSTEP_HANGS'] and step.encode() in done.stderr, done
    assert process.wait(60) == -signal.SIGTERM
    process, step = started()
    assert run_unread('--jobStepId', step).returncode == 0 and process.wait(60) == -signal.SIGTERM
    del os.environ['SCR_WATCHDOG_TIMEOUT']


def test_ended_already():
    """The step ended before the first check, or meanwhile, long before it would count as
    hanging."""
    process, step = started()
    with subprocess.Popen([COMMAND, '--jobStepId', step, '--timeout', '1000'], stderr=subprocess.PIPE, text=True) as watchdog:
        time.sleep(1)
        process.kill()
        process.wait()
        _, told = watchdog.communicate(timeout=60)
    assert watchdog.returncode == 3 and told.startswith(f'scr_watchdog: {step} ') and told.endswith(' [JOBSTEP_OVER]\n'), told
    expect(run('--jobStepId', step, '--timeout', '1000'), 3, '', ['JOBSTEP_OVER', f': {step} '])


def test_slurm():
    """Slurm is queried when the step seems to hang; if it does not know, the step is
    ended."""
    put_program('scancel', 'echo "$1" >>ended')
    for said, code in (('echo 17.2; echo 17.30', 3), ('', 3), ('echo 17.2; echo 17.3', 0), ('exit 1', 0)):
        put_program('squeue', f'echo "$*" >>asked; {said}')
        done = run('--jobStepId', '17.3', '--timeout', '1')
        assert done.returncode == code and ('JOBSTEP_OVER' if code else 'JOBSTEP_HANGS') in identifiers(done), (said, done)
        assert os.path.exists('ended') == (code == 0)
    assert open('ended').read() == '17.3\n' * 2
    assert open('asked').read() == '--noheader --steps --format=%i --job 17\n' * 4


def put_index(count):
    prefix = Prefix()
    for number in range(1, count + 1):
        prefix.enter(f'c{number}', number, [{}])
    put_tree('new.scr', prefix.index)
    os.makedirs('.scr', exist_ok=True)
    os.rename('new.scr', INDEX)


def goes_on(put):
    """Makes a dataset every second, for longer than the limit; then no more."""
    process, step = started()
    put(1)
    watchdog = subprocess.Popen([COMMAND, '--jobStepId', step, '--timeout', '5'], stderr=subprocess.DEVNULL)
    for count in range(2, 10):
        begin = time.monotonic()
        put(count)
        time.sleep(1)
        if time.monotonic() - begin > 3:
            break  # this machine is too slow to say anything
        assert watchdog.poll() is None and process.poll() is None
    assert watchdog.wait(120) == 0 and process.wait(60) == -signal.SIGTERM


def test_progress():
    goes_on(put_datasets)


def test_bypass():
    """Datasets that bypass the cache are only in the index."""
    goes_on(put_index)


def test_unreadable():
    """While the progress is unknown, the step does not count as hanging; that is reported
    once."""
    process, step = started()
    put_index(1)
    with subprocess.Popen([COMMAND, '--jobStepId', step, '--timeout', '2'], stderr=subprocess.PIPE, text=True) as watchdog:
        put('new.scr', b'damaged')
        os.rename('new.scr', INDEX)
        time.sleep(5)
        assert watchdog.poll() is None and process.poll() is None
        put_index(1)
        _, told = watchdog.communicate(timeout=60)
    assert watchdog.returncode == 0 and process.wait(60) == -signal.SIGTERM
    assert told.count('[RUN_PROGRESS_UNKNOWN]') == 1 and INDEX in told and '[JOBSTEP_HANGS]' in told, told


def test_flush():
    """A flush has its own limit."""
    process, step = started()
    put_datasets(1, 'FLUSHING')
    begin = time.monotonic()
    expect(run('--jobStepId', step, '--dir', '.', '--timeout', '1', '--timeout-pfs', '3'), 0, '', ['JOBSTEP_HANGS'])
    assert time.monotonic() - begin > 2
    assert process.wait(60) == -signal.SIGTERM


def test_usage():
    process, step = started()
    expect_wrong_usage([], ['--jobStepId', '17'], ['--jobStepId', step, 'x'], ['--jobStepId', step, '--timeout', 'x'])
    expect(run(), 2, '', ['USAGE_WRONG', '--jobStepId '])
    expect(run('--jobStepId', step), 1, '', ['CONFIG_MISTAKE', 'SCR_WATCHDOG_TIMEOUT'])
    expect(run('--jobStepId', step, '--dir', 'none'), 1, '', ['DIRECTORY_UNUSABLE'])
    os.environ['SCR_WATCHDOG_TIMEOUT_PFS'] = 'long'
    expect(run('--jobStepId', step, '--timeout', '1'), 1, '', ['SCR_WATCHDOG_TIMEOUT_PFS'])
    del os.environ['SCR_WATCHDOG_TIMEOUT_PFS']
    expect_documented(7, {'--jobStepId': step, '--dir': '.', '--prefix': '.', '--timeout': '1', '--timeout-pfs': '1'})
    expect_well_formed_page()
    process.kill()
    process.wait()


run_tests(globals())
