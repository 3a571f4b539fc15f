# SPDX-License-Identifier: BSD-3-Clause
"""For tests of the commands: prefix folders, and damage to the files in them. The current folder is one."""
import os
import pathlib

from command import image

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
    """Makes the file again and again, each time damaged in another way; yields what was done."""
    changes = {'empty': lambda data: b'', 'cut off': lambda data: data[:-1], 'no magic': lambda data: b'x' + data[1:],
               'other bytes': lambda data: data[:25] + bytes([data[25] ^ 1]) + data[26:],
               'more bytes': lambda data: data + b'x', 'text': lambda data: b'hello\n',
               'size': lambda data: data[:8] + b'\xff' * 8 + data[16:]}
    for what, change in changes.items():
        make()
        put(path, change(pathlib.Path(path).read_bytes()))
        yield what


def names(folder='.'):
    """All files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob('*') if not path.is_dir())


def without_scr_variables():
    """What the machine that runs the tests may have set."""
    for name in list(os.environ):
        if name.startswith(('SCR_', 'SLURM_', 'PBS_', 'LSB_', 'FLUX_')):
            del os.environ[name]
