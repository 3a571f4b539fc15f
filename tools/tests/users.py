#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Attacks by other users: effects of their prefix directory, or of their files in a
shared one, on commands of root and of another user. Attacker and victim are accounts that
every system has; skipped unless the test is run by root."""
import ctypes
import os
import pathlib
import pwd
import pty
import resource
import select
import shutil
import stat
import struct
import subprocess
import sys
import time

from as_users import ATTACKER, BIN, VICTIM, command, give, prefix_of, put_spy, told
from command import BUILD_PATH, run_tests
from prefix import HALT, put_halt, put_tree, value

EVERY = [('scr_check_node', '-p'), ('scr_list_down_nodes', '--prefix'), ('scr_prerun', '-p'), ('scr_postrun', '-p')]


def test_programs_of_a_prefix_folder():
    """They run as the owner with the owner's groups, never as root."""
    here = pathlib.Path.cwd()
    seen = put_spy(here / 'tests', ATTACKER)
    folder = prefix_of(ATTACKER, 'p', f'SCR_NODE_TESTS={here}/tests\nSCR_SITE_HOOKS={here}/tests\n'
                       f'SCR_REMOTE=shell\nSCR_REMOTE_SHELL={here}/tests/spy\nSCR_CNTL_BASE={here}/tests\nSCR_CACHE_BASE={here}/tests\n')
    for name, option in EVERY:
        command(name, option, folder, SCR_NODELIST='localhost')
    lines = seen.read_text().split('\n')
    assert set(lines[::2]) - {''} == {str(ATTACKER.pw_uid)} and '0' not in ' '.join(lines[1::2]).split(), lines


def refused(folder, *words, name='scr_halt', **how):
    done = command(name, *(['--list'] if name == 'scr_halt' else ['-p']), folder, code=1, **how)
    for word in words:
        assert word in told(done) and ('[DIRECTORY_UNUSABLE]' in told(done) or '[OWNER_UNKNOWN]' in told(done)), done


def test_whom_root_becomes():
    folder = prefix_of(ATTACKER, 'p')
    other = prefix_of(VICTIM, 'v')
    (folder / '.scr').rmdir()
    (folder / '.scr').symlink_to(other / '.scr')
    refused(folder, f'belongs to user {ATTACKER.pw_uid}', '.scr in it')
    give(folder / '.scr', ATTACKER)
    refused(folder, '.scr in it is not a directory')
    (folder / '.scr').unlink()
    (folder / '.scr').mkdir()
    give(folder / '.scr', VICTIM)
    refused(folder, f'belongs to user {ATTACKER.pw_uid}, but .scr in it to user {VICTIM.pw_uid}')
    # a project directory of root, where members of a group may write
    give(folder / '.scr', ATTACKER)
    os.chown(folder, 0, ATTACKER.pw_gid)
    os.chmod(folder, 0o2775)
    refused(folder, 'belongs to user 0, but .scr in it')
    os.chown(folder / '.scr', 0, 0)
    refused(folder, 'belongs to root, but others may write there')
    # a directory of root alone, whose name another user can give to another one
    os.chmod(folder, 0o755)
    command('scr_halt', '--list', folder, code=0)
    for mode in (0o777, 0o2775, 0o1777):
        (folder / '.scr').chmod(mode)
        refused(folder, 'belongs to root, but others may write to .scr in it')
    (folder / '.scr').chmod(0o755)
    above = pathlib.Path('above').absolute()
    above.mkdir()
    folder.rename(above / 'p')
    give(above, ATTACKER, 0o755)
    refused(above / 'p', 'belongs to root, but others can put another directory in its place')
    refused('.', 'belongs to root, but others can put another directory in its place', cwd=above / 'p')
    above.rename(folder.parent / 'w')
    above = folder.parent / 'w'
    os.chown(above, 0, 0)
    above.chmod(0o1777)
    command('scr_halt', '--list', above / 'p', code=0)
    (above / 'p').rename(folder)
    # an owner without an account
    os.chown(folder, 54321, 54321)
    os.chown(folder / '.scr', 54321, 54321)
    refused(folder, 'belongs to user 54321, whom the user database')


