#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Long commands report their progress: by a bar on a terminal, which leaves nothing
behind, and by lines elsewhere."""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

from command import BUILD_PATH, COMMAND, run_tests
from prefix import Prefix, put_program, without_scr_variables

PIECE = 65536  # bytes that a verification reads at a time
BAR = re.compile(r'verify \[(=*)>? *\] (\d+)%, ([\d.]+) .B of 3\.9 MB, [\d.]+ .B/s, [\d.]+ s left')


def slow(below, milliseconds):
    """Each read below a directory takes that long."""
    return {'LD_PRELOAD': os.environ['TEST_FAULTS'], 'ASAN_OPTIONS': 'verify_asan_link_order=0', 'FAULTS_BELOW': str(below),
            'FAULTS_READING': '1', 'FAULTS_HOW': 'slow', 'FAULTS_AT': '1', 'FAULTS_STAYS': '1', 'FAULTS_NAP': str(milliseconds)}


def put_large(pieces=60, files=2):
    """Makes a dataset that is read in that number of pieces."""
    without_scr_variables()
    prefix = Prefix()
    data = [{f'f_{i}': bytes(PIECE * pieces // files) for i in range(files)}]
    prefix.put_dataset('large', 1, data)
    prefix.enter('large', 1, data)
    prefix.put_index()


class Terminal:
    """A command on a terminal, and the visible output."""

    def __init__(self, *words, columns=80, **variables):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(shutil.which(words[0], path=BUILD_PATH), words, {**os.environ, 'TERM': 'xterm', **variables})
        self.lines, self.at, self.bars, self.rest = [''], 0, [], ''
        self.size(columns)

    def size(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))

    def show(self, text):
        text = re.sub(r'\x1b\[\d*m', '', self.rest + text)
        end = re.search(r'\x1b(\[\d*)?$', text)
        self.rest = end[0] if end else ''
        for part in re.findall(r'\r|\n|\x1b\[K|[^\r\n\x1b]+', text[:len(text) - len(self.rest)]):
            line = self.lines[-1]
            if part == '\r':
                self.at = 0
            elif part == '\n':
                self.lines.append('')
            elif part == '\x1b[K':
                self.lines[-1] = line[:self.at]
            else:
                self.lines[-1] = line[:self.at] + part + line[self.at + len(part):]
                self.at += len(part)
                if '%' in part:
                    self.bars.append(part)

    def read(self, is_enough=lambda: False, seconds=30):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not is_enough():
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.show(os.read(self.fd, 65536).decode())
                except OSError:
                    return
        assert time.monotonic() < until, (self.lines, self.bars)

    def end(self):
        self.read()
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return status, [line for line in self.lines if line]


TABLE = [['NAME', 'RESULT', 'FILES', 'BYTES', 'DAMAGED', 'NO', 'CRC'], ['large', 'good', '2', '3932160', '0', '0']]


def test_bar():
    put_large()
    start = time.monotonic()
    terminal = Terminal('scr_index', '--verify', 'large', **slow(pathlib.Path('large').resolve(), 100))
    terminal.read(lambda: terminal.bars)
    assert time.monotonic() - start > 2, terminal.bars
    terminal.read(lambda: len(terminal.bars) > 8)
    found = [BAR.fullmatch(bar) for bar in terminal.bars]
    assert all(found) and all(len(bar) == 79 or len(one[1]) == 50 for bar, one in zip(terminal.bars, found)), terminal.bars
    shares = [int(one[2]) for one in found]
    assert shares == sorted(shares) and 0 < shares[0] < shares[-1], shares
    assert len(found[-1][1]) > len(found[0][1]), terminal.bars
    for columns in (40, 120):
        terminal.size(columns)
        time.sleep(0.6)
        terminal.read(lambda: False if select.select([terminal.fd], [], [], 0)[0] else True)
        terminal.bars.clear()
        terminal.read(lambda: terminal.bars)
        assert len(terminal.bars[-1]) == columns - 1 or columns > 79 + 30, terminal.bars
        assert ('[' in terminal.bars[-1]) == (columns > 40) and len(terminal.bars[-1]) < columns, terminal.bars
    status, lines = terminal.end()
    assert status == 0 and [line.split() for line in lines] == TABLE, lines


def test_interrupted():
    put_large()
    terminal = Terminal('scr_index', '--verify', **slow(pathlib.Path('large').resolve(), 100))
    terminal.read(lambda: terminal.bars)
    os.write(terminal.fd, b'\x03')
    status, lines = terminal.end()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == 2, status
    assert lines in ([], ['^C']), lines


def test_message_has_its_own_line():
    put_large(files=60)
    for i in (40, 50):
        pathlib.Path(f'large/f_{i}').write_bytes(b'x' * PIECE)
    terminal = Terminal('scr_index', '--verify', columns=200, **slow(pathlib.Path('large').resolve(), 100))
    status, lines = terminal.end()
    assert os.WEXITSTATUS(status) == 1 and terminal.bars, (status, terminal.bars)
    assert len(lines) == 4 and all(re.fullmatch(r'scr_index: large: rank 0: f_\d0: .*\[DATASET_FILE_BAD\]', line) for line in lines[:2]), lines


def test_quick_commands_say_nothing():
    put_large()
    terminal = Terminal('scr_index', '--verify', 'large')
    status, lines = terminal.end()
    assert status == 0 and not terminal.bars and [line.split() for line in lines] == TABLE, lines
    terminal = Terminal('scr_index', '--verify', 'large', **{**slow(pathlib.Path('large').resolve(), 60), 'TERM': 'dumb'})
    assert terminal.end()[0] == 0 and not terminal.bars, terminal.bars


def test_lines():
    put_large()
    done = subprocess.run([COMMAND, '--verify', '--json'], env={**os.environ, **slow(pathlib.Path('large').resolve(), 200)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith('{') and '\x1b' not in done.stderr, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and re.fullmatch(r'scr_index: verify: \d\d%, [\d.]+ MB of 3\.9 MB, \d+ kB/s, [\d.]+ s left \[COMMAND_PROGRESS\]', lines[0]), done


def test_extract():
    """Its lines and its bar do not disturb each other."""
    put_large()
    napping = slow(pathlib.Path('large').resolve(), 100)
    for options, first in ((['--verify'], 'verify'), (['--to', 'out'], 'extract')):
        terminal = Terminal('scr_extract', *options, 'large', 'f_0', 'f_1', **napping)
        status, lines = terminal.end()
        found = [BAR.fullmatch(bar.replace(first, 'verify', 1)) for bar in terminal.bars]
        assert len(found) > 8 and all(found) and all(bar.startswith(first) for bar in terminal.bars), terminal.bars
        shares = [int(one[2]) for one in found]
        assert shares == sorted(shares) and shares[0] < 60 < shares[-1], shares
        word = 'good' if first == 'verify' else 'extracted'
        assert status == 0 and lines[:2] == [f'f_0: {word}', f'f_1: {word}'] and len(lines) == 3, lines
    done = subprocess.run([shutil.which('scr_extract', path=BUILD_PATH), '-n', 'large'], env={**os.environ, **slow(pathlib.Path('large').resolve(), 200)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and re.fullmatch(r'scr_extract: verify: \d\d%, [\d.]+ MB of 3\.9 MB, .* \[COMMAND_PROGRESS\]\n', done.stderr), done
    terminal = Terminal('scr_extract', '--list', 'large')
    terminal.end()
    assert not terminal.bars, terminal.bars


def test_scavenge():
    """The copied bytes of the nodes, one of which has not reported its total yet."""
    without_scr_variables()
    os.environ.update(SCR_USER_NAME='me', SCR_JOB_ID='17', SCR_CNTL_BASE='/dev/null/none', SCR_NODE_NAME='n0', SCR_REMOTE='shell',
                      SCR_REMOTE_SHELL=f'{os.getcwd()}/bin/reach')
    os.mkdir('.scr')
    put_program('reach', 'case "$*" in *scr_inspect*) echo "4 1700000000000000 2 1 1 0 c4";; *) echo " 1000 3000"; [ "$1" = n2 ] || { sleep 4; echo " 3000 3000"; }; '
                'echo "dataset 4 (c4): copied";; esac')
    terminal = Terminal('scr_scavenge', '--id', '4', '--up', 'n[1-2]')
    status, lines = terminal.end()
    waiting = [bar for bar in terminal.bars if '] 100%, 6.0 kB of 6.0 kB, ' not in bar]  # on a busy machine its message comes after that
    assert waiting and all(re.fullmatch(r'round 1 \[=+> *\] 66%, 4\.0 kB of 6\.0 kB, [\d.]+ k?B/s, [\d.]+ s left', bar) for bar in waiting), terminal.bars
    assert os.WEXITSTATUS(status) == 1 and [re.match(r'round 1, . of 2: node n(.): dataset 4 \(c4\): copied$', line)[1] for line in lines[:2]] == ['2', '1'], lines
    done = Terminal('scr_scavenge', '--id', '4', '--up', 'n[1-2]', '--quiet')
    done.end()
    assert not done.bars, done.bars


def test_tables_fit():
    """A text in the last column that is too long for the terminal is below its row;
    nothing of it is lost."""
    wide = subprocess.run([shutil.which('scr_params', path=BUILD_PATH)], capture_output=True, text=True, check=True).stdout
    for columns in (80, 500):
        terminal = Terminal('scr_params', columns=columns)
        lines = [line for line in terminal.end()[1] if not line.startswith('\x1b')]
        assert all(len(line) <= columns for line in lines), (columns, max(lines, key=len))
        assert ' '.join(lines).split() == wide.split(), (columns, lines)
        assert (len(lines) > wide.count('\n')) == (columns < 500), (columns, lines)


run_tests(globals())
