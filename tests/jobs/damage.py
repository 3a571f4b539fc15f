# SPDX-License-Identifier: BSD-3-Clause
"""Ways to damage a file. Each is a function of its path; KINDS names the results."""
import random


def flip(path, at=0.5):
    """Flips one bit at a fraction of the length."""
    data = bytearray(path.read_bytes())
    data[min(int(len(data) * at), len(data) - 1)] ^= 0x10
    path.write_bytes(data)


def flip_first(path):
    flip(path, 0)


def flip_last(path):
    flip(path, 1)


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 2])


def extend(path):
    path.write_bytes(path.read_bytes() + b"more")


def empty(path):
    path.write_bytes(b"")


def garbage(path):
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def remove(path):
    path.unlink()


def link(path):
    """Replaces the file by a link to a copy, which must not change."""
    copy = path.with_name(path.name + ".copy")
    path.rename(copy)
    path.symlink_to(copy)


CONTENTS = [flip, flip_first, flip_last, cut, extend, empty, garbage]
EVERY = CONTENTS + [remove, link]
