#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The end of a run: nothing of it is left on the nodes unless it is still needed, and a
summary is printed."""
import fcntl
import os
import re
import shutil
import time

from job import Job, checkpoint, main, restart, wait_until

PAIR = {"nodes": 2, "per_node": 2}


def left(job):
    """Returns everything below the bases of cache and control directories."""
    return sorted(str(path.relative_to(job.root / "nodes")) for node in job.nodes()
                  for base in ("cache", "cntl") for path in (job.node(node) / base).rglob("*"))


def series(first, last):
    return [checkpoint(f"c{number}") for number in range(first, last + 1)]


# ---- what is left ----

def test_nothing_is_left():
    """The newest checkpoint is on the prefix directory, so the cache is removed with all
    directories and records."""
    for more in ({}, {"SCR_FLUSH": 1}, {"SCR_FLUSH_ASYNC": 1}, {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON"},
                 {"SCR_CACHE_BYPASS": 1}, {"SCR_CACHE_SIZE": 1}):
        with Job(**PAIR) as job:
            path = f"{os.environ['JOB_PATH']}:{os.environ['PATH']}"
            job.run("init", series(1, 3), checkpoint("o", flags="o"), "finalize", PATH=path, **more)
            assert left(job) == [], left(job)
            job.run("init", restart("c3"), "finalize")
            assert left(job) == [], left(job)


def test_nothing_was_written():
    with Job(**PAIR) as job:
        job.run("init", "need => 0", "finalize")
        assert left(job) == [], left(job)


def test_others_stay():
    """Objects of others keep the directories in which they are."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), SCR_JOB_ID=18)
        (job.node("n1") / "cache" / "mine").mkdir(parents=True)
        job.run("init", checkpoint("c2"), "finalize")
        there = left(job)
        assert there and all("scr.18" in path or path in ("n1/cache/mine", "n1/cache/tester", "n2/cache/tester",
                                                          "n1/cntl/tester", "n2/cntl/tester") for path in there), there
        job.run("init", restart("c1"), "finalize", SCR_JOB_ID=18, SCR_FETCH=0, SCR_FLUSH=0)


def test_one_folder_for_all():
    """Cache and control directory may be the same, and shared by all nodes."""
    with Job(**PAIR) as job:
        same = {node: {"SCR_CACHE_BASE": job.root / "shm", "SCR_CNTL_BASE": job.root / "shm"} for node in job.nodes()}
        job.run("init", series(1, 2), "finalize", of_node=same)
        assert not list((job.root / "shm").iterdir())
        job.run("init", restart("c2"), "finalize", of_node=same)
        assert not list((job.root / "shm").iterdir())


# ---- what somebody needs ----

def test_only_copy_stays():
    """Without a flush, or if it fails, the cache has the only copy."""
    with Job(**PAIR) as job:
        run = job.run("init", series(1, 2), "finalize", SCR_FLUSH=0)
        run.says("CACHE_KEPT", "2", times=1)
        assert job.cached() == [1, 2]
        job.run("init", restart("c2"), "finalize")
        assert left(job) == [], left(job)
        shutil.rmtree(job.prefix / "c2")
        job.run("init", series(3, 3), "no_room:c3", "finalize => FLUSH")
        assert 3 in job.cached(), job.cached()
        job.run("init", restart("c3"))


def test_wanted():
    """SCR_CACHE_KEEP keeps the cache; so does a configuration that does not fetch."""
    for more in ({"SCR_CACHE_KEEP": 1}, {"SCR_FETCH": 0}):
        with Job(**PAIR, **more) as job:
            job.run("init", series(1, 3), "finalize")
            assert job.cached() == [2, 3], job.cached()
            run = job.run("init", restart("c3"), "finalize")
            run.says("FETCH_COMPLETE", times=0)


def test_of_another_size():
    """A dataset of another number of ranks is kept although a run of this number wrote
    and flushed its own."""
    small = [("n1", 1), ("n2", 1)]
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), SCR_FLUSH=0)
        job.run("init", "have => 0", "finalize", layout=small)
        assert job.cached() == [1, 2]
        run = job.run("init", "have => 0", checkpoint("c3"), "finalize", layout=small)
        run.says("CACHE_KEPT_OTHER_RANKS", "dataset [12] .c[12].", "4 ranks", times=2)
        assert job.cached() == [1, 2] == job.cached("n2"), job.cached()
        run = job.run("init", restart("c3"), series(4, 5), "finalize", layout=small, SCR_CACHE_SIZE=1)
        assert job.cached() == [1, 2] == job.cached("n2"), job.cached()
        run = job.run("init", restart("c2"), checkpoint("c6"), "finalize")
        run.says("RESTART_OTHER_RANKS", "c5", "2 ranks", "4", times=1)
        assert left(job) == [], left(job)
        job.run("init", restart("c6"), "finalize")
        job.run("init", restart("c5"), "finalize", layout=small)


