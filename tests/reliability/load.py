#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Load: more ranks than processors, many checkpoints, many files, many datasets, a whole day. Nothing grows that need not:
memory, descriptors and communicators of a process, files and bytes in cache, control and prefix directories. Each part is
short unless --all is given; times are told, not judged."""
import argparse
import os
import subprocess
import sys
import time

from sweep import METHODS, Job, check_processes, is_complete, on_prefix, tree
from job import MPI, checkpoint, main, restart

WHOLE = False  # --all
FEW = 105      # checkpoints until caches of the allocator and of MPI are full; a flush of the 100th is done by then
FLUSH = 10
# A sanitizer counts what is allocated to the byte, and holds back what is freed, so that what is resident says nothing.
SANITIZED = "ASAN_OPTIONS" in os.environ
# The flush under way has copied all; a call of SCR ends it.
SETTLED = ["sleep:2000", "need => ANY"]
# Verbs of probe, and what each may grow by between two moments. Bytes allocated: the allocator's caches go on to fill up, ever
# more slowly, by some kB whatever the number of checkpoints; other implementations of MPI than MPICH have more of their own. Resident kB:
# rank 0 reads an index that has more entries.
GROWTH = {"fds": 0, "communicators": 0, "allocated": 4096 if SANITIZED else 65536 if MPI.mpi == "MPICH" else 131072, "resident": 4096}


def tell(*words):
    print("   ", *words, flush=True)


def values(run, verb):
    """What it gave each time, on all ranks."""
    return [op["flag"] for op in run.ops if op["op"] == verb]


def laps(run):
    """Milliseconds between any two, on rank 0."""
    return [flag[0] for flag in values(run, "lap")][1:]


def compare_processes(run, what, **spares):
    """The second time that GROWTH was measured with the first."""
    for verb, spare in {**GROWTH, **spares}.items():
        first, last = values(run, verb)
        most = max(b - a for a, b in zip(first, last))
        tell(f"{verb}: at most {max(first)}, {max(last)} after {what}, {most:+} at most on a rank")
        assert most <= spare or SANITIZED and verb == "resident", (verb, first, last)


def totals(*folders):
    """Number of files below the directories, and their bytes."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def held(job):
    """Files and bytes in the caches, in the control directories, and in the prefix directory."""
    return {"caches": totals(*map(job.cache, job.nodes())), "control directories": totals(*map(job.control, job.nodes())),
            "prefix directory": totals(job.prefix)}


def compare_folders(before, after, places):
    """The same files; records of larger numbers have a few more bytes."""
    for place in places:
        (files, size), (files_after, size_after) = before[place], after[place]
        tell(f"{place}: {files} files of {size} bytes, {files_after} of {size_after}")
        assert files == files_after and size_after <= size * 1.02, (place, before, after)


# ---- ranks ----

def test_ranks():
    """32 of them; two nodes are lost, and come back empty."""
    last = FEW + (300 if WHOLE else 10)
    for method in METHODS if WHOLE else ["pthread"]:
        with Job(8, 4, SCR_DEBUG=0, SCR_FLUSH=FLUSH, SCR_COPY_TYPE="RS", SCR_SET_SIZE=8, **METHODS[method]) as job:
            run = job.run("lap", "init", "lap", f"series:1:{FEW}", SETTLED, *GROWTH, "lap",
                          f"series:{FEW + 1}:{last}", "lap", SETTLED, *GROWTH, limit=600)
            init, _, more = laps(run)
            tell(f"{method}: {init} ms to start, {more / (last - FEW):.0f} ms for a checkpoint")
            compare_processes(run, f"{last} checkpoints instead of {FEW}")
            job.lose("n2", "n7")
            run = job.run("lap", "init", "lap", restart(f"c{last}"), "finalize", limit=600)
            tell(f"{laps(run)[0]} ms to start and to rebuild two nodes of eight")
            check_processes()


# ---- checkpoints ----

