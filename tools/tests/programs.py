#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that commands execute for a user: which of them others can choose or
change."""
import os
import pathlib
import shutil

from as_users import ATTACKER, BIN, VICTIM, command, give, prefix_of, put_spy, told
from command import run_tests
from prefix import put_tree


def test_program_in_a_folder_of_somebody_else():
    """A user who can exchange the program after its check can choose it."""
    here = pathlib.Path.cwd()
    folder = prefix_of(VICTIM, 'p')
    tests, seen = here / 'attacker/tests', put_spy(here / 'tests', VICTIM)
    command('scr_check_node', '-p', folder, user=VICTIM, SCR_NODE_TESTS=str(here / 'tests'))
    assert seen.read_text().split() [0] == str(VICTIM.pw_uid)
    seen.unlink()
    tests.mkdir(parents=True)
    (tests / 'spy').write_text((here / 'tests/spy').read_text())
    give(tests / 'spy', VICTIM, 0o755)
    done = command('scr_check_node', '-p', folder, user=VICTIM, code=0, SCR_NODE_TESTS=str(tests), SCR_CNTL_BASE='/tmp', SCR_CACHE_BASE='/tmp')
    seen.unlink()
    for path in (tests, tests.parent):
        give(path, ATTACKER, 0o755)
        done = command('scr_check_node', '-p', folder, user=VICTIM, SCR_NODE_TESTS=str(tests), SCR_CNTL_BASE='/tmp', SCR_CACHE_BASE='/tmp')
        assert f' {path} belongs to user {ATTACKER.pw_uid}' in told(done) and not seen.exists(), done
        os.chown(path, 0, 0)
        path.chmod(0o777)
        done = command('scr_check_node', '-p', folder, user=VICTIM, SCR_NODE_TESTS=str(tests), SCR_CNTL_BASE='/tmp', SCR_CACHE_BASE='/tmp')
        assert f' {path} can be changed by everybody' in told(done) and not seen.exists(), done
        path.chmod(0o775)
        os.chown(path, VICTIM.pw_uid, ATTACKER.pw_gid)
        done = command('scr_check_node', '-p', folder, user=VICTIM, SCR_NODE_TESTS=str(tests), SCR_CNTL_BASE='/tmp', SCR_CACHE_BASE='/tmp')
        assert f' {path} can be changed by its group' in told(done) and not seen.exists(), done
        path.chmod(0o755)
    # a link to an allowed program is followed before the check
    (tests / 'spy').unlink()
    (tests / 'spy').symlink_to(here / 'tests/spy')
    command('scr_check_node', '-p', folder, user=VICTIM, code=0, SCR_NODE_TESTS=str(tests), SCR_CNTL_BASE='/tmp', SCR_CACHE_BASE='/tmp')
    assert seen.exists()


def test_program_by_a_link():
    """In a sticky directory another user puts a link to a program of the victim's that is
    not meant to be executed now; or moves the victim's link or program there."""
    here, folder = pathlib.Path.cwd(), prefix_of(VICTIM, 'p')
    seen = put_spy(here / 'programs', VICTIM)
    for name, link in (('tests', 'tests/10-mine'), ('hooks', 'hooks/prerun')):
        (here / name).mkdir()
        (here / name).chmod(0o1777)
        (here / link).symlink_to(here / 'programs/spy')
        give(here / link, ATTACKER)
    how = {'user': VICTIM, 'SCR_NODE_TESTS': str(here / 'tests'), 'SCR_SITE_HOOKS': str(here / 'hooks'), 'SCR_NODELIST': 'localhost',
           'SCR_CNTL_BASE': str(here), 'SCR_CACHE_BASE': str(here)}
    here.chmod(0o1777)
    for words in (('scr_check_node', '-p'), ('scr_prerun', '-p')):
        done = command(*words, folder, code=1, **how)
        assert f'is a link of user {ATTACKER.pw_uid}' in told(done) and not seen.exists(), done
    for put in (lambda: give(here / 'tests/10-mine', VICTIM), lambda: (here / 'programs/spy').rename(here / 'tests/10-mine')):
        put()
        done = command('scr_check_node', '-p', folder, code=1, **how)
        assert 'tests/ can be changed by everybody' in told(done).replace('tests can', 'tests/ can') and not seen.exists(), done
    give(here / 'tests', VICTIM, 0o755)
    command('scr_check_node', '-p', folder, code=0, **how)
    assert seen.exists()