def test_links_on_the_way():
    """A link of root is followed, as sites have them; a link of a user is not."""
    folder = prefix_of(VICTIM, 'v')
    ways = pathlib.Path('ways')
    ways.mkdir()
    (ways / 'p').symlink_to(folder)
    command('scr_halt', '--reason', 'x', ways / 'p', code=0)
    assert (folder / HALT).stat().st_uid == VICTIM.pw_uid
    (folder / HALT).unlink()
    give(ways / 'p', ATTACKER)
    refused((ways / 'p').absolute(), f'p on the way to it is a link that user {ATTACKER.pw_uid} can change')
    os.chown(ways / 'p', 0, 0, follow_symlinks=False)
    give(ways, ATTACKER)
    refused((ways / 'p').absolute(), 'p on the way to it is a link')
    assert not (folder / HALT).exists()


def in_user_files(user, owner, source='user-files'):
    """Returns the output of root's command in a file system of the user, in which
    everything is the owner's."""
    folder = pathlib.Path.cwd() / 'mounted'
    folder.parent.chmod(0o755)
    folder.mkdir(exist_ok=True)
    script = f"""mount --make-rprivate / && {sys.executable} {pathlib.Path(__file__).parents[2]}/tests/support/user_files.py {folder} {user} {owner} || exit 77
        {BIN}/scr_halt --list {folder}; code=$?; umount -l {folder}; exit $code"""
    done = subprocess.run(['unshare', '-m', 'sh', '-c', script], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, text=True,
                          env={**os.environ, 'LC_ALL': 'C', 'MOUNT_SOURCE': source})
    if done.returncode == 77 or 'unshare' in done.stderr:
        print(f'skipped: no file systems of users here: {done.stderr}')
        return None
    return done


def test_file_system_of_a_user():
    """It shows an owner that the user chose: root becomes only the user who mounted it,
    or an owner on a file system of root."""
    for source in ('user-files', 'user_id=0', ' - x,user_id=0'):
        done = in_user_files(ATTACKER.pw_uid, VICTIM.pw_uid, source)
        if not done:
            return
        assert done.returncode == 1 and f'belongs to user {VICTIM.pw_uid} according to a file system that user {ATTACKER.pw_uid} mounted' in done.stderr, done
    for user, owner in ((ATTACKER, ATTACKER), (pwd.getpwuid(0), VICTIM)):
        done = in_user_files(user.pw_uid, owner.pw_uid)
        assert done.returncode == 0, done


def raise_priority():
    """Raises the priority as far as this machine allows."""
    for change in (lambda: pathlib.Path('/proc/self/oom_score_adj').write_text('-500'), lambda: os.nice(-5),
                   lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))):
        try:
            change()
        except OSError:
            pass


def test_priority_stays_with_root():
    """Root's priority for processors and under memory pressure is not inherited."""
    folder = put_hook('cat /proc/self/oom_score_adj >&2; nice >&2; chrt -p $$ >&2')
    done = subprocess.run([BIN / 'scr_prerun', '-p', folder], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          env={**os.environ, 'SCR_NODELIST': 'localhost', 'LC_ALL': 'C'}, preexec_fn=raise_priority)
    assert all(int(number) >= 0 for number in done.stderr.split()[:2]) and b'SCHED_OTHER' in done.stderr, done


def test_terminal():
    """Programs that run for the owner have no terminal of root, into which they could
    type."""
    here = pathlib.Path.cwd()
    (here / 'tests').mkdir()
    seen = here / 'tests/seen'
    (here / 'tests/spy').write_text(f'#!/bin/sh\nif (: </dev/tty) 2>/dev/null; then echo terminal; else echo none; fi >{seen}\n')
    for path in (here / 'tests', here / 'tests/spy'):
        give(path, ATTACKER, 0o755)
    folder = prefix_of(ATTACKER, 'p', f'SCR_NODE_TESTS={here}/tests\nSCR_CNTL_BASE={here}/tests\nSCR_CACHE_BASE={here}/tests\n')
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(BIN / 'scr_check_node', ['scr_check_node', '-p', str(folder)])
    said = b''
    while select.select([terminal], [], [], 60)[0]:
        try:
            said += os.read(terminal, 1000)
        except OSError:
            break
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert status == 0 and b'PASS' in said and seen.read_text() == 'none\n', (status, said)


