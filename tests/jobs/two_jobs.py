#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two jobs with one prefix directory, which began at the same time and therefore use the
same ids, with or without the same names: their datasets are different; the newer one
counts, and neither is confused with the other."""
import concurrent.futures
import shutil

from job import Job, checkpoint, main, restart, wait_until
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 0}
FIRST, SECOND = {"SCR_JOB_ID": 71}, {"SCR_JOB_ID": 72}
NAMES = [("c1", "c1"), ("a1", "b1")]  # what the first job writes, and the second one
NEW, OLD = 2000, 1000  # sizes


def entries(job, name):
    """The entries of that name in the index, by id."""
    index = tree.read(job.prefix / ".scr/index.scr")
    return {int(id): of_id["DIR"][name] for id, of_id in index["DSET"].items() if name in of_id["DIR"]}


def older_in_the_cache(job, first, second, **how):
    """The first job has a checkpoint in its cache, and the prefix directory has a newer
    one of the second job."""
    job.run("init", checkpoint(first, OLD), "kill@0", dies=True, **FIRST)
    job.run("init", checkpoint(second, NEW), "finalize", **{"SCR_FLUSH": 1, **SECOND, **how})
    assert list(entries(job, second)) == [1], "they do not have the same id"


def beside(job, before, other, after, **how):
    """The first job does one thing before the other job runs, and one thing after
    that."""
    begun, go = job.root / "begun", job.root / "go"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        run = pool.submit(job.run, before, f"touch@0:{begun}", f"await:{go}", after, **{**FIRST, **how})
        try:
            wait_until(begun.exists)
            job.run("init", other, SCR_FLUSH=1, dies=None, **SECOND)
        finally:
            go.touch()
        return run.result()


def newer_in_the_cache(job, first, second):
    """The same, but the first job wrote its checkpoint later."""
    beside(job, "init", [checkpoint(second, OLD), "finalize"], [checkpoint(first, NEW), "kill@0"], dies=True)
    assert list(entries(job, second)) == [1], "they do not have the same id"


def of_the_second(job, second):
    """Other nodes read only what is on the prefix directory."""
    return job.run("init", restart(second, NEW), "finalize", SCR_JOB_ID=73)


def test_older_in_the_cache():
    """The newer one is offered, and read in place: the cache keeps its dataset of that
    id, in case that the program cannot use the newer one."""
    for first, second in NAMES:
        with Job(**PAIR) as job:
            older_in_the_cache(job, first, second)
            job.run("init", restart(second, NEW), "kill@0", dies=True, **FIRST).says("FETCH_READ_IN_PLACE", second, "another dataset 1 is there", times=1)
            job.run("init", f"have => 1 {second}", f"start_restart => {second}", "complete_restart:0 => INVALID",
                    restart(first, OLD), checkpoint("c2"), "finalize", **FIRST)
            assert "FAILED" in entries(job, second)[1]


def test_newer_in_the_cache():
    """The newer one is offered; if the program cannot use it, the other one is unaffected
    and next."""
    for first, second in NAMES:
        with Job(**PAIR) as job:
            newer_in_the_cache(job, first, second)
            job.run("init", restart(first, NEW), f"have => 1 {first}", f"start_restart => {first}",
                    "complete_restart:0 => INVALID", restart(second, OLD), "kill@0", dies=True, **FIRST)
            assert "FAILED" not in entries(job, second)[1]


def test_flush_of_the_older():
    """The older one does not replace the newer one."""
    with Job(**PAIR) as job:
        older_in_the_cache(job, "c1", "c1")
        job.run("init", "have => 1 c1", "finalize", SCR_FETCH=0, SCR_FLUSH=1, **FIRST).says("FLUSH_SUPERSEDED", "dataset 1", times=1)
        of_the_second(job, "c1")


def test_flush_of_the_newer():
    """The newer one counts as not flushed at first, and replaces the older one."""
    with Job(**PAIR) as job:
        newer_in_the_cache(job, "c1", "c1")
        job.run("init", restart("c1", NEW), "finalize", SCR_FLUSH=1, **FIRST).says("FLUSH_COMPLETE", "dataset 1 .c1.", times=1)
        of_the_second(job, "c1")


def test_marks_of_the_other():
    """The second job has flushed its dataset and written the flush file last: this does
    not concern the first job's, a checkpoint and an output that must leave the cache."""
    slow = {"SCR_FLUSH": 1, "SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "100KB"}
    for flags, more in (("c", []), ("o", [checkpoint(f"n{number}") for number in range(3)])):
        with Job(**PAIR) as job, concurrent.futures.ThreadPoolExecutor() as pool:
            gates = [job.root / name for name in ("first", "go_second", "second", "go_first", "end_second")]
            first, go_second, second, go_first, end_second = gates
            runs = [pool.submit(job.run, "init", f"touch@0:{first}", f"await:{go_first}", checkpoint("a1", NEW, flags=flags), "kill@0",
                                dies=True, **{**FIRST, **slow, "SCR_FLUSH_ASYNC_BW": "1KB", "SCR_FLUSH": 0}),
                    pool.submit(job.run, "init", f"await:{go_second}", checkpoint("b1", 50000), f"touch@0:{second}", f"await:{end_second}",
                                checkpoint("b2"), "kill@0", dies=True, **slow, **SECOND)]
            try:
                wait_until(first.exists)
                go_second.touch()
                wait_until(second.exists)
                go_first.touch()
                runs[0].result()
            finally:
                for gate in gates:
                    gate.touch()
            runs[1].result()
            marks = tree.read(job.prefix / ".scr/flush.scr")
            assert "scr.72" in tree.only(marks["OWNER"]) and "PFS" in marks["DSET"]["1"]["LOCATION"], marks
            job.run("init", restart("a1", NEW) if flags == "c" else [], more, "finalize", SCR_FLUSH=1, **FIRST)
            assert entries(job, "a1")[1]["COMPLETE"] == {"1": {}} and (job.prefix / "a1/rank_1").exists()


def test_newer_while_it_is_written():
    """A dataset that is overtaken meanwhile is not flushed, not in the background
    either."""
    for background in (0, 1):
        with Job(**PAIR) as job:
            run = beside(job, ["init", "start:c1:c", f"put:c1/rank_%r:{OLD}"], [checkpoint("c1", NEW), "finalize"],
                         ["complete:1", "finalize"], SCR_FLUSH=1, SCR_FLUSH_ASYNC=background)
            run.says("FLUSH_SUPERSEDED", "dataset 1")
            of_the_second(job, "c1")


def test_newer_while_it_is_flushed():
    """Its files are overwritten, which is reported; the offered dataset is one of both,
    not a mixture."""
    with Job(**PAIR) as job:
        run = beside(job, ["init", checkpoint("c1", 200000)], [checkpoint("c1", NEW), "finalize"], "finalize", SCR_FLUSH=1,
                     SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW="100KB")
        run.says("FLUSH_OVERWRITTEN", "c1", times=1)
        job.run("init", restart("c1", 200000), "finalize", SCR_JOB_ID=73)


def test_summary_of_the_other():
    """With all records beside it, the other summary is right, and the index is corrected.
    Alone: the map is of another dataset."""
    for alone in (False, True):
        with Job(**{**PAIR, "SCR_FLUSH": 1}) as job:
            job.run("init", checkpoint("c1"), "finalize", **FIRST)
            (job.prefix / "c1").rename(job.root / "first")
            shutil.rmtree(job.prefix / ".scr")
            job.run("init", "have => 0 =", checkpoint("c1"), "finalize", **SECOND)
            if alone:
                shutil.copy(job.root / "first/.scr/summary.scr", job.prefix / "c1/.scr")
            else:
                shutil.rmtree(job.prefix / "c1")
                (job.root / "first").rename(job.prefix / "c1")
            run = job.run("init", "have => 0" if alone else restart("c1"), "finalize", SCR_JOB_ID=73)
            run.says("INDEX_CORRECTED", "dataset 1 as c1", "created at another time", times=1)
            run.says("FETCH_CHECKPOINT_DAMAGED", "it is of dataset 1", times=int(alone))
            job.run("init", "have => 0" if alone else restart("c1"), "finalize", SCR_JOB_ID=74).says("INDEX_CORRECTED", times=0)


def test_containers():
    """The containers cannot be read in place: the older dataset is offered, nothing is
    marked as failed, and everything is reported."""
    with Job(**PAIR) as job:
        older_in_the_cache(job, "a1", "b1", SCR_USE_CONTAINERS=1)
        job.run("init", restart("a1", OLD), "finalize", **FIRST).says("FETCH_FAILED", "b1", "another dataset 1 is there", times=1)
        assert "FAILED" not in entries(job, "b1")[1]
        of_the_second(job, "b1")


def test_remains():
    """Remains of an older dataset that cannot be rebuilt now are replaced by the newer
    one, in containers, too."""
    with Job(4, 1, SCR_SET_SIZE=4, SCR_FLUSH=0) as job:
        older_in_the_cache(job, "a1", "b1", SCR_USE_CONTAINERS=1)
        job.lose("n3")
        folder, = job.node("n2").glob("cache/*/scr.71/scr.dataset.1/a1")
        disk = {"FAULTS_BELOW": folder, "FAULTS_AT": 1, "FAULTS_STAYS": 1, "FAULTS_HOW": "EIO", "FAULTS_READING": 1}
        run = job.run("init", restart("b1", NEW), "finalize", faults=disk, **FIRST)
        run.says("REBUILD_FAILED", "a1.", times=1)
        run.says("FETCH_COMPLETE", "dataset 1 .b1.", times=1)
        of_the_second(job, "b1")


def test_current():
    """A choice of one dataset never selects the other one, whatever is newer."""
    with Job(**PAIR) as job:
        newer_in_the_cache(job, "a1", "b1")
        job.run("init", restart("a1", NEW), "kill@0", dies=True, **FIRST)
        job.run("init", restart("b1", OLD), "finalize", SCR_CURRENT="b1", **FIRST)


def test_lists_of_restarts():
    """The other job starts, or restarts from its own checkpoint, while the first one asks
    for the files of its own."""
    for other in [], ["have => 1 b1", "start_restart", "kill@0"]:
        with Job(**PAIR, SCR_RESTART_RANKS="any") as job:
            job.run("init", checkpoint("a1"), "kill@0", dies=True, **FIRST)
            job.run("init", checkpoint("b1"), "kill@0", dies=True, **SECOND)
            ask = ["dataset_file:0:0 => a1/rank_0:1000", "complete_restart:1"]
            beside(job, ["init", "have => 1 a1", "start_restart"], other, ask)


if __name__ == "__main__":
    main(globals())