def test_command_of_somebody_else():
    """Beside a command that the victim has in a directory where others can create files,
    no other command is used: it may be any file of the victim's. Elsewhere, only a
    command is used that others cannot change more easily than the first."""
    here, folder = pathlib.Path.cwd(), prefix_of(VICTIM, 'p')
    seen = put_spy(here / 'bin', VICTIM)
    (here / 'bin/spy').rename(here / 'bin/scr_check_node')
    shutil.copy(BIN / 'scr_list_down_nodes', here / 'bin')
    give(here / 'bin/scr_list_down_nodes', VICTIM, 0o755)
    for mode, owner, group, file, is_run in ((0o1777, ATTACKER, ATTACKER, 0o755, False), (0o1777, VICTIM, VICTIM, 0o755, False),
                                             (0o755, ATTACKER, ATTACKER, 0o755, False), (0o755, VICTIM, ATTACKER, 0o775, False),
                                             (0o755, VICTIM, VICTIM, 0o777, False), (0o755, VICTIM, VICTIM, 0o755, True)):
        give(here / 'bin', VICTIM, mode)
        os.chown(here / 'bin/scr_check_node', owner.pw_uid, group.pw_gid)
        (here / 'bin/scr_check_node').chmod(file)
        command(here / 'bin/scr_list_down_nodes', '--prefix', folder, user=VICTIM, SCR_NODELIST='localhost', SCR_NODE_NAME='localhost')
        assert seen.exists() == is_run, (mode, owner, group, file)
    # a link of the directory's owner, and one of another user
    seen.unlink()
    (here / 'bin/scr_check_node').rename(here / 'bin/other')
    (here / 'bin/scr_check_node').symlink_to('other')
    for owner, is_run in ((ATTACKER, False), (VICTIM, True)):
        give(here / 'bin/scr_check_node', owner)
        command(here / 'bin/scr_list_down_nodes', '--prefix', folder, user=VICTIM, SCR_NODELIST='localhost', SCR_NODE_NAME='localhost')
        assert seen.exists() == is_run, owner


def test_command_of_the_current_directory():
    """Without a trusted command beside it, the one in PATH is executed, not that in the
    current directory."""
    here, folder = pathlib.Path.cwd(), prefix_of(VICTIM, 'p')
    put_tree(folder / '.scr/flush.scr', {'VERSION': {'1': {}}, 'DSET': {'5': {'DIR': {'ckpt.5': {}}, 'LOCATION': {'CACHE': {}}}}})
    give(folder / '.scr/flush.scr', VICTIM)
    seen, wanted = put_spy(here / 'evil', ATTACKER), put_spy(here / 'good', VICTIM)
    for place in ('evil', 'good'):
        for name in ('scr_scavenge', 'scr_index'):
            shutil.copy(here / place / 'spy', here / place / name)
    (here / 'alone').mkdir()
    shutil.copy(BIN / 'scr_flush_file', here / 'alone')
    for path in (here / 'alone', here / 'alone/scr_flush_file'):
        give(path, VICTIM, 0o755)
    for option in ('--resume', '--summary'):
        for user in (VICTIM, None):
            command(here / 'alone/scr_flush_file', '--dir', folder, '--name', '5', option, user=user, cwd=here / 'evil',
                    PATH=f'{here}/good:{os.environ["PATH"]}')
            assert not seen.exists() and wanted.read_text().split()[0] == str(VICTIM.pw_uid), (option, user)
            wanted.unlink()


def test_remote_shell():
    """A remote shell of another user, or one that everybody may change: from the
    parameter, or from Hydra's variable."""
    here = pathlib.Path.cwd()
    seen = put_spy(here / 'bin', ATTACKER)
    folder = prefix_of(VICTIM, 'v')
    spy = here / 'bin/spy'
    for owner, mode, why in ((ATTACKER, 0o755, f'spy belongs to user {ATTACKER.pw_uid}'), (VICTIM, 0o777, 'spy can be changed by everybody')):
        give(spy, owner, mode)
        for variables in ({'SCR_REMOTE_SHELL': str(spy)}, {'HYDRA_LAUNCHER_EXEC': str(spy)},
                          {'SCR_REMOTE_SHELL': 'spy', 'PATH': f'{here}/bin:{os.environ["PATH"]}'}):
            done = command('scr_list_down_nodes', '--prefix', folder, user=VICTIM, cwd=folder, SCR_NODELIST='n1', SCR_REMOTE='shell', **variables)
            assert why in told(done) and done.returncode and not seen.exists(), done
    give(spy, VICTIM, 0o755)
    how = {'user': VICTIM, 'cwd': folder, 'SCR_NODELIST': 'n1', 'SCR_REMOTE': 'shell', 'SCR_REMOTE_SHELL': str(spy)}
    assert f' {here}/bin belongs to user' in told(command('scr_list_down_nodes', '--prefix', folder, **how)) and not seen.exists()
    give(here / 'bin', VICTIM, 0o755)
    command('scr_list_down_nodes', '--prefix', folder, **how)
    assert seen.exists()
    # a missing program may be created later
    spy.unlink()
    assert 'spy: no such program' in told(command('scr_list_down_nodes', '--prefix', folder, **how))


run_tests(globals())
