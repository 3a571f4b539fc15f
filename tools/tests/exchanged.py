#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other users exchange a file or directory between a check and the use of the checked
object."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

from as_users import ATTACKER, BIN, VICTIM, command, give, prefix_of
from command import BUILD_PATH, run_tests
from prefix import HALT, put_tree, value


GROUP = 59998  # of both


def as_attacker(function):
    """Calls it in a process of the attacker; returns the id of the process."""
    process = os.fork()
    if process == 0:
        try:
            os.setgroups([GROUP])
            os.setgid(ATTACKER.pw_gid)
            os.setuid(ATTACKER.pw_uid)
            function()
        finally:
            os._exit(0)
    return process


@contextlib.contextmanager
def attacking(function):
    """Calls it meanwhile in a process of the attacker."""
    process = as_attacker(function)
    try:
        yield
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


def exchange(one, other):
    here, exchange_both = -100, 2
    assert ctypes.CDLL(None).renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange_both) == 0


def exchange_forever(one, other, pause=0.0001):
    while True:
        exchange(one, other)
        time.sleep(pause)


def answers(one, other, below, *words, **variables):
    """Returns the output of the victim's command for each of its calls below a directory
    before which the attacker exchanges the two."""
    mark, number = pathlib.Path('struck').absolute(), 0
    faults = {'LD_PRELOAD': os.environ['TEST_FAULTS'], 'ASAN_OPTIONS': 'verify_asan_link_order=0', 'FAULTS_BELOW': below, 'FAULTS_READING': 1,
              'FAULTS_HOW': 'stop', 'FAULTS_MARK': mark}
    while True:
        number += 1
        process = subprocess.Popen([shutil.which(words[0], path=BUILD_PATH), *words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, user=VICTIM.pw_uid, group=VICTIM.pw_gid, extra_groups=[GROUP],
                                   env={name: str(value) for name, value in {**os.environ, **variables, **faults, 'FAULTS_AT': number}.items()})
        while process.poll() is None and not mark.exists():
            time.sleep(0.002)
        if not mark.exists():
            process.communicate()
            return
        os.waitpid(as_attacker(lambda: exchange(one, other)), 0)
        process.send_signal(signal.SIGCONT)
        yield process.communicate(timeout=60)[0].decode(errors='replace')
        exchange(one, other)
        mark.unlink()


def test_configuration_is_exchanged():
    """In a sticky directory where others can create files: the attacker's file is
    exchanged for a link to one of the victim's."""
    folder = prefix_of(VICTIM, 'p')
    os.chown(folder, VICTIM.pw_uid, GROUP)
    folder.chmod(0o3775)
    folder.parent.chmod(0o1777)
    letter, mine, link = folder.parent / 'letter', folder / '.scrconf', folder / 'link'
    letter.write_text('SCR_CURRENT=chosen\n')
    give(letter, VICTIM, 0o600)
    mine.write_text('SCR_CURRENT=other\n')
    link.symlink_to(letter)
    for path in (mine, link):
        give(path, ATTACKER)
    found = list(answers(mine, link, folder, 'scr_params', '-p', folder, 'SCR_CURRENT'))
    assert found and not any('chosen' in text for text in found), found
    # a link of the victim's own is followed if no other user can put one there
    mine.unlink()
    mine.symlink_to('../letter')
    give(mine, VICTIM)
    for modes, is_read in (((0o3775, 0o1777), False), ((0o755, 0o1777), False), ((0o755, 0o755), True)):
        folder.chmod(modes[0])
        folder.parent.chmod(modes[1])
        assert (b'chosen' in command('scr_params', '-p', folder, 'SCR_CURRENT', user=VICTIM).stdout) == is_read, modes


def test_folder_of_a_configuration_is_exchanged():
    """The attacker's directory has a file of the victim's under the name of a
    configuration file, and the victim's has none."""
    above = prefix_of(ATTACKER, 'above')
    folders = [prefix_of(VICTIM, 'above/p'), prefix_of(ATTACKER, 'above/q')]
    (folders[1] / '.scrconf').write_text('SCR_CURRENT=chosen\n')
    give(folders[1] / '.scrconf', VICTIM, 0o644)
    with attacking(lambda: exchange_forever(*folders, pause=0.00015)):
        for _ in range(200):
            done = command('scr_params', '-p', above / 'p', 'SCR_CURRENT', user=VICTIM)
            assert b'chosen' not in done.stdout, done


def test_plugin_is_exchanged():
    """A plugin beside a program, in a directory where others can create files."""
    other = BIN.parent / 'libscr-core/tests/other_log_plugin.so'
    if not other.exists():
        return  # only the commands are built
    here, folder = pathlib.Path.cwd() / 'bin', prefix_of(VICTIM, 'p')
    folder.parent.chmod(0o1777)
    (here / 'scr').mkdir(parents=True)
    here.chmod(0o1777)
    give(here / 'scr', ATTACKER)
    shutil.copy(BIN / 'scr_log_event', here)
    give(here / 'scr_log_event', VICTIM, 0o755)
    link, mine = here / 'scr/scr_log_mariadb.so', here / 'scr/mine'
    link.symlink_to('/etc/passwd')
    shutil.copy(other, mine)
    for path in (mine, link):
        give(path, ATTACKER)
    with attacking(lambda: exchange_forever(link, mine, pause=0)):
        for _ in range(120):
            done = command(here / 'scr_log_event', '-p', folder, '--type', 'HALT', user=VICTIM, SCR_LOG_ENABLE='1', SCR_LOG_DB_ENABLE='1',
                           SCR_LOG_DB_NAME='x', SCR_LOG_SYSLOG_ENABLE='0')
            assert b'version 2' not in done.stderr and b'not logged' in done.stderr, done


def test_plugin_in_an_open_folder():
    """A file of the victim's that others may write to, or a link to it, beside a program;
    and one in a directory of the victim's."""
    other = BIN.parent / 'libscr-core/tests/other_log_plugin.so'
    if not other.exists():
        return  # only the commands are built
    here, folder = pathlib.Path.cwd() / 'bin', prefix_of(VICTIM, 'p')
    (here / 'scr').mkdir(parents=True)
    shutil.copy(BIN / 'scr_log_event', here)
    give(here / 'scr_log_event', VICTIM, 0o755)
    shutil.copy(other, here / 'scr/mine')
    plugin = here / 'scr/scr_log_mariadb.so'
    for mode, owner, file, link, is_loaded in ((0o1777, VICTIM, 0o644, VICTIM, False), (0o1777, VICTIM, 0o644, ATTACKER, False),
                                               (0o755, VICTIM, 0o664, VICTIM, False), (0o755, VICTIM, 0o644, ATTACKER, False),
                                               (0o755, VICTIM, 0o644, VICTIM, True)):
        plugin.unlink(missing_ok=True)
        plugin.symlink_to('mine')
        give(here, VICTIM, mode)
        give(plugin, link)
        give(here / 'scr', link, 0o755)
        os.chown(here / 'scr/mine', owner.pw_uid, GROUP)
        (here / 'scr/mine').chmod(file)
        done = command(here / 'scr_log_event', '-p', folder, '--type', 'HALT', user=VICTIM, SCR_LOG_ENABLE='1', SCR_LOG_DB_ENABLE='1',
                       SCR_LOG_DB_NAME='x', SCR_LOG_SYSLOG_ENABLE='0')
        assert b'not logged' in done.stderr and (b'version 2' in done.stderr) == is_loaded, (mode, file, done)


def test_folder_is_exchanged():
    """After root has become the victim, and before the directory is used, it becomes the
    attacker's."""
    above = prefix_of(ATTACKER, 'above')
    folders = [prefix_of(VICTIM, 'above/p'), prefix_of(ATTACKER, 'above/q')]
    (folders[1] / '.scr').chmod(0o777)
    with attacking(lambda: exchange_forever(*folders)):
        for _ in range(100):
            command('scr_halt', '--reason', 'x', above / 'p')
            for folder in folders:
                here = os.open(folder, os.O_RDONLY)
                try:
                    assert os.stat(HALT, dir_fd=here).st_uid == os.fstat(here).st_uid
                    os.unlink(HALT, dir_fd=here)
                except FileNotFoundError:
                    pass
                os.close(here)


def test_transfer_file_is_exchanged():
    """The same for a transfer file: the attacker's file names data that only the victim
    may read."""
    above = prefix_of(ATTACKER, 'above')
    folders = [prefix_of(VICTIM, 'above/p'), prefix_of(ATTACKER, 'above/q')]
    secret = prefix_of(VICTIM, 'own') / 'secret'
    secret.write_text('private')
    give(secret, VICTIM, 0o600)
    folders[1].chmod(0o777)
    with attacking(lambda: exchange_forever(*folders, pause=0.005)):
        for number in range(60):
            stolen = above / f'q/stolen{number}'
            for folder, user, source in zip(folders, (VICTIM, ATTACKER), ('/none', secret)):
                put_tree(above / 't', {'COMMAND': value('RUN'), 'FILES': {str(source): {'DESTINATION': value(stolen), 'SIZE': value(7)}}})
                give(above / 't', user, 0o666)
                put_at(folders, user, above / 't')
            command('scr_transfer', '--leave', above / 'p/t.scr')
            found = [path for path in above.rglob('stolen*')]
            assert not found, [(path, path.stat().st_uid) for path in found]


def put_list(path, user, command, **files):
    put_tree(path, {'COMMAND': value(command), 'FILES': {str(source): {'DESTINATION': value(target), 'SIZE': value(7)}
                                                         for source, target in files.values()}})
    give(path, user, 0o644)


def test_transfer_file_in_a_shared_folder():
    """The attacker renames a file that lists data only the victim may read to the
    victim's file, for root and for the victim."""
    own, shared, out = (prefix_of(VICTIM, name) for name in ('own', 'shared', 'out'))
    secret, stolen = own / 'secret', out / 'stolen'
    secret.write_text('private')
    give(secret, VICTIM, 0o600)
    out.chmod(0o777)

    def put(folder, ours):
        put_list(folder / 't.scr', VICTIM, 'EXIT', none=('/none', stolen))
        put_list(folder / 'e.scr', ours, 'RUN', secret=(secret, stolen))

    def refused(why, file, user):
        done = command('scr_transfer', '--leave', file, user=user, code=1)
        assert why in done.stderr.decode() and not stolen.exists(), done

    # others can rename files, and change directories later
    put(shared, ATTACKER)
    os.chown(shared, VICTIM.pw_uid, GROUP)
    for mode in (0o2770, 0o777):
        shared.chmod(mode)
        for user in (None, VICTIM):
            with attacking(lambda: exchange_forever(shared / 't.scr', shared / 'e.scr')):
                for _ in range(10):
                    command('scr_transfer', '--leave', shared / 't.scr', user=user)
                    assert not stolen.exists(), stolen.stat().st_uid
    put(shared, ATTACKER)
    refused('others can rename files', shared / 't.scr', VICTIM)
    refused('others can rename files', shared / 't.scr', None)
    # the file is checked each time: the directory is opened to others while the transfer
    # is supervised
    shared.chmod(0o755)
    put_list(shared / 't.scr', VICTIM, 'STOP', none=('/none', stolen))
    process = subprocess.Popen([shutil.which('scr_transfer', path=BUILD_PATH), '-i', '0.05', shared / 't.scr'], stderr=subprocess.PIPE)
    time.sleep(0.3)
    shared.chmod(0o777)
    os.waitpid(as_attacker(lambda: os.rename(shared / 'e.scr', shared / 't.scr')), 0)
    assert b'others can rename files' in process.communicate(timeout=60)[1] and process.returncode == 1 and not stolen.exists()
    # files that are not the victim's alone
    shared.chmod(0o1777)
    put(shared, ATTACKER)
    refused(f'belongs to user {ATTACKER.pw_uid}', shared / 'e.scr', VICTIM)
    put(shared, VICTIM)
    (shared / 'e.scr').chmod(0o666)
    refused('can be written by others', shared / 'e.scr', VICTIM)
    (shared / 'e.scr').chmod(0o644)
    os.link(shared / 'e.scr', shared / 'second')
    refused('another name', shared / 'e.scr', VICTIM)
    (shared / 'second').unlink()
    command('scr_transfer', '--leave', shared / 'e.scr', user=VICTIM, code=0)
    assert stolen.exists()


def put_at(folders, user, file):
    """Moves the file into the directory that currently belongs to the user."""
    for folder in folders * 100:
        here = os.open(folder, os.O_RDONLY)
        ours = os.fstat(here).st_uid == user.pw_uid
        if ours:
            os.rename(file, 't.scr', dst_dir_fd=here)
        os.close(here)
        if ours:
            return


run_tests(globals())
