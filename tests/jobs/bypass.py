#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Datasets that bypass the cache: they are written to the prefix directory and read
there."""
import re

from job import Job, checkpoint, main, restart
import damage

PAIR = {"nodes": 2, "per_node": 2}


def in_place(job, name, ranks=4, size=1000):
    """Each rank's file is in the prefix directory."""
    return [path.name for path in sorted((job.prefix / name).glob("rank_*"))] == [f"rank_{r}" for r in range(ranks)]


def nothing_cached(job):
    return not any(job.root.glob("nodes/**/scr.dataset.*"))


def test_checkpoint_and_restart():
    """A dataset is complete at once, without a flush; losing all nodes does no harm."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1, SCR_FLUSH=0) as job:
        run = job.run("init", checkpoint("a"), checkpoint("b"))
        run.says("OUTPUT_COMPLETE", "dataset 2 .b.", "4 files", times=1)
        run.says("FLUSH_COMPLETE", times=0)
        assert in_place(job, "a") and in_place(job, "b") and nothing_cached(job)
        job.lose("n1", "n2")
        run = job.run("init", restart("b"), checkpoint("c"))
        run.says("FETCH_DIRECT", "dataset 2 .b.", times=1)
        assert nothing_cached(job)
        job.run("init", restart("c"), "current:b", restart("b"), "delete:b", restart("c"), "drop:c", restart("a"))
        assert not (job.prefix / "b").exists() and in_place(job, "c")


def test_names():
    """SCR_Route_file returns the path on the prefix directory, also for unnamed datasets
    and bare names."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        run = job.run("init", "start:a/b:c", "put:a/b/deep/er/rank_%r:100", "put:a/b/two_%r:0",
                      "complete:1", "start:%N:c", "tag:scr.dataset.2", "put:rank_%r.ckpt:200", "complete:1")
        assert (job.prefix / "a/b/deep/er/rank_3").stat().st_size, run
        assert len(list(job.prefix.glob("rank_*.ckpt"))) == 4, list(job.prefix.iterdir())
        job.run("init", "have => 1 scr.dataset.2", "start_restart => scr.dataset.2", "get:rank_%r.ckpt:200",
                "route:nothing => ARGUMENT nothing", "complete_restart:1")
        job.run("init", "current:a/b", "have => 1 a/b", "start_restart => a/b", "get:a/b/deep/er/rank_%r:100",
                "get:two_%r:0", "complete_restart:1")


def test_scattered():
    """Files may be outside of the dataset's directory."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", "start:a:c", "put:elsewhere/rank_%r:100", "put:a/in_%r:50", "complete:1")
        job.run("init", "have => 1 a", "start_restart => a", "get:elsewhere/rank_%r:100", "get:a/in_%r:50",
                "complete_restart:1")


def test_names_used_again():
    """Files outside of the directory that a newer dataset overwrites no longer belong to
    the older one."""
    again = ["put:rank_%r:0", "complete:1"]
    for newer, name in ((["put:rank_%r:0", "kill:1"], None), (["put:new_%r:0", "kill:1"], "a"),
                        (["put:rank_%r:0", "complete:1", "have => 1 b", "start_restart => b", "complete_restart:0 => INVALID"], None)):
        with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
            job.run("init", "start:a:c", again)
            job.run("init", "start:b:c", newer, dies="kill:1" in newer)
            run = job.run("init", f"have => {int(bool(name))} {name or '='}")
            run.says("FETCH_CHECKPOINT_DAMAGED", "a", '"rank_.*was written again, by a newer dataset', times=not name)


def test_shared_file():
    """A file that all ranks write is in the map once, and every rank reads it."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        run = job.run("init", "start:a:c", "put:a/all:0", "complete:1")
        run.says("OUTPUT_COMPLETE", "1 files, 0 bytes", times=1)
        job.run("init", "have => 1 a", "start_restart => a", "get:a/all:0", "complete_restart:1")
        job.run("init", "start:a:c", "put:a/all:0", "complete:1 => INVALID", SCR_CACHE_BYPASS=0)