def put_hook(text):
    """Makes a prefix directory with a hook of its owner."""
    folder = prefix_of(ATTACKER, 'p', f'SCR_SITE_HOOKS={pathlib.Path.cwd()}/p/hooks\n')
    (folder / 'hooks').mkdir()
    (folder / 'hooks/prerun').write_text(f'#!/bin/sh\n{text}\n')
    for path in (folder / 'hooks', folder / 'hooks/prerun'):
        give(path, ATTACKER, 0o755)
    return folder


def test_terminal_stays_with_root():
    """A background process of the owner's program gets no input of root; its output moves
    no cursor."""
    folder = put_hook('printf "\\033]0;title\\007told\\233x \\303\\233\\n" >&2\n(setsid sh -c "read line <&2; echo got \\$line" >p/stolen) &\nsleep 1')
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(SCR_NODELIST='localhost', LC_ALL='C.UTF-8')
        code = subprocess.run([BIN / 'scr_prerun', '-p', folder], timeout=60).returncode
        print(f'code {code},', 'root got', input(), flush=True)
        os._exit(0)
    said, typed = b'', 0
    while select.select([terminal], [], [], 20)[0]:
        try:
            said += os.read(terminal, 1000)
        except OSError:
            break
        if b'told' in said and not typed:
            typed = os.write(terminal, b'typed\n')
    os.close(terminal)
    os.waitpid(pid, 0)
    assert b'?]0;title?told' in said and b'\033' not in said and 'x \u00db\r\n'.encode() in said, said
    assert b'code 0, root got typed' in said, said


def test_terminal_with_utf8():
    """Some terminals interpret each byte of invalid characters: only valid characters are
    printed, also if one arrives in pieces."""
    folder = put_hook("printf '\\340\\2332J \\340\\202\\2332J \\342\\233X \\302\\233 \\360\\237\\230' >&2; sleep 0.3; printf '\\200 \\342\\202\\254 end\\n\\342\\233' >&2")
    ours, theirs = pty.openpty()
    subprocess.run([BIN / 'scr_prerun', '-p', folder], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, timeout=60,
                   env={**os.environ, 'LC_ALL': 'C.UTF-8', 'SCR_NODELIST': 'localhost'}, check=True)
    said = os.read(ours, 10000).decode()
    os.close(theirs)
    os.close(ours)
    assert not any(0x7f <= ord(c) < 0xa0 for c in said) and '\U0001f600 \u20ac end\r\n' in said, said


def test_terminal_without_utf8():
    """It treats the bytes 0x80 to 0x9f as controls, also inside characters of names."""
    folder = prefix_of(ATTACKER, 'p')
    command('scr_halt', '--reason', '\u00db\u009b', folder, code=0)
    for user in (None, ATTACKER):
        for locale, shown in (('C', rb'\xc3\x9b'), ('C.UTF-8', b'\xc3\x9b')):
            ours, theirs = pty.openpty()
            who = {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []} if user else {}
            subprocess.run([BIN / 'scr_halt', '--list', folder], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, timeout=60,
                           env={**os.environ, 'LC_ALL': locale}, check=True, **who)
            said = os.read(ours, 10000)
            os.close(theirs)
            os.close(ours)
            assert (shown in said or locale == 'C' and not user and b'\xc3?' in said) and b'\xc2\x9b' not in said, (user, locale, said)
            assert locale != 'C' or not [byte for byte in said if 0x80 <= byte < 0xa0], (user, said)


