#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed between any two calls, and during calls before every change that it
makes to a file system. The next run finds a checkpoint that was complete, with the right
bytes."""
import os

from job import Job, checkpoint, main, restart

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 0}

# every byte of an offered checkpoint is right
RESTART = ["have => 1", "start_restart", "get:%T/rank_%r:1000", "complete_restart:1"]


# ---- between calls ----

def test_between_calls():
    """An incomplete dataset is not offered, and nothing of it stays in the caches."""
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"))
        steps = ["start:c2:c", "route:c2/rank_%r", "write:1000", "put:c2/deep/er/f_%r:10"]
        for last in range(1, len(steps) + 1):
            job.run("init", restart("c1"), steps[:last], "kill@2", dies=True)
            run = job.run("init", restart("c1"))
            run.says("CACHE_INCOMPLETE_REMOVED", "dataset 2", times=1)
            assert all(job.cached(node) == [1] for node in job.nodes()), job.cached()


def test_around_a_restart():
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"))
        steps = ["init", "have => 1 c1", "start_restart", "route:c1/rank_%r", "complete_restart:1"]
        for last in range(1, len(steps) + 1):
            job.run(steps[:last], "kill@3", dies=True)
        job.run("init", restart("c1"))


def test_killed_with_its_node():
    with Job(4, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "start:c3:c", "put:c3/rank_%r", "kill@4,5",
                dies=True)
        job.lose("n3")
        job.replace("n3", "n9")
        run = job.run("init", restart("c2"), checkpoint("c3"))
        run.says("REBUILD_COMPLETE", "2 of 8 ranks", times=1)


# ---- within calls ----

def crashes(job, script, judge, rank=0, limit=0):
    """Plays script repeatedly; the rank is killed at its 1st, 2nd, 3rd, ... change of a
    file system after the word CRASH, until it ends alive. Each time, judge inspects the
    remains. Of later changes, only a sample is used, unless JOB_THOROUGH is set."""
    job.save()
    for number in range(1, 200):
        if number > 6 and number % 4 and "JOB_THOROUGH" not in os.environ:
            continue
        crash = [f"crash@{rank}:{number}" if step == "CRASH" else step for step in script]
        alive = job.run(crash, dies=None).code == 0
        try:
            judge(job)
        except AssertionError as error:
            raise AssertionError(f"after a crash at change {number} of rank {rank}: {error}") from None
        if alive:
            assert number > limit, f"only {number - 1} changes"
            return
        job.go_back()
    raise AssertionError("it never came to its end")


def judge_by(*names, lost=(), seen=None, **parameters):
    """One of names is offered, and work continues from there."""
    def judge(job):
        job.lose(*lost)
        run = job.run("init", RESTART, checkpoint("next"), restart("next"), **parameters)
        offered = run.first("start_restart")["text"][0]
        assert offered in names, f"{offered} was offered\n{run}"
        run.not_said("FETCH_(CHECKPOINT_DAMAGED|FAILED)")  # an unfinished flush is not tried in the first place
        assert all(len(job.cached(node)) <= 2 for node in job.nodes()), job.cached()
        assert not list(job.prefix.rglob(".*.tmp")), list(job.prefix.rglob(".*.tmp"))
        if seen is not None:
            seen.add(offered)
    return judge


def test_within_start():
    """The oldest dataset leaves the cache, and the newest is never in danger. A thread
    removes the oldest, possibly not before the process ends."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        crashes(job, ["init", "CRASH", "start:c3:c"], judge_by("c2"), limit=2)


def test_within_complete():
    for rank in (0, 1):
        seen = set()
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"))
            crashes(job, ["init", "start:c2:c", "put:c2/rank_%r", "CRASH", "complete:1"],
                    judge_by("c1", "c2", seen=seen), rank, limit=5)
        assert seen == {"c1", "c2"}, seen


def test_within_complete_with_loss():
    """The node of the killed rank is lost, too."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"))
        crashes(job, ["init", "start:c2:c", "put:c2/rank_%r", "CRASH", "complete:1"],
                judge_by("c1", "c2", lost=["n2"]), rank=1, limit=5)


def test_within_init():
    """A rank is killed while files are rebuilt, or move to other nodes."""
    for rank in (0, 1):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"))
            job.lose("n2")
            crashes(job, ["CRASH", "init"], judge_by("c2"), rank, limit=10)
    with Job(3, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"))
        job.layout = job.layout[1:] + job.layout[:1]
        crashes(job, ["CRASH", "init"], judge_by("c1"), rank=1, limit=10)


def test_within_flush():
    """The prefix directory has the complete old dataset or the complete new one."""
    for rank in (0, 1):
        seen = set()
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1", flags="co"))
            crashes(job, ["init", "start:c2:co", "put:c2/rank_%r", "CRASH", "complete:1"],
                    judge_by("c1", "c2", lost=["n1", "n2"], seen=seen), rank, limit=7)
        assert seen == {"c1", "c2"}, seen


def test_within_finalize_that_cleans():
    """Datasets that are flushed before the cache is removed exist; the next end leaves
    nothing."""
    def judge(job):
        job.run("init", restart("c2"), "finalize")
        left = [path for node in job.nodes() for path in job.node(node).glob("*/*")]
        assert left == [], left
    for rank in (0, 1):
        with Job(2, 1) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"))
            crashes(job, ["init", "CRASH", "finalize"], judge, rank, limit=8)


def test_within_fetch():
    for rank in (0, 1):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1", flags="co"), checkpoint("c2", flags="co"))
            job.lose("n1", "n2")
            job.node("n1").mkdir(parents=True)
            crashes(job, ["init", "CRASH", "have"], judge_by("c2"), rank, limit=5)


def test_within_finalize():
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), SCR_FLUSH=1)
        job.parameters["SCR_FLUSH"] = 10
        job.run("init", checkpoint("c2"))
        crashes(job, ["init", "CRASH", "finalize"], judge_by("c2"), limit=8)


def test_within_delete():
    """c1 is unaffected, whatever is left of c2."""
    with Job(**{**PAIR, "SCR_FLUSH": 1}) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        crashes(job, ["init", "CRASH", "delete:c2"], judge_by("c1", "c2"), limit=4)


if __name__ == "__main__":
    main(globals())
