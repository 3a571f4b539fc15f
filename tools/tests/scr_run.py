#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run: when it starts a program again, signals at every stage, hanging nodes, and
leftovers. The launchers here are scripts; tests/jobs/run.py uses real programs."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from command import (BUILD_PATH, COMMAND, expect, expect_documented, expect_well_formed_page, expect_wrong_usage, identifiers, run, run_closed,
                     run_tests, run_unread)
from prefix import HALT, only_here, processes_here, put_halt, put_launcher, put_program, value, wait_for, without_scr_variables

without_scr_variables()
BESIDE = pathlib.Path(os.readlink(COMMAND) if COMMAND.is_symlink() else COMMAND).parent


def lines(pattern=''):
    """Matching lines of the log, without the time."""
    path = pathlib.Path('.scr/runs.log')
    told = path.read_text().splitlines() if path.exists() else []
    return [line.split('  ', 1)[1] for line in told if re.search(pattern, line)]


def logged(identifier, *values):
    """Whether the log has a message of that identifier for each of the values, in this order, and no others."""
    found = lines(rf' \[{identifier}\]$')
    return len(found) == len(values) and all(text in line for text, line in zip(values, found))


def launcher(script, put_script=put_launcher):
    """Makes a script in place of mpiexec: N is the number of the run."""
    put_program('program', '')
    put_script(f'N=$(ls "{os.getcwd()}" | grep -c "^call"); N=$((N + 1)); echo "$*" >"{os.getcwd()}/call.$N"\n'
               f'PATH="{BESIDE}:$PATH"\n{script}')


def calls():
    return [pathlib.Path(f'call.{number + 1}').read_text().strip() for number in range(len(list(pathlib.Path().glob('call.*'))))]


def simulate(*options, nodes='2x1', call=run, **how):
    return call('--simulate', nodes, *options, 'program', '-x', **how)


def begin(*options, nodes='2x1', command=COMMAND, stderr=subprocess.DEVNULL, **variables):
    """Starts scr_run in the background."""
    return subprocess.Popen([command, '--simulate', nodes, *options, 'program'], env={**os.environ, **variables},
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)


def ends(process, code):
    assert process.wait(60) == code, (process.returncode, lines())
    expect_clean()


def expect_clean():
    """No process of this test is left, and no simulated node."""
    assert not processes_here(), processes_here()
    assert not list(pathlib.Path('tmp').glob('*')), os.listdir('tmp')


def prepare():
    os.mkdir('tmp')
    os.environ['TMPDIR'] = os.path.abspath('tmp')


def forget():
    """Removes the traces of all runs here."""
    shutil.rmtree('tmp', ignore_errors=True)
    prepare()
    for path in (*pathlib.Path().glob('call.*'), *map(pathlib.Path, ('.scr/runs.log', 'saved', 'ignored'))):
        path.unlink(missing_ok=True)


# ---- when it goes on ----

def test_done():
    prepare()
    launcher('exit 0')
    done = simulate('--runs', '5')
    assert done.returncode == 0 and not done.stdout and b'\nnothing to save: no dataset is in the cache\n' in done.stderr, done
    call, = calls()
    assert re.fullmatch(r'-launcher fork (?:-genv \S+ \S+ )?-n 1 -env SCR_NODE_NAME node1 -env SCR_CACHE_BASE (\S+)/node1/cache -env '
                        r'SCR_CNTL_BASE \1/node1/cntl program -x : -n 1 -env SCR_NODE_NAME node2 .* program -x', call), call
    assert [line.rpartition(' ')[2] for line in lines()] == [
        '[RUN_LAUNCHED]', '[RUN_EXITED]', '[RUN_DONE]', '[RUN_UNPROTECTED]', '[RUN_FINISHED]'], lines()
    assert logged('RUN_LAUNCHED', 'run 1: begins on node[1-2], 2 ranks') and logged('RUN_EXITED', ' exit code 0'), lines()
    assert logged('RUN_FINISHED', ' exit code 0'), lines()
    for line in lines():
        assert f'scr_run: {line}\n' in done.stderr.decode()
    assert simulate('--quiet').stderr == b''
    expect_clean()