def test_by_flag():
    """The program requests the bypass for one dataset, which is reported once; other
    datasets are cached."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        run = job.run("init", "start:a:cb", "put:a/all:0", "put:a/rank_%r:100", "complete:1", checkpoint("b"), "start:c:cb", "put:c/all:0",
                      "complete:1", "have => 1 c", "start_restart => c", "get:c/all:0", "complete_restart:1")
        run.says("OUTPUT_IN_PLACE", "dataset 1 .a.", times=1)
        assert in_place(job, "a") and not (job.prefix / "b").exists()
        job.lose("n1", "n2")
        job.run("init", "have => 1 c", "current:a", "have => 1 a", "start_restart => a", "get:a/all:0", "get:a/rank_%r:100", "complete_restart:1")


def test_not_valid():
    """A dataset that a rank reports as invalid, or that lacks a file, is removed."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", checkpoint("a"), "start:b:c", "put:b/rank_%r:100", "complete:!2 => INVALID",
                "start:c:c", "put:c/rank_%r:100", "route:c/never_%r => ANY", "complete:1 => INVALID",
                restart("a"))
        assert not (job.prefix / "b").exists() and not (job.prefix / "c").exists()
        job.run("init", restart("a"))


def unnamed(number, *files, end=("complete:1",)):
    return ["start:%N:c", f"tag:scr.dataset.{number}", files, end]


def rows(job):
    """Names of files of all ranks, in the prefix directory itself."""
    return [path.name for path in sorted(job.prefix.glob("*_[0-9]"))]


FAILS = ["complete:!2 => INVALID"]
READ_FIRST = ["have => 1 scr.dataset.1", "start_restart", "get:rank_%r:1000", "complete_restart:1"]
RANKS = [f"rank_{rank}" for rank in range(4)]


def test_not_valid_unchanging_names():
    """A failed dataset leaves files that it did not write: those of the previous
    checkpoint."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", unnamed(1, "put:rank_%r:1000"))
        for number in (2, 3):
            again = [unnamed(number, "route:rank_%r", "route:rank_%r", "put:new_%r:10", end=FAILS), READ_FIRST]
            run = job.run("init", READ_FIRST, again)
            run.says("FETCH_CHECKPOINT_DAMAGED", times=0)
            assert rows(job) == RANKS, rows(job)
        job.run("init", unnamed(4, "route:rank_%r", end=["kill:1"]), dies=True)
        assert rows(job) == RANKS, rows(job)
        job.run("init", READ_FIRST)


def test_not_valid_written_again():
    """Files that a failed dataset has overwritten are removed, and the previous dataset
    is not offered any more, neither in this run nor in later ones."""
    for names, left in (("rank_%r", []), ("rank_1", ["rank_0", "rank_2", "rank_3"])):
        with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
            job.run("init", checkpoint("a"), unnamed(2, "put:rank_%r:1000"))
            files = ["route:rank_%r", f"put@1:{names}:1000"] if left else [f"put:{names}:1000"]
            run = job.run("init", "have => 1 scr.dataset.2", unnamed(3, files, end=FAILS), restart("a"))
            run.says("FETCH_CHECKPOINT_DAMAGED", "scr.dataset.2", r"rank_\d", times=1)
            assert rows(job) == left, run
            for _ in range(2):
                job.run("init", restart("a"))


def test_killed_while_it_writes_again():
    """It is unknown what the killed run has written: nothing is removed, and only an
    older dataset is offered, however often the program asks."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", checkpoint("a"), unnamed(2, "put:rank_%r:1000"))
        written = f"{job.root}/written"  # no rank ends before
        job.run("init", "have => 1 scr.dataset.2",
                unnamed(3, "route:rank_%r", "put@1:rank_1:1000", f"touch@1:{written}", f"await:{written}", end=["kill:1"]), dies=True)
        for times in (1, 0):
            run = job.run("init", restart("a"))
            run.says("FETCH_CHECKPOINT_DAMAGED", "scr.dataset.2", '"rank_1" was written again', times=times)
            assert rows(job) == RANKS, rows(job)
        job.run("init", unnamed(4, "put:rank_%r:1000"))
        job.run("init", "have => 1 scr.dataset.4", "start_restart", "get:rank_%r:1000", "complete_restart:1")


def test_not_valid_shared_file():
    """An invalid dataset with a file of all ranks, which is new or overwritten, and which
    some ranks find there already."""
    for first in ([], [unnamed(1, "put:all:0")]):
        with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
            job.run("init", first)
            job.run("init", "have => ANY", unnamed(2, "put@1:all:100", "route@0,2,3:all", end=FAILS), "have => 0 =")
            assert not (job.prefix / "all").exists()


