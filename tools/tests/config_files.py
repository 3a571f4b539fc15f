#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Configuration files of the user's that others can choose or change."""
import os
import pathlib
import subprocess

from as_users import ATTACKER, BIN, VICTIM, command, give, prefix_of, told
from command import run_tests


def test_configuration_by_a_link():
    """The private prefix directory has a link of the user's to a directory where others can rename files."""
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
    """The group with the user's name has no members, but is the primary one of another user, in a mount namespace of the test's."""
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


run_tests(globals())
