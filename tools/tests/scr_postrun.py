#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_postrun: which datasets it saves, from which nodes, and what happens after
failures. The commands that do the work are scripts here, beside a copy of scr_postrun."""
import os
import pathlib
import shutil
import signal
import subprocess

from command import (BUILD_PATH, COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, identifiers, run,
                     run_closed, run_tests, run_unread)
from prefix import FLUSH, INDEX, processes_here, put, put_launcher, put_program, put_tree, value, wait_for, without_scr_variables

without_scr_variables()


def put_dataset(location, number=3):
    put_tree(FLUSH, {'DSET': {'1': {'DIR': value('ckpt.1'), 'LOCATION': value('PFS')},
                              str(number): {'DIR': value(f'ckpt.{number}'), 'LOCATION': {word: {} for word in location}}}})


def nodes(count):
    """Simulated nodes, of which n2 is lost."""
    os.environ.update(SCR_SIMULATE=os.path.abspath('nodes'), SCR_NODELIST=f'n[1-{count}]', SCR_PREFIX=os.getcwd())
    for number in range(count):
        if number != 1:
            os.makedirs(f'nodes/n{number + 1}')


def put_commands(scavenge='', index=''):
    """Makes scripts that record their calls and arguments in the file called."""
    put_program('scr_scavenge', f'echo "scavenge $*" >>called; {scavenge}')
    put_program('scr_index', f'echo "index $*" >>called; {index}')
    shutil.copy(COMMAND, 'bin/scr_postrun')
    shutil.copy(COMMAND.parent / 'scr_check_node', 'bin/scr_check_node')


def postrun(*arguments, unread=False, call=run, **how):
    libraries = os.environ.get('LD_LIBRARY_PATH', '')
    os.environ['LD_LIBRARY_PATH'] = f'{BUILD_PATH}:{libraries}'
    done = (run_unread if unread else call)(*arguments, command='bin/scr_postrun', **how)
    os.environ['LD_LIBRARY_PATH'] = libraries
    return done


def called():
    path = pathlib.Path('called')
    return path.read_text().replace(f'--prefix={os.getcwd()} ', '').splitlines() if path.exists() else []


def test_under_scr_run():
    """Standard output belongs to the program alone, whatever scr_postrun, its commands
    and the site print."""
    put_launcher('cp made .scr/flush.scr; echo the result')
    put_commands('echo copied', 'echo added; echo bad >&2')
    for name in ('scr_run', 'scr_list_down_nodes'):
        shutil.copy(COMMAND.parent / name, f'bin/{name}')
    put_dataset(['CACHE'])
    os.rename(FLUSH, 'made')
    put_program('site/postrun', 'echo from the site')
    libraries = os.environ.get('LD_LIBRARY_PATH', '')
    os.environ.update(LD_LIBRARY_PATH=f'{BUILD_PATH}:{libraries}', SCR_SITE_HOOKS=os.path.abspath('bin/site'))
    simulate = ['--simulate', '1x1', 'true']
    told = ['dataset 3 (ckpt.3) is only in the cache: it is copied from node1', 'copied', 'added']
    for options, shown in (([], True), (['--quiet'], False)):
        done = run(*options, *simulate, command='bin/scr_run')
        lines = done.stderr.decode().splitlines()
        assert done.returncode == 1 and done.stdout == b'the result\n' and 'bad' in lines and 'from the site' in lines, done
        assert [line for line in lines if line in told] == (told if shown else []), done
        # the second run forgets the dataset that the first one could not save, which is
        # reported
        told_of_run = [line for line in lines if line.startswith('scr_run: ')]
        missing = [line for line in told_of_run if line.endswith(' [CACHE_DATASET_DROPPED]') or ' exit code 1' in line]
        assert shown or missing == told_of_run and 'dataset 3 (ckpt.3)' in told_of_run[0], done
    put_launcher('rm .scr/flush.scr; echo the result')
    expect(run('-q', *simulate, command='bin/scr_run'), 0, 'the result\n', ['from the site\n'])
    # closing standard error loses only the messages there
    put_launcher('')
    for first in range(3):
        assert run_closed(*simulate, command='bin/scr_run', first=first).returncode == 0
    os.environ['LD_LIBRARY_PATH'] = libraries
    del os.environ['SCR_SITE_HOOKS']


def test_another_job():
    """With a wrong job id the caches look lost: their owner is reported."""
    put_program('scr_scavenge', 'exit 3')
    put_program('scr_index', 'exit 1')
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='18', SCR_NODELIST='n1', SCR_NODE_NAME='n1', SCR_REMOTE='local')
    for owner, told in (('me/scr.17.0123abcd', True), ('me/scr.18', False), ('me/scr.18.0123abcd', False), ('you/scr.18', True)):
        put_tree(FLUSH, {'DSET': {'3': {'DIR': value('a'), 'LOCATION': value('CACHE')}}, 'OWNER': value(owner)})
        done = run(command=COMMAND)
        assert done.returncode == 1 and ('CACHE_OTHER_JOB' in identifiers(done)) == told, (owner, done)
        assert not told or f' {owner}, ' in done.stderr.decode() and b' job 18 of me ' in done.stderr, (owner, done)
    for name in ('USER_NAME', 'JOB_ID', 'NODELIST', 'NODE_NAME', 'REMOTE'):
        del os.environ[f'SCR_{name}']


def test_nothing():
    # in a wrong directory nothing is known about the caches
    expect(run(), 1, '', ['PREFIX_UNUSED', os.getcwd()])
    os.mkdir('.scr')
    expect(run(), 0, 'nothing to save: no dataset is in the cache\n')
    for location in (['PFS'], ['CACHE', 'PFS']):
        put_dataset(location)
        expect(run('--prefix', '.'), 0, 'dataset 3 is on the parallel file system\n')
    os.environ['SCR_ENABLE'] = '0'
    put_dataset(['CACHE'])
    expect(run(), 0)
    del os.environ['SCR_ENABLE']


def test_between_runs():
    """The site's postrun is called only at the end of the job."""
    put_program('site/postrun', 'echo from the site >&2')
    os.environ['SCR_SITE_HOOKS'] = os.path.abspath('bin/site')
    put_dataset(['PFS'])
    expect(run('--between'), 0, 'dataset 3 is on the parallel file system\n')
    expect(run(), 0, 'dataset 3 is on the parallel file system\n', ['from the site\n'])
    del os.environ['SCR_SITE_HOOKS']


