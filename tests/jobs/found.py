#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A prefix directory without SCR's own directory .scr, because it was removed or the
datasets were moved: the datasets have their own records and are found again."""
import os
import shutil

from job import Job, checkpoint, main, messages, restart
from scavenged import command
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}

def forget(job):
    """Removes the caches, and the records of all datasets on the prefix directory."""
    job.lose(*job.nodes())
    shutil.rmtree(job.prefix / ".scr")


def test_removed():
    """The newest dataset is offered, and the next run has an index."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("deep/in/c2"), checkpoint("out", flags="o"), "finalize")
        forget(job)
        run = job.run("init", restart("deep/in/c2"), checkpoint("c3"), "finalize")
        run.says("INDEX_REBUILT", "index.scr is missing", "3 datasets", times=1)
        index = tree.read(job.prefix / ".scr/index.scr")
        assert sorted(index["DIR"]) == ["c1", "c3", "deep/in/c2", "out"] and "4" in index["DSET"], index
        job.lose(*job.nodes())
        job.run("init", restart("c3"), "finalize").says("INDEX_REBUILT", times=0)


def test_emptied():
    """As when hidden files were not copied; a script has written a halt file since."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        forget(job)
        (job.prefix / ".scr").mkdir()
        tree.write(job.prefix / ".scr/halt.scr", {"CheckpointsLeft": {"5": {}}})
        job.run("init", restart("c1"), "finalize").says("INDEX_REBUILT", "index.scr is missing", "1 datasets", times=1)


def test_removed_and_cached():
    """The cache has newer datasets."""
    with Job(**{**PAIR, "SCR_FLUSH": 2}) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), checkpoint("c3"))
        shutil.rmtree(job.prefix / ".scr")
        job.run("init", restart("c3"), "finalize").says("INDEX_REBUILT", "index.scr is missing", "1 datasets", times=1)
        job.lose(*job.nodes())
        job.run("init", restart("c3"), "finalize")


def test_bypass():
    """Datasets with files outside of their directories are found, too."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", "start:a:c", "put:elsewhere/rank_%r:100", "complete:1", "finalize")
        forget(job)
        run = job.run("init", "have => 1 a", "start_restart => a", "get:elsewhere/rank_%r:100", "complete_restart:1")
        run.says("INDEX_REBUILT", "index.scr is missing", "1 datasets", times=1)


def test_damaged():
    """Unusable datasets are reported; an older one is offered."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
        forget(job)
        damage.flip(job.prefix / "c2/.scr/summary.scr")
        run = job.run("init", restart("c1"), "finalize")
        run.says("INDEX_REBUILT", "1 datasets", "the first is c2", times=1)


def test_fresh_folder():
    """A directory with only files of the application: nothing is reported, and the index
    is empty."""
    with Job(**PAIR) as job:
        (job.prefix / "input/mesh").mkdir(parents=True)
        for number in range(100):
            (job.prefix / f"input/mesh/{number}").touch()
        for _ in range(2):
            run = job.run("init", "have => 0 =", "finalize")
            run.not_said("warning|index")
        assert "DSET" not in tree.read(job.prefix / ".scr/index.scr")


def test_search_has_limits():
    """A directory with very many files is not searched completely, which is reported
    once."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        forget(job)
        (job.prefix / "input").mkdir()
        for number in range(100_000):
            os.mknod(f"{job.prefix}/input/{number}")
        shutil.rmtree(job.prefix / "c1")
        run = job.run("init", "have => 0 =", "finalize")
        run.says("INDEX_NOT_SEARCHED", "scr_index --add NAME", times=1)
        run = job.run("init", "have => 0 =", "finalize")
        run.says("INDEX_NOT_SEARCHED", times=0)


def test_commands():
    """Commands print remedies."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        forget(job)
        done = command(job, "scr_index", code=1)
        assert messages(done.err, "INDEX_MISSING", "--rebuild"), str(done)
        assert "1 datasets found, 1 added" in command(job, "scr_index", "--rebuild").out
        job.run("init", restart("c1"))


if __name__ == "__main__":
    main(globals())
