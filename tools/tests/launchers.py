#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run with each launcher: those of a site's configuration, and the built-in ones,
whose programs are replaced by scripts; tests/jobs/run.py and slurm.py use real ones."""
import os
import pathlib
import re
import signal
import subprocess

import launch
from command import COMMAND, identifiers, run, run_tests
from prefix import only_here, put_program, some_user, wait_for, without_scr_variables

without_scr_variables()
PATH = os.environ['PATH']


def prepare(nodes='n[1-3]', **variables):
    """An allocation of three nodes, all on this machine, without traces of an earlier
    test."""
    without_scr_variables()
    os.environ['PATH'] = PATH
    for path in (*pathlib.Path().glob('call*'), *map(pathlib.Path, ('scr.yaml', '.scr/runs.log', 'ended'))):
        path.unlink(missing_ok=True)
    for path in pathlib.Path().glob('bin/*'):
        path.unlink()
    for folder in ('cntl', 'cache'):
        os.makedirs(folder, exist_ok=True)
    os.environ.update(SCR_NODELIST=nodes, SCR_NODE_NAME='n1', SCR_REMOTE='local', SCR_RUN_PAUSE='0',
                      SCR_CNTL_BASE=os.path.abspath('cntl'), SCR_CACHE_BASE=os.path.abspath('cache'))
    os.environ.update(variables)
    put_program('program', 'exit 0')


def stand_in(name, script='exit 0', version=''):
    """Makes a script in place of a launcher, with its work and its output for
    --version."""
    put_program(name, f'if [ "$*" = --version ]; then echo "{version}"; exit 0; fi\n'
                f'echo "{os.path.basename(name)} $*" >>{os.getcwd()}/calls\n{script}')


def calls():
    path = pathlib.Path('calls')
    return path.read_text().splitlines() if path.exists() else []


def lines(pattern):
    path = pathlib.Path('.scr/runs.log')
    return [line for line in path.read_text().splitlines() if re.search(pattern, line)] if path.exists() else []


def configure(text):
    pathlib.Path('scr.yaml').write_text(text)


# ---- of a site ----

SITE = """LAUNCHER: {NAME: palsrun, RUN: "launch -n {ranks} --hosts {hosts} [--not {out}] (-x {variable})",
  ARGUMENTS: "launch --hosts {hosts}"}
