#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which checkpoint a restart gets: attempts that end the program, choices of the user,
and datasets that are only partly in the cache, the prefix directory or the index."""
import concurrent.futures
import shutil

from job import Job, checkpoint, main, restart, wait_until
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}
PACKED = {**PAIR, "SCR_USE_CONTAINERS": 1}  # what lies in containers cannot be read there
SLOW = {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "100KB"}


def entry(job, name):
    index = tree.read(job.prefix / ".scr/index.scr")
    return index["DSET"][tree.only(index["DIR"][name]["DSET"])]["DIR"][name]


def attempts(job, name):
    return int(tree.only(entry(job, name).get("ATTEMPTS", {"0": {}})))


def lose_all(job):
    job.lose(*job.nodes())


def series(first, last, **how):
    return [checkpoint(f"c{number}", **how) for number in range(first, last + 1)]


def crash_in(name):
    """The program reads the dataset and crashes."""
    return [f"have => 1 {name}", f"start_restart => {name}", "kill@1"]


# ---- a checkpoint that ends the program ----

def test_ends_the_program():
    """The dataset is tried twice, then the next older one, then the next; none is lost
    permanently."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 3))
        for name, over in (("c3", 0), ("c3", 0), ("c2", 1), ("c2", 1)):
            lose_all(job)
            run = job.run("init", crash_in(name), dies=True)
            run.says("RESTART_ATTEMPTS_EXHAUSTED", "c3", "2 runs", times=over)
        lose_all(job)
        run = job.run("init", restart("c1"), "finalize")
        run.says("RESTART_ATTEMPTS_EXHAUSTED", "c3", times=1)
        assert [attempts(job, name) for name in ("c1", "c2", "c3")] == [0, 2, 2]
        assert "FETCHED" in entry(job, "c3") and "FAILED" not in entry(job, "c3")
        lose_all(job)
        run = job.run("init", restart("c3"), SCR_CURRENT="c3")
        run.not_said("RESTART_(SKIPPED|ATTEMPTS)")
        assert attempts(job, "c3") == 0


def test_ends_the_program_from_the_cache():
    """The same when nothing has to be fetched."""
    with Job(**PAIR, SCR_CACHE_SIZE=3, SCR_CACHE_KEEP=1) as job:
        job.run("init", series(1, 3))
        for name in ("c3", "c3", "c2", "c2"):
            run = job.run("init", crash_in(name), dies=True)
            run.says("FETCH_COMPLETE", times=0)
        run = job.run("init", restart("c1"), series(4, 4), "finalize")
        assert job.cached() == [1, 4], job.cached()
        lose_all(job)
        job.run("init", restart("c4"))


def test_failed_on_the_prefix_folder():
    """If only the cache has a complete copy, it stays in the cache, however often it was
    tried."""
    with Job(**PAIR, SCR_CACHE_KEEP=1) as job:
        job.run("init", series(1, 2))
        (job.root / "nodes").rename(job.root / "away")
        damage.flip(job.prefix / "c2/rank_1")
        job.run("init", "have => 1 c1")
        lose_all(job)
        (job.root / "nodes").rmdir()
        (job.root / "away").rename(job.root / "nodes")
        for _ in range(3):
            job.run("init", crash_in("c2"), dies=True)
        job.run("init", restart("c2"))


