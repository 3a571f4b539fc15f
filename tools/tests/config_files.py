#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Configuration files of the user that others can choose or change."""
import os
import pathlib
import pwd
import subprocess

from as_users import ATTACKER, BIN, VICTIM, command, give, prefix_of, put_spy, told
from command import run_tests


def test_configuration_by_a_link():
    """The private prefix directory has a link of the user to a directory where others can
    rename files."""
    folder, shared = prefix_of(VICTIM, 'p'), prefix_of(VICTIM, 'shared')
    (shared / 'file').write_text('SCR_CURRENT=chosen\n')
    give(shared / 'file', VICTIM, 0o640)
    os.chown(shared, VICTIM.pw_uid, ATTACKER.pw_gid)
    shared.chmod(0o2770)
    (folder / 'second').symlink_to(shared / 'file')
    why = "is a link to a file in a directory where others can give that name to any file of yours or root's"
    for target in (shared / 'file', '../shared/file', 'second'):
        (folder / '.scrconf').symlink_to(target)
        for path in (folder / '.scrconf', folder / 'second'):
            give(path, VICTIM)
        for mode, is_read in ((0o2770, False), (0o2750, True)):
            shared.chmod(mode)
            done = command('scr_params', '-p', folder, 'SCR_CURRENT', user=VICTIM)
            assert ('chosen' in told(done)) == is_read and (why in told(done)) != is_read, (target, done)
        (folder / '.scrconf').unlink()
    (folder / '.scrconf').symlink_to('.scrconf')
    give(folder / '.scrconf', VICTIM)
    assert 'Too many levels' in told(command('scr_params', '-p', folder, 'SCR_CURRENT', user=VICTIM))


