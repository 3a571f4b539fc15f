#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_prerun: records of an earlier allocation are removed, and nothing else; and an
allocation that is not ready."""
import os
import pathlib
import re
import shutil

from command import (COMMAND, expect, expect_documented, expect_well_formed_page, expect_wrong_usage, image, run, run_tests,
                     run_unread)
from prefix import FLUSH, HALT, NODES, put, put_halt, put_launcher, put_program, put_tree, value, without_scr_variables

without_scr_variables()
FLUSHING = {'DSET': {}, 'FLUSH': {'5': {'DSET': value(3), 'NAME': value('a'), 'OWNER': value('x')}}}


def prepare():
    put_launcher('')


def test_prepares():
    prepare()
    expect(run(), 0)
    assert os.path.isdir('.scr')
    put_tree(NODES, {'NODES': value(4)})
    put_tree(FLUSH, {'DSET': {'3': {'DIR': value('a'), 'LOCATION': value('CACHE')}}, 'FLUSH': FLUSHING['FLUSH']})
    put_halt({'ExitReason': value('enough')})
    expect(run('.'), 0, '', ['CACHE_DATASET_DROPPED', 'warning: dataset 3 (a)'])
    assert not os.path.exists(NODES) and os.path.exists(HALT)
    # flushes may have left temporary files, which the next run has to find
    assert pathlib.Path(FLUSH).read_bytes() in (image(FLUSHING), image({'FLUSH': FLUSHING['FLUSH']}))
    put(FLUSH, b'damaged')
    expect(run('--prefix', '.'), 0, '', ['FLUSH_FILE_REMOVED', 'flush.scr: cut off', 'scr_inspect'])
    assert not os.path.exists(FLUSH)


def test_same_allocation():
    """Datasets that an earlier job of the allocation left in the caches are still
    known."""
    prepare()
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='17')
    flush = {'DSET': {'3': {'DIR': value('a'), 'LOCATION': value('CACHE')}}}
    for owner, kept in (('me/scr.17', True), ('me/scr.17.0123abcd', True), ('me/scr.171', False), ('me/scr.1', False),
                        ('you/scr.17', False), (None, False)):
        put_tree(FLUSH, {**flush, **({'OWNER': value(owner)} if owner else {})})
        # a dropped dataset is reported, since nothing else would mention it
        expect(run(), 0, '', () if kept else ['CACHE_DATASET_DROPPED', 'dataset 3 (a)', f' {owner or "another job"},',
                                              'scr_scavenge --id 3 '])
        now = pathlib.Path(FLUSH).read_bytes()
        assert (now == image({**flush, 'OWNER': value(owner)})) if kept else b'CACHE' not in now, (owner, now)
    # simulated nodes are new ones
    put_tree(FLUSH, {**flush, 'OWNER': value('me/scr.17')})
    os.environ.update(SCR_SIMULATE=os.getcwd(), SCR_NODELIST='n1', SCR_REMOTE='simulate')
    expect(run(), 0, '', ['CACHE_DATASET_DROPPED', 'dataset 3 (a)', ' me/scr.17,'])
    assert b'CACHE' not in pathlib.Path(FLUSH).read_bytes()
    for name in ('SIMULATE', 'NODELIST', 'REMOTE', 'USER_NAME', 'JOB_ID'):
        del os.environ[f'SCR_{name}']


def test_dropped():
    """What is only in the caches and lost with them: the newest checkpoint, unless a newer one is saved, and every output."""
    prepare()
    out, both = {'OUTPUT': value('1')}, {'OUTPUT': value('1'), 'CKPT': value('1')}
    for datasets, told in (((('CACHE', {}), ('PFS', out)), [1]), ((('CACHE', {}), ('PFS', both)), []), ((('CACHE', out), ('PFS', {})), [1]),
                           ((('CACHE', both), ('CACHE', {}), ('CACHE', {}), ('PFS', {})), [1]), ((('PFS', out), ('CACHE', {}), ('CACHE', {})), [3]),
                           ((('CACHE', {}), ('CACHE', out), ('CACHE', out)), [1, 2, 3]), ((('PFS', {}), ('PFS', out)), [])):
        put_tree(FLUSH, {'DSET': {str(i + 1): {'DIR': value('a'), 'LOCATION': value(place), **kind} for i, (place, kind) in enumerate(datasets)}})
        done = run()
        assert done.returncode == 0 and [int(i) for i in re.findall(r'warning: dataset (\d+) ', done.stderr.decode())] == told, (datasets, done)


def test_reasons_to_halt():
    """Reasons that SCR recorded in an earlier job are removed; those of people stay."""
    prepare()
    for reason, stays in (('SCR_FINALIZE_CALLED', False), ('SCR_SIGNAL: 15', False), ('SCR_HALT_EXIT: x', False), ('enough', True)):
        put_halt({'ExitReason': value(reason), 'CheckpointsLeft': value(5)})
        expect(run(), 0)
        now = pathlib.Path(HALT).read_bytes()
        assert (reason.encode() in now) == stays and b'CheckpointsLeft' in now, now
    put(HALT, b'damaged')
    expect(run(), 0)
    assert pathlib.Path(HALT).read_bytes() == b'damaged'


def test_not_ready():
    prepare()
    path, os.environ['PATH'] = os.environ['PATH'], os.getcwd()
    expect(run(), 1, '', ['LAUNCHER_MISSING'])
    os.environ['PATH'] = path
    expect(run('none'), 1, '', ['DIRECTORY_UNUSABLE'])
    put('.scr', b'a file')
    expect(run(), 1, '', ['DIRECTORY_UNUSABLE', '.scr'])
    assert run_unread().returncode == 1
    os.environ['SCR_ENABLE'] = '0'
    expect(run(), 0)
    os.environ['SCR_ENABLE'] = '2'
    expect(run(), 1, '', ['CONFIG_MISTAKE', 'SCR_ENABLE'])
    del os.environ['SCR_ENABLE']


def test_site_says_no():
    """The site's reason is printed, from either stream, with an incomplete last line, and
    without control characters."""
    prepare()
    os.environ['SCR_SITE_HOOKS'] = os.path.abspath('bin')
    put_program('prerun', 'printf "welcome\\n\\n\\033[2J"')
    expect(run(), 0, '', ['welcome\n\n\\x1b[2J\n'])
    for script, why in (('exit 4', 'exit code 4'), ('kill -9 $$', 'ended by signal 9')):
        put_program('prerun', f'echo "no way"; printf today; echo sorry >&2; {script}')
        done = run()
        assert done.returncode == 1 and not done.stdout and b'sorry\n' in done.stderr, done
        assert b'no way\ntoday\nscr_prerun: ' in done.stderr and f'bin/prerun: {why} [HOOK_FAILED]\n'.encode() in done.stderr, done
    del os.environ['SCR_SITE_HOOKS']


def test_runtime():
    """scr_test_runtime reports missing programs."""
    prepare()
    test = COMMAND.parent / 'scr_test_runtime'
    shutil.copy(COMMAND.parent / 'scr_prerun', 'alone')
    expect(run(command=test), 0)
    os.environ.update(SCR_NODELIST='n[1-2]', SCR_REMOTE='pdsh')
    path, os.environ['PATH'] = os.environ['PATH'], os.getcwd() + '/bin'
    expect(run(), 1, '', ['PROGRAM_MISSING', ': pdsh ', 'SCR_REMOTE'])
    expect(run(command=test), 1, '', ['PROGRAM_MISSING', ': pdsh ', 'SCR_REMOTE'])
    put_program('pdsh', '')
    os.environ['PATH'] = os.getcwd() + '/bin'
    expect(run(), 0)
    expect(run('--launcher', 'slurm', command=test), 1, '', ['LAUNCHER_MISSING', ': slurm: '])
    os.environ['PATH'] = path
    for name in ('NODELIST', 'REMOTE'):
        del os.environ[f'SCR_{name}']


def test_usage():
    prepare()
    expect_wrong_usage(['a', 'b'], ['--prefix', '.', '.'])
    expect_documented(4, {'--prefix': '.'})
    expect_well_formed_page()


run_tests(globals())