def test_runs():
    prepare()
    launcher('exit $((N + 6))')
    for options, variable, count in (((), None, 1), ((), '3', 3), (('--runs', '2'), '3', 2)):
        if variable:
            os.environ['SCR_RUNS'] = variable
        done = simulate(*options)
        assert (done.returncode, len(calls())) == (6 + count, count), (done, calls())
        assert logged('RUN_USED_UP', 'SCR_RUNS'), lines()
        for path in (*pathlib.Path().glob('call.*'), pathlib.Path('.scr/runs.log')):
            path.unlink()
    del os.environ['SCR_RUNS']
    launcher('kill -SEGV $$')
    assert simulate().returncode == 128 + signal.SIGSEGV
    expect_clean()


def test_not_there():
    prepare()
    path, os.environ['PATH'] = os.environ['PATH'], os.getcwd()
    done = run('--simulate', '2', '/bin/true')
    os.environ['PATH'] = path
    assert done.returncode == 1 and identifiers(done) == ['LAUNCHER_MISSING'] and b'mpiexec.mpich' in done.stderr, done
    done = run('--launcher', 'carrier-pigeon', 'program')
    assert done.returncode == 1 and identifiers(done) == ['PROGRAM_NOT_HERE', 'LAUNCHER_MISSING'] and b' carrier-pigeon: ' in done.stderr, done
    launcher('exit 0')
    os.environ['SCR_WATCHDOG'] = '1'
    done = simulate()
    assert done.returncode == 1 and b'SCR_WATCHDOG_TIMEOUT' in done.stderr and not calls(), done
    assert identifiers(done) == ['CONFIG_MISTAKE'], done
    del os.environ['SCR_WATCHDOG']
    done = simulate('--nodes', '3')
    assert done.returncode == 1 and identifiers(done) == ['RUN_NODES_TOO_FEW'], done
    assert b'--nodes 3: ' in done.stderr and b' 2 ' in done.stderr, done
    expect_clean()


def test_nodes_lost():
    """A run loses a node: the next run has the spare one, the one after too few."""
    prepare()
    launcher('rm -r $SCR_SIMULATE/node$N; exit 9')
    os.environ.update(SCR_LOG_ENABLE='1', SCR_LOG_JSON_ENABLE='1', SCR_LOG_SYSLOG_ENABLE='0', SCR_LOG_TXT_ENABLE='0')
    done = simulate('--runs', '-1', '--nodes', '3', nodes='4x2')
    assert done.returncode == 9, done
    assert logged('RUN_LAUNCHED', 'run 1: begins on node[1-3], 6 ranks', 'run 2: begins on node[2-4], 6 ranks'), lines()
    assert logged('NODE_DOWN', ': node1: Host is down', ': node2: Host is down'), lines()
    assert logged('RUN_NODES_LOST', '2 of 4 nodes are left, 3 are needed'), lines()
    events = [json.loads(line) for line in open('.scr/log.jsonl')]
    assert [e['run'] == events[0]['run'] for e in events] == [True] * 3 + [False] * 3 and [(e['event'], e.get('node'), e.get('code'), e.get('ranks')) for e in events] == [
        ('LAUNCH_START', None, None, 6), ('LAUNCH_END', None, 9, None), ('NODE_LOST', 'node1', None, None),
        ('LAUNCH_START', None, None, 6), ('LAUNCH_END', None, 9, None), ('NODE_LOST', 'node2', None, None)], events
    for name in ('ENABLE', 'JSON_ENABLE', 'SYSLOG_ENABLE', 'TXT_ENABLE'):
        del os.environ[f'SCR_LOG_{name}']
    expect_clean()


def test_fewer_nodes():
    """If fewer nodes suffice, they get more ranks; a returning node is not used."""
    prepare()
    launcher('[ $N = 1 ] && rm -r $SCR_SIMULATE/node2 || mkdir -p $SCR_SIMULATE/node2; exit 9')
    os.environ['SCR_MIN_NODES'] = '2'
    assert simulate('--runs', '3', nodes='3x2').returncode == 9
    assert logged('RUN_LAUNCHED', 'run 1: begins on node[1-3], 6 ranks', 'run 2: begins on node[1,3], 6 ranks',
                  'run 3: begins on node[1,3], 6 ranks'), lines()
    assert '-n 3 -env SCR_NODE_NAME node1 ' in calls()[1] and '-n 3 -env SCR_NODE_NAME node3 ' in calls()[1]
    del os.environ['SCR_MIN_NODES']
    expect_clean()