def test_saves():
    nodes(4)
    put_dataset(['CACHE'])
    put_index(['ckpt.3'])
    put_commands()
    said = 'dataset 3 (ckpt.3) is only in the cache: it is copied from n[1,3-4]\n'
    expect(postrun(), 0, said)
    assert called() == ['scavenge --stop --id 3 --up n[1,3-4] --down n2', 'index --add ckpt.3'], called()
    os.remove('called')
    # a node that was down once is not queried
    expect(postrun('--down', 'n4'), 0, said.replace('n[1,3-4]', 'n[1,3]'))
    assert called()[0] == 'scavenge --stop --id 3 --up n[1,3] --down n[2,4]'


def test_repeated():
    """The command that tries again can be copied into a shell, whatever the name of the directory."""
    nodes(1)
    for name in ('here', 'my data; x'):
        os.makedirs(f'{name}/.scr')
        put_tree(f'{name}/{FLUSH}', {'DSET': {'3': {'DIR': value('a'), 'LOCATION': value('CACHE')}}})
        put_commands('exit 1', 'exit 1')
        done = postrun('--prefix', name)
        word = f"--prefix={os.getcwd()}/{name}"
        word = word if name == 'here' else f"'{word}'"
        assert done.returncode == 1 and f'; scr_postrun {word} tries again [DATASET_UNSAVED]\n' in done.stderr.decode(), done


