#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_index: the index as people see and change it, rebuilt, and verified against files
of an independent writer."""
import json
import os
import pathlib
import resource
import shutil
import subprocess

from command import (COMMAND, expect, expect_documented, expect_ends_unread, expect_output_fails, expect_well_formed_page,
                     expect_wrong_usage, identifiers, run, run_closed, run_tests, run_unread)
from prefix import INDEX, Prefix, damage, expect_owner_kept, names, put, put_tree, value, without_scr_variables

without_scr_variables()
os.environ['TZ'] = 'UTC'
FILES = [{'rank_0': b'zero' * 100, 'a/b': b''}, {'rank_1': b'one' * 50}]


def fill(current='ckpt.12'):
    """Three good datasets, a failed one, and an incomplete one; all of them on the prefix
    directory."""
    for path in os.listdir('.'):
        shutil.rmtree(path)
    prefix = Prefix()
    for name, number, state, more in (
            ('ckpt.6', 6, None, {}), ('run/ckpt.12', 12, {'FETCHED': {'2026-11-22T19:00:00': {}, '2026-11-22T20:00:00': {}}}, {}),
            ('out', 13, None, {'CKPT': 0, 'OUTPUT': 1}), ('ckpt.18', 18, {'FAILED': value('2026-11-22T19:30:00')}, {}),
            ('ckpt.20', 20, {'COMPLETE': value(0)}, {})):
        prefix.put_dataset(name, number, FILES, **more)
        prefix.enter(name, number, FILES, state, **more)
    prefix.put_index(current)
    return prefix


def listed():
    done = run('--list', '--json')
    assert done.returncode == 0, done
    return {entry['name']: entry for entry in map(json.loads, done.stdout.splitlines())}


def state():
    return {name: (entry['valid'], entry['current']) for name, entry in listed().items()}


# ---- list ----

LIST = """DSET  VALID  FLUSHED                    CUR  NAME
  20  NO     2026-11-22T18:30:20+00:00  -    ckpt.20
  18  NO     2026-11-22T18:30:18+00:00  -    ckpt.18
  13  YES    2026-11-22T18:30:13+00:00  -    out
  12  YES    2026-11-22T18:30:12+00:00  *    run/ckpt.12
   6  YES    2026-11-22T18:30:06+00:00  -    ckpt.6
