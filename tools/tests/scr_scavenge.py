#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_scavenge: which nodes it queries, and its messages about them;
tests/jobs/scavenge.py tests the saved data."""
import os
import re
import pathlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, identifiers, run,
                     run_tests, run_unread)
from prefix import FLUSH, give_all, put_program, put_tree, some_user, value, without_scr_variables


def clean(**variables):
    without_scr_variables()
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='17', SCR_CNTL_BASE='/dev/null/none', SCR_NODE_NAME='n1', **variables)


def test_no_dataset():
    clean()
    expect(run('--up', 'n1'), 1, '', ['PREFIX_UNUSED', os.getcwd()])
    os.mkdir('.scr')
    expect(run('--up', 'n1'), 1, '', ['FLUSH_FILE_UNUSABLE', '--id ', f'scr_scavenge: {os.getcwd()}: read .scr/flush.scr: '])
    put_tree(FLUSH, {})
    expect(run('--up', 'n1'), 3, '', ['CACHE_EMPTY'])
    put_tree(FLUSH, {'DSET': {'7': {'DIR': value('c7'), 'LOCATION': value('CACHE')}, '9': {'LOCATION': value('CACHE')}}})
    done = run('--up', 'n1')
    assert 'CACHE_EMPTY' in identifiers(done) and b' dataset 9 ' in done.stderr and b' job 17 (SCR_JOB_ID)' in done.stderr, done
    assert 'CACHE_EMPTY' in identifiers(run('--up', 'n1', '--id', '7'))


def test_one_line_for_all():
    """The same problem of several nodes is reported once; different problems, for each
    node."""
    clean(SCR_REMOTE='shell', SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach')
    put_program('reach', '[ $1 = n7 ] && echo tired >&2 || echo broken >&2; exit 9')
    said = run('--id', '4', '--up', 'n[2-9]').stderr.decode().splitlines()
    assert sorted(said[:2]) == [f'scr_scavenge: 7 nodes, n[2-6,8-9]: {os.getcwd()}/bin/reach: exit code 9: broken [NODE_REPORT]',
                                f'scr_scavenge: node n7: {os.getcwd()}/bin/reach: exit code 9: tired [NODE_REPORT]'] and len(said) == 4, said


def test_nodes():
    """The nodes of the allocation, or of the options, except those that are down; each
    once, in parallel."""
    clean(SCR_REMOTE='shell', SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach', SCR_NODELIST='n[2-5]')
    put_program('reach', f'echo "$1" >> {os.getcwd()}/asked; exit 3')

    def asked(*options):
        pathlib.Path('asked').unlink(missing_ok=True)
        done = run('--id', '4', *options)
        assert done.returncode == 3 and 'CACHE_EMPTY' in identifiers(done) and b' dataset 4 ' in done.stderr, done
        return sorted(pathlib.Path('asked').read_text().split())
    assert asked() == ['n2', 'n3', 'n4', 'n5']
    assert asked('--down', 'n[3-4]') == ['n2', 'n5']
    assert asked('--up', 'n8,n9,n8') == ['n8', 'n9']
    assert asked('-jobset', 'n[8-9]') == ['n8', 'n9'] and asked('--jobset', 'n[8-9]', '--down', 'n8') == ['n9']
    expect(run('--id', '4', '--up', 'n8', '--down', 'n8'), 1, '', ['NODELIST_EMPTY'])
    for option in ('--jobset', '--up', '--down'):
        done = run('--id', '4', option, 'n[8')
        assert done.returncode == 2 and b'"n[8"' in done.stderr and 'USAGE_WRONG' in identifiers(done), done


def test_by_root():
    """In another user's prefix directory root works as that user, who also owns the
    caches and the saved files."""
    clean(SCR_REMOTE='shell', SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach')
    put_program('reach', f'id -u >> {os.getcwd()}/asked; exit 3')
    if os.geteuid() == 0:
        give_all(some_user().pw_uid, some_user().pw_gid)
        assert run('--id', '4', '--up', 'n2').returncode == 3
        assert pathlib.Path('asked').read_text() == f'{some_user().pw_uid}\n'
        os.chown('.', 0, 0)


def test_failures():
    """A node that cannot be reached, and one with an invalid answer, are reported."""
    clean(SCR_REMOTE='shell', SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach')
    put_program('reach', 'case "$1" in n2) exit 255;; n3) printf "bad\\033[2J news\\n" >&2; exit 1;; n4) sleep 100;; n6) echo welcome; exit 0;; esac; exit 3')
    done = run('--id', '4', '--up', 'n[2-6]', '--timeout', '15')
    told = done.stderr.decode()
    assert done.returncode == 1 and '\x1b' not in told, done
    assert re.search('node n6: .*: welcome.* \\[NODE_REPORT\\]\n', told), told
    assert 'node n2: ' in told and 'node n3: ' in told and 'news' in told and 'node n4: ' in told and 'node n5' not in told, told


def test_silence():
    """A node that answers, and then shows no sign of life while it copies, is abandoned;
    one that shows signs is not."""
    clean(SCR_REMOTE='shell', SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach', SCR_NODE_TIMEOUT='1')
    put_program('reach', 'case "$*" in *scr_inspect*) echo "4 1795257190731827 8 2 2 0 ckpt.4"; exit;; '
                '*"--alive=1 "*) ;; *) exit 2;; esac; '
                '[ "$1" = n3 ] || exec sleep 1000; for i in 1 2 3 4 5 6; do echo; sleep 1; done; echo good')
    done = run('--id', '4', '--up', 'n[2-3]')
    told = done.stderr.decode()
    assert re.search('node n2: .* 4 seconds.* \\[NODE_REPORT\\]\n', told) and 'node n3' not in told, done
    assert b'round 1, 2 of 2: node n3: good\n' in done.stdout and done.returncode == 1, done


def test_noise():
    """The remote method may print its own lines before and after those of the
    commands."""
    clean(SCR_REMOTE='shell', SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach', SCR_PREFIX=os.getcwd())
    put_program('reach', 'echo "Warning: Permanently added $1 to the list of known hosts." >&2\n'
                'case "$2" in *scr_inspect*) echo "4 1795257190731827 2 1 1 0 ckpt.4"; echo bye >&2;;\n'
                '*) if [ $1 = n3 ]; then echo "connected" >&2; echo "scr_copy: no room" >&2; exit 1; fi\n'
                'echo "dataset 4 (ckpt.4): 1 files of 1 ranks, 10 bytes";; esac')
    done = run('--id', '4', '--up', 'n[2-3]')
    assert b'node n3: ' in done.stderr and b': no room [NODE_REPORT]\n' in done.stderr, done
    assert b' of 2: node n2: dataset 4 (ckpt.4): 1 files of 1 ranks, 10 bytes\n' in done.stdout, done
    assert run_unread('--id', '4', '--up', 'n[2-3]').returncode == done.returncode


def test_usage():
    expect_wrong_usage(['more'], ['--id', 'x'], ['--timeout', '0'], ['--width', '0'])
    expect_documented(14, {'--to': '.', '--from': 'x', '--jobset': 'n1', '--prefix': '.', '--id': '4', '--up': 'n1', '--down': 'n1', '--timeout': '5', '--width': '2'})
    expect_well_formed_page()
    expect_output_fails()


run_tests(globals())
