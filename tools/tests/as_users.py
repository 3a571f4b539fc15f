# SPDX-License-Identifier: BSD-3-Clause
"""Attacker and victim are accounts that every system has; a script that imports this is
skipped unless it is run by root."""
import os
import pathlib
import shutil
import subprocess

from accounts import two_accounts
from command import BUILD_PATH, COMMAND
from prefix import without_scr_variables

without_scr_variables()
BIN = COMMAND.parent


ATTACKER, VICTIM = two_accounts()


def command(name, *arguments, user=None, code=None, cwd=None, **variables):
    """Runs a command as root, or as the user."""
    who = {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []} if user else {}
    done = subprocess.run([shutil.which(name, path=BUILD_PATH), *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          env={**os.environ, 'LC_ALL': 'C', **variables}, **who)
    assert code is None or done.returncode == code, done
    return done


def told(done):
    return (done.stdout + done.stderr).decode(errors='replace')


def give(path, user, mode=None):
    os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    if mode is not None:
        os.chmod(path, mode)


def prefix_of(user, name, config=''):
    """Makes a prefix directory with .scr and a configuration file."""
    os.chmod('.', 0o755)
    folder = pathlib.Path(name).resolve()
    (folder / '.scr').mkdir(parents=True)
    if config:
        (folder / '.scrconf').write_text(config)
    for path in (folder, *folder.rglob('*')):
        give(path, user)
    return folder


def put_spy(folder, user):
    """Makes a program that records the user who runs it."""
    folder.mkdir(exist_ok=True)
    notes = folder.parent / f'{folder.name}.seen'
    notes.mkdir()
    notes.chmod(0o1777)
    spy, seen = folder / 'spy', notes / 'seen'
    spy.write_text(f'#!/bin/sh\n{{ id -u; id -G; }} >>{seen}\n')
    give(folder, user, 0o755)
    give(spy, user, 0o755)
    return seen