"""


def test_list():
    fill('run/ckpt.12')
    for arguments in ([], ['--list'], ['-l', '-p', '.'], ['-list', '-prefix', os.getcwd()]):
        expect(run(*arguments), 0, LIST)
    assert listed()['run/ckpt.12'] == {
        'dset': 12, 'valid': True, 'flushed': '2026-11-22T18:30:12+00:00', 'current': True, 'name': 'run/ckpt.12', 'checkpoint': 12,
        'output': False, 'complete': True, 'deleting': False, 'attempts': 0, 'fetched': '2026-11-22T20:00:00+00:00', 'failed': None,
        'reason': None, 'created': '2026-11-21T10:33:10+00:00', 'ranks': 2, 'files': 3, 'size': 550, 'bypass': False,
        'scattered': False, 'user': 'tester', 'job_id': '17', 'job_name': None, 'cluster': None}
    assert listed()['ckpt.18']['failed'] == '2026-11-22T19:30:00+00:00' and not listed()['ckpt.20']['complete']
    assert names('.') == sorted(names('.'))
    Prefix().put_index()
    expect(run(), 0, 'DSET  VALID  FLUSHED  CUR  NAME\n')


def test_one_dataset():
    fill('run/ckpt.12')
    text = run('--inspect', 'run/ckpt.12').stdout.decode()
    width = len('files outside of its directory') + 2
    for title, number in (('dataset', 12), ('valid', 'yes'), ('current', 'yes'), ('fetched', '2026-11-22T20:00:00+00:00'),
                          ('bytes', 550)):
        assert f'{title:<{width}}{number}\n' in text, (title, text)
    assert 'failed' not in text
    assert json.loads(run('-i', 'out', '--json').stdout) == listed()['out']
    expect(run('--inspect', 'none'), 1, '', ['DATASET_UNKNOWN', '"none"', ' has: ckpt.20, ckpt.18, out, run/ckpt.12, ckpt.6'])
    # the summary comes from the dataset, whatever the index has
    os.unlink(INDEX)
    said = json.loads(run('--summary', 'ckpt.18', '--json').stdout)
    assert said['dset'] == 18 and said['valid'] and said['flushed'] is None and said['size'] == 550, said
    assert said['current'] is None and b'current' not in run('--summary', 'ckpt.18').stdout, said
    os.rename('ckpt.18', 'moved')
    done = run('--summary', 'moved')
    assert done.returncode == 0 and identifiers(done) == ['SUMMARY_OTHER_NAME'] and b' ckpt.18 ' in done.stderr, done
    for name, reason in (('ckpt.18', 'No such file'), ('moved/a', '.scr/summary.scr')):
        expect(run('--summary', name), 1, '', ['SUMMARY_UNUSABLE', name, reason])


# ---- changes ----

def test_current():
    fill('run/ckpt.12')
    expect(run('--current', 'ckpt.6'), 0, 'ckpt.6: current: the next run begins with it, unless it finds a newer one in its caches\n')
    assert state()['ckpt.6'] == (True, True) and state()['run/ckpt.12'] == (True, False)
    # the user's choice prevails over the failure
    assert run('--current', 'ckpt.18').returncode == 0 and state()['ckpt.18'] == (True, True)
    before = pathlib.Path(INDEX).read_bytes()
    for name, told in (('out', 'DATASET_NOT_SELECTABLE'), ('ckpt.20', 'DATASET_NOT_SELECTABLE'), ('none', 'DATASET_UNKNOWN')):
        expect(run('--current', name), 1, '', [told, name])
    assert pathlib.Path(INDEX).read_bytes() == before


def test_names_with_a_slash():
    """As a shell completes the directory of a dataset."""
    fill()
    expect(run('--current', 'ckpt.6/'), 0, 'ckpt.6: current: the next run begins with it, unless it finds a newer one in its caches\n')
    assert run('--current=ckpt.18/').returncode == 0 and state()['ckpt.18'] == (True, True)
    assert run('--inspect', 'ckpt.6//').stdout == run('--inspect', 'ckpt.6').stdout
    assert run('--verify', 'ckpt.6/', '--prefix', './').stdout == run('--verify', 'ckpt.6').stdout
    expect_wrong_usage(['--current', '/'])
    expect(run('--prefix=/', '--current=ckpt.6'), 1, '', ['PREFIX_UNUSED'])


def test_by_root():
    fill('run/ckpt.12')
    expect_owner_kept(['--current', 'ckpt.6'], ['--drop', 'ckpt.6'], ['--add', 'ckpt.6'], ['--rebuild'])
    os.unlink(INDEX)
    expect_owner_kept(['--rebuild'])


def test_remove():
    fill('run/ckpt.12')
    there = names('run')
    expect(run('--remove', 'run/ckpt.12'), 0, 'run/ckpt.12: removed from the index; its files stay\n')
    assert names('run') == there and 'run/ckpt.12' not in state() and not any(current for _, current in state().values())
    assert run('--drop', 'out').returncode == 0 and set(state()) == {'ckpt.6', 'ckpt.18', 'ckpt.20'}
    expect(run('--remove', 'out'), 1, '', ['DATASET_UNKNOWN', '"out"'])


def test_drop_after():
    """Newer datasets of any kind leave the index; the named one and older ones stay."""
    fill('ckpt.18')
    flush = {'DIR': value('ckpt.18'), 'LOCATION': {'PFS': {}}}
    put_tree('.scr/flush.scr', {'DSET': {'18': flush}})
    there = names('.')
    expect(run('--drop-after', 'run/ckpt.12'), 0, 'out: removed from the index; its files stay\n'
           'ckpt.18: removed from the index; its files stay\nckpt.20: removed from the index; its files stay\n')
    assert names('.') == there and state() == {'ckpt.6': (True, False), 'run/ckpt.12': (True, False)}, state()
    assert b'PFS' not in pathlib.Path('.scr/flush.scr').read_bytes()
    before = pathlib.Path(INDEX).read_bytes()
    expect(run('--drop-after', 'run/ckpt.12'), 0, 'run/ckpt.12: no dataset is newer\n')
    expect(run('-A', 'none'), 1, '', ['DATASET_UNKNOWN', '"none"'])
    assert pathlib.Path(INDEX).read_bytes() == before
    assert run('--drop-after=ckpt.6').returncode == 0 and set(state()) == {'ckpt.6'}


def test_build():
    """By id, wherever the dataset is; only a complete dataset is a success."""
    fill('run/ckpt.12')
    expect(run('--build', '13'), 0, 'out: is in the index already\n')
    expect(run('-b', '20'), 1, 'ckpt.20: is in the index already\n', ['DATASET_INCOMPLETE', 'ckpt.20'])
    run('--remove', 'ckpt.18')
    expect(run('--build=18'), 0, 'ckpt.18: added\n')
    assert state()['ckpt.18'] == (True, False)
    before = pathlib.Path(INDEX).read_bytes()
    expect(run('--build', '5'), 1, '', ['DATASET_UNKNOWN', ' 5'])
    # the flush file has the name, but on the prefix directory it belongs to another
    # dataset
    put_tree('.scr/flush.scr', {'DSET': {'19': {'DIR': value('ckpt.6'), 'LOCATION': {'CACHE': {}}}}})
    expect(run('--build', '19'), 1, 'ckpt.6: is in the index already\n', ['DATASET_UNKNOWN', 'ckpt.6 is dataset 6 in the index, not 19'])
    assert pathlib.Path(INDEX).read_bytes() == before


def test_dropped_is_not_flushed():
    """Otherwise the next run would enter again a dataset that the flush file records as
    flushed."""
    fill('run/ckpt.12')
    def flushed(name):
        return {'DIR': value(name), 'LOCATION': {'CACHE': {}, 'PFS': {}}}
    put_tree('.scr/flush.scr', {'DSET': {'6': flushed('ckpt.6'), '18': flushed('ckpt.18')}})
    assert run('--drop', 'ckpt.18').returncode == 0
    written = pathlib.Path('.scr/flush.scr').read_bytes()
    assert written.count(b'PFS') == 1 and written.count(b'CACHE') == 2, written


def test_add():
    fill('run/ckpt.12')
    expect(run('--add', 'out'), 0, 'out: is in the index already\n')
    run('--remove', 'ckpt.18')
    expect(run('--add', 'ckpt.18'), 0, 'ckpt.18: added\n')
    assert state()['ckpt.18'] == (True, False) and state()['run/ckpt.12'] == (True, True)
    # a directory that was moved has its current name
    os.rename('ckpt.6', 'old')
    run('--remove', 'ckpt.6')
    os.utime('old/.scr/summary.scr', (1300000000, 1300000000))
    expect(run('--add', 'old'), 0, 'old: added\n')
    assert listed()['old']['dset'] == 6 and listed()['old']['flushed'].startswith('2011-03-1'), listed()['old']
    before = pathlib.Path(INDEX).read_bytes()
    os.mkdir('nothing')
    for name in ('nothing', 'none', 'old/a'):
        expect(run('--add', name), 1, '', ['SCAN_FAILED', name])
    put('bad/.scr/summary.scr', b'no summary')
    expect(run('--add', 'bad'), 1, '', ['DATASET_REFUSED', 'bad: '])
    os.symlink('old', 'link')
    expect(run('--add', 'link'), 1, '', ['SCAN_FAILED', 'link'])
    assert pathlib.Path(INDEX).read_bytes() == before
    # if the map does not match the summary, no run restarts from it
    Prefix().put_dataset('odd', 30, FILES, FILES=4)
    done = run('--add', 'odd')
    assert done.returncode == 0 and b'odd: added; it is not complete' in done.stdout and identifiers(done) == ['DATASET_REFUSED'], done
    assert state()['odd'] == (False, False)


def test_index_cannot_be_written():
    """The old index stays unchanged."""
    fill('run/ckpt.12')
    os.rename('ckpt.6', 'moved')
    before = pathlib.Path(INDEX).read_bytes()
    how = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)), 'restore_signals': False}
    for arguments in (['--remove', 'out'], ['--current', 'ckpt.18'], ['--add', 'moved'], ['--rebuild']):
        expect(run(*arguments, **how), 1, '', ['INDEX_NOT_CHANGED', '.scr/index.scr', 'File too large'])
        assert pathlib.Path(INDEX).read_bytes() == before, arguments


def test_many_at_once():
    """Two commands change one index in parallel: neither loses the other's changes."""
    prefix = Prefix()
    for number in range(1, 9):
        prefix.put_dataset(f'c{number}', number, FILES)
        prefix.enter(f'c{number}', number, FILES)
    prefix.put_index()
    processes = [subprocess.Popen([COMMAND, '--remove', f'c{number}'], stdout=subprocess.DEVNULL) for number in range(1, 8)]
    assert all([process.wait() == 0 for process in processes])
    assert set(state()) == {'c8'}
    processes = [subprocess.Popen([COMMAND, '--add', f'c{number}'], stdout=subprocess.DEVNULL) for number in range(1, 8)]
    assert all([process.wait() == 0 for process in processes])
    assert len(state()) == 8


