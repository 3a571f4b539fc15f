# SPDX-License-Identifier: BSD-3-Clause
"""What schemes promise, from first principles (docs/formats/redset.md). A scheme is "SINGLE", "PARTNER", "XOR",
or "RS 2" with the members of a set that may be lost."""


def sets_of(counts, least):
    """The ranks of each set: docs/decisions/0005-rank-placement-in-sets.md."""
    count = max(sum(counts) // least, max(counts))
    return [range(first, sum(counts), count) for first in range(count)]


def covers(scheme, sets, lost):
    """Whether all can be given back when the files of these ranks are lost."""
    kind, _, failures = scheme.partition(" ")
    for members in sets:
        gone = [number for number, rank in enumerate(members) if rank in lost]
        if kind == "PARTNER":
            if any((number + 1) % len(members) in gone for number in gone):
                return False
        elif len(gone) > min({"SINGLE": 0, "XOR": 1}.get(kind) or int(failures or 0), len(members) - 1):
            return False
    return True
