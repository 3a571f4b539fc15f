#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run with mistakes on the command line, or with requests that had no effect: its
messages, and that it then changes nothing. The launchers here are scripts."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from command import COMMAND, run, run_tests, run_without
from prefix import HALT, only_here, put, put_halt, put_launcher, put_program, put_tree, value, wait_for, without_scr_variables

without_scr_variables()
BESIDE = pathlib.Path(os.readlink(COMMAND) if COMMAND.is_symlink() else COMMAND).parent


def lines(pattern=''):
    """Lines of the log that contain the text, without the time."""
    path = pathlib.Path('.scr/runs.log')
    told = path.read_text().splitlines() if path.exists() else []
    return [line.split('  ', 1)[1] for line in told if pattern in line]


def has(done, identifier, *values):
    """Whether a message has that identifier and these values."""
    return any(line.endswith(f' [{identifier}]') and all(value in line for value in values)
               for line in done.stderr.decode().splitlines())


def launcher(script):
    """Makes a script in place of mpiexec: N is the number of the run."""
    put_launcher(f'N=$(ls "{os.getcwd()}" | grep -c "^call"); N=$((N + 1)); echo "$*" >"{os.getcwd()}/call.$N"\n'
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
    """A launcher as the program would be started once per rank, and each of these jobs
    would use the prefix directory."""
    prepare()
    launcher('exit 0')
    for own, words, advice in (
            (['--simulate', '3x1'], ['mpirun', '-n', '2', 'program'], 'scr_run --simulate 3x1 PROGRAM ...'),
            (['--simulate=3x1', '--runs', '2', '--'], ['/usr/bin/mpiexec.hydra', '-n', '2', './a program', '-x'],
             'scr_run --simulate=3x1 --runs 2 PROGRAM ...'),
            (['--runs', '2'], ['srun', '-n4', 'program'], 'scr_run --runs 2 PROGRAM ...'),
            ([], ['/usr/bin/srun', '-n4', 'program'], 'scr_srun -n4 program'),
            (['-q'], ['flux', 'run', '-n', '4', 'program'], 'scr_run -q PROGRAM ...')):
        done = run(*own, *words)
        assert done.returncode == 2 and not done.stdout, done
        assert has(done, 'USAGE_WRONG', f' {os.path.basename(words[0])}, ', f': {advice} [USAGE_WRONG]'), done
        untouched()
    done = run('--simulate', '3x1', 'mpirun', '-n', '2', 'program', command=COMMAND.parent / 'scr_test_system')
    assert done.returncode == 2 and has(done, 'USAGE_WRONG', ': scr_test_system --simulate 3x1 PROGRAM ...'), done
    untouched()


def test_launcher_on_purpose():
    """Arguments other than the program may have such a name, and scr_mpirun accepts what
    its launcher accepts."""
    prepare()
    launcher('exit 0')
    put_program('program', 'exit 0')
    assert run('--simulate', '1', 'program', 'mpirun', '-n', '2').returncode == 0
    os.symlink(COMMAND, 'scr_mpirun')
    os.environ.update(SCR_NODELIST='here', SCR_NODE_NAME='here', SCR_REMOTE='local')
    path = only_here('ls', 'grep')
    assert run('-n', '1', 'srun', 'program', command=os.path.abspath('scr_mpirun')).returncode == 0
    os.environ['PATH'] = path
    for name in ('NODELIST', 'NODE_NAME', 'REMOTE'):
        del os.environ[f'SCR_{name}']
    assert calls() == 2


def test_no_program():
    """A missing program is reported with an example, an extra argument as such."""
    prepare()
    for options in ([], ['--simulate', '4x2'], ['--']):
        done = run(*options)
        assert done.returncode == 2 and has(done, 'USAGE_WRONG', 'PROGRAM', ': scr_run --simulate 4x2 ./program'), done
    os.symlink(COMMAND, 'scr_srun')
    done = run(command=os.path.abspath('scr_srun'))
    assert done.returncode == 2 and has(done, 'USAGE_WRONG', 'PROGRAM', ': scr_srun -n 4 '), done
    beside = COMMAND.parent
    for command, arguments, told in (
            ('scr_scavenge', ['/tmp'], ("'/tmp'", '--prefix DIRECTORY')),
            ('scr_halt', ['--dir', 'a', 'b'], ('two prefix directories',)),
            ('scr_nodes_file', ['a', 'b'], ("'b'",)),
            ('scr_list_dir', [], (' 1 argument ', ' 0 ')),
            ('scr_scavenge', ['--id', 'x'], ('--id ', "'x'"))):
        done = run(*arguments, command=beside / command)
        assert done.returncode == 2 and has(done, 'USAGE_WRONG', f'{command}: ', *told), done
    untouched()


def test_program_that_cannot_run():
    """It is not tried repeatedly: on simulated nodes it is refused; on other nodes, which
    may have it, there is a warning."""
    prepare()
    launcher('exit 0')
    os.mkdir('folder')
    pathlib.Path('text').write_text('no program\n')
    for program, why in (('./none', ''), ('./folder', ''), ('./text', 'chmod +x'), ('none', './PROGRAM'), ('', '')):
        done = run('--simulate', '2x1', '--runs', '5', program)
        assert done.returncode == 1 and has(done, 'PROGRAM_MISSING', f'scr_run: {program}' if program else "scr_run: ''", why), done
    untouched()
    os.environ.update(SCR_NODELIST='here', SCR_NODE_NAME='here', SCR_REMOTE='local')
    done = run('--launcher', 'hydra', './none')
    assert done.returncode == 0 and calls() == 1, done
    assert has(done, 'PROGRAM_NOT_HERE', 'warning: ./none: '), done
    for name in ('NODELIST', 'NODE_NAME', 'REMOTE'):
        del os.environ[f'SCR_{name}']


def test_without_scr_init():
    """A program without SCR is reported, since it does not continue from checkpoints."""
    prepare()
    launcher('exit 0')
    done = run('--simulate', '1', 'true')
    assert done.returncode == 0 and len(lines('[RUN_UNPROTECTED]')) == 1, done
    assert lines('RUN_UNPROTECTED')[0].startswith('warning: ') and has(done, 'RUN_UNPROTECTED', ': warning: ', os.getcwd()), done
    shutil.rmtree('.scr')
    # the records of SCR_Init
    put_tree('nodes', {'NODES': value(1)})
    launcher('cp nodes .scr/nodes.scr; exit 0')
    assert run('--simulate', '1', 'true').returncode == 0 and not lines('RUN_UNPROTECTED'), lines()
    # of an earlier job
    launcher('exit 0')
    assert run('--simulate', '1', 'true').returncode == 0 and len(lines('RUN_UNPROTECTED')) == 1, lines()


def test_one_line_for_all_nodes():
    prepare()
    launcher('rm -r $SCR_SIMULATE/node[124]; exit 9')
    assert run('--simulate', '4x1', 'true').returncode == 9
    down, = lines('NODE_DOWN')
    assert '3 nodes, ' in down and ' node[1-2,4]: ' in down and ': Host is down' in down, lines()


# ---- failures of simulated nodes ----

def test_each_failure_counts():
    """Each --fail counts, and each of several in one."""
    prepare()
    for options in (['--fail', 'node=1', '--fail', 'node=3'], ['--fail', 'node=1 node=3'], ['-f', 'node=3', '--fail=node=1']):
        launcher('while [ -e $SCR_SIMULATE/node1 ] || [ -e $SCR_SIMULATE/node3 ]; do sleep 0.05; done; exit 9')
        done = run('--simulate', '3x1', *options, 'true')
        assert done.returncode == 9, done
        assert [line[:12] for line in sorted(lines('RUN_FAILURE_SIMULATED'))] == [f'run 1: node{n}' for n in (1, 3)], lines()
        assert not lines('RUN_FAILURE_MISSED'), lines()
        os.unlink('.scr/runs.log')


def test_failure_that_did_not_happen():
    """It is reported, also with --quiet, and makes scr_run fail."""
    prepare()
    launcher('exit 0')
    for options, told in (
            (['--fail', 'node=1,after=3checkpoints'], [('node=1,after=3checkpoints ', ' run 1 ', ' 0 of 3 ')]),
            (['--fail', 'node=2,run=2', '--fail', 'node=1,while=checkpoint', '--quiet'],
             [('node=2,run=2 ', ' run 2 (--runs)'), ('node=1,while=checkpoint ', ' run 1 ')])):
        done = run('--simulate', '2x1', *options, 'true')
        assert done.returncode == 1, done
        assert len(lines('RUN_FAILURE_MISSED')) == len(told), lines()
        for (failure, *values), line in zip(told, lines('RUN_FAILURE_MISSED')):
            assert line.startswith(f'--fail {failure}') and all(value in line for value in values), lines()
            assert has(done, 'RUN_FAILURE_MISSED', f'scr_run: {line}'), done
        assert len(lines('exit code 1 [RUN_FINISHED]')) == 1, lines()
        os.unlink('.scr/runs.log')
    launcher('exit 7')
    assert run('--simulate', '2x1', '--fail', 'node=1,after=3', 'true').returncode == 7
    os.environ['SCR_ENABLE'] = '0'
    before, done = calls(), run('--simulate', '2x1', '--fail', 'node=1,after=3', 'true')
    assert done.returncode == 1 and has(done, 'SIMULATION_INVALID', '--fail', 'SCR_ENABLE=0'), done
    assert calls() == before
    del os.environ['SCR_ENABLE']


def test_wrong_failures():
    """The message has the option, the wrong failure, the wrong word, and the valid
    ones."""
    prepare()
    for wrong, told in (('node=9', 'node=9: '),
                        ('node=1,after=x', 'node=1,after=x: after=x: '),
                        ('node=1,after=3points', 'node=1,after=3points: after=3points: '),
                        ('node=1 node=2,run=0', 'node=2,run=0: run=0: '),
                        ('node=1,how=slowly', 'node=1,how=slowly: how=slowly: '),
                        ('node=1,while=idle', 'node=1,while=idle: while=idle: '),
                        ('node=1,when=now', 'node=1,when=now: when=now: '),
                        ('node=1,node=2', 'node=1,node=2: node= '),
                        ('after=2', 'after=2: '),
                        ('3', "3: '3' ")):
        done = run('--simulate', '2x1', '--fail', wrong, 'true')
        assert done.returncode == 2 and has(done, 'USAGE_WRONG', f'scr_run: --fail {told}', ' (--simulate 2x1)'), done
    done = run('--simulate', '1', '--fail', 'node=2', 'true')
    assert has(done, 'USAGE_WRONG', '--fail node=2: ', ' node 1 '), done
    for wrong, *told in ((['--simulate', '1', *['--fail=node=1'] * 17], '--fail node=1: ', ' 16 '),
                         (['--simulate', '0x2'], '--simulate 0x2: ', 'NODESxRANKS'),
                         (['--runs', '0'], '--runs 0: ', ' 1000000')):
        assert has(run(*wrong, 'true'), 'USAGE_WRONG', *told), wrong
    untouched()


def test_bad_list_of_nodes():
    prepare()
    launcher('exit 0')
    os.environ['SCR_EXCLUDE_NODES'] = 'node1['
    done = run('--simulate', '2x1', 'true')
    del os.environ['SCR_EXCLUDE_NODES']
    assert done.returncode == 1 and not calls() and has(done, 'NODELIST_INVALID', 'SCR_EXCLUDE_NODES: '), done


# ---- the system refuses ----

def test_control_of_processes():
    """Without signals no run begins; without a list of processes, possible leftovers are
    reported."""
    prepare()
    launcher('exit 0')
    done = run_without('signalfd4', '--simulate', '2x1', 'true')
    if done:
        assert done.returncode == 1 and has(done, 'PROCESS_CONTROL_FAILED', 'Operation not permitted') and not calls(), done
    launcher(f'{sys.executable} -c "import resource, os; resource.prlimit(int(os.environ[\'OF\']), resource.RLIMIT_NOFILE, (3, 3))"')
    put_program('run', 'export OF=$$; exec "$@"')
    done = run('bin/run', COMMAND, '--simulate', '2x1', 'true', command='/bin/sh')
    assert has(done, 'PROCESSES_LEFT', ': processes of the run: Too many open files'), done


def test_simulated_nodes_cannot_be_made():
    prepare()
    launcher('exit 0')
    os.environ['TMPDIR'] = os.path.abspath('none')
    done = run('--simulate', '2x1', 'true')
    assert done.returncode == 1 and has(done, 'SIMULATION_FAILED', f': {os.getcwd()}/none: No such file') and not calls(), done


def test_simulated_nodes_that_stay():
    """Simulated nodes of a killed scr_run are removed by the next one; a directory
    without the mark of its owner is not."""
    prepare()
    launcher('echo $$ >pid; mv pid ready; exec sleep 1000')
    process = subprocess.Popen([COMMAND, '--simulate', '2x1', 'true'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists('ready'))
    process.kill()
    process.wait()
    os.kill(int(pathlib.Path('ready').read_text()), signal.SIGKILL)
    left, = pathlib.Path('tmp').iterdir()
    launcher('rm $SCR_SIMULATE/.scr-nodes; touch $SCR_SIMULATE/file; chmod 1777 $SCR_SIMULATE/..; exit 0')
    done = run('--simulate', '2x1', 'true')
    assert done.returncode == 0 and has(done, 'SIMULATION_REMOVED', f': {left.resolve()} '), done
    kept, = pathlib.Path('tmp').iterdir()
    assert kept != left and has(done, 'SIMULATION_LEFT', f' in {kept.resolve()}: '), done


# ---- halted ----

def test_halted():
    """A program that was asked to end is not done, whatever its exit code. The reason and
    a remedy are printed."""
    prepare()
    remove = f': scr_halt --remove {os.getcwd()}, '
    nothing = 'nothing has to be removed'
    for script, code, why, told in (
            ('scr_halt --reason "the disk is full" >/dev/null 2>&1; exit 0', 0, ': the disk is full', remove),
            ('scr_halt --checkpoints 0 >/dev/null 2>&1; exit 0', 0, '', remove),
            ('scr_halt --reason "SCR_SIGNAL: SIGTERM came" >/dev/null 2>&1; exit 0', 0, ': SCR_SIGNAL: SIGTERM came', nothing),
            ('scr_halt --reason SCR_FINALIZE_CALLED >/dev/null 2>&1; exit 0', 0, None, None),
            ('scr_halt --reason SCR_FINALIZE_CALLED >/dev/null 2>&1; exit 7', 7, ': SCR_FINALIZE_CALLED', nothing),
            ('scr_halt --reason enough >/dev/null 2>&1; exit 7', 7, ': enough', remove)):
        launcher(script)
        done = run('--simulate', '1', '--runs', '3', 'true')
        assert done.returncode == code and lines('[RUN_DONE]' if why is None else f'{why} [RUN_HALTED]'), (done, lines())
        assert [told in line for line in lines('HALT_REMEDY')] == ([True] if told else []), lines()
        if code == 0 and told:
            assert lines(f'{why} [RUN_EXITED]'), lines()
        shutil.rmtree('.scr')
    # the values of an earlier run belong to that run
    launcher('exit 0')
    os.environ['SCR_END_TIME'] = str(int(time.time()) + 600)
    put_halt({'HaltSeconds': value(3600), 'HaltSecondsOfRun': value(3600)})
    assert run('--simulate', '1', 'true').returncode == 0 and lines('[RUN_DONE]'), lines()
    put_halt({'HaltSeconds': value(3600)})
    assert run('--simulate', '1', 'true').returncode == 1, lines()
    del os.environ['SCR_END_TIME']
    shutil.rmtree('.scr')
    # no run begins
    put_halt({'CheckpointsLeft': value(0)})
    done, before = run('--simulate', '1', 'true'), calls()
    assert done.returncode == 1 and remove in lines('HALT_REMEDY')[0] and calls() == before, done
    put(HALT, b'damaged')
    os.unlink('.scr/runs.log')
    done = run('--simulate', '1', 'true')
    assert done.returncode == 1 and ': scr_halt --remove ' in lines('HALT_REMEDY')[0], done


def test_launcher_ends_the_others():
    """After the death of a rank, launchers send SIGTERM to the other ranks, which may
    record it: that is not a request to halt."""
    prepare()
    for reason, code, runs in (('SCR_SIGNAL: SIGTERM came', 137, 2), ('SCR_SIGNAL: SIGTERM came', 128 + signal.SIGTERM, 1),
                               ('SCR_SIGNAL: SIGUSR1 came', 137, 1), ('enough', 137, 1)):
        launcher(f'[ -e again ] && exit 0; echo >again; scr_halt --reason "{reason}" >/dev/null 2>&1; exit {code}')
        done = run('--simulate', '1', '--runs', '3', 'true')
        assert len(lines('[RUN_EXITED]')) == runs and lines('[RUN_DONE]' if runs == 2 else f': {reason} [RUN_HALTED]'), (done, lines())
        os.remove('again')
        shutil.rmtree('.scr')


def test_pipe_as_log():
    """A pipe is refused without waiting for it."""
    prepare()
    put_program('program', '')
    launcher('exit 0')
    os.mkdir('.scr')
    os.mkfifo('.scr/runs.log')
    done = run('--simulate', '2x1', 'program')
    assert done.returncode == 1 and has(done, 'RUN_LOG_UNUSABLE', 'runs.log') and not calls(), done


run_tests(globals())