def test_tables_without_utf8():
    """The same for users' commands that print tables, JSON, and trees."""
    folder = prefix_of(VICTIM, 'p')
    command('scr_halt', '--reason', '\u00db', folder, code=0)
    for words in (('scr_halt', '--list', folder), ('scr_halt', '--list', '--json', folder), ('kvtree_print', folder / HALT),
                  ('kvtree_print', '--json', folder / HALT)):
        ours, theirs = pty.openpty()
        subprocess.run([shutil.which(words[0], path=BUILD_PATH), *words[1:]], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
                       timeout=60, env={**os.environ, 'LC_ALL': 'C'}, check=True, user=VICTIM.pw_uid, group=VICTIM.pw_gid, extra_groups=[])
        said = os.read(ours, 10000)
        os.close(theirs)
        os.close(ours)
        assert b'\xc3' not in said and (rb'\xc3\x9b' in said or rb'\u00db' in said), (words, said)


def test_stopped():
    """The owner stops the process that works for root, which does not wait."""
    folder = put_hook('kill -STOP $PPID')
    done = subprocess.run([BIN / 'scr_prerun', '-p', folder], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          env={**os.environ, 'SCR_NODELIST': 'localhost'})
    assert done.returncode == -9 and '[PROCESS_STOPPED]' in told(done), done


def test_memory_stays_with_root():
    """The owner ends the process that works for root by a signal that dumps its memory
    into the owner's directory."""
    folder = put_hook('kill -SEGV $PPID')
    done = subprocess.run([BIN / 'scr_prerun', '-p', '.'], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          env={**os.environ, 'SCR_NODELIST': 'localhost', 'ASAN_OPTIONS': 'handle_segv=0'},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1)))
    assert done.returncode == -11 and not list(folder.glob('*core*')), (done, list(folder.iterdir()))


def test_files_stay_with_root():
    """Root's open files, and root's current directory."""
    folder = put_hook('ls /proc/self/fd\nreadlink /proc/self/fd/*\ncat inner')
    hidden = pathlib.Path('hidden/below')
    hidden.mkdir(parents=True)
    (hidden / 'inner').write_text('private\n')
    hidden.parent.chmod(0o700)
    with open('open', 'w+') as file:
        os.set_inheritable(file.fileno(), True)
        done = subprocess.run([BIN / 'scr_prerun', '-p', folder], cwd=hidden, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                              pass_fds=[file.fileno()], timeout=60, env={**os.environ, 'SCR_NODELIST': 'localhost'})
        file.seek(0)
        said = file.read()
    assert done.returncode == 1 and 'exit code 1' in said and 'pipe:' in said, (done, said)
    assert 'private' not in said and '/open' not in said, said
    # a user who gives a path that begins there gets an error
    done = command('scr_prerun', '-p', os.path.relpath(folder, hidden), cwd=hidden, code=1)
    assert '[OWNER_CHANGE_FAILED]' in told(done), done


def test_umask_of_root():
    """Objects made by root's commands have the permissions of the directory; others can
    write only if a group shares it."""
    mask = os.umask(0o022)
    try:
        for number, (folder, record, lock) in enumerate(((0o700, 0o600, 0o600), (0o750, 0o640, 0o600), (0o755, 0o644, 0o600), (0o777, 0o644, 0o600),
                                                         (0o2770, 0o660, 0o660), (0o2775, 0o664, 0o660))):
            path = prefix_of(VICTIM, f'umask.{number}')
            (path / '.scr').rmdir()
            path.chmod(folder)
            os.umask(0o022 if number % 2 else 0)
            command('scr_halt', '--checkpoints', '3', path, code=0)
            found = [stat.S_IMODE((path / '.scr' / name).stat().st_mode) for name in ('halt.scr', 'lock')]
            assert found == [record, lock], (oct(folder), [oct(mode) for mode in found])
    finally:
        os.umask(mask)


KEY_CALLS = {'x86_64': (248, 250), 'aarch64': (217, 219)}


def make_key_of_session():
    """Makes a session keyring with one key; False if the kernel has none, or its system
    call numbers are unknown."""
    add_key, keyctl = KEY_CALLS.get(os.uname().machine, (None, None))
    call = ctypes.CDLL(None).syscall
    join, session, value = 1, -3, b'value'
    return (add_key is not None and call(keyctl, join, None) > 0
            and call(add_key, b'user', b'key-of-root', value, ctypes.c_size_t(len(value)), session) > 0)