def test_unfit_node():
    """A node is unusable for runs but answers: its data is saved."""
    nodes(4)
    put_dataset(['CACHE'])
    put_index(['ckpt.3'])
    put_commands()
    put_program('scr_check_node', '[ "$SCR_NODE_NAME" != n3 ] || { echo "scr_check_node: the folder /cache is full"; exit 1; }')
    expect(postrun(), 0, 'dataset 3 (ckpt.3) is only in the cache: it is copied from n[1,3-4]\n')
    assert called()[0] == 'scavenge --stop --id 3 --up n[1,3-4] --down n2', called()
    put_program('scr_check_node', 'echo scr_check_node: no; exit 1')
    expect(postrun('--down', 'n4'), 0, 'dataset 3 (ckpt.3) is only in the cache: it is copied from n[1,3]\n')
    # a failing launcher is not an answer
    put_program('scr_check_node', '[ "$SCR_NODE_NAME" != n3 ] || { echo "srun: error: Slurm job 1 has expired"; exit 1; }')
    expect(postrun(), 0, 'dataset 3 (ckpt.3) is only in the cache: it is copied from n[1,4]\n')


def put_index(checkpoints, outputs=(), failing=()):
    """failing: incomplete datasets."""
    entries = {name[5:]: {'DIR': {name: {'COMPLETE': value(int(name not in failing)), 'DSET': {
        'ID': value(name[5:]), 'NAME': value(name), 'RANKS': value(1), 'COMPLETE': value(1),
        **({'CKPT': value(name[5:])} if name in checkpoints else {'OUTPUT': value(1)})}}}} for name in (*checkpoints, *outputs)}
    put_tree(INDEX, {'VERSION': value(1), 'DSET': entries,
                     'DIR': {name: {'DSET': value(name[5:])} for name in (*checkpoints, *outputs)}})


def put_datasets(**locations):
    """Datasets by name: ckpt_3 is number 3."""
    put_tree(FLUSH, {'DSET': {name[5:]: {'DIR': value(name), 'LOCATION': {word: {} for word in words.split()}}
                              for name, words in locations.items()}})


def test_which():
    """The newest dataset is saved; if it cannot be completed, the next one; and datasets
    with a flush under way."""
    nodes(3)
    for failing, locations, added, code in (
            ('none', {'ckpt_3': 'CACHE', 'ckpt_4': 'CACHE'}, ['ckpt_4'], 0),
            ('ckpt_4', {'ckpt_3': 'CACHE', 'ckpt_4': 'CACHE', 'ckpt_2': 'CACHE'}, ['ckpt_4', 'ckpt_3'], 1),
            ('ckpt_10', {'ckpt_9': 'CACHE', 'ckpt_10': 'CACHE'}, ['ckpt_10', 'ckpt_9'], 1),
            ('ckpt_4', {'ckpt_3': 'CACHE PFS', 'ckpt_4': 'CACHE', 'ckpt_2': 'CACHE'}, ['ckpt_4'], 1),
            ('none', {'ckpt_3': 'CACHE FLUSHING', 'ckpt_4': 'CACHE'}, ['ckpt_4', 'ckpt_3'], 0),
            ('none', {'ckpt_3': 'CACHE FLUSHING', 'ckpt_4': 'CACHE PFS'}, ['ckpt_3'], 0),
            ('none', {'ckpt_3': 'CACHE', 'ckpt_4': 'CACHE PFS'}, [], 0)):
        put_datasets(**locations)
        put_index(locations, failing=[failing])
        put_commands(index=f'[ $3 != {failing} ]')
        assert postrun().returncode == code, locations
        assert [line.split()[-1] for line in called() if 'index' in line] == added, (locations, called())
        pathlib.Path('called').unlink(missing_ok=True)
    # an output that is not a checkpoint does not replace one
    for words, added in (('CACHE PFS', ['ckpt_3']), ('CACHE', ['ckpt_4', 'ckpt_3'])):
        put_datasets(ckpt_2='CACHE', ckpt_3='CACHE', ckpt_4=words)
        put_index(['ckpt_2', 'ckpt_3'], ['ckpt_4'])
        assert postrun().returncode == 0
        assert [line.split()[-1] for line in called() if 'index' in line] == added, called()
        pathlib.Path('called').unlink()
    # it is unknown what is saved: rather save too much
    os.remove(INDEX)
    put_datasets(ckpt_3='CACHE', ckpt_4='CACHE PFS')
    done = postrun()
    assert done.returncode == 1 and called()[-1] == 'index --add ckpt_3' and b'dataset 3 (ckpt_3) ' in done.stderr
    assert identifiers(done) == ['DATASET_UNSAVED'], done
    os.remove('called')


