# SPDX-License-Identifier: BSD-3-Clause
"""For tests of the commands: prefix directories, and damage to the files in them. The current directory is one."""
import os
import pathlib
import pwd
import time
import zlib

from command import image, run

HALT, FLUSH, NODES, INDEX = (f'.scr/{name}.scr' for name in ('halt', 'flush', 'nodes', 'index'))


def put(path, data):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_bytes(data)


def put_tree(path, tree):
    put(path, image(tree))


def put_halt(tree):
    put_tree(HALT, tree)


def value(text):
    """A scalar in a tree."""
    return {str(text): {}}


def damage(make, path=HALT):
    """Rewrites the file repeatedly, each time with another damage; yields the kind of
    damage."""
    changes = {'empty': lambda data: b'', 'cut off': lambda data: data[:-1], 'no magic': lambda data: b'x' + data[1:],
               'other bytes': lambda data: data[:25] + bytes([data[25] ^ 1]) + data[26:],
               'more bytes': lambda data: data + b'x', 'text': lambda data: b'hello\n',
               'size': lambda data: data[:8] + b'\xff' * 8 + data[16:]}
    for what, change in changes.items():
        make()
        put(path, change(pathlib.Path(path).read_bytes()))
        yield what


class Prefix:
    """A prefix directory with datasets, according to docs/formats/scr.md and
    rank2file.md; shares no code with SCR."""

    def __init__(self):
        self.index = {'VERSION': value(1)}

    def describe(self, name, number, files, **more):
        """files: for each rank {name: bytes}."""
        every = [data for rank in files for data in rank.values()]
        keys = {'ID': number, 'NAME': name, 'CREATED': 1795257190731827, 'USER': 'tester', 'JOBID': 17, 'CKPT': number,
                'RANKS': len(files), 'FILES': len(every), 'SIZE': sum(map(len, every)), 'COMPLETE': 1, **more}
        return {key: value(text) for key, text in keys.items()}

    def put_dataset(self, name, number, files, **more):
        """Puts files, map and summary on the prefix directory."""
        entries = [{'FILE': {path: {'SIZE': value(len(data)), 'CRC': value(f'0x{zlib.crc32(data):08x}')}
                             for path, data in rank.items()}} for rank in files]
        for rank in files:
            for path, data in rank.items():
                put(f'{name}/{path}', data)
        ranks = {'RANKS': value(len(files))}
        low = {'LEVEL': value(0), **ranks, 'RANK': {str(rank): entry for rank, entry in enumerate(entries)}}
        put_tree(f'{name}/.scr/rank2file.0.0.scr', {'RANK2FILE': low})
        put_tree(f'{name}/.scr/rank2file.scr', {'LEVEL': value(1), **ranks, 'RANK': {
            '0': {'OFFSET': value(0), 'FILE': value('.scr/rank2file.0.0.scr')}}})
        put_tree(f'{name}/.scr/summary.scr', {'VERSION': value(6), 'COMPLETE': value(1),
                                              'DSET': self.describe(name, number, files, **more)})

    def enter(self, name, number, files, state=None, **more):
        """Enters the dataset into the index."""
        self.index.setdefault('DIR', {})[name] = {'DSET': value(number)}
        entry = {'COMPLETE': value(1), 'DSET': self.describe(name, number, files, **more),
                 'FLUSHED': value(f'2026-11-22T18:30:{number:02}'), **(state or {})}
        self.index.setdefault('DSET', {}).setdefault(str(number), {'DIR': {}})['DIR'][name] = entry

    def put_index(self, current=None):
        tree = dict(self.index)
        if current:
            tree['CURRENT'] = value(current)
        put_tree(INDEX, tree)


def names(folder='.'):
    """All files below a directory, except the lock of the records, which stays."""
    found = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob('*') if not path.is_dir()}
    return sorted(found - {'.scr/lock'})


def some_user():
    """An account that every system has, and that is not root."""
    return next(user for user in pwd.getpwall() if 0 < user.pw_uid < 60000)


def give_all(uid, gid):
    """Changes the owner of the prefix directory and its content."""
    os.chmod('.', 0o755)
    for path in (pathlib.Path('.'), *pathlib.Path('.').glob('.scr'), *pathlib.Path('.').glob('.scr/**/*')):
        os.chown(path, uid, gid)


def expect_owner_kept(*runs):
    """In these runs of the command, root's changes to another user's objects leave them
    with that user, and root's objects stay root's."""
    if os.geteuid() != 0:
        return
    user = some_user()
    for uid, gid in ((user.pw_uid, user.pw_gid), (0, 0)):
        give_all(uid, gid)
        for arguments in runs:
            done = run(*arguments)
            assert done.returncode == 0, done
        for path in pathlib.Path('.').glob('.scr/**/*'):
            assert (path.stat().st_uid, path.stat().st_gid) == (uid, gid), (uid, path, path.stat())
    give_all(0, 0)


def put_program(name, script):
    """Makes a program that precedes all others of its name."""
    put(f'bin/{name}', f'#!/bin/sh\n{script}\n'.encode())
    os.chmod(f'bin/{name}', 0o755)
    if not os.environ['PATH'].startswith(f'{os.getcwd()}/bin:'):
        os.environ['PATH'] = f'{os.getcwd()}/bin:{os.environ["PATH"]}'


def put_launcher(script):
    """Makes a script in place of Hydra's mpiexec, which scr_run must use, whatever MPI it
    was built with."""
    put_program('mpiexec.mpich', script)
    os.environ['SCR_LAUNCHER'] = 'hydra'


def only_here(*programs):
    """Restricts PATH to these commands of the system, without launchers of this machine;
    returns the former PATH."""
    former = os.environ['PATH']
    os.makedirs('few', exist_ok=True)
    for name in ('sh', 'cat', 'env', 'true', 'kill', 'sleep', *programs):
        path = pathlib.Path('few') / name
        path.unlink(missing_ok=True)
        path.symlink_to(next(place for folder in former.split(':') if os.path.exists(place := f'{folder}/{name}')))
    os.environ['PATH'] = f'{os.getcwd()}/bin:{os.getcwd()}/few'
    return former


def processes_here():
    """Command lines of processes that have the current directory as their prefix
    directory."""
    here, found = f'SCR_PREFIX={os.getcwd()}'.encode(), []
    for folder in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            if folder.name != str(os.getpid()) and here in (folder / 'environ').read_bytes().split(b'\0'):
                found.append((folder / 'cmdline').read_bytes())
        except OSError:
            pass  # it ended just now
    return found


def wait_for(condition, told=lambda: ''):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, told()
        time.sleep(0.01)


def without_scr_variables():
    """Removes variables that the test machine may have set."""
    for name in list(os.environ):
        if name.startswith(('SCR_', 'SLURM_', 'PBS_', 'LSB_', 'FLUX_')):
            del os.environ[name]
