#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_halt: every condition is set, listed and removed; nothing is lost, and invalid
values are not used."""
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import pty
import pwd
import signal
import struct
import subprocess
import time

from command import (COMMAND, expect, expect_documented, expect_ends_unread, expect_output_fails, expect_well_formed_page,
                     expect_wrong_usage, image, run, run_closed, run_tests, run_unread)
from prefix import HALT, damage, expect_owner_kept, give_all, put_halt, some_user, without_scr_variables

os.environ['TZ'] = 'UTC'
without_scr_variables()


def listed(*where):
    return json.loads(run('--list', '--json', *where).stdout)


NOTHING = {'reason': None, 'checkpoints_left': None, 'exit_after': None, 'exit_before': None, 'halt_seconds': None}


def test_each_condition():
    """Each condition is set, by long and short option, with one dash and two, changed,
    and removed."""
    for options, unset, key, value in (
            (['--checkpoints', '7'], '--unset-checkpoints', 'checkpoints_left', 7), (['-c', '0'], '-C', 'checkpoints_left', 0),
            (['-checkpoints=3'], '-unset-checkpoints', 'checkpoints_left', 3),
            (['--after', '1298937600'], '--unset-after', 'exit_after', 1298937600),
            (['--before', '2011-02-28T17:20'], '--unset-before', 'exit_before', 1298913600),
            (['--seconds', '20min'], '--unset-seconds', 'halt_seconds', 1200),
            (['--reason', 'because I say so'], '--unset-reason', 'reason', 'because I say so')):
        done = run(*options, '--json')
        assert done.returncode == 0 and json.loads(done.stdout) == {**NOTHING, key: value}, done
        assert listed() == {**NOTHING, key: value}
        expect(run(unset), 0, 'no halt conditions\n')
        assert listed() == NOTHING


def test_together():
    expect(run('--checkpoints', '7', '--after', '1298937600', '--before', '1298944800', '--seconds', '1200', '-T', 'so'), 0,
           'ExitReason       so\nCheckpointsLeft  7\nExitAfter        2011-03-01T00:00:00+00:00\n'
           'ExitBefore       2011-03-01T02:00:00+00:00\nHaltSeconds      1200\n', ['HALT_IN_FORCE', ': so; ', f'scr_halt --remove {os.getcwd()},'])
    before = pathlib.Path(HALT).read_bytes()
    assert run('--list').returncode == 0 and run('--checkpoints', '7').returncode == 0
    assert pathlib.Path(HALT).read_bytes() == before
    expect(run('--unset-reason', '-C', '--before', '1298944801', '--unset-seconds'), 0,
           'ExitAfter        2011-03-01T00:00:00+00:00\nExitBefore       2011-03-01T02:00:01+00:00\n', ['HALT_IN_FORCE', 'ExitAfter', 'scr_halt --remove '])
    expect(run('--remove'), 0, 'no halt conditions\n')
    assert not os.path.exists(HALT)
    expect(run('--remove'), 0, 'no halt conditions\n')


def test_recorded_by_the_run():
    """A reason that SCR recorded at the end of a run does not stop further runs."""
    put_halt({'ExitReason': {'SCR_FINALIZE_CALLED': {}}})
    expect(run('--list'), 0, 'ExitReason       SCR_FINALIZE_CALLED\n', ['HALT_RECORDED'])
    put_halt({'ExitReason': {'SCR_FINALIZE_CALLED': {}}, 'CheckpointsLeft': {'0': {}}})
    done = run('--list')
    assert b' scr_halt --remove ' in done.stderr and done.stderr.endswith(b' [HALT_IN_FORCE]\n'), done


def test_immediate():
    assert run('--immediate').returncode == 0 and listed()['reason'].startswith('JOB_HALTED by ')
    run('-immediate', '--reason', 'power')
    assert listed()['reason'] == 'power'
    # scr_run ends the program then
    assert b'ExitNow' in open(HALT, 'rb').read()
    run('--unset-reason')
    assert b'ExitNow' not in open(HALT, 'rb').read()
    run('--reason', 'power')
    assert b'ExitNow' not in open(HALT, 'rb').read()


def test_alone():
    """As in SCR 3: without a condition the run ends at its next chance."""
    os.mkdir('one')
    for where in ([], ['one'], ['-v', '--prefix', 'one']):
        done = run(*where)
        assert done.returncode == 0 and done.stdout.startswith(b'ExitReason       JOB_HALTED by ') and b'HALT_IN_FORCE' in done.stderr, done
        assert listed(*where[-1:])['reason'].startswith('JOB_HALTED by ')
        assert b'ExitNow' not in pathlib.Path(*where[-1:], HALT).read_bytes()
        assert run('-r', *where).returncode == 0 and listed(*where[-1:]) == NOTHING


def test_several_directories():
    """As in SCR 3, each directory is changed. An error does not keep the others from
    being changed."""
    for folder in ('one', 'two', 'three'):
        os.mkdir(folder)
    expect(run('-c', '4', 'one', 'two'), 0, 'one:\nCheckpointsLeft  4\ntwo:\nCheckpointsLeft  4\n',
           [f'{os.getcwd()}/one: no run has used this prefix directory', f'{os.getcwd()}/two: no run', 'PREFIX_UNUSED'])
    expect(run('-c', '4', 'one'), 0, 'CheckpointsLeft  4\n')
    done = run('-c', '5', 'one', 'no', 'three')
    assert done.returncode == 1 and b'DIRECTORY_UNUSABLE' in done.stderr, done
    assert [listed(folder)['checkpoints_left'] for folder in ('one', 'two', 'three')] == [5, 4, 5]
    done = run('--list', '--json', 'one', 'two')
    assert [json.loads(line)['checkpoints_left'] for line in done.stdout.splitlines()] == [5, 4], done
    # earlier versions took "-r one" as a reason, in the current directory
    assert run('-r', 'one', 'two').returncode == 0 and not os.path.exists('.scr')
    assert not os.path.exists(f'one/{HALT}') and not os.path.exists(f'two/{HALT}') and os.path.exists(f'three/{HALT}')
    if os.geteuid() == 0:
        accounts = [account for account in pwd.getpwall() if account.pw_uid][:2]
        for folder, account in zip(('one', 'two'), accounts):
            for path in (folder, f'{folder}/.scr', f'{folder}/.scr/lock'):
                os.chown(path, account.pw_uid, account.pw_gid)
        os.chmod('.', 0o755)
        assert run('-c', '6', 'one', 'two').returncode == 0
        assert [os.stat(f'{folder}/{HALT}').st_uid for folder in ('one', 'two')] == [account.pw_uid for account in accounts]


def processes_with(folder):
    """Ids of processes that have the directory on their command line."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            if str(folder).encode() in path.read_bytes().split(b'\0'):
                found.append(int(path.parent.name))
    return found