def test_thousands():
    """An index of 2000 datasets is listed, changed, and rebuilt after a loss."""
    prefix, one = Prefix(), [{'f': b'x'}]
    for number in range(1, 2001):
        prefix.put_dataset(f'run/c{number}', number, one)
        prefix.enter(f'run/c{number}', number, one)
    prefix.put_index('run/c2000')
    assert [entry['dset'] for entry in listed().values()] == list(range(2000, 0, -1))
    assert run('--remove', 'run/c1000').returncode == 0 and len(listed()) == 1999
    expect(run('--add', 'run/c1000'), 0, 'run/c1000: added\n')
    assert run('--current', 'run/c7').returncode == 0 and state()['run/c7'] == (True, True)
    os.unlink(INDEX)
    expect(run('--rebuild'), 0, '2000 datasets found, 2000 added to the index\n')
    assert state()['run/c2000'] == (True, True) and len(listed()) == 2000


# ---- lost ----

def test_missing():
    fill('run/ckpt.12')
    os.unlink(INDEX)
    for arguments in ([], ['--inspect', 'out'], ['--remove', 'out'], ['--current', 'out'], ['--add', 'out'], ['--verify']):
        done = run(*arguments)
        assert done.returncode == 1 and not os.path.exists(INDEX), (arguments, done)
    expect(run(), 1, '', ['INDEX_MISSING', '--rebuild'])
    expect(run('--rebuild'), 0, '5 datasets found, 5 added to the index\n')
    assert state() == {'ckpt.6': (True, False), 'run/ckpt.12': (True, False), 'out': (True, False), 'ckpt.18': (True, False),
                       'ckpt.20': (True, True)}
    expect(run('--rebuild'), 0, '5 datasets found, 0 added to the index\n')