def test_output_is_lost():
    """The output of the commands, or of this one, is lost: a dataset that is complete in
    the index is saved, and no older one."""
    nodes(1)
    put_datasets(ckpt_3='CACHE', ckpt_4='CACHE')
    put_index(['ckpt_3', 'ckpt_4'])
    put_commands(scavenge='echo copied || exit 1', index='echo added || exit 1')
    with open('/dev/full', 'w') as full:
        for how, code, told in (({'stdout': full}, 1, 'scr_postrun: write: Input/output error [OUTPUT_LOST]\n'), ({'stderr': full}, 0, ''),
                                ({'stdout': full, 'stderr': full}, 1, ''), ({'unread': True}, 0, '')):
            done = postrun(**how)
            assert done.returncode == code, (how, done)
            said = (done.stderr or b'').decode().splitlines(True)
            assert [line for line in said if line.startswith('scr')] == [told] * bool(told), done
            assert [line.split()[-1] for line in called() if 'index' in line] == ['ckpt_4'], (how, called())
            os.remove('called')
    # an incomplete dataset does not count as saved, whatever scr_index returns
    put_index(['ckpt_3', 'ckpt_4'], failing=['ckpt_4'])
    put_commands()
    done = postrun(unread=True)
    assert done.returncode == 1 and [line.split()[-1] for line in called() if 'index' in line] == ['ckpt_4', 'ckpt_3']
    os.remove('called')


def test_closed():
    """Output does not get into files by accident, and started programs have an output."""
    nodes(1)
    put_dataset(['CACHE'])
    put_index(['ckpt.3'])
    put_commands(scavenge='echo copied || exit 1; echo well >&2 || exit 1; ls -l /proc/$$/fd >fds', index='cat || exit 1')
    before = pathlib.Path(INDEX).read_bytes(), pathlib.Path(FLUSH).read_bytes()
    assert postrun(call=run_closed).returncode == 1 and len(called()) == 2
    assert open('fds').read().count('/dev/null') == 3, open('fds').read()
    assert (pathlib.Path(INDEX).read_bytes(), pathlib.Path(FLUSH).read_bytes()) == before


def test_fails():
    nodes(2)
    put_dataset(['CACHE', 'FLUSHING'])
    put_index(['ckpt.3'])
    put_commands(scavenge='exit 1')
    # the index knows whether the copied files suffice
    assert postrun().returncode == 0 and called()[1:] == ['index --add ckpt.3']
    os.remove('called')
    os.remove(INDEX)
    put_commands(index='exit 1')
    again = f'; scr_postrun --prefix={os.getcwd()} '
    expect(postrun(), 1, 'dataset 3 (ckpt.3) is only in the cache: it is copied from n1\n', ['DATASET_UNSAVED', 'dataset 3 (ckpt.3) ', again])
    assert len(called()) == 2
    expect(postrun('--down', 'n[1-2]'), 1, '', ['DATASET_UNSAVED', 'dataset 3 (ckpt.3): '])
    os.remove('called')
    os.remove('bin/scr_scavenge')
    path, os.environ['PATH'] = os.environ['PATH'], '/usr/bin:/bin'
    done = postrun()
    os.environ['PATH'] = path
    assert done.returncode == 1 and not called()
    assert identifiers(done) == ['RUN_LAUNCH_FAILED', 'DATASET_UNSAVED'], done
    assert b': scr_scavenge: ' in done.stderr and again.encode() in done.stderr, done
    put(FLUSH, b'damaged')
    expect(postrun(), 1, '', ['FLUSH_FILE_UNUSABLE', 'flush.scr: ', 'scr_inspect --all '])


