#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run within Flux: a test for each fact about Flux, with flux_stand_in.py in place of
Flux."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from command import COMMAND, expect, identifiers, run, run_tests
from flux_stand_in import Instance
from prefix import put_program, wait_for, without_scr_variables

PATH = os.environ['PATH']
SCR_ENV = COMMAND.parent / 'scr_env'


def prepare(program='exit 0', **config):
    """Makes an instance with nodes n1 to n3, all on this machine."""
    without_scr_variables()
    place = tempfile.mkdtemp(dir=os.getcwd())
    os.chdir(place)
    os.environ['PATH'] = PATH
    for folder in ('cntl', 'cache'):
        os.makedirs(folder)
    os.environ.update(SCR_NODE_NAME='n1', SCR_REMOTE='local', SCR_RUN_PAUSE='0', PYTHONDONTWRITEBYTECODE='1',
                      SCR_CNTL_BASE=os.path.abspath('cntl'), SCR_CACHE_BASE=os.path.abspath('cache'))
    put_program('program', f'echo "$SCR_JOB_ID $FLUX_JOB_ID" >>{place}/told\n{program}')
    return Instance(**config)


def told():
    path = pathlib.Path('told')
    return [line.split(' ') for line in path.read_text().splitlines()] if path.exists() else []


def lines(pattern):
    path = pathlib.Path('.scr/runs.log')
    return [line for line in path.read_text().splitlines() if re.search(pattern, line)] if path.exists() else []