def test_no_older_one():
    """If no older dataset is left, these are tried again, newest first, before the run
    begins anew; asked for twice, a dataset is fetched once."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2))
        for name in ("c2", "c2", "c1", "c1", "c2"):
            lose_all(job)
            run = job.run("init", crash_in(name), dies=True)
        run.says("RESTART_TRIED_AGAIN", "c2", "2 runs", "SCR_FETCH=0", times=1)
        lose_all(job)
        run = job.run("init", "have => 1 c2", restart("c2"))
        run.says("RESTART_TRIED_AGAIN", "c2", times=1)
        run.says("FETCH_COMPLETE", times=1)
        assert attempts(job, "c2") == 0
    # in the cache it is not looked for, but on the prefix directory
    with Job(**PAIR) as job:
        job.run("init", series(1, 1))
        for _ in range(2):
            job.run("init", crash_in("c1"), dies=True)
        job.run("init", "have => 0 =", SCR_FETCH=0, SCR_CACHE_PURGE=1)
        job.run("init", restart("c1")).says("RESTART_TRIED_AGAIN", "c1", times=1)
    # if it is damaged there, the next one is tried again, and then nothing is left
    with Job(**PAIR) as job:
        job.run("init", series(1, 2))
        for name in ("c2", "c2", "c1", "c1"):
            lose_all(job)
            job.run("init", crash_in(name), dies=True)
        lose_all(job)
        damage.flip(job.prefix / "c2/rank_1")
        run = job.run("init", "have => 1 c1", "start_restart => c1", "complete_restart:0 => INVALID", "have => 0 =")
        run.says("RESTART_TRIED_AGAIN", "c2", times=1)
        run.says("RESTART_TRIED_AGAIN", "c1", times=1)


def test_only_newer_ones():
    """The chosen dataset is damaged, or has ended two runs, and only newer ones are left:
    these are used after all older ones."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 3), "current:c2", "finalize")
        damage.flip(job.prefix / "c2/rank_1")
        lose_all(job)
        job.run("init", restart("c1"), "kill@0", dies=True).says("RESTART_NEWER_TRIED", times=0)
        damage.flip(job.prefix / "c1/rank_0")
        job.run("init", "current:c1", series(4, 4), "current:c1", "finalize")
        lose_all(job)
        damage.flip(job.prefix / "c4/rank_0")
        job.run("init", restart("c3"), "finalize").says("RESTART_NEWER_TRIED", times=1)
        assert [name for name in ("c1", "c2", "c3", "c4") if "FAILED" in entry(job, name)] == ["c1", "c2", "c4"]
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), "current:c1", "finalize")
        for _ in range(2):
            lose_all(job)
            job.run("init", crash_in("c1"), dies=True)
        lose_all(job)
        run = job.run("init", restart("c2"), "finalize")
        run.says("RESTART_NEWER_TRIED", times=1)
        run.says("RESTART_ATTEMPTS_EXHAUSTED", "c1", times=1)


def test_only_newer_ones_than_what_was_refused():
    """The program refuses the chosen dataset: each newer one is offered once."""
    no = ["complete_restart:0 => INVALID"]
    with Job(**PAIR) as job:
        job.run("init", series(1, 4), "finalize")
        lose_all(job)
        run = job.run("init", [[f"have => 1 {name}", f"start_restart => {name}", no] for name in ("c2", "c1", "c4")], restart("c3"),
                      "finalize", SCR_CURRENT="c2")
        run.says("RESTART_NEWER_TRIED", times=1)
        lose_all(job)
        job.run("init", [restart("c3"), restart("c3")[:2], no], "have => 0 =", "finalize")
        assert all("FAILED" in entry(job, f"c{number}") for number in range(1, 5))


def test_refused_and_written_again():
    """A refused name that is written again is a different dataset. A new choice also
    cancels a refusal."""
    again = ["have => 1 c2", "start_restart", "complete_restart:0 => INVALID"]
    for how in ({}, {"SCR_CACHE_BYPASS": 1}):
        with Job(**PAIR, **how) as job:
            job.run("init", series(1, 2), "finalize")
            lose_all(job)
            job.run("init", again, restart("c1"), checkpoint("c2", 3000), restart("c2", 3000), "kill@0", dies=True)
            lose_all(job)
            job.run("init", restart("c2", 3000), again, "current:c2", restart("c2", 3000), "finalize")
        with Job(**PAIR, **how) as job:
            job.run("init", checkpoint("c2"), "finalize")
            lose_all(job)
            job.run("init", again, "have => 0 =", checkpoint("c2", 3000), restart("c2", 3000), "finalize")


def test_one_crash_is_forgiven():
    """A crash may coincide with a node failure: a successful restart resets the count."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2))
        for _ in range(3):
            lose_all(job)
            job.run("init", crash_in("c2"), dies=True)
            assert attempts(job, "c2") == 1
            lose_all(job)
            job.run("init", restart("c2"))
            assert attempts(job, "c2") == 0


def test_asking_is_no_attempt():
    """Runs that end normally, as when too little of the allocation is left, do not count,
    however they ask; nor does a run that is killed before it begins to read."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), "finalize")
        ask = ["init", "have => 1 c2"]
        for rest in (["finalize"], ["exit => 0", "finalize"], [checkpoint("o1", flags="o"), "finalize"]):
            for _ in range(3):
                job.run(ask, rest).not_said("RESTART_(SKIPPED|ATTEMPTS)")
                assert attempts(job, "c2") == 0
        for _ in range(3):
            lose_all(job)
            job.run(ask, "finalize", SCR_FETCH_BYPASS=1)
            lose_all(job)
            job.run(ask, "kill@1", dies=True)
        assert attempts(job, "c2") == 0
        job.run("init", restart("c2"), "finalize")


