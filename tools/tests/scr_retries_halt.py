#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_retries_halt: scripts rely on its exit code."""
import os
import pathlib
import time

from command import expect, expect_documented, expect_well_formed_page, expect_wrong_usage, identifiers, run, run_tests
from prefix import damage, put_halt, put_program, value, without_scr_variables

without_scr_variables()


def test_conditions():
    now = int(time.time())
    expect(run(), 1)
    for tree, reason in (({'ExitReason': value('SCR_FINALIZE_CALLED')}, 'SCR_FINALIZE_CALLED'),
                         ({'ExitReason': value('a\u202eb')}, 'a\\xe2\\x80\\xaeb'),
                         ({'CheckpointsLeft': value(0)}, 'the requested number of checkpoints is done'),
                         ({'CheckpointsLeft': value(1)}, None), ({'ExitAfter': value(now)}, 'the time ExitAfter has come'),
                         ({'ExitAfter': value(now + 86400)}, None), ({'ExitBefore': value(now + 86400)}, None),
                         ({'ExitBefore': value(now)}, '0 seconds are left until ExitBefore'),
                         ({'HaltSeconds': value(100)}, None), ({'CheckpointsLeft': value('none')}, None), ({}, None)):
        put_halt(tree)
        expect(run(), 1 if reason is None else 0, reason + '\n' if reason else '', ['HALT_REMEDY'] if reason else ())
        expect(run('-q', '-d', '.'), 1 if reason is None else 0)
    put_halt({'ExitBefore': value(now + 86400), 'HaltSeconds': value(90000)})
    assert run().returncode == 0


def test_end_of_allocation():
    put_halt({'HaltSeconds': value(7200)})
    end = int(time.time()) + 3600
    for name in ('SCR_END_TIME', 'SLURM_JOB_END_TIME'):
        for when, code in ((end, 0), (end + 86400, 1)):
            os.environ[name] = str(when)
            done = run()
            assert done.returncode == code and (f'({name})' in done.stdout.decode()) == (code == 0), done
        del os.environ[name]
    os.environ['SLURM_JOB_END_TIME'] = 'soon'
    expect(run(), 1, '', ['END_TIME_INVALID', 'SLURM_JOB_END_TIME="soon" is not a time'])
    del os.environ['SLURM_JOB_END_TIME']
    os.environ['SLURM_JOB_ID'] = '17'
    for when, code in ((end, 0), (end + 86400, 1)):
        put_program('squeue', f'echo >asked; date -d @{when} "+17 %Y-%m-%dT%H:%M:%S"')
        done = run()
        assert done.returncode == code and ('(squeue)' in done.stdout.decode()) == (code == 0), done
    put_program('squeue', 'echo >asked; exit 1')
    expect(run(), 1, '', ['BATCH_QUERY_FAILED', 'squeue: exit code 1'])
    os.unlink('asked')
    put_halt({'CheckpointsLeft': value(1)})
    expect(run(), 1)
    assert not os.path.exists('asked'), 'no condition counts from the end'
    del os.environ['SLURM_JOB_ID']
    put_halt({'HaltSeconds': value(7200)})
    pathlib.Path('scr.yaml').write_text(f'SCR_END_TIME: {end}\n')
    assert run().returncode == 0


def test_what_to_do():
    """A person's request is removed by a command; a reason that SCR recorded itself needs
    no remedy; the end of the allocation needs a new one."""
    now = int(time.time())
    os.mkdir('a b')
    wish, own, late = f"scr_halt --remove '{os.getcwd()}/a b', ", 'nothing has to be removed', 'a new allocation'
    os.chdir('a b')
    os.environ['SCR_END_TIME'] = str(now + 600)
    for tree, told in (({'ExitReason': value('enough')}, wish), ({'CheckpointsLeft': value(0)}, wish),
                       ({'ExitAfter': value(now)}, wish), ({'HaltSeconds': value(3600)}, wish),
                       ({'ExitReason': value('SCR_FINALIZE_CALLED'), 'CheckpointsLeft': value(0)}, wish),
                       ({'ExitReason': value('SCR_FINALIZE_CALLED')}, own), ({'ExitReason': value('SCR_SIGNAL: SIGTERM came')}, own),
                       ({'HaltSeconds': value(3600), 'HaltSecondsOfRun': value(3600)}, late),
                       ({'HaltSeconds': value(3600), 'HaltSecondsOfRun': value(3600), 'ExitReason': value('SCR_FINALIZE_CALLED')}, late)):
        put_halt(tree)
        done = run()
        assert done.returncode == 0 and identifiers(done) == ['HALT_REMEDY'] and told in done.stderr.decode(), (tree, done)
    del os.environ['SCR_END_TIME']


def test_nobody_can_tell():
    """The code is neither 0 nor 1, so that a script assumes neither."""
    for _ in damage(lambda: put_halt({'CheckpointsLeft': value(0)})):
        expect(run(), 3, '', ['HALT_FILE_UNREADABLE', '.scr/halt.scr', 'HALT_REMEDY', ': scr_halt --remove '])
    put_halt({'CheckpointsLeft': value(0)})
    expect(run('no'), 3, '', ['DIRECTORY_UNUSABLE'])
    pathlib.Path('scr.yaml').write_text('SCR_NO: 1\n')
    expect(run(), 3, '', ['CONFIG_MISTAKE', 'scr.yaml:1:1'])
    os.unlink('scr.yaml')
    os.environ['SCR_END_TIME'] = 'soon'
    expect(run(), 3, '', ['SCR_END_TIME'])
    del os.environ['SCR_END_TIME']


def test_output_fails():
    put_halt({'CheckpointsLeft': value(0)})
    with open('/dev/full', 'w') as full:
        done = run(stdout=full)
        assert done.returncode == 3 and b'No space left' in done.stderr and b'[OUTPUT_LOST]' in done.stderr, done
        assert run('-q', stdout=full).returncode == 0


def test_usage():
    expect_wrong_usage(['a', 'b'], ['-d', 'a', 'b'], ['--no'])
    expect_documented(5, {'--dir': 'x', '--prefix': 'x'})
    expect_well_formed_page()


run_tests(globals())