def many(method, **parameters):
    last = 1000 + FLUSH // 2 if WHOLE else 205
    with Job(2, 2, SCR_DEBUG=0, **parameters) as job:
        job.run("init", f"series:1:{FEW}")
        before = held(job)
    with Job(2, 2, SCR_DEBUG=0, **parameters) as job:
        run = job.run("init", f"series:1:{FEW}", SETTLED, *GROWTH, f"series:{FEW + 1}:{last}", SETTLED, *GROWTH,
                      restart(f"c{last}"), limit=600)
        tell(f"{method}:")
        compare_processes(run, f"{last} checkpoints instead of {FEW}")
        assert job.cached() == job.cached("n2") == [last - 1, last], job.cached()
        compare_folders(before, held(job), ["caches", "control directories"])
        wanted = {f"c{i}" for i in range(FLUSH, last + 1, FLUSH)} if parameters["SCR_FLUSH"] else set()
        assert {name for name, entry in on_prefix(job).items() if is_complete(entry)} == wanted


def test_checkpoints():
    many("not flushed", SCR_FLUSH=0)
    for method, parameters in METHODS.items():
        if WHOLE or method != "daemon":
            many(method, SCR_FLUSH=FLUSH, **parameters)


# ---- runs of one process ----

def test_abandoned():
    """Run after run is given up, with a flush in the background or with an open restart."""
    last = 1000 if WHOLE else 60
    with Job(2, 2, SCR_DEBUG=0, SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, SCR_PREFIX_SIZE=3) as job:
        run = job.run("abandon_many:40", *GROWTH, f"abandon_many:{last}", *GROWTH, limit=600)
        compare_processes(run, f"{last} runs more, which were given up")


# ---- files ----

def test_files():
    """20,000 in a dataset, written, flushed, rebuilt and fetched."""
    each = 5000 if WHOLE else 150
    write = ["start:many:c", f"put_many:many:{each}", "lap", "complete:1", "lap"]
    read = ["have => 1 many", "lap", "start_restart", f"get_many:many:{each}", "complete_restart:1"]
    with Job(4, 1, SCR_DEBUG=0, SCR_FLUSH=1, SCR_CACHE_SIZE=1) as job:
        run = job.run("init", "lap", write, checkpoint("c"), *GROWTH, write, checkpoint("c"), *GROWTH, limit=600)
        put, complete = laps(run)[:2]
        tell(f"{4 * each} files: {put} ms to write, {complete} ms to complete and flush")
        compare_processes(run, "as many once more", resident=16384)
    with Job(4, 1, SCR_DEBUG=0, SCR_FLUSH=1, SCR_CACHE_SIZE=1) as job:
        job.run("init", "lap", write, limit=600)
        job.lose("n2")
        run = job.run("lap", "init", "lap", read, limit=600)
        tell(f"{laps(run)[0]} ms to start and to rebuild a node, {laps(run)[1]} ms to offer it")
        job.lose(*job.nodes())
        run = job.run("lap", "init", "lap", read, "finalize", limit=600)
        tell(f"{laps(run)[0]} ms to start, {laps(run)[1]} ms to fetch")


# ---- prefix ----

def test_prefix():
    """5,000 datasets in a prefix directory."""
    last, block = (5000, 500) if WHOLE else (160, 40)
    blocks = [[f"series:{first}:{first + block - 1}", "lap"] for first in range(1, last, block)]
    with Job(2, 1, SCR_DEBUG=0, SCR_FLUSH=1) as job:
        run = job.run("init", blocks[0], blocks[1], *GROWTH, "lap", blocks[2:], *GROWTH, "finalize", limit=3600)
        each = [lap / block for lap in laps(run)]
        tell(f"ms for a checkpoint that is flushed, by {block}:", *[f"{lap:.1f}" for lap in each])
        compare_processes(run, f"{last} datasets instead of {2 * block}")
        records = {path.name: path.stat().st_size for path in (job.prefix / ".scr").iterdir() if path.is_file()}
        tell("bytes of records:", records)
        for what in ["nothing", "index.scr"]:
            if what != "nothing":
                (job.prefix / ".scr" / what).unlink()
            run = job.run("lap", "init", "lap", restart(f"c{last}"), "lap", "allocated", "finalize", limit=600)
            start, fetch = laps(run)
            tell(f"{what} lost: {start} ms to start, {fetch} ms to fetch and read, {max(values(run, 'allocated')[0])} bytes")
            assert len(on_prefix(job)) == last
        commands(job, last)


