#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_inspect: the content of a node's cache, according to filemaps of an independent
writer."""
import fcntl
import json
import os
import pathlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage,
                     identifiers, run, run_tests)
from prefix import put, put_tree, value, without_scr_variables

CREATED = 1795257190000000


def fill():
    """Two datasets of a run of 4 ranks, two of which were on this node."""
    base = pathlib.Path.cwd()
    without_scr_variables()
    put_node(base, base / 'cntl/me/scr.17', (1, 2))
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='17', SCR_CNTL_BASE=f'{base}/cntl', SCR_CACHE_BASE=f'{base}/cache',
                      SCR_PREFIX=f'{base}', TZ='UTC')


def put_node(base, control, ranks):
    tree = {'DSET': {}, 'RANK': {}}
    for number, name in ((4, 'c 4'), (5, 'c5')):
        tree['DSET'][str(number)] = {'RANK': {str(rank): {} for rank in ranks}}
        for rank in ranks:
            path = f'{base}/cache/me/scr.17/scr.dataset.{number}/{name}/rank_{rank}'
            put(path, b'x' * 10 * rank)
            about = {'ID': number, 'NAME': name, 'CREATED': CREATED + number, 'CKPT': number - 3, 'RANKS': 4,
                     'COMPLETE': 1, 'FILES': 4, 'SIZE': 60}
            entry = {'FILES': value(1), 'DATADESC': {key: value(text) for key, text in about.items()},
                     'FILE': {path: {'TYPE': value('FULL'), 'SIZE': value(10 * rank)}},
                     'REDDESC': {'TYPE': value('XOR'), 'BASE': value('/dev/shm'), 'INTERVAL': value(1), 'INDEX': value(0)}}
            tree['RANK'].setdefault(str(rank), {'DSET': {}})['DSET'][str(number)] = entry
    put_tree(control / 'filemap_0.scriinfo', tree)
    put(control / 'run.lock', b'')
    os.chmod(control, 0o700)


def test_list():
    fill()
    os.unlink('cache/me/scr.17/scr.dataset.5/c5/rank_2')
    put('cache/me/scr.17/scr.dataset.4/c 4/rank_1', b'short')
    head = 'DSET  CKPT  CREATED                    TYPE  RANKS  HERE  WHOLE  FILES  BYTES  NAME\n'
    rows = ['   4     1  2026-11-21T10:33:10+00:00  XOR       4     2      1      2     30  c 4\n',
            '   5     2  2026-11-21T10:33:10+00:00  XOR       4     2      1      2     30  c5\n']
    expect(run(), 0, head + ''.join(rows))
    expect(run('--id', '5'), 0, head + rows[1])
    expect(run('--id', '6'), 0, 'DSET  CKPT  CREATED  TYPE  RANKS  HERE  WHOLE  FILES  BYTES  NAME\n')
    expect(run('--brief'), 0, f'4 {CREATED + 4} 4 2 1 0 c 4\n5 {CREATED + 5} 4 2 1 0 c5\n')
    expect(run('-b', '-i', '6', '-c', f'{os.getcwd()}/cntl/me/scr.17'), 0)
    assert json.loads(run('-j', '-i', '4').stdout) == {
        'dset': 4, 'checkpoint': 1, 'created': '2026-11-21T10:33:10+00:00', 'type': 'XOR', 'ranks': 4, 'here': 2, 'whole': 1,
        'files': 2, 'bytes': 30, 'name': 'c 4', 'time': CREATED + 4, 'output': False, 'run': False}


def test_run():
    """It reports a run that has the lock."""
    fill()
    with open('cntl/me/scr.17/run.lock', 'w') as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = run('--brief', '--id', '4')
    assert done.returncode == 0 and done.stdout == f'4 {CREATED + 4} 4 2 2 1 c 4\n'.encode(), done
    assert identifiers(done) == ['CACHE_IN_USE'] and f' process {os.getpid()} '.encode() in done.stderr, done


def test_nothing():
    without_scr_variables()
    expect(run('-c', f'{os.getcwd()}/me/scr.17'), 3, '', ['CACHE_EMPTY', 'No such file'])
    fill()
    put('cntl/me/scr.17/filemap_0.scriinfo', b'junk')
    expect(run('-b'), 0, '', ['CACHE_FILEMAP_REFUSED', ': 1 filemap'])
    put_tree('cntl/me/scr.17/prefix.scriinfo', {'PREFIX': value('/elsewhere')})
    expect(run(), 1, '', ['CACHE_UNUSABLE', ' /elsewhere'])


def test_long_path():
    fill()
    expect(run('-c', 'x' * 5000), 1, '', ['PATH_TOO_LONG', ' 5000 bytes'])


def test_nodes():
    """The combined content of several nodes; n3 has nothing, and n4 does not exist."""
    fill()
    for node, ranks in (('n1', (0, 1)), ('n2', (3,)), ('n3', ())):
        os.makedirs(f'nodes/{node}')
        if ranks:
            base = pathlib.Path(f'nodes/{node}').absolute()
            put_node(base, base / f'cntl/me/scr.17/{node}', ranks)
    os.unlink('nodes/n2/cache/me/scr.17/scr.dataset.5/c5/rank_3')
    os.environ.update(SCR_SIMULATE=os.path.abspath('nodes'), SCR_REMOTE='simulate', SCR_NODELIST='n[1-3]')
    head = 'DSET  CREATED                    RANKS  HERE  WHOLE  NODES   NAME\n'
    rows = ['   4  2026-11-21T10:33:10+00:00      4     3      3  n[1-2]  c 4\n',
            '   5  2026-11-21T10:33:10+00:00      4     3      2  n[1-2]  c5\n']
    for options in (['--up', 'n[1-3]'], ['--up', 'n1,n3,n2,n1'], ['--all'], ['-a']):
        expect(run(*options), 0, head + ''.join(rows))
    assert json.loads(run('--all', '--json', '--id', '5').stdout) == {
        'dset': 5, 'created': '2026-11-21T10:33:10+00:00', 'ranks': 4, 'here': 3, 'whole': 2, 'nodes': 'n[1-2]', 'name': 'c5',
        'time': CREATED + 5, 'run': False}
    expect(run('--up', 'n3'), 3, '', ['CACHE_EMPTY', 'PREFIX_UNUSED'])
    os.environ['SCR_JOB_ID'] = '18'
    expect(run(), 3, '', ['CACHE_EMPTY', 'job 18 (SCR_JOB_ID)', '--all', 'PREFIX_UNUSED'])
    os.environ['SCR_JOB_ID'] = '17'
    done = run('--up', 'n[1-4]', '--json')
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 2 and b'node n4: n4: Host is down [NODE_REPORT]' in done.stderr, done
    done = run('--up', 'n[1-2,4-9]', '--json')
    assert done.returncode == 1 and done.stderr == b'scr_inspect: 6 nodes, n[4-9]: Host is down [NODE_REPORT]\n', done
    # further output of a node beside its answer
    put('nodes/n2/cntl/me/scr.17/n2/filemap_1.scriinfo', b'junk')
    done = run('--up', 'n2', '--json')
    assert done.returncode == 0 and b'node n2: 1 filemap' in done.stderr and b'[CACHE_FILEMAP_REFUSED] [NODE_REPORT]\n' in done.stderr, done
    # -from as the Developer Guide has it
    done = run('-up', 'n1', '-from', os.path.abspath('nodes/n2/cntl/me/scr.17/n2'), '--json', '--id', '4')
    assert json.loads(done.stdout)['here'] == 1, done


def test_usage():
    expect_wrong_usage(['more'], ['--id', 'x'], ['--up', 'n1', '--all'], ['--up', 'n1', '--brief'], ['--all', '--brief'],
                       ['--up', 'n['])
    expect_documented(10, {'--prefix': '.', '--cntldir': '.', '--from': '.', '--id': '4', '--up': 'n1'})
    expect_well_formed_page()
    fill()
    expect_output_fails([], ['--brief'], ['--json'])


run_tests(globals())