def test_crash_within_the_fetch():
    """A crash in SCR's own part counts, too; c1 is tried when c2 has ended two runs."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2))
        for _ in range(2):
            lose_all(job)
            job.run("init", "crash@1:2", "have", dies=True)
        assert attempts(job, "c2") == 2
        lose_all(job)
        job.run("init", restart("c1"))


def test_errors_are_no_attempts():
    """A fetch that ends with a system error does not count against the checkpoint."""
    with Job(**PACKED) as job:
        job.run("init", series(1, 1))
        for _ in range(3):
            lose_all(job)
            run = job.run("init", "no_room@1:rank_1", "have => CACHE 0 =")
            run.says("FETCH_FAILED", "c1", "No space left", times=1)
        assert attempts(job, "c1") == 0
        job.run("init", restart("c1"))


def test_only_cached_is_not_counted():
    with Job(**{**PAIR, "SCR_FLUSH": 0}) as job:
        job.run("init", series(1, 1))
        for _ in range(3):
            run = job.run("init", crash_in("c1"), dies=True)
            run.not_said("warning")


def test_fetch_is_off():
    with Job(**PAIR, SCR_FETCH=0) as job:
        job.run("init", series(1, 1))
        for _ in range(3):
            job.run("init", crash_in("c1"), dies=True)
        lose_all(job)
        run = job.run("init", "have => 0 =", "current:c1", "have => 0 =")
        run.not_said("_SKIPPED|ATTEMPTS_EXHAUSTED|FETCH")


# ---- the cache of a node fails ----

def small(name):
    """A checkpoint whose file names no other checkpoint has."""
    return [f"start:{name}:c", f"put:{name}/of_{name}_%r:100", "complete:1"]


def restart_small(name):
    return [f"have => 1 {name}", f"start_restart => {name}", f"get:{name}/of_{name}_%r:100", "complete_restart:1"]


def names(job):
    return sorted(tree.read(job.prefix / ".scr/index.scr")["DIR"])


def test_no_room_in_the_cache():
    """The newest checkpoint is read correctly in place, where damage is detected, too."""
    with Job(**PAIR, SCR_PREFIX_SIZE=2) as job:
        job.run("init", series(1, 3), "finalize")
        run = job.run("init", "no_room@1:rank_1", restart("c3"), "kill@0", dies=True)
        run.says("FETCH_READ_IN_PLACE", "c3", "node n2: rank 1", "rank_1: No space left", times=1)
        assert names(job) == ["c2", "c3"] and job.cached() == [], names(job)
        damage.flip(job.prefix / "c3/rank_0")
        run = job.run("init", "no_room@1:scr.dataset.3", "have => 1 c2")
        run.says("FETCH_CHECKPOINT_DAMAGED", "c3", "rank_0", "altered: CRC32", times=1)
        assert "FAILED" in entry(job, "c3") and "FAILED" not in entry(job, "c2")


def strikes(job, operations, how, **more):
    """Yields runs in which the next call of the second node on its cache fails; ends with
    the first run without such a call."""
    mark, at = job.root / "struck", 0
    while not at or mark.exists():
        mark.unlink(missing_ok=True)
        job.go_back()
        at += 1
        assert at < 300
        yield at, job.run(operations, dies=None, faults={
            "FAULTS_BELOW": job.node("n2"), "FAULTS_RANK": 1, "FAULTS_AT": at, "FAULTS_HOW": how,
            "FAULTS_MARK": mark, **more})


def test_any_error_in_the_cache():
    """No failure in the cache makes a run begin anew."""
    for packed, how, more in ((0, "EIO", {}), (1, "ENOSPC", {"FAULTS_STAYS": 1})):
        with Job(**PAIR, SCR_PREFIX_SIZE=1, SCR_USE_CONTAINERS=packed) as job:
            job.run("init", series(1, 1), "finalize")
            (job.root / "nodes").mkdir(exist_ok=True)
            job.save()
            seen = set()
            for at, run in strikes(job, ["init => ANY", "have => ANY", "start_restart => ANY", "get:c1/rank_%r:1000 => ANY"],
                                   how, **more):
                have, get = run.ops[1], run.ops[3]
                offered, codes = set(have["flag"]), set(have["code"])
                assert len(codes) == 1 and offered == {int(codes == {0})}, f"{how} at {at}\n{run}"
                assert offered == {0} or set(get["code"]) == {0}, f"{how} at {at}\n{run}"
                seen |= offered
            assert seen == {0, 1}, seen  # the cache cannot be used at all, or the fetch failed


def test_cache_is_gone():
    """A cleanup removed the cache: this does not mark the checkpoints, which are read in
    place."""
    for nodes in (["n2"], ["n1", "n2"]):
        with Job(**PAIR, SCR_PREFIX_SIZE=2) as job, concurrent.futures.ThreadPoolExecutor() as pool:
            begun, go = job.root / "begun", job.root / "go"
            job.run("init", series(1, 2), "finalize")
            lose_all(job)
            run = pool.submit(job.run, "init", f"touch@0:{begun}", f"await:{go}", restart("c2"), "kill@0", dies=True)
            try:
                wait_until(begun.exists)
                for node in nodes:
                    for folder in job.node(node).iterdir():
                        shutil.rmtree(folder)
            finally:
                go.touch()
            run = run.result()
            run.says("CACHE_DIRECTORY_RECREATED", "node n[12]", "/cache/", times=len(nodes))
            run.says("FETCH_COMPLETE", "c2.", times=1)
            assert not any("FAILED" in entry(job, name) for name in ("c1", "c2")), names(job)
            job.run("init", restart("c2"), "finalize")


def test_nothing_can_be_read():
    """This is an error, and a program that begins anew nevertheless loses no
    checkpoint."""
    with Job(**PACKED, SCR_PREFIX_SIZE=1) as job:
        job.run("init", series(1, 3), "finalize")
        run = job.run("init", "no_room@1:rank_1", "have => CACHE 0 =", "have => CACHE 0 =", "no_room@1:none",
                      series(4, 5), "finalize")
        run.says("FETCH_FAILED", "c3", "node n2: rank 1: .*rank_1: No space left", "packed into containers", times=2)
        run.says("RESTART_PREFIX_UNUSABLE", times=2)
        assert names(job) == ["c3", "c5"], names(job)
        job.run("init", restart("c5"), series(6, 6), "finalize")
        assert names(job) == ["c6"], names(job)


def test_stays_no_longer():
    """A checkpoint that can be read again leaves the cache like any other."""
    with Job(**PACKED, SCR_PREFIX_SIZE=1) as job:
        job.run("init", series(1, 3), "finalize")
        job.run("init", "no_room@1:rank_1", "have => CACHE 0 =", "no_room@1:none", restart("c3"), series(4, 4), "finalize")
        assert names(job) == ["c4"], names(job)


def test_an_older_one_for_now():
    """The next run begins with the checkpoint that was skipped."""
    with Job(**PACKED) as job:
        job.run("init", small("c1"), small("c2"), small("c3"), "finalize")
        run = job.run("init", "no_room@1:of_c3_1", restart_small("c2"), "kill@0", dies=True, SCR_PREFIX_SIZE=1)
        run.says("FETCH_FAILED", "c3", times=1)
        assert tree.only(tree.read(job.prefix / ".scr/index.scr")["CURRENT"]) == "c3"
        lose_all(job)
        job.run("init", restart_small("c3"))
        lose_all(job)
        job.run("init", "no_room@1:of_c3_1", restart_small("c2"), small("c4"), small("c5"), "finalize", SCR_PREFIX_SIZE=1)
        assert names(job) == ["c3", "c5"], names(job)


# ---- wishes ----

def test_current_that_had_failed():
    """Choosing a failed dataset makes SCR try it again."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), "have => 1 c2", "start_restart", "complete_restart:0 => INVALID", restart("c1"))
        lose_all(job)
        run = job.run("init", restart("c1"), "current:c2", restart("c2"))
        run.says("FETCH_COMPLETE", times=2)
        assert "FAILED" not in entry(job, "c2"), entry(job, "c2")
        damage.flip(job.prefix / "c2/rank_0")
        lose_all(job)
        run = job.run("init", restart("c1"), SCR_CURRENT="c2")
        run.says("FETCH_CHECKPOINT_DAMAGED", "c2", times=1)