def command(job, *words):
    """What scr_index prints; its time is told."""
    start, index = time.monotonic(), f"{os.environ['JOB_TOOLS']}/scr_index"
    ended = subprocess.run([index, "--prefix", job.prefix, *words], stdout=subprocess.PIPE, text=True)
    assert ended.returncode == 0, f"scr_index {' '.join(words)}: exit code {ended.returncode}"
    tell(f"scr_index {' '.join(words)}: {(time.monotonic() - start) * 1000:.0f} ms")
    return ended.stdout.splitlines()


def commands(job, last):
    """What people do with so many datasets."""
    if not os.path.exists(f"{os.environ['JOB_TOOLS']}/scr_index"):
        return  # without tools
    assert len(command(job, "--list", "--json")) == last
    assert sum(" good " in line for line in command(job, "--verify")) == last
    command(job, "--current", "c1")
    command(job, "--drop", f"c{last // 2}")
    assert len(on_prefix(job)) == last - 1
    command(job, "--add", f"c{last // 2}")
    (job.prefix / ".scr/index.scr").unlink()
    command(job, "--rebuild")
    assert len(on_prefix(job)) == last


# ---- a day ----

HOURS, STEP, COST = 24, 60, 15
# each of them wants a checkpoint after 5 minutes of computing
WAYS = {"SCR_CHECKPOINT_SECONDS": {"SCR_CHECKPOINT_SECONDS": 300},
        "SCR_CHECKPOINT_OVERHEAD": {"SCR_CHECKPOINT_OVERHEAD": 5},
        "SCR_CHECKPOINT_INTERVAL=auto": {"SCR_CHECKPOINT_INTERVAL": "auto", "SCR_MTBF": 3000}}


def day(way, method):
    """An allocation of 24 hours, which the run is told to leave ten minutes before its end."""
    first, keep = 10, 3
    parameters = {"SCR_DEBUG": 0, "SCR_FLUSH": FLUSH, "SCR_PREFIX_SIZE": keep, "SCR_HALT_SECONDS": 600, **WAYS[way],
                  **METHODS[method]}
    with Job(2, 2, **parameters, SCR_END_TIME=int(time.time()) + HOURS * 3600) as job:
        run = job.run("init", f"compute:{first}:{STEP}:{COST}", *GROWTH, f"compute:{HOURS}:{STEP}:{COST}", *GROWTH,
                      "exit => 1", limit=600)
        counts = [flags[0] for flags in values(run, f"compute:{first}:{STEP}:{COST}") +
                  values(run, f"compute:{HOURS}:{STEP}:{COST}")]
        seconds = first * 3600 + int(run.ops[-len(GROWTH) - 2]["text"][0])
        tell(f"{way}, {method}: {sum(counts)} checkpoints in {seconds} s")
        compare_processes(run, f"{sum(counts)} checkpoints instead of {counts[0]}")
        assert HOURS * 3600 - 600 - 2 * STEP <= seconds <= HOURS * 3600, seconds
        assert abs(sum(counts) - seconds / (300 + COST)) <= 3, counts
        assert len(on_prefix(job)) <= keep + 1, on_prefix(job).keys()
        held_now = held(job)
        tell(", ".join(f"{place}: {files} files of {size} bytes" for place, (files, size) in held_now.items()))
        assert len([path for path in job.prefix.iterdir() if path.name != ".scr"]) == len(on_prefix(job))


def test_day():
    for way in WAYS:
        for method in METHODS if WHOLE else ["pthread"]:
            day(way, method)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the whole load, not a small one")
    parser.add_argument("--only", default="", help="only parts whose names have this in them")
    given = parser.parse_args()
    WHOLE = given.all
    sys.argv[1:] = [name for name in list(globals()) if name.startswith("test_") and given.only in name]
    main(globals())
