#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run --requeue with scripts in place of Slurm: the effect of a signal on the
program, and the ends that requeue the job. tests/jobs/requeue.py uses a real Slurm."""
import os
import pathlib
import re
import signal
import subprocess

from command import COMMAND, expect_wrong_usage, run_tests
from prefix import HALT, processes_here, put_program, wait_for, without_scr_variables

BESIDE = pathlib.Path(os.readlink(COMMAND) if COMMAND.is_symlink() else COMMAND).parent


def prepare(script, squeue=''):
    """Job 17, with a stand-in for srun, and the answer of squeue."""
    without_scr_variables()
    for path in (*pathlib.Path().glob('.scr/*'), *map(pathlib.Path, ('ready', 'got', 'requeued'))):
        path.unlink(missing_ok=True)
    for folder in ('cntl', 'cache'):
        os.makedirs(folder, exist_ok=True)
    os.environ.update(SLURM_JOB_ID='17', SLURM_JOB_NODELIST='n1', SCR_NODE_NAME='n1', SCR_REMOTE='local', SCR_RUN_PAUSE='0',
                      SCR_CNTL_BASE=os.path.abspath('cntl'), SCR_CACHE_BASE=os.path.abspath('cache'))
    here = os.getcwd()
    put_program('program', '')
    put_program('srun', f'cd {here}; {script}')
    put_program('squeue', squeue)
    put_program('sinfo', '')
    put_program('scontrol', f'echo "$*" >>{here}/requeued')


def begin(*options):
    return subprocess.Popen([COMMAND, '--launcher', 'slurm', '--requeue', *options, 'program'], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def lines(pattern):
    path = pathlib.Path('.scr/runs.log')
    return [line for line in path.read_text().splitlines() if re.search(pattern, line)] if path.exists() else []


def requeued():
    path = pathlib.Path('requeued')
    return path.read_text() if path.exists() else ''


ASKED = 'trap "echo TERM >>got; exit 7" TERM; trap "echo USR1 >>got" USR1; touch ready; while :; do sleep 0.05; done'


def test_signal():
    """The program is asked through the halt file instead of the signal; other signals
    reach it; a second signal is forwarded."""
    prepare(ASKED)
    process = begin()
    wait_for(lambda: os.path.exists('ready'))
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: lines('RUN_ASKED_TO_HALT') and b'SCR_SIGNAL: signal 15 came to scr_run' in pathlib.Path(HALT).read_bytes())
    process.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists('got'))
    assert pathlib.Path('got').read_text() == 'USR1\n' and process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 7 and pathlib.Path('got').read_text() == 'USR1\nTERM\n', lines('')
    assert requeued() == 'requeue 17\n' and lines('job 17 .*RUN_REQUEUED') and not processes_here(), lines('')


def test_program_does_not_ask():
    """It gets half a minute."""
    prepare(ASKED)
    process = begin()
    wait_for(lambda: os.path.exists('ready'))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 7 and pathlib.Path('got').read_text() == 'TERM\n', lines('')
    assert requeued() == 'requeue 17\n' and lines('run 1: ended after 3[0-9].*RUN_EXITED'), lines('')


def test_reasons():
    """Reasons for which a job ends, and whether it is requeued."""
    finalized = f'{BESIDE}/scr_halt --reason SCR_FINALIZE_CALLED >&2'
    asked = f'{BESIDE}/scr_halt --reason "SCR_SIGNAL: SIGTERM came to rank 0" >&2'
    for script, squeue, options, code, wanted in (
            ('exit 0', '', [], 0, False), ('exit 7', '', [], 7, False),  # done; a program that fails is not tried for ever
            (f'{asked}; exit 0', '', [], 0, True), (f'{asked}; exit 7', '', ['--runs', '9'], 7, True),
            (f'{finalized}; exit 7', '', ['--runs', '9'], 7, False),
            (f'{BESIDE}/scr_halt --reason enough >&2; exit 0', '', [], 0, False),  # a person
            (f'{asked}; exit 0', 'echo "17 CANCELLED 2030-01-01T00:00:00"', [], 0, False)):
        prepare(script, squeue)
        process = begin(*options)
        assert process.wait(60) == code, (script, lines(''))
        assert bool(requeued()) == wanted, (script, squeue, lines(''))


def test_interrupted():
    """Ctrl-C comes from a person."""
    prepare(ASKED)
    process = begin()
    wait_for(lambda: os.path.exists('ready'))
    process.send_signal(signal.SIGINT)
    wait_for(lambda: lines('RUN_ASKED_TO_HALT'))
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert not requeued() and lines('RUN_SIGNALLED'), lines('')


def test_usage():
    without_scr_variables()
    expect_wrong_usage(['--requeue', 'program'])
    os.environ['SLURM_JOB_ID'] = '17'
    expect_wrong_usage(['--requeue', '--simulate', '2x1', 'program'])


run_tests(globals())