def test_not_removed():
    """If files or records of an invalid dataset cannot be removed, that is reported, and
    no run begins with the dataset."""
    for obstacle, told in (("no_room@1:rank_1", "rank_1: No space left"), ("no_room@0:index.scr", "dataset 2 .b.: .*No space left")):
        with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
            run = job.run("init", checkpoint("a"), "start:b:c", "put:b/rank_%r:100", obstacle, "complete:!2 => INVALID")
            run.says("OUTPUT_FILES_KEPT", told, times=1)
            job.run("init", restart("a"), checkpoint("b"))
            job.run("init", restart("b"))


def test_not_started():
    """Another object has the name of the dataset's directory."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        (job.prefix / "b").write_text("a file")
        run = job.run("init", checkpoint("a"), "start:b:c => PREFIX", checkpoint("c"))
        run.says("OUTPUT_NOT_STARTED", "SCR_Start_output: .*Not a directory", times=1)
        job.run("init", restart("c"))


def test_killed():
    """A job ends while it writes: the previously complete dataset is offered."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", checkpoint("a"), "start:b:c", "put:b/rank_%r:100", "kill:1", dies=True)
        job.run("init", restart("a"), checkpoint("b"))
        job.run("init", restart("b"))


def test_written_over():
    """An earlier dataset of the same name is not offered any more once its files may have
    changed."""
    for flushed in (0, 1):
        with Job(**PAIR, SCR_FLUSH=1) as job:
            job.run("init", checkpoint("a"), checkpoint("b"), SCR_CACHE_BYPASS=1 - flushed)
            job.lose("n1", "n2")
            run = job.run("init", "start:b:c", "put:b/rank_%r:1000", "kill:1", dies=True, SCR_CACHE_BYPASS=1)
            run.says("OUTPUT_OVERWRITES", "dataset 2 .b.", times=1)
            job.run("init", restart("a"), SCR_CACHE_BYPASS=1)
            (job.prefix / ".scr" / "index.scr").unlink()
            job.run("init", restart("a"), checkpoint("b"), SCR_CACHE_BYPASS=1)
            job.run("init", restart("b"), SCR_CACHE_BYPASS=1)


