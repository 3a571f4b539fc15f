#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_check_node: directories that exist or not, are too small, full, or read-only;
killed checks; and tests of the site."""
import os
import pathlib
import subprocess

from command import (COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import names, put, put_program, without_scr_variables

without_scr_variables()


def folders():
    """Two directories, by their full names."""
    os.makedirs('cntl')
    os.makedirs('cache')
    return os.path.abspath('cntl'), os.path.abspath('cache')


def test_good():
    control, cache = folders()
    expect(run('--cntl', control, '--cache', f'{cache}:1KB,{control}'), 0, 'PASS\n')
    assert names() == []


def test_bad():
    control, cache = folders()
    put('file', b'')
    expect(run('--cntl', control, '--cache', f'{cache}/none'), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'access: ', 'No such file or directory'])
    expect(run('--cntl', f'{control}/none', '--cache', cache), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'access: '])
    expect(run('--cntl', control, '--cache', os.path.abspath('file')), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'Not a directory'])
    expect(run('--cntl', control, '--cache', f'{cache}:1000000TB'), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'capacity: '])
    # no user may write there, not even root
    expect(run('--cntl', control, '--cache', '/proc/self'), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'write: /proc/self: a new file'])
    # each bad directory is reported
    with open('full', 'wb') as full:
        os.posix_fallocate(full.fileno(), 0, 16 << 20)
    fs = os.statvfs('.')
    size = fs.f_blocks * fs.f_frsize - (8 << 20)
    expect(run('--cntl', control, '--cache', f'{cache}:{size}'), 0, 'PASS\n')
    expect(run('--free', '--cntl', control, '--cache', f'{cache}:{size}'), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'capacity: ', ' free bytes, not '])
    expect(run('-f', '--cntl', control, '--cache', f'{cache}:1KB'), 0, 'PASS\n')
    os.unlink('full')
    done = run('--cntl', f'{control}/none', '--cache', f'{cache}/none')
    assert done.returncode == 1 and done.stderr.count(b'access') == 2, done


def with_faults(control, cache, **faults):
    """A check with a fault in the directory cache; see tests/support/faults.c."""
    mark = pathlib.Path('struck').absolute()
    mark.unlink(missing_ok=True)
    env = {**os.environ, 'LC_ALL': 'C', 'LD_PRELOAD': os.environ['TEST_FAULTS'], 'ASAN_OPTIONS': 'verify_asan_link_order=0',
           'FAULTS_BELOW': cache, 'FAULTS_MARK': str(mark), **{f'FAULTS_{name}': str(text) for name, text in faults.items()}}
    done = subprocess.run([COMMAND, '--cntl', control, '--cache', cache], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=60, check=False)
    return done, mark.exists()


def test_full():
    """Each write may fail; nothing is left."""
    control, cache = folders()
    for how, told in (('ENOSPC', 'No space left on device'), ('EIO', 'Input/output error')):
        for number in range(1, 100):
            done, struck = with_faults(control, cache, AT=number, HOW=how)
            if not struck:
                break
            expect(done, 1, '', ['NODE_DIRECTORY_UNUSABLE', f'write: {cache}: a new file: {told}'])
            assert names('cache') == [], names('cache')
        assert number > 2 and done.returncode == 0, (number, done)
    done, struck = with_faults(control, cache, AT=1, HOW='short')
    assert struck and done.returncode == 0, 'a write that does half of it is no failure'


def test_killed():
    """A killed check leaves no file, and files of other names stay."""
    control, cache = folders()
    put('cache/scr-check-abcdef', b'mine')
    for number in range(1, 100):
        done, struck = with_faults(control, cache, AT=number, HOW='kill')
        if not struck:
            break
        assert done.returncode < 0 and names('cache') == ['scr-check-abcdef'], (number, done, names('cache'))
    assert number > 2, number
    expect(run('--cntl', control, '--cache', cache), 0, 'PASS\n')
    assert names('cache') == ['scr-check-abcdef']


def test_side_by_side():
    """Parallel checks of a directory do not disturb each other."""
    control, cache = folders()
    for _ in range(10):
        all_of_them = [subprocess.Popen([COMMAND, '--cntl', control, '--cache', cache], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT) for _ in range(10)]
        for process in all_of_them:
            told = process.communicate(timeout=60)[0]
            assert process.returncode == 0 and told == b'PASS\n', told
    assert names('cache') == []


def test_configuration():
    control, cache = folders()
    os.environ['SCR_CNTL_BASE'] = control
    put('scr.yaml', f'SCR_CACHE_BASE: {cache}/a/b\n'.encode())
    # SCR makes directories below; but not one that must exist
    expect(run('--prefix', '.'), 0, 'PASS\n')
    assert names() == ['scr.yaml']
    put('scr.yaml', f'SCR_CACHE_BASE: {cache}\nSTORE:\n  - STORE: {cache}/a\n    MKDIR: 0\n'
        f'CKPT:\n  - CKPT: 0\n    STORE: {cache}/a\nSCR_COPY_TYPE: FILE\n'.encode())
    done = run('--prefix', '.')
    assert done.returncode == 1 and b'access: ' in done.stderr, done
    os.mkdir('cache/a')
    expect(run('--prefix', '.'), 0, 'PASS\n')
    put('scr.yaml', f'SCR_NODE_CAPACITY: 1000000TB\nSCR_CACHE_BASE: {cache}\n'.encode())
    expect(run('--prefix', '.'), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'capacity: '])
    # the CAPACITY of a store prevails over SCR_NODE_CAPACITY, even if that is larger, or
    # this is 0
    for usual, own, code in (('1000000TB', '1', 0), ('1000000TB', '0', 0), ('1', '1000000TB', 1), ('1000000TB', None, 1)):
        put('scr.yaml', f'SCR_NODE_CAPACITY: {usual}\nSCR_CACHE_BASE: {cache}\nSTORE:\n  - STORE: {cache}\n'.encode()
            + (f'    CAPACITY: {own}\n' if own else '    COUNT: 2\n').encode())
        expect(run('--prefix', '.'), code, '' if code else 'PASS\n', ['NODE_DIRECTORY_UNUSABLE', 'capacity: '] if code else [])
    put('scr.yaml', f'SCR_CACHE_BASE: {cache}\nSTORE:\n  - STORE: {control}\n    CAPACITY: 1000000TB\n'.encode())
    expect(run('--prefix', '.'), 1, '', ['NODE_DIRECTORY_UNUSABLE', 'capacity: '])
    put('scr.yaml', f'SCR_CACHE_BASE: {cache}\nSTORE:\n  - STORE: {cache}\n    CAPACITY: much\n'.encode())
    expect(run('--prefix', '.'), 3, '', ['CONFIG_MISTAKE', 'CAPACITY="much"'])
    put('scr.yaml', b'SCR_CACHE_BAS: x\n')
    done = run('--prefix', '.')
    assert done.returncode == 3 and b'SCR_CACHE_BASE' in done.stderr and not done.stdout, done
    put('scr.yaml', f'SCR_CACHE_BASE: {cache}\nSCR_NODE_CAPACITY: much\n'.encode())
    expect(run('--prefix', '.'), 3, '', ['CONFIG_MISTAKE', 'SCR_NODE_CAPACITY'])
    # a certain problem of the node prevails
    put('scr.yaml', b'SCR_CACHE_BAS: x\n')
    done = run('--prefix', '.', '--cache', '/none')
    assert done.returncode == 1 and b'access: /none' in done.stderr, done
    os.remove('scr.yaml')
    expect(run('--prefix', 'none'), 1, '', ['DIRECTORY_UNUSABLE'])
    del os.environ['SCR_CNTL_BASE']


def test_site_tests():
    control, cache = folders()
    given = ('--cntl', control, '--cache', cache)
    put_program('a-good', 'exit 0')
    put('bin/README', b'no program')
    os.environ['SCR_NODE_TESTS'] = os.path.abspath('bin')
    expect(run(*given), 0, 'PASS\n')
    # the last line that is not blank is the reason
    put_program('b-bad', 'seq 5000; echo the GPU is gone >&2; echo; echo " "; exit 3')
    expect(run(*given), 1, '', ['NODE_TEST_FAILED', 'test b-bad: the GPU is gone '])
    put_program('b-bad', 'printf "the GPU is gone"; exit 3')
    expect(run(*given), 1, '', ['NODE_TEST_FAILED', 'test b-bad: the GPU is gone '])
    put_program('b-bad', 'seq 5000')
    expect(run(*given), 0, 'PASS\n')
    put_program('b-bad', 'exit 3')
    expect(run(*given), 1, '', ['NODE_TEST_FAILED', 'test ', '/b-bad: exit code 3 '])
    put_program('b-bad', 'echo begins; sleep 1000')
    expect(run(*given, '--seconds', '1'), 1, '', ['NODE_TEST_FAILED', '1 seconds'])
    expect(run(*given, '--tests', os.path.abspath('none')), 1, '', ['NODE_TEST_FAILED', 'tests ', 'No such file'])
    del os.environ['SCR_NODE_TESTS']


def test_usage():
    assert b'capacity' in run('--list').stdout
    expect_wrong_usage(['argument'], ['--cache', 'relative'], ['--cntl', '/tmp:much'], ['--cache', ''])
    expect_documented(9, {'--prefix': '.', '--cntl': '/tmp', '--cache': '/tmp', '--tests': '.', '--seconds': '1'})
    expect_output_fails(['--list'])
    expect_well_formed_page()


run_tests(globals())