def test_damaged():
    for what in damage(fill, INDEX):
        before = pathlib.Path(INDEX).read_bytes()
        for arguments in ([], ['--remove', 'out'], ['--add', 'out']):
            done = run(*arguments)
            assert done.returncode == 1 and identifiers(done) == ['INDEX_UNREADABLE'] and b'--rebuild' in done.stderr, (what, done)
        assert pathlib.Path(INDEX).read_bytes() == before
        done = run('--rebuild')
        assert done.returncode == 0 and b'the damaged index is .scr/index.scr.damaged.1 now\n5 datasets' in done.stdout, done
        assert pathlib.Path('.scr/index.scr.damaged.1').read_bytes() == before and len(state()) == 5
    put_tree(INDEX, {'VERSION': value(3)})
    expect(run(), 1, '', ['PREFIX_VERSION', 'version 3', 'version 1'])


def test_unread():
    """Commands change the index even if their output has no reader; a closed output is
    lost."""
    for call, code in ((run_unread, 0), (run_closed, 1)):
        fill('run/ckpt.12')
        for arguments in (['--remove', 'ckpt.18'], ['--drop', 'ckpt.20'], ['--current', 'ckpt.6']):
            assert call(*arguments).returncode == code, arguments
        assert 'ckpt.18' not in state() and 'ckpt.20' not in state() and state()['ckpt.6'] == (True, True)
        assert call('--add', 'ckpt.18').returncode == code and state()['ckpt.18'] == (True, False)
        os.unlink(INDEX)
        assert call('--rebuild').returncode == code and len(state()) == 5
        assert call('--add', 'none').returncode == 1
        assert b'scr_index' not in b''.join(path.read_bytes() for path in pathlib.Path('.scr').iterdir())
    expect_ends_unread([], ['--list', '--json'], ['--verify'], ['--inspect', 'out'])


