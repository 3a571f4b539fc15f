#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run and what was typed wrong, or did not happen as it was asked for: what it says, and that it touches nothing then. The
launchers here are scripts."""
import os
import pathlib

from command import COMMAND, run, run_tests
from prefix import put_program, without_scr_variables

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
            (['--simulate', '3x1'], ['mpirun', '-n', '2', 'program'], 'scr_run --simulate 3x1 program'),
            (['--simulate=3x1', '--runs', '2', '--'], ['/usr/bin/mpiexec.hydra', '-n', '2', './a program', '-x'],
             "scr_run --simulate=3x1 --runs 2 './a program' -x"),
            (['--runs', '2'], ['srun', '-n4', 'program'], 'scr_run --runs 2 --ranks=4 program'),
            ([], ['srun', '-n4', 'program'], 'scr_srun -n4 program'),
            (['-q'], ['flux', 'run', '-n', '4', 'program'], 'scr_run -q --ranks=4 program')):
        done = run(*own, *words)
        said = done.stderr.decode().splitlines()
        assert done.returncode == 2 and not done.stdout, done
        assert said[0].startswith(f'scr_run: PROGRAM is the launcher {os.path.basename(words[0])}, '), said
        assert said[0].endswith(f'Instead: {advice}'), said
        untouched()
    done = run('--simulate', '3x1', 'mpirun', '-n', '2', 'program', command=COMMAND.parent / 'scr_test_system')
    assert done.returncode == 2 and b'Instead: scr_test_system --simulate 3x1 program' in done.stderr, done
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


run_tests(globals())