def test_keys_stay_with_root():
    """Keys of root's session, such as tickets."""
    folder = put_hook('cat /proc/keys')
    if not make_key_of_session() or 'key-of-root' not in pathlib.Path('/proc/keys').read_text():
        return
    done = command('scr_prerun', '-p', folder, code=0, SCR_NODELIST='localhost')
    assert 'key-of-root' not in told(done), done


def test_commands_of_libraries():
    """They know no prefix directory, and work as the owner of the given directory."""
    folder = prefix_of(ATTACKER, 'p')
    other = pathlib.Path('other').absolute()
    other.mkdir(mode=0o755)
    (folder / 'data').write_bytes(b'data')
    put_tree(folder / 't.scr', {'COMMAND': value('RUN'), 'FILES': {str(folder / 'data'): {
        'DESTINATION': value(other / 'data'), 'SIZE': value(4)}}})
    give(folder / 't.scr', ATTACKER)
    command('scr_transfer', '--leave', folder / 't.scr')
    assert not list(other.iterdir()), list(other.iterdir())
    put_tree(folder / 't.scr', {'COMMAND': value('RUN'), 'FILES': {str(folder / 'data'): {
        'DESTINATION': value(folder / 'copy'), 'SIZE': value(4)}}})
    command('scr_transfer', '--leave', folder / 't.scr', code=0)
    assert (folder / 'copy').stat().st_uid == ATTACKER.pw_uid
    # another user's file in a directory of root
    put_tree(other / 't.scr', {})
    give(other / 't.scr', ATTACKER)
    assert 't.scr in it to user' in told(command('scr_transfer', '--leave', other / 't.scr', code=1))
    # a dataset whose packed file comes from a container
    packed = {'FILE': {'new/file': {'SIZE': value(4), 'MODE': value('0644'), 'SEG': {
        '0': {'FILE': value('data'), 'OFFSET': value(0), 'LENGTH': value(4)}}}}}
    put_tree(folder / '.scr/rank2file.0.0.scr', {'RANK2FILE': {'LEVEL': value(0), 'RANKS': value(1), 'RANK': {'0': packed}}})
    put_tree(folder / '.scr/rank2file.scr', {'LEVEL': value(1), 'RANKS': value(1), 'RANK': {
        '0': {'OFFSET': value(0), 'FILE': value('.scr/rank2file.0.0.scr')}}})
    command('scr_extract', folder, code=0)
    assert {(folder / name).stat().st_uid for name in ('new', 'new/file')} == {ATTACKER.pw_uid}
    (folder.parent / 'way').symlink_to(folder)
    give(folder.parent / 'way', ATTACKER)
    for name in ('scr_extract', 'redset_rebuild'):
        assert 'way on the way to it is a link' in told(command(name, folder.parent / 'way', code=1)), name
    # if others have written the map, nothing gets into a directory in which they cannot
    # put it themselves
    (folder / 'new/file').unlink()
    (folder / '.scr').chmod(0o777)
    for mode, why in ((0o755, '[EXTRACT_FILE_FAILED]'), (0o777, 'new/file: extracted')):
        folder.chmod(0o777)
        (folder / 'new').chmod(mode)
        assert why in told(command('scr_extract', folder)), mode
    # also if they did so while they could, and the map is the owner's now
    packed['FILE']['new/file']['OTHERS'] = value(2**63 - 1)
    put_tree(folder / '.scr/rank2file.0.0.scr', {'RANK2FILE': {'LEVEL': value(0), 'RANKS': value(1), 'RANK': {'0': packed}}})
    for path in (folder, folder / '.scr'):
        path.chmod(0o755)
    for mode, why in ((0o755, '[EXTRACT_FILE_FAILED]'), (0o777, 'new/file: extracted')):
        (folder / 'new/file').unlink(missing_ok=True)
        (folder / 'new').chmod(mode)
        assert why in told(command('scr_extract', folder)), mode
    # data that only root may read is not read for the owner
    (folder / 'data').unlink()
    (folder / 'new/file').unlink()
    (other / 'secret').write_bytes(b'data')
    (other / 'secret').chmod(0o600)
    os.link(other / 'secret', folder / 'data')
    assert 'ermission denied' in told(command('scr_extract', folder, code=1)) and not (folder / 'new/file').exists()


