#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_list_down_nodes: nodes that are excluded, down, lost, hang, or have bad
directories; on simulated nodes."""
import json
import os
import pathlib
import shutil
import time

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests, run_unread, run_without)
from prefix import give_all, put, put_program, some_user, without_scr_variables

without_scr_variables()


def nodes(count):
    """Simulated nodes n1, n2, ..."""
    os.environ['SCR_PREFIX'] = os.getcwd()
    os.environ['SCR_SIMULATE'] = os.path.abspath('nodes')
    os.environ['SCR_NODELIST'] = f'n[1-{count}]'
    for number in range(count):
        os.makedirs(f'nodes/n{number + 1}')


def rows(*arguments, code=1):
    done = run('--json', *arguments)
    assert done.returncode == code and not done.stderr, done
    return {row['node']: row['reason'] for row in map(json.loads, done.stdout.splitlines())}


def test_none():
    nodes(3)
    expect(run(), 0)
    expect(run('--reason'), 0)
    assert rows(code=0) == {}


def test_why():
    nodes(6)
    shutil.rmtree('nodes/n2')
    put('nodes/n3/cache', b'a file where the folder should be')
    os.environ['SCR_EXCLUDE_NODES'] = 'n[4,17]'
    assert rows('--down', 'n5') == {
        'n2': 'no answer: n2: Host is down', 'n4': 'excluded by SCR_EXCLUDE_NODES', 'n5': 'known to be down',
        'n3': f'access: {os.getcwd()}/nodes/n3/cache: Not a directory'}
    expect(run('n[1-3,6]'), 1, 'n[2-3]\n')
    expect(run('n[1,6]'), 0)
    done = run('--reason', 'n[1-2]')
    assert done.returncode == 1 and done.stdout == b'n2: no answer: n2: Host is down\n', done
    expect(run('-j', 'srun', '--joblauncher=jsrun', 'n[1-2]', 'n3'), 1, 'n[2-3]\n')
    os.environ['SCR_EXCLUDE_NODES'] = 'n['
    done = run()
    assert done.returncode == 3 and b'SCR_EXCLUDE_NODES: ' in done.stderr and b'[NODELIST_INVALID]' in done.stderr, done
    del os.environ['SCR_EXCLUDE_NODES']


def test_free_space():
    """The required size is that of the file system, but more than its free space."""
    nodes(1)
    with open('nodes/full', 'wb') as full:
        os.posix_fallocate(full.fileno(), 0, 16 << 20)
    fs = os.statvfs('nodes')
    os.environ['SCR_NODE_CAPACITY'] = str(fs.f_blocks * fs.f_frsize - (8 << 20))
    expect(run(), 0)
    assert ' free bytes, not ' in rows('--free')['n1']
    del os.environ['SCR_NODE_CAPACITY']


def test_time_limit():
    nodes(5)
    for number in (2, 3, 4):
        put(f'nodes/n{number}/hung', b'')
    os.environ['SCR_NODE_TIMEOUT'] = '4'
    begin = time.monotonic()
    assert rows() == {f'n{i}': 'no answer: sleep: it did not end within 4 seconds' for i in (2, 3, 4)}
    assert time.monotonic() - begin >= 4
    del os.environ['SCR_NODE_TIMEOUT']
    assert rows('--timeout', '3')['n2'] == 'no answer: sleep: it did not end within 3 seconds'


def test_nodes_cannot_be_asked():
    """The remote method is unknown, incomplete, or does not work at all."""
    for variables, *values in (({'SCR_REMOTE': 'pigeon'}, 'SCR_REMOTE=pigeon'),
                               ({'SCR_REMOTE': 'simulate'}, 'scr_run --simulate'),
                               ({'SCR_REMOTE': 'flux'}, 'flux: ')):
        os.environ.update(SCR_PREFIX=os.getcwd(), SCR_NODELIST='n1', **variables)
        os.environ.pop('SCR_SIMULATE', None)
        put_program('flux', 'echo "no broker" >&2; exit 1')
        expect(run(), 3, '', ['REMOTE_UNUSABLE', *values])
    del os.environ['SCR_REMOTE']
    nodes(2)
    done = run_without('signalfd4')
    if done:
        expect(done, 3, '', ['NODE_QUERY_FAILED', 'start env: Operation not permitted'])


def test_batch_system():
    nodes(3)
    os.environ['SLURM_JOB_ID'] = '17'
    put_program('squeue', 'echo "17 RUNNING N/A"')
    put_program('sinfo', 'case "$*" in *drain*) echo "n[1-3]";; *) echo "n[2,9]";; esac')
    assert rows() == {'n2': 'the batch system calls it down'}
    put_program('sinfo', 'echo not today >&2; exit 1')
    # then only the nodes show it
    shutil.rmtree('nodes/n3')
    expect(run(), 1, 'n3\n', ['BATCH_QUERY_FAILED', 'not today'])
    del os.environ['SLURM_JOB_ID']


def test_allocation_is_over():
    """Slurm lets nothing begin on its nodes, which are healthy."""
    nodes(3)
    shutil.rmtree('nodes/n2')
    os.environ.update(SLURM_JOB_ID='17', SCR_LOG_ENABLE='1', SCR_LOG_SYSLOG_ENABLE='0')
    os.makedirs('.scr')
    put_program('sinfo', '')
    for said in ('COMPLETING 2030-01-02T03:04:05', 'RUNNING 2020-01-02T03:04:05'):
        put_program('squeue', f'echo "16 RUNNING N/A"; echo "17 {said}"')
        expect(run('--log'), 3, '', ['ALLOCATION_OVER'])
        expect(run('--log', '--down', 'n2'), 1, 'n2\n')
    assert not os.listdir('.scr')
    for said in ('17 RUNNING 2030-01-02T03:04:05', '17 RUNNING UNLIMITED', '17', ''):
        put_program('squeue', f'echo "{said}"')
        expect(run(), 1, 'n2\n')
    for name in ('SLURM_JOB_ID', 'SCR_LOG_ENABLE', 'SCR_LOG_SYSLOG_ENABLE'):
        del os.environ[name]


def test_log():
    nodes(3)
    shutil.rmtree('nodes/n2')
    shutil.rmtree('nodes/n3')
    os.environ.update(SCR_LOG_ENABLE='1', SCR_LOG_JSON_ENABLE='1', SCR_LOG_SYSLOG_ENABLE='0', SCR_JOB_ID='17')
    os.makedirs('.scr')
    put('.scr/log', b''.join(b'2026-11-21T10:00:00.000000Z RUN_START run="%s" jobid="%s"\n' % two
                             for two in ((b'its-run', b'17'), (b'another', b'18'))))
    expect(run('--log', '--down', 'n3'), 1, 'n[2-3]\n')
    event, = map(json.loads, open('.scr/log.jsonl'))
    assert (event['event'], event['node'], event['note']) == ('NODE_LOST', 'n2', 'no answer: n2: Host is down')
    assert (event['jobid'], event['run']) == ('17', 'its-run'), event
    assert run_unread('--log', '--down', 'n3', '--secs', '42').returncode == 1 and len(list(open('.scr/log.jsonl'))) == 2
    assert json.loads(list(open('.scr/log.jsonl'))[1])['note'] == 'no answer: n2: Host is down (after 42 s of the run)'
    if os.geteuid() == 0:  # the log of another user's runs stays theirs
        shutil.rmtree('.scr')
        os.makedirs('.scr')
        give_all(some_user().pw_uid, some_user().pw_gid)
        for path in pathlib.Path('nodes').glob('**/*'):
            os.chown(path, some_user().pw_uid, some_user().pw_gid)
        expect(run('--log', '--down', 'n3'), 1, 'n[2-3]\n')
        assert os.stat('.scr/log.jsonl').st_uid == some_user().pw_uid
        give_all(0, 0)
    # a log that cannot be written does not change the results
    shutil.rmtree('.scr')
    expect(run('--log', '--down', 'n3'), 1, 'n[2-3]\n', ['LOG_TARGET_FAILED', '.scr/log'])
    expect(run('--log', 'n1'), 0)
    os.makedirs('.scr')
    os.environ['SCR_LOG_ENABLE'] = '0'
    expect(run('--log'), 1, 'n[2-3]\n')
    assert not os.listdir('.scr')
    for name in ('ENABLE', 'JSON_ENABLE', 'SYSLOG_ENABLE'):
        del os.environ[f'SCR_LOG_{name}']


def test_usage():
    nodes(2)
    expect_wrong_usage(['n['], ['n1', 'n]'], ['--down', 'n]'], ['--timeout', 'x'], ['--secs', 'x'])
    done = run('--prefix', 'none')
    assert done.returncode == 3, done
    shutil.rmtree('nodes/n2')
    with open('/dev/full', 'w') as full:
        assert run(stdout=full).returncode == 3
    expect_output_fails()
    expect_documented(11, {'--prefix': '.', '--down': 'n1', '--timeout': '1', '--secs': '1', '--joblauncher': 'srun'})
    expect_well_formed_page()


run_tests(globals())