def test_rebuild_adds():
    """Known facts in the index stay: the user's choice, and failed datasets."""
    prefix = fill('ckpt.6')
    prefix.put_dataset('new', 25, FILES)
    put('bad/.scr/summary.scr', b'')
    done = run('--rebuild')
    assert done.returncode == 0 and done.stdout == b'6 datasets found, 1 added to the index\n', done
    assert 'DATASET_REFUSED' in identifiers(done) and b': 1 ' in done.stderr and b' bad: ' in done.stderr, done
    assert state()['new'] == (True, False) and state()['ckpt.6'] == (True, True) and state()['ckpt.18'] == (False, False)


def test_not_all_is_searched():
    """Datasets that are nested too deeply are not found, which causes a warning."""
    prefix, deep = fill(), '/'.join('abcdefghijkl')
    prefix.put_dataset(f'{deep}/late', 30, FILES)
    done = run('--rebuild')
    expect(done, 0, '5 datasets found, 0 added to the index\n', ['SCAN_INCOMPLETE'])
    expect(run('--add', f'{deep}/late'), 0, f'{deep}/late: added\n')


def test_scan_of_nothing():
    fill()
    for name in ('ckpt.6', 'none'):
        expect(run('--scan', name), 1, '', ['SCAVENGE_UNREADABLE', f'scr_index: {name}: '])


def test_prefix_folder_without_anything():
    expect(run('--rebuild'), 1, '', ['PREFIX_UNUSED'])
    assert not os.path.exists('.scr')
    for arguments in ([], ['--verify'], ['--current', 'c1']):
        done = run(*arguments)
        expect(done, 1, '', ['PREFIX_UNUSED', 'INDEX_MISSING', 'if .scr was removed, --rebuild'])
        assert done.stderr.index(b'PREFIX_UNUSED') < done.stderr.index(b'INDEX_MISSING'), done
    os.mkdir('.scr')
    expect(run(), 1, '', ['INDEX_MISSING', '--rebuild'])
    expect(run('--rebuild'), 0, '0 datasets found, 0 added to the index\n')
    assert state() == {}
    expect(run('-p', 'no'), 1, '', ['DIRECTORY_UNUSABLE'])


# ---- verify ----