def test_of_another_size_and_more_nodes():
    """A run is killed; then fewer ranks run on fewer nodes, then the original number,
    with a new node."""
    with Job(4, 1) as job:
        job.run("init", series(1, 5), "kill@1", dies=True)
        few = [(node, 1) for node in job.nodes()[:3]]
        run = job.run("init", "have => 0", checkpoint("other"), "finalize", layout=few)
        run.says("CACHE_KEPT_OTHER_RANKS", "dataset [45] .c[45].", "4 ranks", times=2)
        job.lose("n2")
        job.replace("n2", "n5")
        run = job.run("init", restart("c5"), "finalize")
        run.says("REBUILD_COMPLETE", "dataset 5 .c5.", times=1)
        run.not_said("CACHE_KEPT|REBUILD_IMPOSSIBLE|REBUILD_FAILED|CACHE_OTHER_RANKS")


def test_of_another_size_and_flushed():
    """The cache is not needed for datasets on the prefix directory, if they are still
    there."""
    small = [("n1", 1), ("n2", 1)]
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", series(1, 2), SCR_CACHE_SIZE=2)
        shutil.rmtree(job.prefix / "c1")
        run = job.run("init", checkpoint("c3"), "finalize", layout=small)
        run.says("CACHE_KEPT_OTHER_RANKS", "dataset 1 .c1.", "4 ranks", times=1)
        run.not_said("c2. of 4 ranks")
        assert job.cached() == [1], job.cached()
        job.run("init", "finalize", SCR_CACHE_PURGE=1, layout=small)
        assert left(job) == [], left(job)
        job.run("init", restart("c2"), "finalize")


def test_output_of_other_ranks_stays():
    """An output that could not be flushed stays while runs of another size, which cannot
    flush it, come and go; the next run of its size flushes it."""
    with Job(**PAIR) as job:
        job.run("init", "no_room@0:rank2file.scr", checkpoint("o", flags="o", code="FLUSH"))
        job.run("init", checkpoint("c"), "finalize", layout=[("n1", 1), ("n2", 1)])
        job.run("init", "finalize").says("FLUSH_COMPLETE", "dataset 1 .o.", times=1)
        assert (job.prefix / "o" / "rank_3").exists() and left(job) == [], left(job)


def test_removed_from_the_prefix_folder():
    """The dataset was removed manually or found damaged: the cache has the only copy."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"))
        shutil.rmtree(job.prefix / "a")
        run = job.run("init", "finalize")
        run.says("PREFIX_CHECKPOINT_LOST", "1", times=1)
        job.run("init", restart("a"))


def test_dropped():
    """The files of a dropped dataset stay complete on the prefix directory: the nodes
    need not keep it."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", series(1, 2), "drop:c2", "finalize").not_said("warning")
        assert left(job) == [] and (job.prefix / "c2/rank_0").exists(), left(job)
        job.run("init", restart("c1"))


# ---- summary ----

def test_summary():
    with Job(**PAIR) as job:
        run = job.run("init", series(1, 3), checkpoint("o", flags="o"), checkpoint("bad", valid="0", code="INVALID"),
                      "finalize")
        run.said(r"summary: checkpoints written: 3, 0\.012 MB in \d+\.\d+ s, \d+\.\d MB/s", times=1)
        run.said(r"summary: outputs written: 1, ", times=1)
        run.said(r"summary: flushes: 2, ", times=1)
        run.said(r"summary: failures: 1, ", times=1)
        run.said(r"summary: \d+\.\d+ s of \d+\.\d+ s were spent with this \(\d+\.\d %\)", times=1)
        run.not_said("fetches|rebuilt")
        run = job.run("init", restart("c3"), "finalize")
        run.said("summary: fetches: 1, ", times=1)
        job.run("init", checkpoint("c9"), SCR_FLUSH=0)
        job.lose("n1")
        run = job.run("init", restart("c9"), "finalize", SCR_FLUSH_ASYNC=1, SCR_DEBUG=1)
        run.said("summary: datasets rebuilt: 1, ", times=1)
        job.run("init", "finalize", SCR_DEBUG=0).says("RUN_SUMMARY", times=0)