# ---- programs of the site ----

def hook(name, script):
    put_program(name, f'echo "{name} $SCR_PREFIX $*" >>{os.getcwd()}/hooked; {script}')


def called():
    path = pathlib.Path('hooked')
    text = path.read_text().replace(os.getcwd(), 'HERE').splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return text


def test_site_hooks():
    """Hooks at the start, for a lost node, and at the end; only the first can refuse."""
    prepare()
    launcher('rm -r $SCR_SIMULATE/node$N; exit 9')
    os.environ['SCR_SITE_HOOKS'] = os.path.abspath('bin')
    assert simulate(nodes='2x1').returncode == 9  # there are none
    hook('prerun', 'echo welcome')
    hook('node_down', 'exit 3')
    hook('postrun', '')
    for path in pathlib.Path().glob('call.*'):
        path.unlink()
    done = simulate('--runs', '2', '--nodes', '2', nodes='3x1')
    assert done.returncode == 9 and not done.stdout and done.stderr.startswith(b'welcome\n'), done
    assert b'bin/node_down: ' in done.stderr and 'HOOK_FAILED' in identifiers(done), done
    reason = 'no answer: node{0}: Host is down'
    assert called() == ['prerun HERE ', f'node_down HERE node1 {reason.format(1)}',
                        f'node_down HERE node2 {reason.format(2)}', 'postrun HERE 0']
    hook('prerun', 'echo not today >&2; exit 1')
    done = simulate(nodes='2x1')
    assert done.returncode == 1 and b'not today\n' in done.stderr and b'bin/prerun: ' in done.stderr, done
    assert identifiers(done) == ['HOOK_FAILED'], done
    assert called() == ['prerun HERE ']
    os.environ['SCR_SITE_HOOKS'] = os.path.abspath('none')
    done = simulate(nodes='2x1')
    assert done.returncode == 1 and b'SCR_SITE_HOOKS=' in done.stderr, done
    assert identifiers(done) == ['HOOK_UNUSABLE'], done
    del os.environ['SCR_SITE_HOOKS']
    expect_clean()


# ---- halt ----

def test_halt():
    prepare()
    launcher('[ $N = 2 ] && scr_halt --reason enough >&2; exit 7')
    assert simulate('--runs', '-1').returncode == 7
    assert len(calls()) == 2 and logged('RUN_HALTED', ': enough'), lines()
    # it holds until somebody removes it, but what SCR recorded itself does not
    assert simulate('--runs', '-1').returncode == 1
    assert len(calls()) == 2
    put_halt({'ExitReason': value('SCR_FINALIZE_CALLED')})
    launcher('exit 7')
    assert simulate('--runs', '2').returncode == 7 and len(calls()) == 4, lines()
    pathlib.Path(HALT).write_bytes(b'damaged')
    assert simulate().returncode == 1 and len(calls()) == 4
    expect_clean()


def test_halt_while_it_rests():
    prepare()
    launcher('exit 7')
    process = begin('--runs', '2', SCR_RUN_PAUSE='1000')
    wait_for(lambda: logged('RUN_PAUSES', ' 1000 s '))
    subprocess.run([BESIDE / 'scr_halt', '--reason', 'enough'], stdout=subprocess.DEVNULL, check=True)
    ends(process, 7)
    assert len(calls()) == 1 and logged('RUN_HALTED', ': enough')


def test_halt_at_once():
    prepare()
    launcher('trap "exit 5" TERM; sleep 1000 & wait')
    process = begin('--runs', '2')
    wait_for(calls)
    subprocess.run([BESIDE / 'scr_halt', '--immediate'], stdout=subprocess.DEVNULL, check=True)
    ends(process, 5)
    assert logged('RUN_EXITED', 'scr_halt --immediate') and logged('RUN_HALTED', '') and len(calls()) == 1
    listed = subprocess.run([shutil.which('kvtree_print', path=BUILD_PATH), HALT], capture_output=True, check=True).stdout
    assert b'ExitReason' in listed and b'ExitNow' not in listed


# ---- signals ----

def test_signal_while_it_runs():
    prepare()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        launcher(f'trap "exit 5" {number:d}; echo >ready; sleep 1000 & wait; wait')
        process = begin('--runs', '-1')
        wait_for(lambda: os.path.exists('ready'))
        process.send_signal(number)
        ends(process, 5)
        assert logged('RUN_SIGNALLED', '') and len(calls()) == 1
        for path in ('ready', 'call.1', '.scr/runs.log'):
            os.remove(path)