def start(*arguments):
    return subprocess.Popen([COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def end(process):
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.decode()


# ---- the id of the allocation ----

def test_job_id():
    """The id of the instance, in the same form with any locale and version; a fixed one
    if the instance has none."""
    for version in (66, 71, 76):
        with prepare(version=version) as flux:
            expect(run('--manager', command=SCR_ENV), 0, 'flux\n')
            expect(run('--jobid', command=SCR_ENV), 0, 'fA1b\n')
            # a command in a job of that instance
            put_program('program', f'{SCR_ENV} --jobid >{os.getcwd()}/within')
            subprocess.run(['bin/flux', 'run', '-n', '1', 'program'], check=True)
            assert pathlib.Path('within').read_text() == 'fA1b\n' and flux.jobs()
    with prepare(jobid=None):
        done = run('--jobid', command=SCR_ENV)
        assert re.fullmatch(rb'prefix-[0-9a-f]{8}\n', done.stdout) and not done.stderr, done


def test_launches_share_an_id():
    """Each launch has its own FLUX_JOB_ID; the program gets that of the allocation."""
    for jobid, wanted in (('f2', 'f2'), (None, 'prefix-')):
        with prepare('exit 5', jobid=jobid):
            assert run('--runs', '2', '--nodes', '1', 'program').returncode == 5
            ids = told()
            assert len(ids) == 2 and ids[0][1] != ids[1][1], ids
            assert ids[0][0] == ids[1][0] and ids[0][0].startswith(wanted), ids


def test_no_answer():
    """An instance whose flux command fails is an error; no other launcher is used."""
    with prepare(fails=True):
        for name in ('mpiexec.mpich', 'mpirun.openmpi'):
            put_program(name, 'touch started')
        done = run('program')
        assert done.returncode == 1 and set(identifiers(done)) <= {'BATCH_QUERY_FAILED', 'IDENTITY_INVALID'}, done
        assert b'unable to connect to Flux' in done.stderr and not os.path.exists('started') and not told(), done


# ---- nodes ----

def test_drained():
    """A job that needs a drained node would wait forever: the node is left out, even if
    too few others are left."""
    with prepare('exit 5', drained=['n2']) as flux:
        assert run('--runs', '1', '--nodes', '2', 'program').returncode == 5
        assert [job['requires'] for job in flux.jobs()] == [['n1', 'n3']], flux.jobs()
        done = run('--runs', '1', '--nodes', '3', 'program')
        assert done.returncode == 1 and lines('2 of 3 nodes are left.*RUN_NODES_LOST') and len(flux.jobs()) == 1, done
        flux.change(drained=[])
        assert run('--runs', '1', '--nodes', '3', 'program').returncode == 5 and len(flux.jobs()) == 2


def test_more_ranks_than_cores():
    with prepare() as flux:
        done = run('--ranks', '9', 'program')
        assert done.returncode == 0 and len(told()) == 9, (done, told())
        assert '--tasks-per-node=3' in flux.jobs()[0]['line']
        assert run('--ranks', '4', 'program').returncode == 0  # not as many on each
        assert '--ntasks=4' in flux.jobs()[1]['line'] and len(told()) == 13


# ---- the end ----

def test_end():
    """The remaining time; none without a limit, or if the instance is not a job."""
    with prepare(timeleft=600) as flux:
        seconds = int(run('--endtime', command=SCR_ENV).stdout) - time.time()
        assert 590 < seconds <= 601, seconds
        for config in ({'timeleft': 4294967295}, {'timeleft': 'infinity'}, {'timeleft': 600, 'jobid': None}):
            flux.change(**config)
            expect(run('--endtime', command=SCR_ENV), 1, '', ['END_TIME_UNKNOWN'])
        flux.change(jobid='f2', timeleft='soon')
        expect(run('--endtime', command=SCR_ENV), 1, '', ['BATCH_QUERY_FAILED', '"soon"'])


def test_saves_before_the_end():
    """Saving begins before the limit, when it would be too late; SCR_SAVE_SECONDS sets
    the time."""
    for seconds, left in ((None, 123), ('30', 33)):
        with prepare('exec sleep 100', timeleft=left) as flux:
            if seconds:
                os.environ['SCR_SAVE_SECONDS'] = seconds
            done = run('--runs', '-1', '--nodes', '1', 'program')
            assert done.returncode not in (0, 5) and len(flux.jobs()) == 1 and not flux.jobs()[0]['active'], done
            limit = seconds or '120'
            assert lines(f'run 1: .*it was ended: ({limit}|{int(limit) - 1}) seconds are left until the allocation ends'), done
            assert lines('no further run: the job should halt: .* seconds are left .*RUN_HALTED'), done
            assert lines('start it again in a new allocation'), done
    with prepare('exit 5', timeleft=100):
        os.environ['SCR_SAVE_SECONDS'] = '0'
        assert run('program').returncode == 5


def test_alarm():
    """SIGALRM arrives at the limit: it ends scr_run like SIGTERM, but not at once."""
    with prepare('exec sleep 100') as flux:
        process = start('--nodes', '1', 'program')
        wait_for(told)
        process.send_signal(signal.SIGALRM)
        code, errors = end(process)
        assert code == 128 + signal.SIGTERM and not flux.jobs()[0]['active'], (code, errors)
        assert lines('RUN_SIGNALLED') and lines('RUN_FINISHED'), errors


# ---- jobs that have to be ended ----

def test_job_outlives_its_launcher():
    """"flux run" dies of SIGTERM and leaves its job, which is found by its name and
    canceled."""
    hangs = 'trap "" TERM; while :; do sleep 0.1; done'
    for version, program, seconds in ((66, 'exec sleep 100', 0.5), (66, hangs, 0.5), (66, hangs, 100), (73, 'exec sleep 100', 0.5)):
        with prepare(program, version=version, kill_timeout=seconds) as flux:
            other = subprocess.Popen(['bin/flux', 'run', '--job-name=mine', '-n', '1', 'sleep', '100'])
            wait_for(lambda flux=flux: flux.jobs())
            process = start('--nodes', '1', 'program')
            wait_for(told)
            process.send_signal(signal.SIGTERM)
            code, errors = end(process)
            mine, job = flux.jobs()
            assert code > 128 and not job['active'] and job['name'].startswith('scr_run.'), (code, errors, job)
            assert mine['active'], 'another job of the user'
            other.kill()
            other.wait()


def test_launcher_is_killed():
    """Its job is ended before the next run begins."""
    with prepare('[ -e again ] && exit 0; touch again; exec sleep 100') as flux:
        process = start('--nodes', '1', '--runs', '2', 'program')
        wait_for(told)
        for child in pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split():
            if b'flux_stand_in' in pathlib.Path(f'/proc/{child}/cmdline').read_bytes():
                os.kill(int(child), signal.SIGKILL)
        code, errors = end(process)
        assert code == 0 and [job['active'] for job in flux.jobs()] == [False, False], (code, errors, flux.jobs())


def test_pending_job():
    """The job has not begun when scr_run ends: it must not begin later."""
    with prepare(busy=True) as flux:
        process = start('--nodes', '1', 'program')
        wait_for(lambda: flux.jobs())
        process.send_signal(signal.SIGINT)
        code, errors = end(process)
        flux.change(busy=False)
        time.sleep(0.2)
        assert code > 128 and not told() and not flux.jobs()[0]['active'], (code, errors, flux.jobs())


def test_rank_is_killed():
    """The other ranks do not wait for it."""
    with prepare('[ $FLUX_TASK_RANK = 1 ] && kill -9 $$; exec sleep 100') as flux:
        begin = time.monotonic()
        done = run('--ranks', '3', 'program')
        assert done.returncode == 137 and time.monotonic() - begin < 10, (done, time.monotonic() - begin)
        assert not flux.jobs()[0]['active']


run_tests(globals())
