#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run and what was typed wrong, or did not happen as it was asked for: what it says, and that it touches nothing then. The
launchers here are scripts."""
import os
import pathlib
import shutil
import time

from command import COMMAND, run, run_tests
from prefix import HALT, put, put_halt, put_program, put_tree, value, without_scr_variables

without_scr_variables()
BESIDE = pathlib.Path(os.readlink(COMMAND) if COMMAND.is_symlink() else COMMAND).parent


def lines(pattern=''):
    """Those of the log that have the text, without the time."""
    path = pathlib.Path('.scr/runs.log')
    told = path.read_text().splitlines() if path.exists() else []
    return [line.split('  ', 1)[1] for line in told if pattern in line]


def launcher(script, name='mpiexec.mpich'):
    """What it does in place of mpiexec: N is the number of the run."""
    put_program(name, f'N=$(ls "{os.getcwd()}" | grep -c "^call"); N=$((N + 1)); echo "$*" >"{os.getcwd()}/call.$N"\n'
                f'PATH="{BESIDE}:$PATH"\n{script}')


def calls():
    return len(list(pathlib.Path().glob('call.*')))


def prepare():
    os.makedirs('tmp', exist_ok=True)
    os.environ['TMPDIR'] = os.path.abspath('tmp')


def untouched():
    assert not os.path.exists('.scr') and not os.listdir('tmp') and not calls(), os.listdir('.')


# ---- a launcher in place of the program ----

def test_launcher_as_program():
    """It would be started once per rank, and each of these jobs takes the prefix folder for its own."""
    prepare()
    launcher('exit 0')
    for own, words, advice in (
            (['--simulate', '3x1'], ['mpirun', '-n', '2', 'program'], 'scr_run --simulate 3x1 PROGRAM ...'),
            (['--simulate=3x1', '--runs', '2', '--'], ['/usr/bin/mpiexec.hydra', '-n', '2', './a program', '-x'],
             'scr_run --simulate=3x1 --runs 2 PROGRAM ...'),
            (['--runs', '2'], ['srun', '-n4', 'program'], 'scr_run --runs 2 PROGRAM ...'),
            ([], ['srun', '-n4', 'program'], 'scr_srun -n4 program'),
            (['-q'], ['flux', 'run', '-n', '4', 'program'], 'scr_run -q PROGRAM ...')):
        done = run(*own, *words)
        said = done.stderr.decode().splitlines()
        assert done.returncode == 2 and not done.stdout, done
        assert said[0].startswith(f'scr_run: PROGRAM is the launcher {os.path.basename(words[0])}, '), said
        assert said[0].endswith(f'Instead: {advice}'), said
        untouched()
    done = run('--simulate', '3x1', 'mpirun', '-n', '2', 'program', command=COMMAND.parent / 'scr_test_system')
    assert done.returncode == 2 and b'Instead: scr_test_system --simulate 3x1 PROGRAM ...' in done.stderr, done
    untouched()


def test_launcher_on_purpose():
    """What is not the program may have such a name, and scr_mpirun takes what its launcher takes."""
    prepare()
    launcher('exit 0')
    put_program('program', 'exit 0')
    assert run('--simulate', '1', 'program', 'mpirun', '-n', '2').returncode == 0
    os.symlink(COMMAND, 'scr_mpirun')
    os.environ.update(SCR_NODELIST='here', SCR_NODE_NAME='here', SCR_REMOTE='local')
    assert run('-n', '1', 'srun', 'program', command=os.path.abspath('scr_mpirun')).returncode == 0
    for name in ('NODELIST', 'NODE_NAME', 'REMOTE'):
        del os.environ[f'SCR_{name}']
    assert calls() == 2


def test_no_program():
    """What is missing is named, with an example; and what is too much."""
    prepare()
    for options in ([], ['--simulate', '4x2'], ['--']):
        done = run(*options)
        assert done.returncode == 2, done
        assert done.stderr.startswith(b'scr_run: no PROGRAM given: it follows the options, as in: scr_run --simulate 4x2 ./program\n'), done
    os.symlink(COMMAND, 'scr_srun')
    done = run(command=os.path.abspath('scr_srun'))
    assert done.returncode == 2 and b'scr_srun: no PROGRAM given: it follows the arguments of the launcher, as in: scr_srun -n 4 ' in done.stderr
    beside = COMMAND.parent
    for command, arguments, told in (
            ('scr_scavenge', ['/tmp'], "scr_scavenge: '/tmp': only options are taken; --prefix FOLDER names the prefix folder"),
            ('scr_halt', ['a', 'b'], "scr_halt: 'b' is one argument too many"),
            ('scr_nodes_file', ['a', 'b'], "scr_nodes_file: 'b' is one argument too many"),
            ('scr_list_dir', [], 'scr_list_dir: 1 argument is needed, and 0 are given'),
            ('scr_scavenge', ['--id', 'x'], "scr_scavenge: --id takes a number from 0 on, not 'x'")):
        done = run(*arguments, command=beside / command)
        assert done.returncode == 2 and done.stderr.decode().splitlines()[0] == told, done
    untouched()


def test_program_that_cannot_run():
    """It is not tried again and again: on simulated nodes it is refused, on others, which may have it, it is a warning."""
    prepare()
    launcher('exit 0')
    os.mkdir('folder')
    pathlib.Path('text').write_text('no program\n')
    for program, why in (('./none', 'there is no such program'), ('./folder', 'that is a folder, not a program'),
                         ('./text', 'it is not executable (chmod +x)'),
                         ('none', 'there is no such program in PATH; one in this folder is ./PROGRAM')):
        done = run('--simulate', '2x1', '--runs', '5', program)
        assert (done.returncode, done.stderr.decode()) == (1, f'scr_run: {program}: {why}\n'), done
    assert run('--simulate', '1', '').stderr.startswith(b"scr_run: '': there is no such program")
    untouched()
    os.environ.update(SCR_NODELIST='here', SCR_NODE_NAME='here', SCR_REMOTE='local')
    done = run('--launcher', 'hydra', './none')
    assert done.returncode == 0 and calls() == 1, done
    assert done.stderr.startswith(b'scr_run: warning: ./none: there is no such program, on this machine\n'), done
    for name in ('NODELIST', 'NODE_NAME', 'REMOTE'):
        del os.environ[f'SCR_{name}']


def test_without_scr_init():
    """A program that SCR does not know is told: who trusts that it goes on from checkpoints is mistaken."""
    prepare()
    warning = ('warning: nothing of this program was protected: it did not call SCR_Init, or that failed, or its SCR_PREFIX is '
               f'another folder than {os.getcwd()}')
    launcher('exit 0')
    done = run('--simulate', '1', 'true')
    assert done.returncode == 0 and lines('protected') == [warning] and f'scr_run: {warning}\n' in done.stderr.decode(), done
    shutil.rmtree('.scr')
    # what SCR_Init leaves
    put_tree('nodes', {'NODES': value(1)})
    launcher('cp nodes .scr/nodes.scr; exit 0')
    assert run('--simulate', '1', 'true').returncode == 0 and not lines('protected'), lines()
    # of an earlier job
    launcher('exit 0')
    assert run('--simulate', '1', 'true').returncode == 0 and lines('protected') == [warning], lines()


def test_one_line_for_all_nodes():
    prepare()
    launcher('rm -r $SCR_SIMULATE/node[124]; exit 9')
    assert run('--simulate', '4x1', 'true').returncode == 9
    assert lines('down') == ['3 nodes are down, node[1-2,4]: no answer: Host is down'], lines()


# ---- failures of simulated nodes ----

def test_each_failure_counts():
    """Each --fail, and each of several in one."""
    prepare()
    for options in (['--fail', 'node=1', '--fail', 'node=3'], ['--fail', 'node=1 node=3'], ['-f', 'node=3', '--fail=node=1']):
        launcher('while [ -e $SCR_SIMULATE/node1 ] || [ -e $SCR_SIMULATE/node3 ]; do sleep 0.05; done; exit 9')
        done = run('--simulate', '3x1', *options, 'true')
        assert done.returncode == 9, done
        assert sorted(lines('is lost now')) == [f'run 1: node{n} is lost now, as --fail says' for n in (1, 3)], lines()
        assert not lines('did not happen'), lines()
        os.unlink('.scr/runs.log')


def test_failure_that_did_not_happen():
    """It is told, with --quiet, too, and the test that somebody wanted did not pass."""
    prepare()
    launcher('exit 0')
    for options, told in (
            (['--fail', 'node=1,after=3checkpoints'], ['node=1,after=3checkpoints did not happen: run 1 ended after 0 of 3 checkpoints']),
            (['--fail', 'node=2,run=2', '--fail', 'node=1,while=checkpoint', '--quiet'],
             ['node=2,run=2 did not happen: there was no run 2 (--runs)',
              'node=1,while=checkpoint did not happen: run 1 was over before another checkpoint was written'])):
        done = run('--simulate', '2x1', *options, 'true')
        assert done.returncode == 1, done
        assert lines('did not happen') == [f'--fail {text}' for text in told], lines()
        for text in told:
            assert f'scr_run: --fail {text}\n' in done.stderr.decode(), done
        assert lines('the end') == ['the end, with exit code 1'], lines()
        os.unlink('.scr/runs.log')
    launcher('exit 7')
    assert run('--simulate', '2x1', '--fail', 'node=1,after=3', 'true').returncode == 7
    os.environ['SCR_ENABLE'] = '0'
    before, done = calls(), run('--simulate', '2x1', '--fail', 'node=1,after=3', 'true')
    assert done.returncode == 1 and b'scr_run: --fail: with SCR_ENABLE=0 checkpoints are not counted\n' in done.stderr, done
    assert calls() == before
    del os.environ['SCR_ENABLE']


def test_wrong_failures():
    """The message has the option, the failure that is wrong, the word that is, and what there is instead."""
    prepare()
    for wrong, told in (('node=9', 'node=9: there are nodes 1 to 2'),
                        ('node=1,after=x', 'node=1,after=x: after=x: it is a number of checkpoints, as 2checkpoints'),
                        ('node=1,after=3points', 'node=1,after=3points: after=3points: it is a number of checkpoints, as 2checkpoints'),
                        ('node=1 node=2,run=0', 'node=2,run=0: run=0: runs are counted from 1'),
                        ('node=1,how=slowly', 'node=1,how=slowly: how=slowly: it is kill or hang'),
                        ('node=1,while=idle', 'node=1,while=idle: while=idle: it is compute or checkpoint'),
                        ('node=1,when=now', 'node=1,when=now: when=now: there are node, after, run, how and while'),
                        ('node=1,node=2', 'node=1,node=2: node= is there twice; another node is another --fail'),
                        ('after=2', 'after=2: which node? it needs node=N, as node=1'),
                        ('3', "3: '3' is not NAME=VALUE, as node=1")):
        done = run('--simulate', '2x1', '--fail', wrong, 'true')
        assert done.returncode == 2, done
        assert done.stderr.decode().splitlines()[0] == f'scr_run: --fail {told} (--simulate 2x1)', done
    done = run('--simulate', '1', '--fail', 'node=2', 'true')
    assert done.stderr.startswith(b'scr_run: --fail node=2: there is only node 1 (--simulate 1)\n'), done
    for wrong, told in ((['--simulate', '1', *['--fail=node=1'] * 17],
                         '--fail node=1: that is one too many, 16 are possible (--simulate 1)'),
                        (['--simulate', '0x2'], '--simulate 0x2: not NODESxRANKS, as 4x2'),
                        (['--runs', '0'], '--runs 0: no number of runs; it is 1 to 1000000, or -1: any number')):
        assert run(*wrong, 'true').stderr.decode().splitlines()[0] == f'scr_run: {told}'
    untouched()


# ---- halted ----

def test_halted():
    """A program that was told to end is not done, whatever its exit code. Why, and what to do, is told."""
    prepare()
    remove = f'to go on: scr_halt --remove {os.getcwd()}, and start it again'
    nothing = 'to go on: start it again; nothing has to be removed'
    for script, code, why, told in (
            ('scr_halt --reason "the disk is full" >/dev/null 2>&1; exit 0', 0, 'the program was halted: the disk is full', remove),
            ('scr_halt --checkpoints 0 >/dev/null 2>&1; exit 0', 0,
             'the program was halted: the number of checkpoints that was asked for is done', remove),
            ('scr_halt --reason "SCR_SIGNAL: SIGTERM came" >/dev/null 2>&1; exit 0', 0,
             'the program was halted: SCR_SIGNAL: SIGTERM came', nothing),
            ('scr_halt --reason SCR_FINALIZE_CALLED >/dev/null 2>&1; exit 0', 0, 'the program is done', None),
            ('scr_halt --reason SCR_FINALIZE_CALLED >/dev/null 2>&1; exit 7', 7, 'the job should halt: SCR_FINALIZE_CALLED', nothing),
            ('scr_halt --reason enough >/dev/null 2>&1; exit 7', 7, 'the job should halt: enough', remove)):
        launcher(script)
        done = run('--simulate', '1', '--runs', '3', 'true')
        assert done.returncode == code and lines('no further run') == [f'no further run: {why}'], (done, lines())
        assert lines('to go on') == ([told] if told else []), lines()
        if code == 0 and told:
            assert lines('run 1: ended')[0].endswith(f'with exit code 0: it was {why[16:]}'), lines()
        shutil.rmtree('.scr')
    # what an earlier run set is that run's
    launcher('exit 0')
    os.environ['SCR_END_TIME'] = str(int(time.time()) + 600)
    put_halt({'HaltSeconds': value(3600), 'HaltSecondsOfRun': value(3600)})
    assert run('--simulate', '1', 'true').returncode == 0 and lines('no further') == ['no further run: the program is done'], lines()
    put_halt({'HaltSeconds': value(3600)})
    assert run('--simulate', '1', 'true').returncode == 1, lines()
    del os.environ['SCR_END_TIME']
    shutil.rmtree('.scr')
    # no run begins
    put_halt({'CheckpointsLeft': value(0)})
    done, before = run('--simulate', '1', 'true'), calls()
    assert done.returncode == 1 and lines('to go on') == [remove] and calls() == before, done
    put(HALT, b'damaged')
    os.unlink('.scr/runs.log')
    done = run('--simulate', '1', 'true')
    assert done.returncode == 1 and lines('to go on')[0].startswith('what the halt file asked for is lost; to go on: scr_halt --rem'), done


def test_pipe_as_log():
    """It is refused, not waited for."""
    prepare()
    put_program('program', '')
    launcher('exit 0')
    os.mkdir('.scr')
    os.mkfifo('.scr/runs.log')
    done = run('--simulate', '2x1', 'program')
    assert done.returncode == 1 and b'runs.log' in done.stderr and not calls(), done


run_tests(globals())