def verified(*arguments):
    done = run('--verify', '--json', *arguments)
    rows = {row['name']: row for row in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == (1 if any(row['result'] != 'good' for row in rows.values()) else 0), done
    return {name: row['result'] for name, row in rows.items()}, done.stderr.decode()


def test_verify():
    fill()
    good = {'ckpt.6': 'good', 'run/ckpt.12': 'good', 'out': 'good', 'ckpt.18': 'good'}
    assert verified() == (good, '')
    expect(run('-v', 'ckpt.6', 'ckpt.20'), 0, 'NAME     RESULT  FILES  BYTES  DAMAGED  NO CRC\n'
           'ckpt.6   good        3    550        0       0\nckpt.20  good        3    550        0       0\n')
    for damage_one, reason in ((lambda path: path.write_bytes(b'zerO' + path.read_bytes()[4:]), 'rank 0: rank_0: altered: CRC32 0x'),
                               (lambda path: path.write_bytes(path.read_bytes()[:-1]), 'rank 0: rank_0: rank_0 has 399 bytes, not 400'),
                               (lambda path: path.unlink(), 'rank 0: rank_0: rank_0 is missing'),
                               (lambda path: (path.unlink(), path.symlink_to('/etc/passwd')), 'rank 0: rank_0: open rank_0: ')):
        fill()
        damage_one(pathlib.Path('run/ckpt.12/rank_0'))
        before = pathlib.Path(INDEX).read_bytes()
        found, told = verified()
        assert found == {**good, 'run/ckpt.12': 'damaged'} and f'run/ckpt.12: {reason}' in told, told
        assert pathlib.Path(INDEX).read_bytes() == before


def test_verify_what_is_no_dataset():
    fill()
    for path in ('ckpt.6/.scr/summary.scr', 'ckpt.6/.scr/rank2file.scr', 'ckpt.6/.scr/rank2file.0.0.scr'):
        for _ in damage(fill, path):
            found, told = verified('ckpt.6', 'out')
            assert found == {'ckpt.6': 'damaged', 'out': 'good'} and 'ckpt.6' in told, (path, told)
    found, told = verified('none', 'run')
    assert found == {'none': 'missing', 'run': 'missing'} and 'No such file' in told


def test_many_are_damaged():
    """The first ten files are reported individually; of the others, their number and
    ranks."""
    Prefix().put_dataset('c', 1, [{f'rank_{i}': b'x', f'more_{i}': b'y'} for i in range(40)])
    for i in (*range(20), 30):
        os.unlink(f'c/rank_{i}')
        os.unlink(f'c/more_{i}')
    found, told = verified('c')
    assert found == {'c': 'damaged'}, found
    assert len(told.splitlines()) == told.count(' [DATASET_FILE_BAD]\n') == 11, told
    assert 'scr_index: c: 32 more ' in told.splitlines()[-1] and ' rank[5-19,30] ' in told.splitlines()[-1], told


def test_hostile_maps():
    """Names that lead out of the dataset are not read."""
    put('secret', b'x')
    for name in ('../secret', '/etc/passwd', 'a/../../secret', '.', '', 'a\nb'):
        Prefix().put_dataset('c', 1, [{'good': b'x'}])
        entry = {'FILE': {name: {'SIZE': value(1), 'CRC': value('0x8cdc1683')}}}
        put_tree('c/.scr/rank2file.0.0.scr', {'RANK2FILE': {'LEVEL': value(0), 'RANKS': value(1), 'RANK': {'0': entry}}})
        found, told = verified('c')
        assert found == {'c': 'damaged'} and 'rank 0: ' in told, told


def test_hostile_index():
    """Impossible entries are omitted; control characters do not reach a terminal."""
    prefix = fill('ckpt.6')
    for name in ('../x', '/x', '.scr/x', 'a\nb'):
        prefix.enter(name, 40, FILES)
    prefix.enter('a\u202eb', 41, FILES)
    prefix.enter('late', 42, FILES, {'FLUSHED': {'\x1b[2J': {}}})
    prefix.index['DSET']['x'] = {'DIR': {'y': {}}}
    prefix.put_index()
    text = run().stdout.decode()
    assert 'a\\xe2\\x80\\xaeb\n' in text and '\\x1b[2J' in text and text.count('\n') == 8, text
    assert '\x1b' not in text + run('--json').stdout.decode()
    for name in ('../x', '/x', '.scr/x', 'a\nb', ''):
        for option in ('--add', '--remove', '--current', '--inspect', '--summary'):
            expect_wrong_usage([option, name])


def test_usage():
    fill()
    expect_output_fails([], ['--json'], ['-i', 'out'], ['--verify'], ['--verify', '--json'], ['--current', 'ckpt.6'])
    expect(run('some/folder'), 2, '', ['USAGE_WRONG', "'some/folder': ", '--prefix DIRECTORY'])
    expect_wrong_usage(['out'], ['--list', 'out'], ['--list', '--rebuild'], ['--add', 'a', '--remove', 'a'], ['--add', 'a', '--json'],
                       ['--rebuild', '--json'], ['--verify', '--list'], ['--no'], ['--build', 'ckpt.6'], ['--build', '-1'],
                       ['--build', '6', 'ckpt.6'], ['--build', ''])
    expect_documented(20, {'--build': '1', '--drop-after': 'x', '--scan': 'x', '--width': '2', '--prefix': '.', '--add': 'x', '--remove': 'x',
                           '--drop': 'x', '--current': 'x', '--inspect': 'x', '--summary': 'x', '--import': 'x', '--name': 'x', '--map': 'x'})
    expect_well_formed_page()


run_tests(globals())