def test_launcher_calls_it_success():
    """mpiexec may claim success when ended; a program that obeys a signal does
    succeed."""
    prepare()
    for noted, code in (('', 128 + signal.SIGTERM), ('SCR_SIGNAL: 15', 0), ('SCR_FINALIZE_CALLED', 0)):
        launcher(f'trap "mv noted {HALT}; exit 0" TERM; echo >ready; sleep 1000 & wait; wait')
        process = begin('--runs', '-1')
        wait_for(lambda: os.path.exists('ready'))
        put_halt({'ExitReason': value(noted)} if noted else {})
        os.rename(HALT, 'noted')
        process.send_signal(signal.SIGTERM)
        ends(process, code)
        assert logged('RUN_FINISHED', f' exit code {code}'), lines()
        for path in ('ready', 'call.1', '.scr/runs.log', HALT):
            os.remove(path)


def test_signals_that_are_passed_on():
    prepare()
    launcher('trap "echo >got" USR1; echo >ready; while [ ! -e got ]; do sleep 0.01; done; exit 0')
    process = begin()
    wait_for(lambda: os.path.exists('ready'))
    process.send_signal(signal.SIGUSR1)
    ends(process, 0)
    assert os.path.exists('got')


def test_second_signal():
    """Neither the program nor its processes end after the first signal."""
    prepare()
    launcher('trap "echo >got" INT TERM; setsid sh -c "trap : INT TERM; echo >ready; while :; do sleep 1; done" &\n'
             'while :; do sleep 0.1; done')
    process = begin()
    wait_for(lambda: os.path.exists('ready'))
    process.send_signal(signal.SIGINT)
    wait_for(lambda: os.path.exists('got'))
    process.send_signal(signal.SIGINT)
    ends(process, 128 + signal.SIGKILL)


def test_signal_while_it_rests():
    prepare()
    launcher('exit 7')
    process = begin('--runs', '-1', SCR_RUN_PAUSE='1000')
    wait_for(lambda: lines('RUN_PAUSES'))
    process.send_signal(signal.SIGINT)
    ends(process, 7)
    assert len(calls()) == 1


def test_signal_while_nodes_are_asked():
    prepare()
    launcher('touch $SCR_SIMULATE/node2/hung; exit 7')
    with open('told', 'w') as told:
        process = begin('--runs', '-1', stderr=told, SCR_NODE_TIMEOUT='1000')
    wait_for(lambda: lines('RUN_EXITED'))
    process.send_signal(signal.SIGTERM)
    ends(process, 7)
    assert logged('RUN_SIGNALLED', '') and len(calls()) == 1
    assert [line.removeprefix('scr_run: ') for line in open('told').read().splitlines() if 'dataset' not in line] == lines()


def test_signal_before_the_first_run():
    """The site's test of a node shows when the nodes are checked."""
    prepare()
    launcher('exit 0')
    put_program('tests/slow', f'echo >{os.getcwd()}/asked; sleep 1000')
    process = begin(SCR_NODE_TESTS=os.path.abspath('bin/tests'))
    wait_for(lambda: os.path.exists('asked'))
    process.send_signal(signal.SIGINT)
    ends(process, 1)
    assert not calls()


def save_by(script, program='exit 7'):
    """A run whose caches are saved by a script in place of scr_postrun."""
    shutil.rmtree('tmp', ignore_errors=True)
    prepare()
    for path in ('ready', 'got', 'go', 'call.1', '.scr/runs.log'):
        pathlib.Path(path).unlink(missing_ok=True)
    launcher(program)
    put_program('scr_postrun', f'{script}\necho $$ >ready; while [ ! -e go ]; do sleep 0.05; done; exit 0')
    for name in ('scr_run', 'scr_check_node', 'scr_list_down_nodes'):
        shutil.copy(BESIDE / name, f'bin/{name}')
    libraries = f'{BUILD_PATH}:{os.environ.get("LD_LIBRARY_PATH", "")}'
    return begin(command='bin/scr_run', LD_LIBRARY_PATH=libraries)


def is_ready():
    return os.path.exists('ready')


