# SPDX-License-Identifier: BSD-3-Clause
"""For tests of the commands: runs one and compares its messages; its help and its manual page; tree files.

A test of a command gets the path of the program and of its page; its functions test_* run in new directories, one
after the other:

    from command import expect, run, run_tests
    def test_something():
        expect(run('--option', 'file'), 0, 'what it prints')
    run_tests(globals())
"""
import ctypes
import errno
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

import signals  # noqa: F401

BUILD_PATH = os.environ['TEST_BUILD_PATH']  # the directories of all libraries and commands, separated by colons
COMMAND, MAN_PAGE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])


# Syncing is free there.
MEMORY = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None


# ---- tree files ----

def packed(tree):
    """Returns the bytes of a tree (dicts of dicts), according to
    docs/formats/kvtree.md."""
    return struct.pack('>I', len(tree)) + b''.join(
        key.encode() + b'\0' + packed(value) for key, value in tree.items())


def image(tree, crc=True):
    """A tree in file format."""
    data = packed(tree)
    head = struct.pack('>IHHQI', 0x951fc3f5, 1, 1, 20 + len(data) + 4 * crc, crc)
    return head + data + (struct.pack('>I', zlib.crc32(head + data)) if crc else b'')


# ---- runs ----

def run(*arguments, command=COMMAND, **how):
    how = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'stdin': subprocess.DEVNULL, **how}
    if 'input' in how:
        del how['stdin']
    return subprocess.run([command, *arguments], timeout=60, env={**os.environ, 'LC_ALL': 'C'}, **how)


CALLS = {'signalfd4': {'x86_64': 289, 'aarch64': 74}}


def run_without(call, *arguments, **how):
    """Runs with a system call that the kernel refuses, as in a container that forbids it;
    None if this is impossible."""
    number = CALLS[call].get(os.uname().machine)
    if number is None:
        return None
    # load the number of the call; if it is this one: EPERM; else allow it
    code = ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno.EPERM), (0x06, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
    filter_program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(program)))
    libc = ctypes.CDLL(None)

    def refuse():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter_program, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
            raise OSError

    try:
        return run(*arguments, preexec_fn=refuse, **how)
    except subprocess.SubprocessError:
        return None


def run_unread(*arguments, **how):
    """Runs without a reader of the output, as when tee or head has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return run(*arguments, **{'stdout': writer, 'stderr': writer, **how})
    finally:
        os.close(writer)


def run_closed(*arguments, first=0, **how):
    """Runs with closed descriptors, from `first` to 2."""
    return run(*arguments, stdin=None if first == 0 else subprocess.DEVNULL, stdout=None, stderr=None,
               preexec_fn=lambda: os.closerange(first, 3), **how)


IDENTIFIER = re.compile(r'(?!SCR_)[A-Z]+(_[A-Z]+)+')


def identifiers(done):
    """Returns the identifiers of the messages, in order."""
    return re.findall(r' \[([A-Z]+(?:_[A-Z]+)+)\]$', done.stderr.decode(), flags=re.MULTILINE)


def expect(done, code, out='', err=()):
    """Checks the exit code, the exact output, and the errors: identifiers of messages,
    and values in messages."""
    told = done.stderr.decode()
    assert done.returncode == code, (done.args, done.returncode, done.stdout, told)
    assert done.stdout.decode() == out, (done.args, done.stdout.decode(), out)
    for text in err:
        assert (f' [{text}]\n' if IDENTIFIER.fullmatch(text) else text) in told, (done.args, told, text)
    assert err or not told, (done.args, told)
    for line in told.splitlines():
        assert not line.startswith(f'{COMMAND.name}: ') or re.search(r' \[[A-Z]+(_[A-Z]+)+\]$', line), (done.args, line)


def expect_output_fails(*calls):
    """Each call reports that its output was lost."""
    for arguments in (*calls, ['--help'], ['--version']):
        with open('/dev/full', 'w') as full:
            done = run(*arguments, stdout=full)
        assert done.returncode == 1, arguments
        assert done.stderr == f'{COMMAND.name}: write: No space left on device [OUTPUT_LOST]\n'.encode(), done.stderr
        done = run(*arguments, stdout=None, preexec_fn=lambda: os.close(1))
        assert (done.returncode, done.stderr) == (1, f'{COMMAND.name}: write: Bad file descriptor [OUTPUT_LOST]\n'.encode()), done


def expect_ends_unread(*calls):
    """Calls that only print end by SIGPIPE if their output has no reader."""
    for arguments in (*calls, ['--help'], ['--version']):
        assert run_unread(*arguments).returncode == -signal.SIGPIPE, arguments


def expect_wrong_usage(*calls):
    """Each call prints the mistake, then the usage of the command."""
    for arguments in calls:
        done = run(*arguments)
        assert done.returncode == 2 and not done.stdout, arguments
        assert f'usage: {COMMAND.name} ['.encode() in done.stderr and b'--help' in done.stderr, arguments
        reason = done.stderr.splitlines()[0]
        assert b': ' in reason and not reason.startswith(b'usage: '), (arguments, done.stderr)
        assert set(identifiers(done)) == {'USAGE_WRONG'}, (arguments, done.stderr)


# ---- help and manual page ----

def expect_documented(count, values=()):
    """Help and manual page name the same options, as many as `count`, and each option
    works. values: for options with a value."""
    values = dict(values)
    text = run('--help').stdout.decode()
    told = set(re.findall(r'^ +(-\w), (--[\w-]+)', text, flags=re.MULTILINE))
    assert len(told) == count, told
    assert all(len(line) <= 80 for line in text.splitlines()), text
    for short, long in told:
        value = values.get(long)
        for call in ([short, value], [f'{long}={value}']) if value else ([short], [long]):
            assert run(*call, '--help').returncode == 0, call
    page = MAN_PAGE.read_text().replace('\\', '')
    rows = re.findall(r'^\.BR (-\w) ", " (--[\w-]+)', page, flags=re.MULTILINE)
    assert sorted(rows) == sorted(told), (rows, told)


def expect_well_formed_page():
    """The manual page has no warnings and fits a terminal."""
    if shutil.which('mandoc'):
        done = subprocess.run(['mandoc', '-Tlint', '-Wwarning', MAN_PAGE], capture_output=True)
    elif shutil.which('man') and shutil.which('groff'):
        done = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-P', 'cat', '-l', MAN_PAGE],
                              capture_output=True, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'MANWIDTH': '80', 'GROFF_NO_SGR': '1'})
        lines = re.sub('.\b', '', done.stdout.decode()).splitlines()
        assert COMMAND.name in '\n'.join(lines)
        assert max(map(len, lines)) <= 80, max(lines, key=len)
    else:
        print('no mandoc and no man here')
        return
    assert done.returncode == 0 and not done.stderr, (done.stdout, done.stderr)


def run_tests(names):
    for name, test in list(names.items()):
        if name.startswith('test_'):
            with tempfile.TemporaryDirectory(prefix='scr-test-', dir=MEMORY) as scratch:
                os.chdir(scratch)
                test()
                os.chdir('/')
            print(name)
