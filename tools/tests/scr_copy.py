#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_copy: a node's part of a dataset, according to good, damaged and hostile filemaps,
from a cache of an independent writer. tests/jobs/scavenge.py uses caches of whole
jobs."""
import json
import os
import pathlib
import shutil
import signal
import zlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests, run_unread)
from prefix import Prefix, names, put, put_tree, value, without_scr_variables

CREATED = 1795257190731827


def describe(number=4, name='c4', **more):
    return {key: value(text) for key, text in {
        'ID': number, 'NAME': name, 'CREATED': CREATED, 'CKPT': number, 'RANKS': 2, 'FILES': 2, 'SIZE': 30,
        'COMPLETE': 1, **more}.items()}


def meta(data, kind='FULL', **more):
    crc = {'CRC': value(f'0x{zlib.crc32(data):08x}')} if kind == 'FULL' else {}
    return {'TYPE': value(kind), 'SIZE': value(len(data)), **crc, **more}


def fill(number=4, files=None, **more):
    """Makes a cache of one rank, in the directories of SCR."""
    for path in os.listdir('.'):
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    base = pathlib.Path.cwd()
    without_scr_variables()
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='17', SCR_CNTL_BASE=f'{base}/cntl', SCR_CACHE_BASE=f'{base}/cache',
                      SCR_PREFIX=f'{base}/p')
    files = files or {'c4/rank_1': meta(b'one' * 5), '2_of_2_in_0.xor': meta(b'xor', 'XOR')}
    cache = f'{base}/cache/me/scr.17/scr.dataset.{number}'
    put(f'{cache}/c4/rank_1', b'one' * 5)
    put(f'{cache}/2_of_2_in_0.xor', b'xor')
    entry = {'FILES': value(len(files)), 'DATADESC': describe(number, **more),
             'FILE': {name if name[0] == '/' else f'{cache}/{name}': about for name, about in files.items()}}
    put_tree('cntl/me/scr.17/filemap_0.scriinfo', {
        'DSET': {str(number): {'RANK': value(1)}}, 'RANK': {'1': {'DSET': {str(number): entry}}}})
    put_tree('cntl/me/scr.17/filemap.scriinfo', {'Filemap': value('/gone/filemap_0.scriinfo')})
    put_tree('cntl/me/scr.17/prefix.scriinfo', {'PREFIX': value(f'{base}/p')})
    for folder in ('cntl', 'cache'):
        os.chmod(f'{folder}/me/scr.17', 0o700)
    os.mkdir('p')
    put_tree('p/.scr/index.scr', {'VERSION': value(1)})


SAVED = f'p/c4/.scr/scavenge.4.{CREATED}'


def saved():
    return names(SAVED) if os.path.exists(SAVED) else []


def test_copy():
    fill()
    before = {name: pathlib.Path(name).read_bytes() for name in names('.') if not name.startswith('p/')}
    expect(run('--id', '4'), 0, 'dataset 4 (c4): 2 files of 1 ranks, 18 bytes\n')
    assert saved() == ['.scr/1.scrfilemap', '.scr/2_of_2_in_0.xor', 'c4/rank_1'], saved()
    assert pathlib.Path(SAVED, 'c4/rank_1').read_bytes() == b'one' * 5
    assert before == {name: pathlib.Path(name).read_bytes() for name in before}
    assert not [name for name in names('.') if not name.startswith('p/') and name not in before]
    # again: complete files stay
    inode = os.stat(f'{SAVED}/c4/rank_1').st_ino
    assert json.loads(run('-i', '4', '--json').stdout) == {
        'dset': 4, 'name': 'c4', 'created': CREATED, 'ranks': 1, 'files': 2, 'bytes': 18, 'failed': 0, 'reason': None}
    assert os.stat(f'{SAVED}/c4/rank_1').st_ino == inode
    # and incomplete files are copied again
    put(f'{SAVED}/c4/rank_1', b'two' * 5)
    assert run('-i', '4').returncode == 0 and pathlib.Path(SAVED, 'c4/rank_1').read_bytes() == b'one' * 5


def test_older_rank():
    """Two ranks have files of the same id; those of one rank are older."""
    fill()
    path = f'{os.getcwd()}/cache/me/scr.17/scr.dataset.4/c4/rank_0'
    put(path, b'old')
    entry = {'FILES': value(1), 'DATADESC': describe(CREATED=CREATED - 1), 'FILE': {path: meta(b'old')}}
    put_tree('cntl/me/scr.17/filemap_1.scriinfo', {
        'DSET': {'4': {'RANK': value(0)}}, 'RANK': {'0': {'DSET': {'4': entry}}}})
    os.unlink('cntl/me/scr.17/filemap.scriinfo')
    expect(run('--id', '4'), 0, 'dataset 4 (c4): 2 files of 1 ranks, 18 bytes\n')
    assert saved() == ['.scr/1.scrfilemap', '.scr/2_of_2_in_0.xor', 'c4/rank_1'], saved()
    expect(run('--id', '4', '--created', str(CREATED - 1)), 3, '', ['CACHE_EMPTY', 'dataset 4'])


def test_parts():
    fill()
    expect(run('-i', '4', '--files'), 0, 'dataset 4 (c4): 1 files of 1 ranks, 15 bytes\n')
    assert saved() == ['.scr/1.scrfilemap', 'c4/rank_1'], saved()
    expect(run('-i', '4', '--sets', '[1-3],7'), 0, 'dataset 4 (c4): 0 files of 0 ranks, 0 bytes\n')
    expect(run('-i', '4', '--sets', '0,7'), 0, 'dataset 4 (c4): 1 files of 1 ranks, 3 bytes\n')
    assert '.scr/2_of_2_in_0.xor' in saved()
    fill()
    expect(run('-i', '4', '--sets', 'all', '--created', str(CREATED)), 0, 'dataset 4 (c4): 1 files of 1 ranks, 3 bytes\n')
    assert saved() == ['.scr/2_of_2_in_0.xor'], saved()


def test_nothing():
    fill()
    expect(run('-i', '5'), 3, '', ['CACHE_EMPTY', 'dataset 5'])
    expect(run('-i', '4', '-t', '17'), 3, '', ['CACHE_EMPTY', 'dataset 4'])
    shutil.rmtree('cntl')
    expect(run('-i', '4'), 3, '', ['CACHE_EMPTY', 'No such file'])
    assert not os.path.exists('p/c4')


def test_damage():
    """Damaged files are not accepted as intact, nor incomplete ones as complete."""
    fill()
    put('cache/me/scr.17/scr.dataset.4/c4/rank_1', b'onE' * 5)
    expect(run('-i', '4'), 1, 'dataset 4 (c4): 0 files of 0 ranks, 0 bytes\n',
           ['CACHE_COPY_FAILED', 'rank 1: c4/rank_1: altered: CRC32'])
    assert not [name for name in saved() if 'scrfilemap' in name or name.endswith('rank_1')], saved()
    fill()
    os.unlink('cache/me/scr.17/scr.dataset.4/c4/rank_1')
    expect(run('-i', '4', '--json'), 1, run('-i', '4', '--json').stdout.decode(), ['CACHE_COPY_FAILED', '1 rank'])
    fill()
    put('cntl/me/scr.17/filemap_0.scriinfo', b'junk')
    expect(run('-i', '4'), 3, '', ['CACHE_FILEMAP_REFUSED', 'CACHE_EMPTY', ': 1 filemap', 'dataset 4'])
    fill(COMPLETE=0)
    expect(run('-i', '4'), 3, '', ['CACHE_EMPTY', 'dataset 4'])


def test_hostile():
    for name, data in (('../../../../victim', b'x'), ('/etc/passwd', b'x'), ('c4/../../x', b'x'), ('.scr/index.scr', b'x'),
                       ('c4/.scr/summary.scr', b'x'), ('a\x1b[2J', b'x')):
        fill(files={name: meta(data)})
        put('victim', b'mine')
        done = run('-i', '4')
        assert done.returncode in (1, 3) and b'\x1b' not in done.stderr, done
        assert not saved() and pathlib.Path('victim').read_bytes() == b'mine', saved()
    # links in the cache are not followed
    fill()
    put('secret', b'one' * 5)
    os.unlink('cache/me/scr.17/scr.dataset.4/c4/rank_1')
    os.symlink(f'{os.getcwd()}/secret', 'cache/me/scr.17/scr.dataset.4/c4/rank_1')
    assert run('-i', '4').returncode == 1 and 'c4/rank_1' not in saved()
    fill(NAME='../x')
    assert run('-i', '4').returncode == 3 and not os.path.exists('x')
    fill()
    expect(run('-i', '4', '-c', '/tmp'), 1, '', ['CACHE_UNUSABLE', '/tmp '])
    if os.geteuid() == 0:
        return
    os.chmod('cntl/me/scr.17', 0o777)
    expect(run('-i', '4'), 1, '', ['CACHE_UNUSABLE'])


def test_newer_one():
    """The prefix directory has a newer dataset of the name, which stays."""
    fill()
    prefix = Prefix()
    prefix.enter('c4', 5, [{}])
    os.chdir('p')
    prefix.put_index()
    os.chdir('..')
    expect(run('-i', '4'), 1, '', ['CACHE_COPY_FAILED', 'dataset 5 (c4)'])
    # without a readable index, it is copied
    put('p/.scr/index.scr', b'junk')
    assert run('-i', '4').returncode == 0 and len(saved()) == 3


def test_usage():
    expect_wrong_usage([], ['--id', '0'], ['--id', 'x'], ['-i', '4', 'more'], ['-i', '4', '-f', '-s', '1'],
                       ['-i', '4', '-s', 'a'], ['-i', '4', '-s', '['], ['-i', '4', '-t', 'now'], ['-i', '4', '-w', '0'])
    expect_documented(13, {'--id': '4', '--prefix': '.', '--cntldir': '.', '--created': '5', '--sets': '1', '--width': '2',
                           '--wait': '1', '--alive': '1'})
    expect_well_formed_page()
    fill()
    expect_output_fails(['-i', '4'], ['-i', '4', '--json'])
    # heartbeats are for a waiting caller
    for more, code in (([], 0), (['--alive', '1'], -signal.SIGPIPE)):
        fill()
        assert run_unread('-i', '4', *more).returncode == code and len(saved()) == 3, more


run_tests(globals())