def test_first_signal_while_it_saves():
    """The program has ended: no signal is for it, and the caches are worth the time."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = save_by('trap "echo >got" INT TERM HUP USR1 USR2')
        wait_for(is_ready)
        process.send_signal(signal.SIGUSR1)
        process.send_signal(number)
        wait_for(lambda: lines('RUN_SIGNAL]'), lines)
        process.send_signal(signal.SIGUSR2)
        pathlib.Path('go').touch()
        ends(process, 7)
        assert not os.path.exists('got') and not lines('RUN_SAVE_'), lines()


def test_second_signal_while_it_saves():
    for number in (signal.SIGINT, signal.SIGTERM):
        process = save_by(f'trap "echo >got; exit 130" {number:d}')
        wait_for(is_ready)
        process.send_signal(number)
        wait_for(lambda: lines('RUN_SIGNAL]'), lines)
        process.send_signal(number)
        ends(process, -number)
        assert os.path.exists('got') and lines('RUN_SAVE_ABANDONED'), lines()
        assert lines('RUN_FINISHED'), 'the log is complete'


def test_second_signal_was_for_the_program():
    process = save_by('trap "echo >got; exit 130" INT', 'trap "exit 5" INT; echo >running; sleep 1000 & wait')
    wait_for(lambda: os.path.exists('running'))
    process.send_signal(signal.SIGINT)
    wait_for(is_ready)
    process.send_signal(signal.SIGINT)
    ends(process, -signal.SIGINT)
    assert logged('RUN_EXITED', 'exit code 5: signal 2 ') and lines('RUN_SAVE_ABANDONED') and not lines('RUN_SIGNAL]'), lines()


def test_saving_does_not_end():
    """A third signal kills everything, including processes in other sessions."""
    process = save_by('trap "echo >got" INT TERM\nsetsid sh -c "trap : INT TERM; while :; do sleep 1; done" &')
    wait_for(is_ready)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: lines('RUN_SIGNAL]'), lines)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: os.path.exists('got'))
    process.send_signal(signal.SIGINT)
    ends(process, -signal.SIGINT)
    assert lines('RUN_SAVE_ABANDONED'), lines()


def test_saved_in_spite_of_signals():
    """The saving had just ended."""
    process = save_by('trap "exit 0" INT')
    wait_for(is_ready)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: lines('RUN_SIGNAL]'), lines)
    process.send_signal(signal.SIGINT)
    ends(process, 7)
    assert not lines('RUN_SAVE_ABANDONED'), lines()


def test_not_saved():
    """A job whose newest checkpoint is only in the caches does not succeed."""
    for program, code in ((0, 1), (7, 7)):
        process = save_by('exit 1', f'exit {program}')
        ends(process, code)
        assert logged('RUN_SAVE_FAILED', ' exit code 1') and logged('RUN_FINISHED', f' exit code {code}'), lines()


def on_this_machine(job):
    return {'SCR_NODELIST': 'here', 'SCR_NODE_NAME': 'here', 'SCR_REMOTE': 'local', 'SCR_JOB_ID': job,
            'SCR_CNTL_BASE': os.path.abspath('cntl'), 'SCR_CACHE_BASE': os.path.abspath('cache')}


def test_one_at_a_time():
    """A second scr_run is refused, unless its job or prefix directory differs."""
    prepare()
    for folder in ('cntl', 'cache', 'elsewhere'):
        os.mkdir(folder)
    launcher('echo >ready.$SCR_JOB_ID; while [ ! -e go ]; do sleep 0.05; done; exit 5')

    def start(job, prefix='.'):
        return subprocess.Popen([COMMAND, '--prefix', prefix, 'program'], env={**os.environ, **on_this_machine(job)},
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    first = start('17')
    wait_for(lambda: os.path.exists('ready.17'))
    second = start('17')
    told = second.communicate(timeout=60)[1]
    assert second.returncode == 1 and f'process {first.pid} ' in told and ' job 17 ' in told and '[RUN_ACTIVE]' in told, told
    other = start('18')
    wait_for(lambda: os.path.exists('ready.18'))
    beside = start('17', 'elsewhere')
    wait_for(lambda: len(calls()) == 3)
    first.kill()
    first.wait(60)
    third = start('17')
    wait_for(lambda: len(calls()) == 4)
    pathlib.Path('go').touch()
    for process in (other, beside, third):
        assert process.wait(60) == 5, process.returncode
    wait_for(lambda: not processes_here())
    expect_clean()
    assert [path.name for path in pathlib.Path('cntl').rglob('*') if path.is_file()] == ['scr_run.lock']


# ---- a configuration with mistakes ----

def test_mistake_while_it_runs():
    """A mistake in scr.yaml makes no node bad, and the caches are saved."""
    prepare()
    launcher('echo "SCR_FLSH: 1" >scr.yaml; exit 7')
    done = simulate('--runs', '2')
    assert done.returncode == 7 and len(calls()) == 2, done
    assert 'NODES_UNCHECKED' in identifiers(done) and b'did you mean SCR_FLUSH?' in done.stderr, done
    assert not lines('NODE_DOWN|RUN_SAVE_FAILED'), lines()
    done = simulate()
    assert done.returncode == 1 and len(calls()) == 2 and b'SCR_FLSH' in done.stderr, done
    assert 'CONFIG_MISTAKE' in identifiers(done), done
    os.remove('scr.yaml')


def test_unread():
    """Its programs may die of unread output; scr_run continues, saves, and cleans up."""
    launcher('echo from the program; echo lives >lives; exit 9')
    put_program('scr_postrun', 'echo >saved; grep SigIgn /proc/$$/status >ignored; kill -PIPE $$')
    for name in ('scr_run', 'scr_check_node', 'scr_list_down_nodes'):
        shutil.copy(BESIDE / name, f'bin/{name}')
    os.environ['LD_LIBRARY_PATH'] = f'{BUILD_PATH}:{os.environ.get("LD_LIBRARY_PATH", "")}'
    for options, more in (([], {}), ([], {'stderr': subprocess.PIPE}), (['-q'], {})):
        forget()
        done = simulate('--runs', '2', *options, command='bin/scr_run', call=run_unread, **more)
        assert done.returncode == 128 + signal.SIGPIPE and len(calls()) == 2 and not os.path.exists('lives'), (done, lines())
        assert os.path.exists('saved') and int(open('ignored').read().split()[1], 16) >> signal.SIGPIPE - 1 & 1 == 0
        assert [line.rpartition(' ')[2] for line in lines()[-4:]] == [
            '[RUN_USED_UP]', '[RUN_UNPROTECTED]', '[RUN_SAVE_FAILED]', '[RUN_FINISHED]'], lines()
        assert logged('RUN_SAVE_FAILED', ' exit code 141') and logged('RUN_FINISHED', ' exit code 141'), lines()
        expect_clean()


def test_closed():
    """Output does not get into files by accident; the programs can print."""
    launcher('echo from the program || exit 1; echo well >&2 || exit 2; read line && exit 3; exit 9')
    for first in range(3):
        forget()
        assert simulate(call=run_closed, first=first).returncode == 9
        assert len(lines()) == 5 and all(re.match(r'\d{4}-\d\d-', line) for line in open('.scr/runs.log')), lines()
        expect_clean()


# ---- what hangs, and what is left ----

def test_node_hangs():
    prepare()
    launcher('[ $N = 2 ] && exit 0; touch $SCR_SIMULATE/node2/hung; sleep 1000')
    os.environ.update(SCR_NODE_TIMEOUT='2', SCR_NODE_INTERVAL='1')
    process = begin('--runs', '2', '--nodes', '2', nodes='3x1')
    ends(process, 0)
    assert lines('run 1: .* down: node2.*RUN_EXITED') and lines('run 2: .* node.1,3., .*RUN_LAUNCHED'), lines()
    del os.environ['SCR_NODE_TIMEOUT'], os.environ['SCR_NODE_INTERVAL']


def test_program_hangs():
    prepare()
    launcher('[ $N = 2 ] && exit 0; sleep 1000')
    process = begin('--runs', '2', SCR_WATCHDOG='1', SCR_WATCHDOG_TIMEOUT='1')
    ends(process, 0)
    assert lines(r'run 1: .* \d s .*SCR_WATCHDOG.*RUN_EXITED') and len(calls()) == 2


def test_nothing_is_left():
    """Processes that a launcher leaves, in any session, end before the next run."""
    prepare()
    launcher('[ $N = 2 ] && { kill -0 $(cat a) && exit 8; exit 7; }\n'
             'setsid sh -c "trap : TERM; echo \\$\\$ >b; mv b a; while :; do sleep 1; done" & sleep 1000 & \n'
             'while [ ! -e a ]; do sleep 0.01; done; exit 6')
    assert simulate('--runs', '2').returncode == 7
    expect_clean()


# ---- other names ----

def test_mpirun():
    prepare()
    os.symlink(COMMAND, 'scr_mpirun')
    launcher('exit 3')
    os.environ.update(SCR_NODELIST='here,there', SCR_NODE_NAME='here', SCR_REMOTE='local', SCR_EXCLUDE_NODES='there', SCR_MIN_NODES='1')
    path = only_here('ls', 'grep')
    done, os.environ['PATH'] = run('-n', '4', '--help', 'program', '-x', command=os.path.abspath('scr_mpirun')), path
    assert done.returncode == 3 and calls() == ['-hosts here -n 4 --help program -x'], (done, calls())
    assert logged('RUN_LAUNCHED', ' here')
    for name in ('NODELIST', 'NODE_NAME', 'REMOTE', 'EXCLUDE_NODES', 'MIN_NODES'):
        del os.environ[f'SCR_{name}']


def test_srun():
    """srun also gets nodes; n2 is down, and the program hangs until its step ends."""
    prepare()
    os.symlink(COMMAND, 'scr_srun')
    put_program('sinfo', '')
    put_program('squeue', 'case "$*" in *" --job 17") echo "17.batch batch"; echo "17.8 other"; cat step; esac')
    put_program('scancel', 'echo "$1" >>ended; kill -9 $(cat pid)')
    launcher('for w; do shift; case $w in *nodelist=n2) exit 1;; --overlap) check=1;; */scr_check_node) exec $w "$@";; esac\n'
             'done; [ "$check" ] && exit 1; echo $$ >pid\n'
             'set -- $(tr "\\0" "\\n" </proc/$$/cmdline | sed -n s/--job-name=//p); echo "17.9 $1" >step\n'
             'trap "" TERM; exec sleep 1000', put_script=lambda script: put_program('srun', script))
    os.environ.update(SLURM_JOB_ID='17', SLURM_JOB_NODELIST='n[1-2]', SCR_MIN_NODES='1', SCR_WATCHDOG='1',
                      SCR_WATCHDOG_TIMEOUT='1')
    done = run('-n', '4', 'program', command=os.path.abspath('scr_srun'))
    assert logged('RUN_LAUNCHED', ' n1'), (done, lines())
    assert open('ended').read() == '17.9\n', done
    assert lines('SCR_WATCHDOG.*RUN_EXITED') and done.returncode != 0
    for name in ('SLURM_JOB_ID', 'SLURM_JOB_NODELIST', 'SCR_MIN_NODES', 'SCR_WATCHDOG', 'SCR_WATCHDOG_TIMEOUT'):
        del os.environ[name]


def test_switched_off():
    prepare()
    launcher('exit 4')
    os.environ['SCR_ENABLE'] = '0'
    assert simulate('--runs', '3').returncode == 4
    assert len(calls()) == 1 and not os.path.exists('.scr')
    del os.environ['SCR_ENABLE']


def test_usage():
    prepare()
    expect_wrong_usage([], ['--simulate', '2'], ['--runs', '0', 'p'], ['--runs', '-2', 'p'], ['--ranks', 'x', 'p'],
                       ['--ranks', '2', '--per-node', '1', 'p'], ['--fail', 'node=1', 'p'],
                       ['--simulate', '2', '--launcher', 'hydra', 'p'], ['--simulate', '0', 'p'],
                       ['--simulate', '2', '--fail', 'node=3', 'p'],
                       *([option, '0', 'p'] for option in ('--ranks', '--nodes', '--per-node')))
    for wrong in (['--prefix', 'none', '--simulate', '2'], ['--simulate', '2', '--nodes', '3']):
        done = run(*wrong, 'true')
        assert done.returncode == 1 and done.stderr, done
    expect(run('--version', 'p'), 0, run('--version').stdout.decode())
    expect_documented(12, {'--prefix': '.', '--ranks': '1', '--nodes': '1', '--per-node': '1', '--runs': '1', '--launcher': 'hydra',
                           '--simulate': '2', '--fail': 'node=1'})
    expect_well_formed_page()
    expect_clean()


run_tests(globals())