# ---- messages ----

SLOW = {"SCR_FLUSH": 1, "SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "100KB"}


def test_never_time_for_a_checkpoint():
    """Nothing is configured, so SCR_Need_checkpoint is never true: reported once, at the
    first call, since a program may be killed."""
    with Job(**PAIR) as job:
        for end in ("finalize", []):
            run = job.run("init", "need => 0", "need => 0", end, SCR_DEBUG=0)
            run.says("CHECKPOINT_NEVER_DUE", "SCR_CHECKPOINT_INTERVAL", times=1)
        job.run("init", checkpoint("a"), "finalize").says("CHECKPOINT_NEVER_DUE", times=0)
        job.run("init", "need => 0", "finalize", SCR_CHECKPOINT_INTERVAL=100).says("CHECKPOINT_NEVER_DUE", times=0)
        job.run("init", "need => 0", "finalize", SCR_CHECKPOINT_SECONDS=100).says("CHECKPOINT_NEVER_DUE", times=0)


def test_finalize_is_forgotten():
    """MPI_Finalize reports a missing SCR_Finalize, for any communicator; not if
    SCR_Finalize was called or SCR never began."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"), "mpi_end", SCR_DEBUG=0).says("RUN_NOT_FINALIZED", times=1)
        job.run("init_comm:-1", checkpoint("a"), SCR_DEBUG=0).says("RUN_NOT_FINALIZED", times=1)
        job.run("init", checkpoint("a"), "finalize", "init", "finalize", "mpi_end").says("RUN_NOT_FINALIZED", times=0)
        job.run("init => CONFIG", SCR_CACHE_SIZE=-1).says("RUN_NOT_FINALIZED", times=0)
        job.run("init => DISABLED", SCR_ENABLE=0).says("RUN_NOT_FINALIZED", times=0)


def test_long_waits():
    """Waits of more than two seconds are announced; the summary includes that of
    SCR_Finalize."""
    with Job(**PAIR, SCR_DEBUG=1) as job:
        run = job.run("init", checkpoint("a", 150_000), "finalize", **SLOW)
        run.says("FLUSH_WAIT", "dataset 1 .a.", times=1)
        waited = float(re.search(r"summary: waited for asynchronous flushes: (\d+\.\d+) s", run.err)[1])
        spent = float(re.search(r"summary: (\d+\.\d+) s of .* were spent", run.err)[1])
        assert 2 < waited < spent, run
        run = job.run("init", series(1, 2), "slow@0:1000", checkpoint("c3"), SCR_FLUSH=0)
        run.says("CACHE_REMOVAL_WAIT", times=1)
        run = job.run("init", series(4, 6), "finalize")
        run.not_said(r"_WAIT\]|summary: waited")
        run = job.run("init", "slow@0:1000", "delete:c6", "slow@0:0", "finalize")
        run.says("PREFIX_REMOVAL_WAIT", "1 datasets", f"{job.prefix}", times=1)


def test_long_wait_for_a_lock():
    with Job(**PAIR) as job:
        first = job.start(os.environ["JOB_PROBE"], "init", f"touch:{job.root}/begun", f"await:{job.root}/go", "finalize")
        wait_until((job.root / "begun").exists)
        run = job.run("init => CACHE")
        run.says("CACHE_LOCK_WAIT", f"process \\d+, that uses {job.node('n1')}", times=1)
        (job.root / "go").touch()
        first.communicate()


def test_long_wait_for_the_records():
    """Waits for the halt file at the end of a run, and for the index."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"), "finalize")
        for number, (said, steps) in enumerate((("HALT_LOCK_WAIT", checkpoint("b")), ("INDEX_LOCK_WAIT", ["delete:a"]))):
            begun, go = job.root / f"begun.{number}", job.root / f"go.{number}"
            run = job.start(os.environ["JOB_PROBE"], "init", f"touch:{begun}", f"await:{go}", *steps, "finalize")
            wait_until(begun.exists)
            with open(job.prefix / ".scr/lock", "r+b") as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                go.touch()
                time.sleep(3)
            _, err = run.communicate()
            assert re.findall(r"another process has .scr/lock, .* \[(\w+)\]", err) == [said], err
        job.run("init", restart("b"), "finalize").says("LOCK_WAIT", times=0)


if __name__ == "__main__":
    main(globals())
