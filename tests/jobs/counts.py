#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the calls of a job's ranks on the prefix directory: in one flush, as the
difference between runs with one flush more, in SCR_Init, a fetch and a deletion. Rank 0
does the work that is done once, the others the work of each rank. The limits are the
current numbers: a change that needs more fails."""
import collections
import os

from job import Job, checkpoint, main, restart

SYNCS_ROOT = 17  # of rank 0: docs/decisions/0040-what-a-flush-syncs.md
CHANGES = {"ftruncate": 1, "pwrite": 1, "fsync": 1, "renameat": 1}  # of any other rank, ...
OPENS = 8  # ... which opens its file twice, and the directories on the way to it once
INIT_OPENS = 8  # of a rank that is not the first of its node
FETCH_OPENS = 5  # the directory twice, the file thrice
RANKS = 4


def calls_of(job, tag, *operations, below=None):
    """Returns, for each rank, the calls below the prefix directory, or another one, by
    name."""
    log = job.root / f"calls.{tag}"
    faults = {"FAULTS_BELOW": str(below or job.prefix), "FAULTS_PROGRAM": os.path.basename(os.environ["JOB_PROBE"]), "FAULTS_AT": "0",
              "FAULTS_READING": "1", "FAULTS_LOG": str(log)}
    job.run("init", *operations, "finalize", faults=faults, SCR_FLUSH=1, SCR_FLUSH_TYPE="SYNC", SCR_FLUSH_ASYNC=0)
    logs = [log.with_name(f"{log.name}.{rank}") for rank in range(RANKS)]
    return [collections.Counter(line.split()[2] for line in one.read_text().splitlines()) if one.exists() else collections.Counter()
            for one in logs]


def difference(fewer, more):
    calls = [m - f for m, f in zip(more, fewer)]
    print("\n".join(f"rank {rank}: {dict(one)}" for rank, one in enumerate(calls)))
    return calls


def checkpoints(run, number):
    return [checkpoint(f"run{run}.{i}") for i in range(number)]


def test_flush():
    with Job(nodes=2, per_node=2) as job:
        flush = difference(calls_of(job, 2, *checkpoints(2, 2)), calls_of(job, 3, *checkpoints(3, 3)))
        assert 0 < flush[0]["fsync"] <= SYNCS_ROOT, flush[0]
        for calls in flush[1:]:
            assert 0 < calls["openat"] <= OPENS, calls
            assert all(calls[name] <= most for name, most in CHANGES.items()), calls
            assert not set(calls) - set(CHANGES) - {"openat", "close", "fstatat"}, calls


def test_init():
    """The first rank of each node opens the directory; the others do not touch it."""
    with Job(nodes=2, per_node=2) as job:
        calls = calls_of(job, "init")
        assert calls[0]["fsync"] and [sum(one.values()) for one in calls[1:]] == [0, 2, 0], calls


def test_init_opens():
    """A rank opens the control and cache directories with all directories above them, and
    its file map. Existing directories are not made."""
    with Job(nodes=2, per_node=2) as job:
        job.run("init")  # makes the directories
        calls = calls_of(job, "nodes", below=job.root / "nodes")
        print("\n".join(f"rank {rank}: {dict(one)}" for rank, one in enumerate(calls)))
        assert all(0 < calls[rank]["open"] + calls[rank]["openat"] <= INIT_OPENS for rank in (1, 3)), calls
        assert not any(one["mkdirat"] for one in calls), calls


def test_fetch():
    with Job(nodes=2, per_node=2) as job:
        job.run("init", *checkpoints(1, 1), "finalize", SCR_FLUSH=1, SCR_FLUSH_TYPE="SYNC", SCR_FLUSH_ASYNC=0)
        for node in ("n1", "n2"):
            job.lose(node)
        fetch = difference(calls_of(job, "none"), calls_of(job, "fetch", *restart("run1.0")))
        for calls in fetch[1:]:
            assert 0 < calls["openat"] <= FETCH_OPENS, calls
            assert not set(calls) - {"openat", "close", "pread"}, calls


def test_deletion():
    """One rank removes a few files; the others need not open anything."""
    with Job(nodes=2, per_node=2) as job:
        job.run("init", *checkpoints(1, 2), "finalize", SCR_FLUSH=1, SCR_FLUSH_TYPE="SYNC", SCR_FLUSH_ASYNC=0)
        deletion = difference(calls_of(job, "none"), calls_of(job, "delete", "delete:run1.0"))
        assert deletion[1]["unlinkat"] == RANKS, deletion[1]
        assert not deletion[2] and not deletion[3], deletion


if __name__ == "__main__":
    main(globals())
