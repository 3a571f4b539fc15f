#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr: each verb is its command, with the same output, exit codes and prefix directory;
and which file that command is."""
import os
import pathlib
import re
import shutil

from command import (COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import Prefix, put, some_user, without_scr_variables

without_scr_variables()
TABLE = re.findall(r'^    \{"([\w-]+)", "(\w+)", (?:"(\S+)"|NULL), (?:"(\w+)"|NULL),',
                   (pathlib.Path(__file__).resolve().parent.parent / 'commands/scr.c').read_text(), flags=re.MULTILINE)


def of_command(name, *arguments):
    return run(*arguments, command=COMMAND.parent / name)


def test_each_verb():
    told = re.findall(r'^  ([a-z-]+) ', run('--help').stdout.decode(), flags=re.MULTILINE)
    assert told == [verb for verb, *_ in TABLE] and len(told) > 10, told
    for verb, command, option, value in TABLE:
        if (COMMAND.parent / command).exists():  # those of libraries are not beside it in a build directory
            wanted = of_command(command, '--help').stdout.decode().replace(f'usage: {command} ', f'usage: scr {verb} ')
            blank = f' {value}' if value else ''
            about = f'scr {verb}{blank} is {command} {option}{blank}.\n\n' if option else ''
            expect(run(verb, '--help'), 0, about + wanted)
            expect(run(verb, '-V'), 0, of_command(command, '-V').stdout.decode().replace(command, f'scr {verb}'))


def test_verbs_at_work():
    prefix = Prefix()
    os.mkdir('p')
    os.chdir('p')
    prefix.put_dataset('a', 1, [{'f': b'one'}])
    prefix.enter('a', 1, [{'f': b'one'}])
    prefix.put_index()
    os.chdir('..')
    for arguments in (['--prefix', 'p', 'list', '--json'], ['-p', 'p', 'list', '-j'], ['list', '--json', '--prefix', 'p']):
        expect(run(*arguments), 0, of_command('scr_index', '--list', '--json', '--prefix', 'p').stdout.decode())
    assert run('verify', '--prefix', 'p').returncode == 0
    put('p/a/f', b'two')
    assert run('verify', '--prefix', 'p').returncode == 1
    expect(run('restore', 'a', '--prefix', 'p'), 0, 'a: current: the next run begins with it, unless it finds a newer one in its caches\n')
    expect(run('restore', 'b', '--prefix', 'p'), 1, '', ['DATASET_UNKNOWN', 'scr restore: '])
    expect(run('--prefix', 'p', 'halt', '-c', '3'), 0, 'CheckpointsLeft  3\n')
    expect(run('halt', '--no'), 2, '', ['USAGE_WRONG', 'usage: scr halt '])


def test_which_command():
    """The command beside scr, if no other user can have put it there; never one in PATH
    or in the current directory."""
    spy = b'#!/bin/sh\necho "$0" "$@"\n'
    for folder in ('bin', 'path', '.'):
        put(f'{folder}/scr_halt', spy)
        os.chmod(f'{folder}/scr_halt', 0o755)
    os.chmod('bin', 0o755)
    scr = shutil.copy(COMMAND, 'bin')
    former = os.environ['PATH']
    os.environ['PATH'] = f'{os.getcwd()}/path:{former}'
    expect(run('halt', '-c', '1', command=scr), 0, f'{os.getcwd()}/bin/scr_halt -c 1\n')
    os.chmod('bin', 0o1777)
    expect(run('halt', command=scr), 1, '', ['PROGRAM_MISSING', 'scr_halt'])
    os.chmod('bin', 0o755)
    os.chmod('bin/scr_halt', 0o777)
    expect(run('halt', command=scr), 1, '', ['PROGRAM_MISSING'])
    os.chmod('bin/scr_halt', 0o755)
    if os.geteuid() == 0:
        os.chown('bin/scr_halt', some_user().pw_uid, -1)
        expect(run('halt', command=scr), 1, '', ['PROGRAM_MISSING'])
    os.unlink('bin/scr_halt')
    expect(run('halt', command=scr), 1, '', ['PROGRAM_MISSING'])
    os.environ['PATH'] = former


def test_help():
    for ask, told in ((['help'], ['--help']), (['help', 'list'], ['list', '--help'])):
        assert run(*ask).returncode == 0 and run(*ask).stdout == run(*told).stdout, ask
    expect(run('help', 'lost'), 2, '', ['USAGE_WRONG', "'list' is the most similar one"])


def test_usage():
    expect_output_fails()
    expect(run('restore'), 2, '', ['USAGE_WRONG', 'scr: restore needs NAME, before its options: scr restore NAME [OPTION]...'])
    expect_wrong_usage(['no'], ['--no'], ['restore'], ['restore', '--json', 'a'], ['import'], ['--prefix', '', 'list'], ['--prefix'])
    expect_documented(3, {'--prefix': 'x'})
    expect_well_formed_page()


run_tests(globals())
