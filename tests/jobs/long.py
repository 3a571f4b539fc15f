#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many checkpoints in one run: nothing grows. JOB_THOROUGH=1 takes 1,000 of them instead of 200."""
import os

from job import Job, main, restart
import tree

COUNT = 1000 if "JOB_THOROUGH" in os.environ else 200
FEW = 105  # until then caches of the allocator and of MPI fill up; no flush is under way
FLUSH = 10
# Verbs of probe, and what each may grow by. Bytes allocated: the caches go on to fill up, ever more slowly, by
# some kB whatever the number of checkpoints. Resident kB: rank 0 reads an index that has more entries.
GROWTH = {"fds": 0, "communicators": 0, "allocated": 16384, "resident": 1024}


def flushed(job):
    index = tree.read(job.prefix / ".scr/index.scr")
    return sorted(int(name[1:]) for name in index["DIR"])


def totals(*folders):
    """Number of files below the folders, and their bytes."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def held(job):
    """Files and bytes in the caches, and in the control folders."""
    return [totals(*[place(node) for node in job.nodes()]) for place in (job.cache, job.control)]


def compare_folders(before, after):
    """The same files; records of larger numbers have a few more bytes."""
    for (files, size), (files_after, size_after) in zip(before, after):
        assert files == files_after and size_after <= size * 1.02, (before, after)


def many(**parameters):
    with Job(2, 2, SCR_DEBUG=0, **parameters) as job:
        job.run("init", f"series:1:{FEW}")
        before = held(job)
    with Job(2, 2, SCR_DEBUG=0, **parameters) as job:
        run = job.run("init", f"series:1:{FEW}", *GROWTH, f"series:{FEW + 1}:{COUNT + 5}", *GROWTH,
                      restart(f"c{COUNT + 5}"), limit=600)
        for verb, spare in GROWTH.items():
            first, last = [op["flag"] for op in run.ops if op["op"] == verb]
            print(f"    {verb}: {first} after {FEW} checkpoints, {last} after {COUNT + 5}")
            assert all(b <= a + spare for a, b in zip(first, last)), (verb, first, last)
        assert job.cached() == job.cached("n2") == [COUNT + 4, COUNT + 5], job.cached()
        compare_folders(before, held(job))
        if parameters["SCR_FLUSH"]:
            assert flushed(job) == list(range(FLUSH, COUNT + 1, FLUSH)), flushed(job)


def test_many():
    many(SCR_FLUSH=0)


def test_many_flushed():
    many(SCR_FLUSH=FLUSH)


def test_many_flushed_in_the_background():
    many(SCR_FLUSH=FLUSH, SCR_FLUSH_ASYNC=1)


if __name__ == "__main__":
    main(globals())