def test_mistakes():
    """The caches are saved although the configuration has mistakes, which are
    reported."""
    nodes(1)
    put_dataset(['CACHE'])
    put_index(['ckpt.3'])
    put_commands()
    put('scr.yaml', b'SCR_FLSH: 1\n')
    os.environ['SCR_EXCLUDE_NODES'] = 'n['
    done = postrun()
    assert done.returncode == 0 and called()[-1] == 'index --add ckpt.3', done
    assert b'did you mean SCR_FLUSH?' in done.stderr and b'SCR_EXCLUDE_NODES: ' in done.stderr, done
    assert {'CONFIG_MISTAKE', 'NODELIST_INVALID'} <= set(identifiers(done)), done
    del os.environ['SCR_EXCLUDE_NODES']
    for path in ('scr.yaml', 'called'):
        os.remove(path)


def begin(**variables):
    """Starts scr_postrun in the background."""
    libraries = f'{BUILD_PATH}:{os.environ.get("LD_LIBRARY_PATH", "")}'
    for path in ('ready', 'got', 'called'):
        pathlib.Path(path).unlink(missing_ok=True)
    return subprocess.Popen(['bin/scr_postrun'], env={**os.environ, 'LD_LIBRARY_PATH': libraries, **variables},
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def is_given_up(process, number):
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number, (process.returncode, err)
    line, = [line for line in err.splitlines() if line.endswith(' [DATASET_UNSAVED]')]
    assert f' signal {number:d}: dataset 3 (ckpt.3) ' in line and f'; scr_postrun --prefix={os.getcwd()} ' in line, err
    assert not processes_here(), processes_here()


def has_come(name):
    return lambda: os.path.exists(name)


def test_interrupted():
    nodes(1)
    put_dataset(['CACHE'])
    for number in (signal.SIGINT, signal.SIGTERM):
        put_commands(scavenge='trap "echo >got" USR1; echo >ready; sleep 1000 & wait; wait')
        process = begin()
        wait_for(has_come('ready'))
        process.send_signal(signal.SIGUSR1)
        process.send_signal(number)
        is_given_up(process, number)
        assert not has_come('got')() and len(called()) == 1, called()
        put_commands(index='echo >ready; exec sleep 1000')
        process = begin()
        wait_for(has_come('ready'))
        process.send_signal(number)
        is_given_up(process, number)
    # the work had just ended
    put_index(['ckpt.3'])
    put_commands(index='trap "exit 0" INT; echo >ready; sleep 1000 & wait')
    process = begin()
    wait_for(has_come('ready'))
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == '' and process.returncode == 0


def test_interrupted_and_nothing_ends():
    """With a second signal, everything is killed, including processes in other
    sessions."""
    nodes(1)
    put_dataset(['CACHE'])
    put_commands(scavenge='trap "echo >got" INT TERM\n'
                 'setsid sh -c "trap : INT TERM; echo >ready; while :; do sleep 1; done" & while :; do sleep 0.1; done')
    process = begin()
    wait_for(has_come('ready'))
    process.send_signal(signal.SIGINT)
    wait_for(has_come('got'))
    process.send_signal(signal.SIGINT)
    is_given_up(process, signal.SIGINT)


def test_interrupted_while_nodes_are_asked():
    nodes(1)
    put_dataset(['CACHE'])
    put_commands()
    put_program('tests/slow', 'echo >ready; sleep 1000')
    process = begin(SCR_NODE_TESTS=os.path.abspath('bin/tests'))
    wait_for(has_come('ready'))
    process.send_signal(signal.SIGINT)
    is_given_up(process, signal.SIGINT)
    assert not called()


def test_usage():
    for name in ('SIMULATE', 'NODELIST', 'PREFIX'):
        del os.environ[f'SCR_{name}']
    expect_wrong_usage(['argument'], ['--down', 'n['])
    expect(run('--prefix', 'none'), 1, '', ['DIRECTORY_UNUSABLE'])
    os.makedirs('.scr', exist_ok=True)
    expect_output_fails([])
    expect_documented(7, {'--prefix': '.', '--joblauncher': 'srun', '--down': 'n1'})
    expect_well_formed_page()


run_tests(globals())