def test_group_with_another_user():
    """The group with the user's name has no members, but is the primary group of another
    user, in the test's own mount namespace."""
    folder = prefix_of(VICTIM, 'p')
    (folder / '.scrconf').write_text('SCR_CURRENT=chosen\n')
    give(folder / '.scrconf', VICTIM, 0o664)
    users = pathlib.Path('passwd').absolute()
    for more, is_read in (('', True), (f'other:x:59997:{VICTIM.pw_gid}::/:/bin/sh\n', False)):
        users.write_text(pathlib.Path('/etc/passwd').read_text() + more)
        users.chmod(0o644)
        line = (f'mount --bind {users} /etc/passwd || exit 77; exec setpriv --reuid {VICTIM.pw_uid} --regid {VICTIM.pw_gid} --clear-groups '
                f'{BIN}/scr_params -p {folder} SCR_CURRENT')
        done = subprocess.run(['unshare', '--mount', 'sh', '-c', line], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        if done.returncode == 77 or b'unshare' in done.stderr:
            return  # no namespaces
        assert ('chosen' in told(done)) == is_read and ('can be changed by its group' in told(done)) != is_read, done


def test_configuration_of_somebody_else():
    """The file is in a directory where both users may write."""
    here = pathlib.Path.cwd()
    seen = put_spy(here / 'tests', ATTACKER)
    shared = prefix_of(VICTIM, 'shared')
    shared.chmod(0o777)
    config = shared / '.scrconf'
    config.write_text(f'SCR_NODE_TESTS={here}/tests\nSCR_CNTL_BASE={here}/tests\nSCR_CACHE_BASE={here}/tests\n')
    give(config, ATTACKER, 0o644)
    done = command('scr_check_node', user=VICTIM, cwd=shared)
    assert 'belongs to another user' in told(done) and 'SCR_TRUSTED_OWNERS' in told(done) and not seen.exists(), done
    # the file itself cannot declare who is trusted
    config.write_text(config.read_text() + f'SCR_TRUSTED_OWNERS={ATTACKER.pw_name}\n')
    assert 'belongs to another user' in told(command('scr_check_node', user=VICTIM, cwd=shared))
    config.write_text(f'SCR_NODE_TESTS={here}/tests\n')
    for more in ({'SCR_TRUSTED_OWNERS': f'nobody, {ATTACKER.pw_name}'}, {'SCR_TRUSTED_OWNERS': str(ATTACKER.pw_uid)},
                 {'SCR_CONF_FILE': str(config)}):
        done = command('scr_check_node', user=VICTIM, cwd=shared, SCR_CNTL_BASE='/tmp', SCR_CACHE_BASE='/tmp', **more)
        assert 'belongs to another user' not in told(done), done
        assert f'spy belongs to user {ATTACKER.pw_uid}, and is executed only if it is yours' in told(done) and not seen.exists(), done
    shared.chmod(0o755)
    give(config, VICTIM, 0o666)
    done = command('scr_check_node', user=VICTIM, cwd=shared)
    assert 'can be changed by everybody, and is not read' in told(done), done
    # a record that a group may write to, under another name
    config.chmod(0o660)
    os.chown(config, VICTIM.pw_uid, ATTACKER.pw_gid)
    done = command('scr_check_node', user=VICTIM, cwd=shared)
    assert 'can be changed by its group, and is not read' in told(done), done
    # another file of the user's, chosen by another user
    config.rename(here / 'mine')
    give(here / 'mine', VICTIM, 0o644)
    config.symlink_to(here / 'mine')
    command('scr_check_node', user=VICTIM, cwd=shared)
    give(config, ATTACKER)
    done = command('scr_check_node', user=VICTIM, cwd=shared)
    assert 'is a link of another user, and is not followed' in told(done), done
    # a group that only the user is in
    config.unlink()
    config.write_text('SCR_FLUSH=1\n')
    give(config, VICTIM, 0o664)
    assert '.scrconf' not in told(command('scr_check_node', user=VICTIM, cwd=shared))


def test_configuration_of_ones_own_in_an_open_folder():
    """Another user gives a configuration file's name to one of the user's files, such as
    a file that a command extracted from a hostile dataset."""
    shared = prefix_of(VICTIM, 'shared')
    (shared / 'n1').write_text(f'id -u >{shared}/seen\n')
    (shared / 'file').write_text('SCR_REMOTE=shell\nSCR_REMOTE_SHELL=/bin/sh\nSCR_NODELIST=n1\n')
    give(shared / 'n1', ATTACKER, 0o644)
    give(shared / 'file', VICTIM, 0o600)
    shared.chmod(0o777)
    subprocess.run(['mv', 'file', '.scrconf'], cwd=shared, user=ATTACKER.pw_uid, group=ATTACKER.pw_gid, extra_groups=[], check=True)

    def is_read(**variables):
        done = command('scr_list_down_nodes', user=VICTIM, cwd=shared, **variables)
        seen = (shared / 'seen').exists()
        assert seen or "is in a directory where others can give that name to any file of yours or root's" in told(done), done
        (shared / 'seen').unlink(missing_ok=True)
        return seen

    assert not is_read()
    assert is_read(SCR_TRUSTED_OWNERS=VICTIM.pw_name)
    assert is_read(SCR_CONF_FILE=str(shared / '.scrconf'))
    for owner, group, mode in ((VICTIM, VICTIM, 0o1777), (VICTIM, ATTACKER, 0o2770), (VICTIM, VICTIM, 0o755), (ATTACKER, VICTIM, 0o1777)):
        os.chown(shared, owner.pw_uid, group.pw_gid)
        shared.chmod(mode)
        for who in (pwd.getpwuid(0), VICTIM):  # root's: what a command of root has written, moved there
            give(shared / '.scrconf', who, 0o644)
            assert is_read() == (mode == 0o755), oct(mode)
    # a project directory of root, and a link of the user's
    os.chown(shared, 0, ATTACKER.pw_gid)
    shared.chmod(0o1775)
    give(shared / '.scr', VICTIM, 0o777)
    (shared / '.scrconf').rename(shared / 'file')
    (shared / '.scrconf').symlink_to('file')
    give(shared / '.scrconf', VICTIM)
    shared.chmod(0o775)
    assert 'is a link in a directory where others can put it' in told(command('scr_list_down_nodes', user=VICTIM, cwd=shared))


run_tests(globals())