def test_one_of_several_is_slow():
    """Its lock is held. The next directory has its turn, and a signal that ends the
    command ends all of its processes."""
    slow, other = (pathlib.Path(folder).absolute() for folder in ('slow', 'other'))
    for folder in (slow, other):
        folder.mkdir()
        run('-c', '4', folder)
    if os.geteuid() == 0:
        for path in (slow, slow / '.scr', slow / HALT, slow / '.scr/lock'):
            os.chown(path, some_user().pw_uid, some_user().pw_gid)
        os.chmod('.', 0o755)
    with open(slow / '.scr/lock', 'r+b') as lock:
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        with subprocess.Popen([COMMAND, '-c', '5', slow, other], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as halt:
            end = time.monotonic() + 20
            while listed(other)['checkpoints_left'] != 5:
                assert time.monotonic() < end
                time.sleep(0.1)
            assert len(processes_with(slow)) > 1 and halt.poll() is None
            halt.terminate()
            assert b'[HALT_SLOW]' in halt.stderr.read() and halt.wait() == -signal.SIGTERM
            while processes_with(slow):
                assert time.monotonic() < end
                time.sleep(0.1)
    assert listed(slow)['checkpoints_left'] == 4


def test_by_root():
    expect_owner_kept(['--reason', 'maintenance'], ['--unset-reason'], ['--remove'], ['--checkpoints', '3'])
    if os.geteuid() != 0:
        return
    give_all(some_user().pw_uid, some_user().pw_gid)
    before = pathlib.Path(HALT).read_bytes()
    for missing in ('-setuid', '-setgid'):
        done = run('--bounding-set', missing, COMMAND, '--remove', command='setpriv')
        expect(done, 1, '', ['OWNER_CHANGE_FAILED', f' {some_user().pw_name}', 'Operation not permitted'])
    assert pathlib.Path(HALT).read_bytes() == before
    expect(run('--list'), 0, 'CheckpointsLeft  3\n')


def test_nothing_is_made_for_nothing():
    for options in (['--list'], ['--unset-reason'], ['--remove']):
        expect(run(*options), 0, 'no halt conditions\n', ['PREFIX_UNUSED', os.getcwd(), '.scr'])
    assert not os.listdir('.')


def test_times():
    def seconds(text, zone='UTC'):
        os.environ['TZ'] = zone
        done = run('--after', text, '--json')
        os.environ['TZ'] = 'UTC'
        assert done.returncode == 0, (text, done)
        return json.loads(done.stdout)['exit_after']

    def of(*fields):
        return int(datetime.datetime(*fields, tzinfo=datetime.timezone.utc).timestamp())

    assert seconds('2026-11-22') == of(2026, 11, 22)
    assert seconds('2026-11-22 18:30') == seconds('2026-11-22T18:30:00') == of(2026, 11, 22, 18, 30)
    assert seconds('2026-11-22T18:30:00Z', 'EST5') == seconds('2026-11-22T20:30+02:00', 'EST5') == seconds('2026-11-22T14:00:00-0430') == of(2026, 11, 22, 18, 30)
    assert seconds('2026-11-22T12:00am') == of(2026, 11, 22) and seconds('2026-11-22T12:05PM') == of(2026, 11, 22, 12, 5)
    assert seconds('2024-02-29T23:59:59') == of(2024, 2, 29, 23, 59, 59)
    assert seconds('2026-07-01T12:00', 'CET-1CEST,M3.5.0,M10.5.0') == of(2026, 7, 1, 10)
    for text in ('18:30', '6:30pm', '00:00', '23:59:59', '12:00am', '8pm', '12am', '11am'):
        now = time.time()
        found = seconds(text)
        assert now - 1 <= found <= time.time() + 86400, text
        hour = {'18:30': '18:30:00', '6:30pm': '18:30:00', '00:00': '00:00:00', '12:00am': '00:00:00', '8pm': '20:00:00', '12am': '00:00:00', '11am': '11:00:00'}.get(text, text)
        assert time.strftime('%H:%M:%S', time.gmtime(found)) == hour, text
    midnight = datetime.datetime.fromtimestamp(time.time(), datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    today = int(midnight.timestamp())
    assert seconds('12:00pm today') == today + 43200 and seconds('8:30am tomorrow') == today + 86400 + 30600
    now = time.time()
    assert now + 5399 <= seconds('+90min') <= time.time() + 5400


def test_where():
    for folder in ('one', 'two', 'three'):
        os.mkdir(folder)
    os.symlink('two', 'link')
    for where, folder in ((['one'], 'one'), (['--dir', 'link'], 'two'), ([], 'three')):
        if not where:
            os.environ['SCR_PREFIX'] = 'three'
        assert run('-c', '1', *where).returncode == 0
        assert sorted(os.listdir(f'{folder}/.scr')) == ['halt.scr', 'lock'], os.listdir(folder)
    del os.environ['SCR_PREFIX']
    pathlib.Path('scr.yaml').write_text(f'SCR_PREFIX: {os.getcwd()}/two\n')
    assert listed()['checkpoints_left'] == 1
    pathlib.Path('scr.yaml').write_text('SCR_PREFIXX: x\n')
    expect(run('--list'), 1, '', ['CONFIG_MISTAKE', 'PREFIX_UNCERTAIN', 'scr.yaml:1:1: ', 'SCR_PREFIXX'])
    expect(run('--list', '--dir', '.'), 0, 'no halt conditions\n', ['PREFIX_UNUSED', '.scr'])
    expect(run('--list', 'no'), 1, '', ['DIRECTORY_UNUSABLE', '/no: No such file'])
    expect(run('--list', 'scr.yaml'), 1, '', ['DIRECTORY_UNUSABLE', 'Not a directory'])
    expect(run('--list', ''), 1, '', ['DIRECTORY_UNUSABLE'])


def test_damaged():
    """An unreadable file is not changed, but can be removed."""
    for change in damage(lambda: put_halt({'CheckpointsLeft': {'7': {}}})):
        before = pathlib.Path(HALT).read_bytes()
        for options in (['--list'], ['-c', '3'], ['-R']):
            expect(run(*options), 1, '', ['HALT_FILE_UNREADABLE', 'HALT_REMEDY', 'scr_halt --remove ', '.scr/halt.scr'])
        assert pathlib.Path(HALT).read_bytes() == before, change
        assert run('--remove').returncode == 0 and listed() == NOTHING


def test_links_and_folders():
    os.mkdir('.scr')
    pathlib.Path('outside').write_bytes(image({'CheckpointsLeft': {'7': {}}}))
    os.symlink('../outside', HALT)
    before = pathlib.Path('outside').read_bytes()
    expect(run('--list'), 1, '', ['HALT_FILE_UNREADABLE', HALT])
    expect(run('-c', '3'), 1, '', ['HALT_FILE_UNREADABLE', HALT])
    assert pathlib.Path('outside').read_bytes() == before
    os.unlink(HALT)
    os.mkdir(HALT)
    expect(run('-c', '3'), 1, '', ['HALT_FILE_UNREADABLE', HALT])
    expect(run('--remove'), 1, '', ['HALT_FILE_UNREADABLE', HALT])


def test_hostile_contents():
    """Control characters are quoted; a value that is not a number has no effect and is
    reported."""
    put_halt({'ExitReason': {'a\x1b[2J\u202eb\n': {}, 'second': {}}, 'CheckpointsLeft': {'many': {}},
              'ExitAfter': {'9223372036854775807': {}}, 'ExitBefore': {'9223372036854775808': {}},
              'HaltSeconds': {}, 'Else': {'x': {}}})
    expect(run('--list'), 0,
           'ExitReason       a\\x1b[2J\\xe2\\x80\\xaeb\\n\n'
           'CheckpointsLeft  many (not a number: without effect)\n'
           'ExitAfter        9223372036854775807\n'
           'ExitBefore       9223372036854775808 (not a number: without effect)\n', ['HALT_IN_FORCE', 'a?[2J\\xe2\\x80\\xaeb?; '])
    assert listed() == {**NOTHING, 'reason': 'a\x1b[2J\u202eb\n', 'exit_after': 9223372036854775807}
    assert b'\x1b' not in run('--list', '--json').stdout
    assert run('-c', '5', '--unset-reason').returncode == 0
    assert {key: value for key, value in listed().items() if value is not None} == {
        'checkpoints_left': 5, 'exit_after': 9223372036854775807}


def test_many_at_once():
    """Commands change different conditions in parallel: each is in force afterwards."""
    for _ in range(5):
        calls = [['-c', '5'], ['-a', '1298937600'], ['-b', '1298944800'], ['-s', '60'], ['-T', 'so']]
        processes = [subprocess.Popen([COMMAND, *call], stdout=subprocess.DEVNULL) for call in calls]
        assert all([process.wait() == 0 for process in processes])
        assert listed() == {'reason': 'so', 'checkpoints_left': 5, 'exit_after': 1298937600, 'exit_before': 1298944800,
                            'halt_seconds': 60}
        assert run('--remove').returncode == 0


def test_colours():
    """Colors appear only on a terminal, and only if the user allows them."""
    put_halt({'CheckpointsLeft': {'7': {}}})
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        print(f'test_colours is left out: {error}')
        return

    def shown(**variables):
        ours, theirs = pty.openpty()
        subprocess.run([COMMAND, '--list'], stdout=theirs, check=True, timeout=60,
                       env={**os.environ, 'TERM': 'xterm', **variables})
        os.close(theirs)
        text = os.read(ours, 4096)
        os.close(ours)
        return text.decode()

    assert '\x1b[1mCheckpointsLeft\x1b[0m' in shown() and '7' in shown()
    assert '\x1b' not in shown(NO_COLOR='1') + shown(TERM='dumb') and b'\x1b' not in run('--list').stdout


def test_disk_and_rights():
    os.mkdir('.scr', 0o500)
    if os.geteuid():
        expect(run('-c', '3'), 1, '', ['HALT_FILE_UNREADABLE', 'Permission denied'])
    expect_output_fails(['--list'], ['--list', '--json'])
    expect_ends_unread(['--list'])
    if not os.geteuid():
        os.chmod('.scr', 0o700)
        assert run_unread('-c', '3').returncode == 0 and b'"checkpoints_left": 3,' in run('--list', '--json').stdout
        assert run_closed('-c', '4').returncode == 1 and b'"checkpoints_left": 4,' in run('--list', '--json').stdout
        assert run_unread('--unset-checkpoints').returncode == 0 and b'no halt conditions' in run('--list').stdout


def test_usage():
    expect_wrong_usage(['--json'], ['--dir', 'x', 'y', '--list'], ['--prefix', 'x', 'y', 'z'], ['-c', '-1'], ['-c', 'x'], ['-c', ''],
                       ['-c', '1000000001'], ['--seconds', '-5'], ['--seconds', '5 apples'], ['--reason', ''],
                       ['--reason', 'x' * 1024], ['-c', '1', '-C'], ['-T', 'x', '-R'], ['-i', '-R'], ['-r', '-c', '1'],
                       ['-r', '-i'], ['--after'], ['-l', '-c', '3'], ['-l', '-i'],
                       ['-l', '-r'], ['-l', '-C'], ['--never'], ['--unset', '-l'])
    for text in ('', 'soon', '25:00', '12:60', '13:00pm', '0:00am', '1:2', '2026-13-01', '2026-02-30', '2026-1-1', '12345678',
                 '99999999999999999999', '+', '+soon', '-5', '2026-11-22T', '2026-11-22T12', '2026-11-22+01:00', '2026-11-22T12:00+1:00', '2026-11-22T12:00+01:0', '2026-11-22T+01:00', '18:30x', '18:30:61', '18:30 tomorow', '25:00 today', 'tomorrow', ' today'):
        expect_wrong_usage(['--after=' + text], ['--before', text])
    assert not os.listdir('.')
    expect_documented(19, {'--dir': 'x', '--prefix': 'x', '--checkpoints': '1', '--after': '+1', '--before': '+1', '--seconds': '1',
                           '--reason': 'x'})
    expect_well_formed_page()


run_tests(globals())
