# SPDX-License-Identifier: BSD-3-Clause
"""The command scr_transfer, controlled by transfer files that this test writes and reads itself.

usage: scr_transfer.py scr_transfer scr_transfer.1
"""
import contextlib
import fcntl
import os
import pathlib
import random
import signal
import struct
import subprocess
import time

from command import COMMAND, expect, expect_documented, expect_well_formed_page, expect_wrong_usage, image, run
from command import run_tests


def unpack(data, at=0):
    (count,), tree = struct.unpack_from('>I', data, at), {}
    at += 4
    for _ in range(count):
        end = data.index(b'\0', at)
        key = data[at:end].decode()
        tree[key], at = unpack(data, end + 1)
    return tree, at


def read():
    """Returns the transfer file, which may be replaced at any time, but is always complete."""
    return unpack(pathlib.Path('transfer').read_bytes()[20:])[0]


def value(tree, key):
    return next(iter(tree.get(key, {})), None)


@contextlib.contextmanager
def locked():
    """Holds the lock of the file while it is changed."""
    while True:
        with open('transfer', 'r+b') as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_ino == os.stat('transfer').st_ino:
                yield
                return


def write(tree):
    pathlib.Path('new').write_bytes(image(tree))
    os.rename('new', 'transfer')


def command(text):
    with locked():
        write({**read(), 'COMMAND': {text: {}}})


def listed(files, **more):
    """Returns the documented keys, and nothing else."""
    here = os.getcwd()
    entries = {f'{here}/{name}': {'DESTINATION': {f'{here}/out/{name}': {}}, 'SIZE': {str(len(data)): {}},
                                  'WRITTEN': {'0': {}}} for name, data in files.items()}
    return {'FILES': entries, 'PERCENT': {'0.000000': {}}, 'BW': {'0.000000': {}}, 'COMMAND': {'RUN': {}}, **more}


def sources(count, size):
    files = {f'f{i}': random.Random(i).randbytes(size + i) for i in range(count)}
    for name, data in files.items():
        pathlib.Path(name).write_bytes(data)
    return files


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, read()
        time.sleep(0.01)


def expect_copied(files):
    for name, data in files.items():
        assert pathlib.Path('out', name).read_bytes() == data, name
    assert sorted(os.listdir('out')) == sorted(files)