def test_unknown_current():
    """The error lists the existing names."""
    with Job(**PAIR) as job:
        run = job.run("init => NO_DATASET", SCR_CURRENT="c1")
        run.says("DATASET_UNKNOWN", '"c1"', "none", times=1)
        run = job.run("init", series(1, 3), "current:c4 => NO_DATASET", "delete:x => NO_DATASET",
                      "drop:x => NO_DATASET")
        run.says("DATASET_UNKNOWN", "c3, c2, c1", times=3)
        run = job.run("init => NO_DATASET", SCR_CURRENT="c")
        run.says("DATASET_UNKNOWN", '"c"', "c3, c2, c1", times=1)


def test_current_that_cannot_be():
    with Job(**PAIR) as job:
        (job.prefix / "c2/rank_1").mkdir(parents=True)
        job.run("init", series(1, 1), checkpoint("o", flags="o"), checkpoint("c2", code="FLUSH"),
                "current:o => NO_DATASET", restart("c2"))
        lose_all(job)
        run = job.run("init", "current:c2 => NO_DATASET", "current:o => NO_DATASET", restart("c1"))
        run.says("DATASET_NOT_SELECTABLE", "c2", "it is not complete", times=1)
        run.says("DATASET_NOT_SELECTABLE", "o", "it is not a checkpoint", times=1)