"""


def test_site_launcher():
    """It is used by default; it works in each form of YAML."""
    for text in (SITE, 'LAUNCHER:\n  palsrun: {RUN: "launch -n {ranks} --hosts {hosts}", ARGUMENTS: "launch --hosts {hosts}"}\n',
                 'LAUNCHERS:\n  - {NAME: palsrun, RUN: "launch -n {ranks} --hosts {hosts}", ARGUMENTS: "launch --hosts {hosts}"}\n',
                 'LAUNCHER=palsrun RUN="launch -n {ranks} --hosts {hosts}" ARGUMENTS="launch --hosts {hosts}"\n'):
        prepare()
        configure(text)
        stand_in('launch')
        done = run('--per-node', '2', 'program', 'a b')
        assert done.returncode == 0, done
        call, = calls()
        assert call.startswith('launch -n 6 --hosts n1,n2,n3 ') and call.endswith(' program a b') and '--not' not in call, call
        assert text != SITE or ' -x SCR_PREFIX ' in call, call
        # any launcher of MPI, but not that of the site
        only_here()
        stand_in('mpiexec.mpich')
        os.symlink(COMMAND, 'scr_mpirun')
        assert run('-n', '4', 'program', command=os.path.abspath('scr_mpirun')).returncode == 0
        os.unlink('scr_mpirun')
        assert calls()[1:] == ['mpiexec.mpich -hosts n1,n2,n3 -n 4 program'], calls()


def test_site_arguments():
    """The arguments leave out nodes that are down."""
    prepare(SCR_EXCLUDE_NODES='n2', SCR_MIN_NODES='1', SCR_LAUNCHER='palsrun')
    configure(SITE)
    stand_in('launch')
    assert run('program').returncode == 0
    assert ' --hosts n1,n3 --not n2 ' in calls()[0], calls()
    prepare(SCR_LAUNCHER='none')
    done = run('program')
    assert done.returncode == 1 and identifiers(done) == ['LAUNCHER_MISSING'] and b' hydra ' in done.stderr, done


def test_site_choice():
    """The launcher is chosen by the batch system, by --launcher, or by SCR_LAUNCHER; a
    row with the name of a built-in one replaces it."""
    text = ('LAUNCHER:\n  first: {RUN: one, MANAGER: pbs}\n  second: {RUN: two, MANAGER: none}\n'
            '  hydra: {RUN: "three {command} last", MANAGER: lsf}\n')
    for variables, options, wanted in (({}, [], 'two program'), ({'SCR_LAUNCHER': 'first'}, [], 'one program'),
                                       ({'SCR_LAUNCHER': 'first'}, ['--launcher', 'hydra'], 'three program last')):
        prepare(**variables)
        configure(text)
        for name in ('one', 'two', 'three'):
            stand_in(name)
        assert run(*options, 'program').returncode == 0
        assert calls() == [wanted], calls()


def test_site_end():
    """A job step that outlives its launcher is found by its name, and ended by its id."""
    prepare(SCR_WATCHDOG='1', SCR_WATCHDOG_TIMEOUT='1')
    configure('LAUNCHER: {NAME: own, RUN: "launch --name={name}", FIND: "steps --of {name}", END: "kill-step {id}"}\n')
    stand_in('launch', 'echo $$ >pid; trap "" TERM; exec sleep 1000')
    put_program('steps', 'echo 7 other; echo "8 $2"')
    put_program('kill-step', 'echo "$1" >>ended; kill -9 $(cat pid)')
    done = run('program')
    assert done.returncode != 0 and lines('SCR_WATCHDOG.*RUN_EXITED'), done
    assert set(pathlib.Path('ended').read_text().split()) == {'8'}


def test_site_mistakes():
    """Mistakes are reported with file, line, column and the nearest valid name, also by
    scr_params; nothing is started."""
    for text, *told in (
            ('LAUNCHER: {NAME: own, RUM: launch}\n', 'scr.yaml:1:23: unknown field of LAUNCHER "RUM"; did you mean RUN?'),
            ('LAUNCHER: {NAME: own, RUN: "launch -n {rank}"}\n',
             'LAUNCHER=own RUN="launch -n {rank}" (./scr.yaml:1:28): unknown value {rank}; did you mean {ranks}?'),
            ('LAUNCHER: {NAME: own, RUN: "launch [-n {ranks}"}\n', 'scr.yaml:1:28', '[ without its end'),
            ('LAUNCHER: {NAME: own, RUN: launch, MANAGER: slurn}\n', 'scr.yaml:1:45', 'did you mean slurm?'),
            ('LAUNCHER: {NAME: own, RUN: launch, END: "stop {id}"}\n', 'scr.yaml:1:41', 'END', 'FIND'),
            ('LAUNCHER: {NAME: own, END: "stop {name}"}\n', 'RUN', 'it is needed'),
            ('LAUNCHER:\n  - {RUN: launch}\n', 'scr.yaml:2:5', 'NAME: launcher'),
            ('LAUNCHR: {NAME: own}\n', 'scr.yaml:1:1: unknown parameter "LAUNCHR"; did you mean LAUNCHER?')):
        prepare()
        configure(text)
        stand_in('launch')
        for done in (run('program'), run('--check', command=COMMAND.parent / 'scr_params')):
            output = (done.stdout + done.stderr).decode()
            assert done.returncode == 1 and all(part in output for part in told), (text, told, output)
        assert not calls()


def test_site_programs():
    """A program that is missing, or that others can change, is not started."""
    for text in ('LAUNCHER: {NAME: own, RUN: "launch"}\n', 'LAUNCHER: {NAME: own, RUN: true, END: "launch {name}"}\n'):
        prepare()
        configure(text)
        done = run('program')
        assert done.returncode == 1 and identifiers(done) == ['LAUNCHER_UNUSABLE'], done
        assert b'scr.yaml:1:' in done.stderr and b'launch: there is no such program in PATH' in done.stderr, done
        stand_in('launch')
        os.chmod('bin/launch', 0o777)
        done = run('program')
        assert done.returncode == 1 and identifiers(done) == ['LAUNCHER_UNUSABLE'] and b'by everybody' in done.stderr, done
        os.chmod('bin/launch', 0o755)
        if os.geteuid() == 0:
            os.chown('bin/launch', some_user().pw_uid, 0)
            done = run('program')
            assert done.returncode == 1 and identifiers(done) == ['LAUNCHER_UNUSABLE'] and b'belongs to user' in done.stderr, done
        assert not calls()


# ---- built in ----

SAYS = {'hydra': 'HYDRA build details:', 'openmpi': 'mpiexec (OpenRTE) 4.1.4', 'prrte': 'prterun (PRRTE) 3.0.1',
        'openmpi 5': 'mpirun (Open MPI) 5.0.8', 'intel': 'Intel(R) MPI Library for Linux* OS, Version 2021.10',
        'pals': 'mpiexec: PALS 1.2.12'}


def test_recognized():
    """mpiexec may belong to any MPI: its --version decides, and it gets the options that
    it knows."""
    for says, wanted in (('hydra', '-hosts n1:2,n2:2,n3:2 -n 6'), ('openmpi', '--host n1:2,n2:2,n3:2 -n 6 -x SCR_'),
                         ('prrte', '--host n1:2,n2:2,n3:2 -n 6 -x SCR_'), ('openmpi 5', '--host n1:2,n2:2,n3:2 -n 6 -x SCR_'),
                         ('intel', '-hosts n1,n2,n3 -ppn 2 -n 6'), ('pals', '-n 6 --ppn 2 --hosts n1,n2,n3')):
        prepare()
        only_here()
        stand_in('mpiexec', version=SAYS[says])
        done = run('--per-node', '2', 'program')
        assert done.returncode == 0, (says, done)
        assert calls()[0].startswith(f'mpiexec {wanted}'), (says, calls())
    prepare()
    only_here()
    stand_in('mpiexec', version='my own mpiexec')
    done = run('program')
    assert done.returncode == 1 and identifiers(done) == ['LAUNCHER_MISSING'] and not calls(), done


def test_of_the_own_mpi():
    """If launchers of several implementations are installed, that of SCR's own MPI starts
    the program."""
    own = launch.Launch(COMMAND.parent.parent).launcher
    for present in (('mpiexec.mpich', 'mpirun.openmpi'), ('mpiexec.mpich',), ('mpirun.openmpi',)):
        prepare()
        only_here()
        for name in present:
            stand_in(name)
        assert run('program').returncode == 0
        wanted = 'mpirun.openmpi' if own == 'openmpi' and 'mpirun.openmpi' in present else present[0]
        assert calls()[0].split()[0] == wanted, calls()


def test_recognized_by_place():
    """PALS is also recognized by its path."""
    prepare()
    only_here()
    stand_in('pals/mpiexec')
    os.symlink('pals/mpiexec', 'bin/mpiexec')
    assert run('--per-node', '2', 'program').returncode == 0
    assert calls() == ['mpiexec -n 6 --ppn 2 --hosts n1,n2,n3 program'], calls()
    for path in ('bin/mpiexec', 'bin/pals/mpiexec'):
        os.unlink(path)
    os.rmdir('bin/pals')


def test_of_batch_systems():
    """jsrun within LSF, aprun within PBS, and mpiexec if these do not exist, since a site
    need not have them."""
    for variables, name, wanted in (
            ({'LSB_JOBID': '7'}, 'jsrun', 'jsrun --nrs=3 --rs_per_host=1 --tasks_per_rs=2 --cpu_per_rs=ALL_CPUS program'),
            ({'PBS_JOBID': '7'}, 'aprun', 'aprun -n 6 -N 2 -L n1,n2,n3 program'),
            ({'PBS_JOBID': '7'}, 'mpiexec.mpich', 'mpiexec.mpich -hosts n1:2,n2:2,n3:2 -n 6 program'),
            ({'LSB_JOBID': '7'}, 'mpiexec.mpich', 'mpiexec.mpich -hosts n1:2,n2:2,n3:2 -n 6 program'),
            ({}, 'mpiexec.mpich', 'mpiexec.mpich -hosts n1:2,n2:2,n3:2 -n 6 program')):
        prepare(SCR_END_TIME='4102444800', **variables)
        only_here()
        for other in ('jsrun', 'aprun') if not variables else ():
            stand_in(other)
        stand_in(name)
        done = run('--per-node', '2', 'program')
        assert done.returncode == 0 and calls() == [wanted], (done, calls())
    # recognized there, too
    for variables in ({'LSB_JOBID': '7'}, {'PBS_JOBID': '7'}):
        for says, wanted in (('openmpi', '--host n1:2,n2:2,n3:2 -n 6 -x SCR_'), ('intel', '-hosts n1,n2,n3 -ppn 2 -n 6 program'),
                             ('pals', '-n 6 --ppn 2 --hosts n1,n2,n3 program')):
            prepare(SCR_END_TIME='4102444800', **variables)
            only_here()
            stand_in('mpiexec', version=SAYS[says])
            done = run('--per-node', '2', 'program')
            assert done.returncode == 0 and calls()[0].startswith(f'mpiexec {wanted}'), (done, calls())


def test_names_of_scr_3():
    """A command for each launcher, and scr_run with the launcher as its first argument;
    n2 is down."""
    for wrapper, name, words, wanted in (
            ('scr_jsrun', 'jsrun', ['-n', '4'], '--exclude_hosts=n2 -n 4'), ('scr_lrun', 'lrun', ['-T', '2'], '--exclude_hosts=n2 -T 2'),
            ('scr_aprun', 'aprun', ['-n', '4'], '-L n1,n3 -n 4'), ('scr_fluxrun', 'flux', ['-n', '4'], '--requires=-host:n2 -n 4'),
            ('scr_fluxrun', 'flux', ['run', '-n', '4'], '--requires=-host:n2 -n 4'),
            ('scr_fluxrun', 'flux', ['mini', 'submit', '-n', '4'], '--requires=-host:n2 -n 4')):
        for old in (False, True):
            if old and name == 'flux' and words[0] == '-n':
                continue
            prepare(SCR_EXCLUDE_NODES='n2', SCR_MIN_NODES='2')
            only_here()
            stand_in(name)
            os.symlink(COMMAND, wrapper)
            done = run(name, *words, 'program', '-x') if old else run(*words, 'program', '-x', command=os.path.abspath(wrapper))
            os.unlink(wrapper)
            call = [call for call in calls() if call.endswith(' program -x')]
            assert done.returncode == 0 and len(call) == 1 and call[0].endswith(f' {wanted} program -x'), (done, calls())
            assert name != 'flux' or re.match(r'flux run --job-name=\S+ -o exit-on-error ', call[0]), call
    # the commands for a first start and a restart of SCR 3
    os.symlink(COMMAND, 'scr_jsrun')
    for words in (['-rc', 'a'], ['--run-cmd=a'], ['-rs=b'], ['--restart-cmd', 'b'], ['-n', '2', '-rc', 'a'], ['-n2', '--run-cmd=a']):
        done = run(*words, command=os.path.abspath('scr_jsrun'))
        assert done.returncode == 2 and b'SCR_Have_restart' in done.stderr, done
    done = run(command=os.path.abspath('scr_jsrun'))
    assert done.returncode == 2 and b': scr_jsrun -n 4 ./program' in done.stderr, done
    os.unlink('scr_jsrun')


def test_mpirun_named():
    """scr_mpirun starts the MPI launcher in SCR_LAUNCHER; it ignores the name of another
    or unknown launcher there."""
    for name, wanted in (('openmpi', 'mpirun --host n1:*,n3:* '), ('intel', 'mpiexec.hydra -hosts n1,n3 '), ('slurm', 'mpi'), ('', 'mpi')):
        prepare(SCR_EXCLUDE_NODES='n2', SCR_MIN_NODES='2', SCR_LAUNCHER=name)
        only_here()
        stand_in('mpirun', version=SAYS['openmpi'])
        stand_in('mpiexec.hydra', version=SAYS['intel'])
        stand_in('srun')
        os.symlink(COMMAND, 'scr_mpirun')
        done = run('-n', '4', 'program', command=os.path.abspath('scr_mpirun'))
        os.unlink('scr_mpirun')
        assert done.returncode == 0 and len(calls()) == 1 and calls()[0].startswith(wanted), (name, done, calls())


def test_real():
    """Launchers that are installed here are recognized, and start the ranks on this
    machine."""
    here = os.uname().nodename
    for name, programs in (('hydra', ['mpiexec.mpich']), ('openmpi', ['mpirun.openmpi', 'orted'])):
        if not any(os.path.exists(f'{folder}/{programs[0]}') for folder in PATH.split(':')):
            continue
        prepare(here, SCR_NODE_NAME=here, SCR_LAUNCHER=name)
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
        put_program('rank', f'echo "$SCR_PREFIX" >>{os.getcwd()}/calls')
        done = run('--ranks', '2', 'rank')
        assert done.returncode == 0 and calls() == [os.getcwd()] * 2, (done, calls())
    for name in ('OMPI_ALLOW_RUN_AS_ROOT', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM'):
        os.environ.pop(name, None)


run_tests(globals())