@contextlib.contextmanager
def serving(*options):
    with subprocess.Popen([COMMAND, '--interval', '0.05', *options, 'transfer'], stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_documented_file():
    files = sources(5, 1000)
    write(listed(files))
    with serving() as process:
        wait_for(lambda: value(read(), 'FLAG') == 'DONE')
        expect_copied(files)
        told = read()
        assert value(told, 'STATE') == 'STOPPED'
        for path, entry in told['FILES'].items():
            assert value(entry, 'WRITTEN') == value(entry, 'SIZE') == str(os.path.getsize(path))
        # scr_transfer waits for more work
        more = {**files, **{'g': b'new'}}
        pathlib.Path('g').write_bytes(b'new')
        with locked():
            write(listed(more))
        wait_for(lambda: value(read(), 'FLAG') == 'DONE')
        expect_copied(more)
        command('EXIT')
        assert process.wait(10) == 0 and not process.stderr.read()
    assert not os.path.exists('transfer.lock')


def test_readers_cannot_lock():
    """A process that can open the file for reading could keep scr_transfer from locking it."""
    os.chmod('.', 0o755)
    files = sources(1, 10)
    write(listed(files))
    mask = os.umask(0o022)
    with serving() as process:
        wait_for(lambda: value(read(), 'FLAG') == 'DONE')
        assert os.stat('transfer').st_mode & 0o777 == 0o600
        command('EXIT')
        assert process.wait(30) == 0
    os.umask(mask)


def test_nothing_before_run():
    files = sources(2, 100)
    with serving() as process:
        time.sleep(0.2)  # no file yet
        write({**listed(files), 'COMMAND': {'STOP': {}}})
        time.sleep(0.3)
        assert not os.path.exists('out') and process.poll() is None
        command('RUN')
        wait_for(lambda: value(read(), 'FLAG') == 'DONE')
        expect_copied(files)


def test_one_source_to_two_destinations():
    files = sources(1, 100)
    tree = listed(files)
    here = os.getcwd()
    tree['FILES'][f'/.{here}/f0'] = {'DESTINATION': {f'{here}/out/second': {}}, 'SIZE': {'100': {}}}
    write(tree)
    expect(run('--leave', 'transfer'), 0)
    expect_copied({**files, 'second': files['f0']})


def slow(files, rate):
    return listed(files, BW={f'{rate:.6f}': {}})


def test_stop_and_go_on():
    files = sources(1, 3000000)
    write(slow(files, 2e6))
    with serving() as process:
        wait_for(lambda: value(read(), 'STATE') == 'RUNNING')
        command('STOP')
        wait_for(lambda: value(read(), 'STATE') == 'STOPPED')
        assert not os.path.exists('out/f0') and 'FLAG' not in read()
        assert process.poll() is None
        with locked():
            write({**read(), 'COMMAND': {'RUN': {}}, 'BW': {'0.0': {}}})
        wait_for(lambda: value(read(), 'FLAG') == 'DONE')
        expect_copied(files)


def test_ends_by_signal_and_another_one_goes_on():
    files = sources(3, 500000)
    write(slow(files, 1e6))
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        with serving() as process:
            wait_for(lambda: value(read(), 'STATE') == 'RUNNING')
            time.sleep(0.3)
            process.send_signal(number)
            assert process.wait(10) == (-number if number == signal.SIGKILL else 0)
        assert value(read(), 'COMMAND') == 'RUN'
        with locked():  # a killed process could not write this
            write({**read(), 'STATE': {'STOPPED': {}}})
    expect(run('--leave', '-i', '0.05', 'transfer'), 0)
    expect_copied(files)


def test_bandwidth():
    """4 MB with a limit of 2 MB per second."""
    files = sources(4, 1000000)
    write(slow(files, 2e6))
    start = time.monotonic()
    expect(run('--leave', 'transfer'), 0)
    assert time.monotonic() - start > 1.4
    expect_copied(files)


def test_errors_are_told_in_the_file():
    files = sources(2, 100)
    os.unlink('f1')
    write(listed(files))
    expect(run('--leave', 'transfer'), 0)
    told = read()
    assert int(value(told, 'CODE')) < 0 and 'f1: No such file' in value(told, 'ERROR'), told
    assert value(told, 'STATE') == 'STOPPED' and 'FLAG' not in told
    pathlib.Path('f1').write_bytes(files['f1'])
    write(listed(files))
    expect(run('--leave', 'transfer'), 0)
    expect_copied(files)


def test_only_one():
    write(listed(sources(1, 10)))
    with serving():
        wait_for(lambda: value(read(), 'FLAG') == 'DONE')
        expect(run('transfer'), 3, '', ['TRANSFER_FAILED', ' transfer '])


def test_damaged_files():
    good = image(listed(sources(1, 10)))
    for bad in (good[:-5], b'', b'nothing of that kind', good[:30] + b'x' + good[31:]):
        pathlib.Path('transfer').write_bytes(bad)
        assert run('--leave', 'transfer').returncode == 1
        assert pathlib.Path('transfer').read_bytes() == bad
    for lie in ({'FILES': {'relative': {'DESTINATION': {'/x': {}}, 'SIZE': {'1': {}}}}},
                {'FILES': {'/a': {'DESTINATION': {'x': {}}, 'SIZE': {'1': {}}}}},
                {'FILES': {'/a': {'SIZE': {'1': {}}}}},
                {'FILES': {'/a': {'DESTINATION': {'/x': {}}}}},
                {'BW': {'fast': {}}}, {'PERCENT': {'-1': {}}}, {'PERCENT': {'nan': {}}}, {'ID': {'../../x': {}}}):
        write({**listed({}), **lie})
        done = run('--leave', 'transfer')
        assert done.returncode == 1 and b'state file transfer: ' in done.stderr and b'[TRANSFER_FAILED]' in done.stderr, (lie, done)
    assert not os.path.exists('out')


def test_usage():
    expect_wrong_usage([], ['a', 'b'], [''], ['--wrong', 'a'], ['--interval=0', 'a'], ['--interval=x', 'a'], ['a', '-i'],
                       ['--interval=-1', 'a'], ['--interval=nan', 'a'], ['--interval=1e9', 'a'])
    expect_documented(5, {'--interval': '2'})
    expect_well_formed_page()


run_tests(globals())