# ---- where a dataset is ----

def places_of(job, kind):
    """c2 is cached, flushed, both, or being flushed; c1 is in both places. Yields the
    first operations of the next run."""
    flags = {"cached": "c", "flushed": "co", "both": "co", "under way": "co"}[kind]
    start = ["init", checkpoint("c1", flags="co")]
    if kind == "under way":
        return start + [checkpoint("c2", 60_000, flags=flags)], SLOW
    job.run(start, checkpoint("c2", flags=flags))
    if kind == "flushed":
        lose_all(job)
    return ["init"], {}


def test_current_everywhere():
    """This run and the next restart from c1, wherever c2 is."""
    for kind in ("cached", "flushed", "both", "under way"):
        with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
            begin, more = places_of(job, kind)
            job.run(begin, "current:c1", restart("c1"), **more)
            job.run("init", restart("c1"))
            lose_all(job)
            job.run("init", restart("c1"))


def test_delete_everywhere():
    for kind in ("cached", "flushed", "both", "under way"):
        with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
            begin, more = places_of(job, kind)
            job.run(begin, "have => ANY", "delete:c2", restart("c1"), **more)
            assert not (job.prefix / "c2").exists(), kind
            job.run("init", "current:c2 => NO_DATASET", restart("c1"))
            lose_all(job)
            job.run("init", restart("c1"))


def test_drop_everywhere():
    """Only the entry is removed: the cache still has the dataset, and the files stay."""
    for kind, name in (("flushed", "c1"), ("both", "c2"), ("under way", "c2")):
        with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
            begin, more = places_of(job, kind)
            size = 60_000 if kind == "under way" else 1000
            job.run(begin, "drop:c2", "drop:c2 => NO_DATASET", restart(name, size if name == "c2" else 1000), **more)
            assert (job.prefix / "c2/rank_0").exists(), kind
            job.run("init", restart(name, size if name == "c2" else 1000))
            lose_all(job)
            job.run("init", restart("c1"))
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"), "drop:c1 => NO_DATASET", restart("c1"))


def test_failed_everywhere():
    """A failed dataset can be deleted, dropped, and written again."""
    for call in ("delete:c2", "drop:c2", "need"):
        with Job(**PAIR) as job:
            job.run("init", series(1, 2), "have => 1 c2", "start_restart", "complete_restart:0 => INVALID")
            run = job.run("init", call + (" => ANY" if call == "need" else ""), restart("c1"), checkpoint("c2"),
                          restart("c2"))
            run.not_said("SCR: error")
            lose_all(job)
            job.run("init", restart("c2"))


if __name__ == "__main__":
    main(globals())