def test_ends_as_its_child():
    """Exit codes, and signals to root's process."""
    folder = prefix_of(ATTACKER, 'p')
    command('scr_retries_halt', folder, code=command('scr_retries_halt', folder, user=ATTACKER).returncode)
    assert command('scr_halt', '--nonsense', folder).returncode == 2


def test_configuration_is_read_by_its_owner():
    secret = pathlib.Path('secret')
    secret.write_text('the secret of root\n')
    secret.chmod(0o600)
    folder = prefix_of(ATTACKER, 'p')
    (folder / '.scrconf').symlink_to(secret.absolute())
    give(folder / '.scrconf', ATTACKER)
    for name, option in (*EVERY, ('scr_params', '-p')):
        done = command(name, option, folder)
        assert 'secret of root' not in told(done) and 'ermission denied' in told(done), done


def test_prefix_of_somebody_else():
    other = prefix_of(VICTIM, 'v')
    folder = prefix_of(ATTACKER, 'p', f'SCR_PREFIX={other}\n')
    command('scr_halt', '--reason', 'x', cwd=folder)
    command('scr_index', '--drop', 'c1', cwd=folder)
    assert not list((other / '.scr').iterdir()), list((other / '.scr').iterdir())


def let_write(path, user):
    """Sets an access control list; False if the file system has none."""
    owner, of_user, group, most, others = 1, 2, 4, 16, 32
    nobody = 0xffffffff
    entries = [(owner, 7, nobody), (of_user, 7, user.pw_uid), (group, 5, nobody), (most, 7, nobody), (others, 5, nobody)]
    try:
        os.setxattr(path, 'system.posix_acl_access', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *entry) for entry in entries))
    except OSError:
        return False
    return True


def test_access_control_lists():
    """Users in the list may write, although the group of the file is the user's own."""
    here = pathlib.Path.cwd()
    seen = put_spy(here / 'tests', VICTIM)
    (here / 'tests').chmod(0o755)
    folder = prefix_of(VICTIM, 'p', 'SCR_FLUSH=1\n')
    how = {'user': VICTIM, 'cwd': folder, 'SCR_CNTL_BASE': '/tmp', 'SCR_CACHE_BASE': '/tmp'}
    for path, why in ((folder / '.scrconf', 'can be changed by its group, and is not read'),
                      (here / 'tests/spy', 'spy can be changed by its group, and is not executed'),
                      (here / 'tests', 'tests can be changed by its group, and nothing in it is executed')):
        if not let_write(path, ATTACKER):
            return
        done = command('scr_check_node', '--tests', here / 'tests', **how)
        assert why in told(done) and not seen.exists(), done
        os.removexattr(path, 'system.posix_acl_access')
    (here / 'tests').chmod(0o755)
    command('scr_check_node', '--tests', here / 'tests', code=0, **how)


def test_run_of_root():
    """The simulated nodes are the owner's, too; ending root's scr_run ends the
    program."""
    here = pathlib.Path.cwd()
    folder = prefix_of(ATTACKER, 'p')
    (here / 'tmp').mkdir()
    (here / 'tmp').chmod(0o1777)
    (here / 'mpiexec.mpich').write_text(f'#!/bin/sh\nid -u >{folder}/seen\nsleep 1000\n')
    (here / 'mpiexec.mpich').chmod(0o755)
    environment = {**os.environ, 'PATH': f"{here}:{os.environ['PATH']}", 'TMPDIR': str(here / 'tmp'), 'LC_ALL': 'C',
                   'SCR_LAUNCHER': 'hydra'}
    process = subprocess.Popen([BIN / 'scr_run', '--prefix', folder, '--simulate', '2x1', 'true'], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    until = time.monotonic() + 60
    while not (folder / 'seen').exists() or not (folder / 'seen').read_text():
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.01)
    process.terminate()
    said, _ = process.communicate(timeout=60)
    assert (folder / 'seen').read_text() == f'{ATTACKER.pw_uid}\n' and not list((here / 'tmp').iterdir()), said
    assert '[RUN_SIGNALLED]' in said, said


run_tests(globals())
