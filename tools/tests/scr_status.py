#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_status: it prints what the records have, and "unknown" otherwise; and the refreshed
screen."""
import datetime
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import zlib

from command import (COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, identifiers,
                     run, run_tests)
from prefix import FLUSH, HALT, NODES, Prefix, put, put_halt, put_launcher, put_program, put_tree, some_user, value, without_scr_variables

without_scr_variables()
NOTHING = {'state': 'unused', 'only_in_caches': []}


def stamp(when):
    return datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S.%fZ')


def event(when, kind, whose='r1', **fields):
    rest = ''.join(f' {key}={word}' for key, word in fields.items())
    run_field = f' run="{whose}"' if whose else ''
    return f'{stamp(when)} {kind}{run_field} user="u" jobid="17" host="n1"{rest}\n'


def put_log(now, *more):
    put('.scr/log', ''.join([
        event(now - 900, 'RUN_START', 'r0', ranks=2, nodes=1), event(now - 800, 'NODE_LOST', None, node='"old"'),
        event(now - 500, 'RUN_START', ranks=8, nodes=4), event(now - 490, 'RUN_READY', secs='10.0'),
        event(now - 390, 'OUTPUT_START', dset=5, name='"c5"', compute='100.0'), event(now - 388, 'OUTPUT_COMPLETE', dset=5, name='"c5"', secs='2.0'),
        event(now - 188, 'OUTPUT_START', dset=6, name='"c6"', compute='200.0'), event(now - 186, 'OUTPUT_COMPLETE', dset=6, name='"c6"', secs='2.0'),
        *more]).encode())


def put_flush(entries, **more):
    """{id: (name, *locations)}"""
    put_tree(FLUSH, {**more, 'DSET': {str(number): {'DIR': value(name), 'CKPT': value(1), 'LOCATION': {place: {} for place in places}}
                                      for number, (name, *places) in entries.items()}})


def ask(*arguments, code=0):
    done = run('--json', *arguments)
    assert done.returncode == code and (code or not done.stderr), done
    return json.loads(done.stdout)


def known(found):
    return {key: found[key] for key in found if found[key] is not None and key not in ('prefix', 'time')}


def test_nothing_is_known():
    assert known(ask()) == NOTHING
    expect(run(), 0, f'directory   {os.getcwd()}\nstate       unused\n')
    os.mkdir('.scr')
    found = known(ask())
    assert found == {'state': 'unknown', 'evidence': 'there is no log of it', 'only_in_caches': []}, found
    text = run().stdout.decode()
    assert text.count('unknown') == 5 and 'none under way' in text, text
    # nothing was created
    assert os.listdir('.') == ['.scr'] and not os.listdir('.scr')


def test_each_record():
    now = int(time.time())
    prefix = Prefix()
    for number, created in ((3, now - 300), (4, now - 250)):
        prefix.enter(f'c{number}', number, [{'f': b'x' * 1000}], CREATED=created * 1000000)
    prefix.enter('c5', 5, [{'f': b'x' * 4000000}], {'COMPLETE': value(0)}, CREATED=(now - 390) * 1000000)
    prefix.enter('c6', 6, [{'f': b'x'}], {'FAILED': value('2026-11-22T18:30:00')}, CREATED=(now - 100) * 1000000)
    prefix.put_index()
    put_flush({4: ('c4', 'CACHE', 'PFS'), 5: ('c5', 'CACHE', 'FLUSHING'), 6: ('c6', 'CACHE')}, OWNER=value('u/scr.17'))
    put_tree(NODES, {'NODES': value(7)})
    put_log(now, event(now - 20, 'NODE_LOST', None, node='"n3"'), event(now - 10, 'FLUSH_START', dset=5, name='"c5"'))
    put_halt({'CheckpointsLeft': value(3), 'ExitBefore': value(4102448400), 'HaltSeconds': value(60)})
    found = ask()
    wanted = {'state': 'unknown', 'evidence': 'the log has no end of it', 'run': 'r1', 'user': 'u', 'job_id': '17', 'started': now - 500,
              'last_event': now - 10, 'ranks': 8, 'nodes': 4, 'nodes_lost': 'n3', 'cached_id': 6, 'cached_name': 'c6',
              'prefix_id': 4, 'prefix_name': 'c4', 'prefix_created': now - 250, 'flush_id': 5, 'flush_name': 'c5', 'flush_bytes': 4000000,
              'next_checkpoint': now - 186 + 150, 'next_checkpoint_by': 'earlier checkpoints', 'halt_checkpoints_left': 3,
              'halt_exit_before': 4102448400, 'halt_seconds': 60, 'only_in_caches': ['c5', 'c6'], 'work_at_risk': 240.0}
    found.pop('cached_created')
    assert known(found) == wanted, (known(found), wanted)
    put('scr.yaml', b'SCR_CHECKPOINT_SECONDS: 600\n')
    found = ask()
    assert (found['next_checkpoint'], found['next_checkpoint_by']) == (now - 186 + 600, 'SCR_CHECKPOINT_SECONDS'), found
    text = run('--next').stdout.decode()
    for part in ('lost since then: n3', 'newest in the cache: c6 (dataset 6)', 'newest that is flushed: c4 (dataset 4), 4 min ',
                 'c5: ? of 4.0 MB, time left unknown', 'after 3 more checkpoints; 60 s before 2100', '4 min 0 s of work, at least; c6, c5 only in caches',
                 'next:\n  scr '):
        assert part in text, (part, text)
    assert all(len(line) <= 80 for line in text.splitlines()[1:]), text


def test_states():
    now = int(time.time())
    for more, state in (((event(now - 1, 'RUN_END', code=0),), 'ended'), ((event(now - 1, 'HALT'), event(now, 'RUN_END')), 'halted'),
                        ((event(now - 1, 'LAUNCH_END', None, code=9),), 'interrupted'), ((event(now - 1, 'RUN_END', 'r0'),), 'unknown'),
                        ((event(now - 1, 'RUN_END'), event(now, 'RUN_START', 'r2', ranks=1, nodes=1)), 'unknown')):
        put_log(now, *more)
        found = ask()
        assert found['state'] == state, (more, found)
        assert (found['work_at_risk'] is None) == (state != 'unknown') or found['run'] == 'r2', found
    os.unlink('.scr/log')
    for reason, state in (('SCR_FINALIZE_CALLED', 'ended'), ('SCR_SIGNAL: SIGTERM came', 'halted'), ('mine', 'unknown')):
        put_halt({'ExitReason': value(reason)})
        found = ask()
        assert (found['state'], found['halt']) == (state, reason), found
    os.environ['SCR_CNTL_BASE'] = f'{os.getcwd()}/cntl'
    os.environ['SCR_USER_NAME'] = 'u'
    for path, offset, length in (('scr_run.lock', zlib.crc32(b'17\0' + os.getcwd().encode()), 1), ('scr.17/run.lock', 0, 0)):
        put(f'cntl/u/{path}', b'')
        os.chmod('cntl/u', 0o700)
        put_flush({1: ('c', 'CACHE')}, OWNER=value('u/scr.17'))
        with open(f'cntl/u/{path}', 'w') as file:
            fcntl.lockf(file, fcntl.LOCK_EX, length, offset)
            found = ask()
            assert (found['state'], found['process']) == ('running', os.getpid()), (path, found)
            if os.geteuid() == 0:  # of another user, who could pretend it
                os.chown('cntl/u', 65534, 65534)
                assert ask()['state'] == 'unknown'
                os.chown('cntl/u', 0, 0)
        assert ask()['state'] == 'unknown'
    # the lock of scr_run's log, which others may share; of an open file, which has no
    # process, as on another machine
    put('.scr/runs.log', b'')
    with open('.scr/runs.log') as file:
        fcntl.lockf(file, fcntl.LOCK_SH)
        found = ask()
        assert (found['state'], found['process']) == ('running', os.getpid()), found
        fcntl.lockf(file, fcntl.LOCK_UN)
        fcntl.fcntl(file, 37, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        found = ask()
        assert (found['state'], found['process']) == ('running', None) and 'another machine' in found['evidence'], found
    if os.geteuid() == 0:  # a reader who pretends
        os.chmod('.', 0o755)
        os.chmod('.scr', 0o755)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setuid(some_user().pw_uid)
            with open('.scr/runs.log') as file:
                fcntl.lockf(file, fcntl.LOCK_SH)
                os.write(writer, b'x')
                signal.pause()
        assert os.read(reader, 1) == b'x'
        found = ask()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert found['state'] == 'unknown', found


def test_scr_run():
    """While scr_run runs, also on simulated nodes, its log is locked."""
    put_program('program', '')
    put_launcher(f'"{COMMAND}" --json --prefix "{os.getcwd()}" >"{os.getcwd()}/saved"')
    os.mkdir('tmp')
    with subprocess.Popen([COMMAND.parent / 'scr_run', '--simulate', '2x1', 'program'], stderr=subprocess.DEVNULL,
                          env={**os.environ, 'TMPDIR': f'{os.getcwd()}/tmp'}) as process:
        assert process.wait(60) == 0
    found = json.loads(pathlib.Path('saved').read_text())
    assert (found['state'], found['process']) == ('running', process.pid), found
    assert ask()['state'] == 'unknown'


def test_flush_rate():
    """From two readings; holes of files that were created at full size do not count."""
    prefix = Prefix()
    prefix.enter('c1', 1, [{'f': b'x' * 8000000}], {'COMPLETE': value(0)})
    prefix.put_index()
    put_flush({1: ('c1', 'CACHE', 'FLUSHING')})
    stage = pathlib.Path('c1/.scr/stage/key')
    stage.mkdir(parents=True)
    stage.chmod(0o700)
    put(stage / 'stage.scr', b'r' * 5000)
    put(stage / '0.0', b'x' * 1000000)
    with open(stage / '1.0', 'wb') as file:
        file.truncate(4000000)
    found = ask()
    assert (found['flush_done'], found['flush_rate'], found['flush_seconds_left']) == (1000000, 0, None), found
    child = subprocess.Popen([COMMAND, '--json'], stdout=subprocess.PIPE)
    time.sleep(0.25)
    put(stage / '1.0', b'x' * 2000000)
    found = json.loads(child.communicate()[0])
    assert found['flush_done'] == 3000000 and 1e6 < found['flush_rate'] <= 4e6, found
    assert abs(found['flush_seconds_left'] - 5e6 / found['flush_rate']) < 0.1, found
    stage.chmod(0o755)  # of no flush: that is private
    assert ask()['flush_done'] == 0


def test_damaged_records():
    for name, identifier in ((FLUSH, 'FLUSH_FILE_UNUSABLE'), (HALT, 'HALT_FILE_UNREADABLE'), ('.scr/index.scr', 'INDEX_UNREADABLE')):
        put(name, b'no record')
        done = run()
        assert done.returncode == 1 and identifiers(done) == [identifier] and b'unreadable  ' in done.stdout, done
        os.unlink(name)
    os.mkdir('.scr/log')
    assert identifiers(run()) == ['LOG_UNREADABLE']
    put_flush({1: ('c\x1b[2J', 'CACHE')})
    assert b'\x1b' not in run().stdout


# ---- again and again ----

class Terminal:
    def __init__(self, *arguments, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(COMMAND, [COMMAND.name, *arguments], {**os.environ, 'TERM': 'xterm'})
        self.text = b''
        self.size(rows, columns)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def read(self, wanted, seconds=20):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not (wanted and wanted in self.text):
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.fd, 65536)
                except OSError:
                    break
        assert not wanted or wanted in self.text, (wanted, self.text)
        return self.text

    def forget(self):
        self.text = b''

    def echoes(self):
        return termios.tcgetattr(self.fd)[3] & termios.ECHO != 0

    def end(self):
        self.read(b'\x1b[?25h\x1b[?1049l')
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return status


def test_on_a_terminal():
    put_log(int(time.time()))
    for ending in ('\x03', 'q', signal.SIGTERM):
        terminal = Terminal('--watch', '--interval', '0.2')
        text = terminal.read(b'at risk')
        assert text.startswith(b'\x1b[?1049h\x1b[?25l') and b'\x1b[1m' in text, text
        assert not terminal.echoes()
        terminal.forget()
        terminal.read(b'at risk')  # again
        # narrow and low: no line is longer, and there are no more lines
        terminal.size(5, 30)
        terminal.read(b'\x1b[J')
        terminal.forget()
        frame = re.search(rb'\x1b\[H(.*?)\x1b\[J', terminal.read(b'\x1b[J'), re.DOTALL)[1]
        plain = re.sub(rb'\x1b\[[0-9;?]*[A-Za-z]', b'', frame).decode().split('\r\n')
        assert len(plain) == 5 and max(map(len, plain)) == 30, plain
        if isinstance(ending, str):
            os.write(terminal.fd, ending.encode())
        else:
            os.kill(terminal.pid, ending)
        terminal.read(b'\x1b[?25h\x1b[?1049l')
        assert terminal.end() == 0
    os.environ['NO_COLOR'] = '1'
    terminal = Terminal('--watch', '--count', '1')
    assert b'\x1b[1m' not in terminal.read(b'\x1b[?1049l') and terminal.end() == 0
    del os.environ['NO_COLOR']


def test_resize_at_once():
    """The screen is redrawn before the next reading."""
    put_log(int(time.time()))
    terminal = Terminal('-w', '-i', '600')
    terminal.read(b'at risk')
    time.sleep(0.2)
    terminal.forget()
    terminal.size(3, 40)
    terminal.read(b'\x1b[J', 5)
    os.write(terminal.fd, b'q')
    terminal.end()


def test_without_terminal():
    put_log(int(time.time()))
    done = run('--watch', '--count', '3', '--interval', '0.1')
    assert done.returncode == 0 and done.stdout.count(b'directory ') == 3 and b'\x1b' not in done.stdout and not done.stderr, done
    done = run('-w', '-j', '-c', '2', '-i', '0.1')
    assert [json.loads(line)['run'] for line in done.stdout.splitlines()] == ['r1', 'r1']


def test_usage():
    expect_output_fails([], ['--json'], ['--watch', '--count', '1'])
    expect_wrong_usage(['x'], ['--interval', '1'], ['--count', '2'], ['-w', '-i', '0'], ['-w', '-i', 'x'], ['-w', '-n'], ['-w', '-c', '-1'])
    expect(run('--prefix', 'no'), 1, '', ['DIRECTORY_UNUSABLE'])
    expect_documented(8, {'--prefix': 'x', '--interval': '1', '--count': '1'})
    expect_well_formed_page()


run_tests(globals())
