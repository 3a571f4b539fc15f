#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_doctor: facts of this machine, and results of other commands.
tools/tests/test_doctor.c simulates other machines."""
import json
import os
import resource
import shutil

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, identifiers, run,
                     run_tests)
from prefix import put, put_launcher, put_program, some_user, without_scr_variables

without_scr_variables()


def ask(*arguments, code=0, **how):
    done = run('--json', *arguments, **how)
    assert done.returncode == code, done
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row['check']: row for row in rows}


def site():
    """A site on which everything exists."""
    for name in ('cntl', 'cache'):
        os.makedirs(name, exist_ok=True)
    put_launcher('exit 0')
    os.environ.update(SCR_CNTL_BASE=f'{os.getcwd()}/cntl', SCR_CACHE_BASE=f'{os.getcwd()}/cache', SCR_NODELIST='localhost',
                      SCR_NODE_NAME='localhost')


def test_this_machine():
    site()
    found = ask('--space', '1')
    assert list(found) == ['configuration', 'directories', 'programs', 'writing', 'locks', 'clock', 'space', 'cache', 'memory', '/dev/shm',
                           'open files'], found
    for check in ('configuration', 'directories', 'programs', 'writing', 'locks', 'clock', 'space', 'cache'):
        assert found[check]['result'] == 'good' and found[check]['remedy'] is None, found[check]
    # nothing stays
    assert sorted(os.listdir('.')) == ['bin', 'cache', 'cntl']
    free = os.statvfs('.')
    found = ask('--space', str(free.f_blocks * free.f_frsize + 1))
    assert found['space']['message'] == 'SITE_SPACE_LOW' and found['cache']['result'] == 'warning', found
    found = ask(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 4096)))
    assert found['open files']['message'] == 'SITE_FILES_FEW' and found['open files']['text'] == '200 for each process', found
    text = run('--space', str(free.f_blocks * free.f_frsize + 1)).stdout.decode()
    assert 'space          warning  ' in text and 'space [SITE_SPACE_LOW]:\n  Remove what' in text, text
    assert all(len(line) <= 80 for line in text.split('\n\n', 1)[1].splitlines()), text


def test_what_is_bad():
    """The text of the command that found the problem, with its remedy."""
    site()
    os.environ['SCR_LAUNCHER'] = 'none-such'
    found = ask(code=1)['programs']
    assert (found['result'], found['message']) == ('bad', 'LAUNCHER_MISSING') and 'module' in found['remedy'], found
    site()
    shutil.rmtree('cache')
    put('cache', b'')
    found = ask(code=1)['directories']
    assert (found['result'], found['message']) == ('bad', 'NODE_DIRECTORY_UNUSABLE') and '/cache' in found['text'], found
    os.unlink('cache')
    site()
    put('scr.yaml', b'SCR_NO_SUCH: 1\n')
    found = ask(code=1)['configuration']
    assert (found['result'], found['message']) == ('bad', 'CONFIG_MISTAKE') and found['remedy'], found
    os.unlink('scr.yaml')
    put_program('mpiexec.mpich', 'exit 0')
    if os.geteuid() == 0:  # root could write anywhere
        os.mkdir('closed')
        os.chown('closed', some_user().pw_uid, -1)
        os.chmod('closed', 0o500)
        os.chmod('.', 0o755)
        done = run('--json', '--prefix', 'closed')
        rows = {row['check']: row for row in map(json.loads, done.stdout.splitlines())}
        assert rows['writing']['message'] == 'DIRECTORY_UNUSABLE' and 'locks' not in rows and done.returncode == 1, done


def test_usage():
    expect_output_fails([], ['--json'])
    expect_wrong_usage(['x'], ['--space', 'much'], ['--no'])
    done = run('--prefix', 'no')
    expect(done, 1, '', ['DIRECTORY_UNUSABLE'])
    assert identifiers(done) == ['DIRECTORY_UNUSABLE']
    expect_documented(5, {'--prefix': 'x', '--space': '1'})
    expect_well_formed_page()


run_tests(globals())