def test_older_of_the_same_name():
    """Flushing an earlier dataset from the cache does not replace a newer one of the same
    name."""
    slow = {"SCR_FLUSH": 1, "SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "100KB"}
    for size, more, said in ((500, {}, ("FLUSH_SUPERSEDED", "dataset 1")),
                             (50_000, slow, ("FLUSH_COMPLETE", "dataset 1 .a.", "in the background"))):
        with Job(**PAIR, **more) as job:
            (job.prefix / "scr.yaml").write_text("CKPT: {0: {INTERVAL: 1}, 1: {INTERVAL: 2, BYPASS: 1}}\n")
            run = job.run("init", checkpoint("a", size), checkpoint("a", 2 * size), "finalize")
            run.says(*said, times=1)
            job.run("init", restart("a", 2 * size))


def test_older_with_files_of_the_same_names():
    """The same with datasets that have different names but files with the same names."""
    def scattered(name):
        return [f"start:{name}:c", "put:rank_%r:1000", f"put:{name}_%r:10", "complete:1"]

    with Job(**PAIR) as job:
        (job.prefix / "scr.yaml").write_text("CKPT: {0: {INTERVAL: 1}, 1: {INTERVAL: 2, BYPASS: 1}}\n")
        run = job.run("init", scattered("a"), scattered("b"), "finalize")
        run.says("FLUSH_SUPERSEDED", "dataset 1", times=1)
        job.run("init", "have => 1 b", "start_restart => b", "get:rank_%r:1000", "get:b_%r:10", "complete_restart:1",
                scattered("c"), "start:d:c", "put:d_%r:100", "complete:1")
        run = job.run("init", "finalize")
        run.says("FLUSH_COMPLETE", "dataset 3 .c.", times=1)


def test_newer_names_are_not_to_be_known():
    """If the newer map is unreadable, the older dataset stays in the cache; a newer
    dataset without a map cannot be spoiled."""
    files = ["put:rank_%r:1000", "complete:1"]
    with Job(**PAIR) as job:
        (job.prefix / "scr.yaml").write_text("CKPT: {0: {INTERVAL: 1}, 1: {INTERVAL: 2, BYPASS: 1}}\n")
        run = job.run("init", "start:a:c", files, "start:b:c", files, "unreadable@0:rank2file.scr", "finalize => FLUSH")
        run.says("FLUSH_FAILED", "dataset 1", "rank2file.scr",
                 times=1)
        damage.empty(job.prefix / "b/.scr/rank2file.scr")
        run = job.run("init", "finalize")
        run.says("FLUSH_COMPLETE", "dataset 1 .a.", times=1)


def test_damaged():
    """If a file is too short or missing, the previous dataset is offered."""
    for hurt in (lambda path: path.unlink(), lambda path: path.write_bytes(b"short")):
        with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
            job.run("init", checkpoint("a"), checkpoint("b"))
            hurt(job.prefix / "b" / "rank_2")
            run = job.run("init", restart("a"))
            run.says("FETCH_CHECKPOINT_DAMAGED", "b", "rank_2", times=1)


def test_some_descriptors():
    """Only every third checkpoint bypasses the cache; the newest of all counts."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        (job.prefix / "scr.yaml").write_text("CKPT: {0: {INTERVAL: 1}, 1: {INTERVAL: 3, BYPASS: 1}}\n")
        job.run("init", [checkpoint(f"c{number}") for number in (1, 2, 3)])
        assert job.cached() == [1, 2] and in_place(job, "c3")
        job.run("init", restart("c3"), checkpoint("c4"))
        assert job.cached() == [2, 4], job.cached()
        job.run("init", restart("c4"))
        job.lose("n1", "n2")
        job.run("init", restart("c3"))


def test_output():
    """Outputs bypass the cache, too; nothing is left to flush."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        run = job.run("init", checkpoint("o", flags="o"), "finalize")
        run.says("FLUSH_COMPLETE", times=0)
        assert in_place(job, "o")
        job.run("init", "have => 0")


def test_fetch_bypass():
    """Flushed datasets are read in place; files in containers are extracted on request,
    and removed afterwards."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"))
        job.lose("n1", "n2")
        job.run("init", restart("a"), SCR_FETCH_BYPASS=1)
        assert nothing_cached(job)
        job.run("init", restart("a"))
        assert job.cached() == [1]
        job.run("init", checkpoint("b"), SCR_USE_CONTAINERS=1)
        job.lose("n1", "n2")
        run = job.run("init", "have => 1 b", "start_restart => b", "route@1:b/rank_0 => ARGUMENT", "route:rank_%r", "get:b/rank_%r:1000",
                      "complete_restart:1", checkpoint("c"), SCR_FETCH_BYPASS=1, SCR_FLUSH=0)
        run.says("FETCH_DIRECT", "b", times=1)
        assert job.cached() == [3] and not any(job.root.glob("nodes/**/scr.brought"))
        # an empty file is in no container, but not missing
        job.run("init", "start:c:c", "put:c/rank_%r:0", "complete:1", SCR_USE_CONTAINERS=1)
        job.lose("n1", "n2")
        job.run("init", "have => 1 c", "start_restart => c", "get:c/rank_%r:0", "complete_restart:1", SCR_FETCH_BYPASS=1)


def test_containers_in_place():
    """A program uses the older protocol, which asks before it restarts; damage marks the
    checkpoint."""
    with Job(**PAIR, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, SCR_FETCH_BYPASS=1) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        job.lose("n1", "n2")
        job.save()
        job.run("init", "have => 1 b", "tag:b", "get:b/rank_%r:1000", checkpoint("c"), "finalize")
        assert not any(job.root.glob("nodes/**/scr.brought"))
        job.go_back()
        job.run("init", "have => 1 b", "tag:b", "get:b/rank_%r:1000", "finalize")
        assert not any(job.root.glob("nodes/**/scr.brought"))
        job.go_back()
        damage.flip_first(job.prefix / "b/.scr/ctr.0.scr")
        run = job.run("init", "have => 1 b", "start_restart => b", "route@0:b/rank_0 => FAILURE", "complete_restart:0 => INVALID",
                      restart("a"))
        run.says("ROUTE_REFUSED", "CRC32", times=1)
        job.run("init", "have => 1 a")


def test_containers_without_room():
    """A cache has no room for a file: this does not mark the checkpoint, and the next run
    begins with it."""
    with Job(**PAIR, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, SCR_FETCH_BYPASS=1) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        job.lose("n1", "n2")
        full = {"FAULTS_BELOW": job.cache("n2") / "scr.brought", "FAULTS_RANK": 2, "FAULTS_AT": 1, "FAULTS_HOW": "ENOSPC", "FAULTS_STAYS": 1}
        run = job.run("init", "have => 1 b", "start_restart => b", "route@2:b/rank_2 => FAILURE", "complete_restart:0 => INVALID",
                      "have => 1 a", "finalize", faults=full)
        run.says("ROUTE_REFUSED", "No space", times=1)
        run.says("RESTART_NOT_READ", "b", times=1)
        job.run("init", restart("b"))


def test_containers_brought_before():
    """A file that was brought to another rank of the node is there when its own rank
    requests it, which is not damage."""
    with Job(**PAIR, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, SCR_FETCH_BYPASS=1) as job:
        job.run("init", checkpoint("a"))
        job.lose("n1", "n2")
        job.run("init", "have => 1 a", "start_restart => a", "fetch_files:a/rank_1||a/rank_3", "get:a/rank_%r:1000", "complete_restart:1")


def test_containers_asked_again():
    """A program that restarts again, possibly from another checkpoint with the same
    names, gets the files of that checkpoint."""
    with Job(**PAIR, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, SCR_FETCH_BYPASS=1) as job:
        job.run("init", [[f"start:{name}:c", f"tag:{name}", "put:x/rank_%r:1000", "complete:1"] for name in "ab"])
        job.lose("n1", "n2")
        get = "get:x/rank_%r:1000"
        job.run("init", "have => 1 b", "tag:b", get, "have => 1 b", get, "current:a", "have => 1 a", "tag:a", get, "start_restart => a", get,
                "complete_restart:1", "finalize")
        assert not any(job.root.glob("nodes/**/scr.brought"))


def test_containers_of_an_earlier_run():
    """Containers are fetched into a cache although nothing is written there: an otherwise
    unused one, or that of another descriptor. An unavailable cache is reported, and an
    older checkpoint is next."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"), SCR_FLUSH=1)
        job.run("init", checkpoint("b"), "finalize", SCR_FLUSH=1, SCR_USE_CONTAINERS=1)
        own = [f"config:STORE={job.root}/store", f"config:CKPT=0 INTERVAL=1 BYPASS=1 STORE={job.root}/store"]
        both = [own, f"config:CKPT=1 INTERVAL=7 STORE={job.root}/store"]
        (job.root / "file").touch()
        for config, how in (([], {"SCR_CACHE_BYPASS": 1}), (own, {}), (both, {})):
            job.lose("n1", "n2")
            run = job.run(config, "init", restart("b"), restart("b"), checkpoint("c"), "delete:c", "finalize", **how)
            run.says("FETCH_COMPLETE", "dataset 2 .b.", times=1)
            run.says("FETCH_NOT_IN_PLACE", "packed into containers", times=1)
            assert nothing_cached(job)
        run = job.run(f"config:STORE={job.root}/file/x", f"config:CKPT=0 BYPASS=1 STORE={job.root}/file/x", "init", restart("a"), "finalize")
        run.says("FETCH_FAILED", "b", "packed into containers", "Not a directory", times=1)


def test_planted_links():
    """A planted link is refused, as a directory on the way or as the file."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        (job.prefix / "a").mkdir()
        (job.root / "elsewhere").mkdir()
        (job.prefix / "a" / "sub").symlink_to(job.root / "elsewhere")
        for rank in range(4):
            (job.prefix / "a" / f"rank_{rank}").symlink_to(job.root / "elsewhere" / "file")
        run = job.run("init", "start:a:c", "route:a/sub/f_%r => ANY", "route:a/rank_%r => ANY",
                      "put:a/good_%r:10", "put:a/better_%r:10", "complete:1")
        assert set(run.first("route:a/sub")["code"]) == set(run.first("route:a/rank")["code"]) == {4}, run
        assert re.search("not a regular file", run.err) and not list((job.root / "elsewhere").iterdir())


if __name__ == "__main__":
    main(globals())
