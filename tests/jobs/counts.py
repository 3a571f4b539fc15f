#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What one flush does to the prefix directory, counted on each rank: the difference between runs with one flush more. Rank 0 does what
is done once for all, the others what each rank does. The limits are what is needed now: a change that needs more fails."""
import collections
import os

from job import Job, checkpoint, main

SYNCS_ROOT = 23  # of rank 0: records of the dataset, the index, the flush file, and their directories
CHANGES = {"ftruncate": 1, "fchmod": 1, "pwrite": 1, "fsync": 1, "renameat": 1}  # of any other rank, ...
OPENS = 16  # ... which opens its file twice, and directories
RANKS = 4


def calls_of(job, checkpoints):
    """Of each rank, the calls below the prefix directory, by name."""
    log = job.root / f"calls.{checkpoints}"
    faults = {"FAULTS_BELOW": str(job.prefix), "FAULTS_PROGRAM": os.path.basename(os.environ["JOB_PROBE"]), "FAULTS_AT": "0",
              "FAULTS_READING": "1", "FAULTS_LOG": str(log)}
    names = [f"run{checkpoints}.{i}" for i in range(checkpoints)]
    job.run("init", *[checkpoint(name) for name in names], "finalize", faults=faults, SCR_FLUSH=1, SCR_FLUSH_TYPE="SYNC", SCR_FLUSH_ASYNC=0)
    return [collections.Counter(line.split()[2] for line in log.with_name(f"{log.name}.{rank}").read_text().splitlines())
            for rank in range(RANKS)]


def test_flush():
    with Job(nodes=2, per_node=2) as job:
        fewer, more = calls_of(job, 2), calls_of(job, 3)
        flush = [m - f for m, f in zip(more, fewer)]
        print("\n".join(f"rank {rank}: {dict(calls)}" for rank, calls in enumerate(flush)))
        assert 0 < flush[0]["fsync"] <= SYNCS_ROOT, flush[0]
        for calls in flush[1:]:
            assert 0 < calls["openat"] <= OPENS, calls
            assert all(calls[name] <= most for name, most in CHANGES.items()), calls
            assert not set(calls) - set(CHANGES) - {"openat", "close", "fstatat"}, calls


if __name__ == "__main__":
    main(globals())
