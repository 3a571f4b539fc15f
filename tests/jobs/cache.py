#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which datasets stay in the cache, which go to the prefix directory and when, and under
which names."""
from job import Job, checkpoint, main, restart
from nodes import small_caches
import tree

PAIR = {"nodes": 2, "per_node": 1}


def index(job):
    return tree.read(job.prefix / ".scr/index.scr")


def flushed(job):
    """Names of the datasets that are complete in the index, by id."""
    found = {}
    for number, entry in index(job)["DSET"].items():
        for name, about in entry["DIR"].items():
            if tree.only(about["COMPLETE"]) == "1":
                found[int(number)] = name
    return [found[number] for number in sorted(found)]


def series(first, last, **how):
    return [checkpoint(f"c{number}", **how) for number in range(first, last + 1)]


# ---- what leaves the cache ----

def test_sizes():
    """The newest datasets stay in the cache."""
    for size in (1, 2, 3):
        with Job(**PAIR, SCR_CACHE_SIZE=size, SCR_FLUSH=0) as job:
            run = job.run("init", series(1, 5))
            kept = list(range(6 - size, 6))
            assert job.cached("n1") == job.cached("n2") == kept, job.cached()
            run.says("CACHE_KEEPS_ONE", "SCR_CACHE_SIZE", times=size == 1)
            job.run("init", restart("c5"), series(6, 7))
            assert job.cached() == [number + 2 for number in kept], job.cached()


def test_newest_checkpoint_stays():
    """An output that is not a checkpoint never evicts the last checkpoint."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c"), [checkpoint(f"o{i}", flags="o") for i in range(4)],
                [checkpoint(f"n{i}", flags="0") for i in range(3)], restart("c"))
        assert job.cached() == [1, 8], job.cached()
        job.run("init", restart("c"))


def test_failed_one_costs_one():
    with Job(**PAIR, SCR_FLUSH=0, SCR_CACHE_SIZE=2) as job:
        job.run("init", series(1, 2), [checkpoint(f"bad{i}", valid="0", code="INVALID") for i in range(3)],
                restart("c2"))
        assert job.cached() == [2], job.cached()
        job.run("init", restart("c2"))


def leaving(job):
    """Number of directories that are being removed."""
    return sum(len(list(job.cache(node).glob("leaving.*"))) for node in job.nodes())


def test_leaves_while_the_program_writes():
    """A new dataset is complete without waiting for the removal of the oldest. When the
    program is killed, the rest of the oldest belongs to no dataset."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", series(1, 2), "slow:300", "start:c3:c", "put:c3/rank_%r", "kill@0", dies=True)
        assert job.cached() == [2, 3] and leaving(job) == 2, job.cached()
        run = job.run("init", restart("c2"))
        run.says("CACHE_INCOMPLETE_REMOVED", times=1)
        run.not_said("dataset 1 ")
        assert job.cached() == [2] and leaving(job) == 0, job.cached()
        job.run("init", "slow:20", series(3, 5), restart("c5"))
        assert job.cached() == [4, 5], job.cached()


def redundancy_files(job, number):
    """The redundancy files of a dataset, by their places on the device."""
    files = (path for node in job.nodes() for path in (job.cache(node) / f"scr.dataset.{number}").glob("*_of_*"))
    return {path.name: path.stat().st_ino for path in files}


def test_redundancy_is_written_over():
    """The redundancy files of the oldest dataset become those of the newest, on every
    rank, and protect it."""
    with Job(nodes=3, per_node=2, SCR_FLUSH=0) as job:
        job.run("init", series(1, 2))
        before = {number: redundancy_files(job, number) for number in (1, 2)}
        job.run("init", restart("c2"), series(3, 4, size=70000))
        assert job.cached() == [3, 4] and leaving(job) == 0, job.cached()
        assert len(before[1]) == 6, before
        assert [redundancy_files(job, number) for number in (3, 4)] == [before[1], before[2]], before
        job.lose("n2")
        job.run("init", restart("c4", size=70000))


def test_leaves_first_where_room_is_little():
    """The cache has room for two datasets, but not three."""
    with Job(**PAIR, SCR_FLUSH=0, SCR_COPY_TYPE="SINGLE") as job, small_caches(job, "700k"):
        job.run("init", "slow:50", [checkpoint(f"c{i}", size=250000) for i in range(1, 6)],
                restart("c5", size=250000))


def test_cannot_leave():
    """A dataset that cannot be removed is reported and only costs room."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        run = job.run("init", series(1, 2), "no_room@0:rank_0", checkpoint("c3"), "no_room@0:", restart("c3"))
        run.says("CACHE_REMOVAL_FAILED", rf"node n1: {job.cache('n1')}/leaving.1: remove \S+: No space left on device", times=1)
        assert leaving(job) == 1, leaving(job)
        job.run("init", restart("c3"))
        assert leaving(job) == 0 and job.cached() == [2, 3], job.cached()


def test_purge():
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), SCR_FLUSH=0)
        job.run("init", "have => 0 =", SCR_CACHE_PURGE=1, SCR_FLUSH=0)
        assert job.cached() == [], job.cached()
        job.run("init", series(1, 2), "finalize")
        run = job.run("init", restart("c2"), SCR_CACHE_PURGE=1)
        run.says("FETCH_COMPLETE", "c2", times=1)


def test_not_distributed():
    """With SCR_DISTRIBUTE=0, cached data is not used."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", series(1, 2))
        job.run("init", "have => 0 =", SCR_DISTRIBUTE=0)


# ---- what is flushed ----

def test_every_third():
    with Job(**PAIR, SCR_FLUSH=3) as job:
        job.run("init", series(1, 7))
        assert flushed(job) == ["c3", "c6"], flushed(job)
        job.run("init", restart("c7"), series(8, 8), "finalize")
        assert flushed(job) == ["c3", "c6", "c8"], flushed(job)
        job.lose("n1", "n2")
        job.run("init", restart("c8"), series(9, 9))  # the count goes on
        assert flushed(job) == ["c3", "c6", "c8", "c9"], flushed(job)


def test_never():
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", series(1, 3), "finalize")
        assert "DIR" not in index(job), index(job)


def test_outputs_at_once():
    """A complete output is on the prefix directory at once, and is not offered for a
    restart."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("out", flags="o"), "have => 0", checkpoint("both", flags="co"),
                checkpoint("plain", flags="0"), checkpoint("c"))
        assert flushed(job) == ["out", "both"], flushed(job)
        job.lose("n1", "n2")
        job.run("init", restart("both"))


def test_finalize_flushes_the_newest():
    with Job(**PAIR) as job:
        job.run("init", series(1, 3), checkpoint("plain", flags="0"), "finalize")
        assert flushed(job) == ["c3"], flushed(job)
        before = (job.prefix / "c3/rank_0").stat()
        run = job.run("init", restart("c3"), "finalize")
        run.says("FLUSH_COMPLETE", times=0)  # it is there already
        assert (job.prefix / "c3/rank_0").stat().st_ino == before.st_ino


def test_flush_on_restart():
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), SCR_FLUSH=0)
        job.run("init", SCR_FLUSH_ON_RESTART=1)
        assert flushed(job) == ["c2"], flushed(job)


def test_no_room_in_the_prefix_folder():
    """A failed flush is an error on every rank; the dataset stays, and the job
    continues."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        (job.prefix / "c2").write_text("this is a file")
        run = job.run("init", series(1, 1), checkpoint("c2", code="FLUSH"), restart("c2"), series(3, 3))
        run.says("FLUSH_FAILED", "dataset 2", "c2", times=1)
        assert flushed(job) == ["c1", "c3"], flushed(job)
        assert (job.prefix / "c2").read_text() == "this is a file"


# ---- names ----

def test_older_pair():
    """SCR_Start_checkpoint and SCR_Complete_checkpoint: files are where the program names
    them, here at the same place each time."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        for number in ("1", "2"):
            job.run("init", f"tag:{number}", "start_checkpoint", "put:state_%r:100",
                    "complete_checkpoint:1", f"have => 1 scr.dataset.{number}", "finalize")
            assert (job.prefix / "state_1").stat().st_size == 113
        again = ["have => 1 scr.dataset.2", "start_restart => scr.dataset.2", "tag:2",
                 "get:state_%r:100", "complete_restart:1"]
        job.run("init", again)
        job.lose("n1", "n2")
        job.run("init", again)
        job.run("init", "start_checkpoint", "put:x:1", "complete_checkpoint:!1 => INVALID", again)


def test_unnamed():
    with Job(**PAIR) as job:
        job.run("init", "start:%N:c", "tag:one", "put:deep/er/f_%r:50", "complete:1", "finalize")
        assert (job.prefix / "deep/er/f_0").exists()
        assert [path.name for path in (job.prefix / "scr.dataset.1").iterdir()] == [".scr"], list((job.prefix / "scr.dataset.1").iterdir())
        job.lose("n2", "n1")
        job.run("init", "have => 1 scr.dataset.1", "start_restart", "tag:one", "get:deep/er/f_%r:50",
                "route:f_%r", "complete_restart:1")


def unnamed(number, folder):
    return [f"tag:{number}", "start_checkpoint", f"put:{folder}/rank_%r.ckpt:1000", "complete_checkpoint:1"]


def read_unnamed(number, folder):
    return [f"have => 1 scr.dataset.{number}", f"start_restart => scr.dataset.{number}", f"tag:{number}",
            f"get:{folder}/rank_%r.ckpt:1000", "complete_restart:1"]


def test_unnamed_in_directories_of_their_own():
    """A program of SCR 3.1 names directories and finds them without SCR; each can be
    restarted from and is deleted alone."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", unnamed(1, "ckpt_1"), unnamed(2, "ckpt_2"), unnamed(3, "ckpt_3"), "finalize")
        for number in (1, 2, 3):
            assert (job.prefix / f"ckpt_{number}/rank_1.ckpt").is_file(), list(job.prefix.iterdir())
        job.lose("n1", "n2")
        job.run("init", read_unnamed(3, "ckpt_3"), "current:scr.dataset.2", read_unnamed(2, "ckpt_2"), "delete:scr.dataset.2",
                "drop:scr.dataset.3", read_unnamed(1, "ckpt_1"))
        assert not (job.prefix / "ckpt_2/rank_0.ckpt").exists() and not (job.prefix / "scr.dataset.2").exists()
        assert (job.prefix / "ckpt_3/rank_0.ckpt").exists() and (job.prefix / "ckpt_1/rank_1.ckpt").exists()


def test_unnamed_with_names_used_again():
    """Files belong to the newest dataset: the older one is not offered, and its deletion
    keeps the files."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", unnamed(1, "ckpt"), unnamed(2, "ckpt"), "finalize")
        job.lose("n1", "n2")
        run = job.run("init", "current:scr.dataset.1", read_unnamed(2, "ckpt"), "finalize")
        run.says("FETCH_CHECKPOINT_DAMAGED", "scr.dataset.1", times=1)
        job.run("init", "delete:scr.dataset.1", "current:scr.dataset.2", read_unnamed(2, "ckpt"), "finalize")
        assert index(job)["DIR"].keys() == {"scr.dataset.2"}, index(job)
        job.run("init", "delete:scr.dataset.2", "finalize")
        assert not (job.prefix / "ckpt/rank_0.ckpt").exists()


def test_unnamed_of_a_flush_that_ends_later():
    """When a newer dataset with the same file names exists, the flush of the older one
    does not overwrite it."""
    with Job(**PAIR) as job:
        (job.prefix / "scr.yaml").write_text("CKPT: {0: {INTERVAL: 1}, 1: {INTERVAL: 2, BYPASS: 1}}\n")
        run = job.run("init", unnamed(1, "ckpt"), unnamed(2, "ckpt"), "finalize")
        run.says("FLUSH_SUPERSEDED", "dataset 1", times=1)
        job.run("init", read_unnamed(2, "ckpt"))


def test_files_elsewhere():
    """A named dataset may have files outside of the directory of its name."""
    with Job(**PAIR) as job:
        files = ["a/in_%r:30", "other/out_%r:40", "top_%r:50"]
        job.run("init", "start:a:c", [f"put:{file}" for file in files], "complete:1", "finalize")
        assert (job.prefix / "other/out_1").stat().st_size == 53
        assert (job.prefix / "a/in_1").exists() and (job.prefix / "top_0").exists()
        again = ["have => 1 a", "start_restart", [f"get:{file}" for file in files], "complete_restart:1"]
        job.lose("n2")
        job.run("init", again)
        job.lose("n1", "n2")
        job.run("init", again)


def test_name_used_twice():
    """The newer dataset of a name counts, in the cache and on the prefix directory."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a", size=900), checkpoint("a", size=100), restart("a", size=100))
        job.run("init", restart("a", size=100))
        job.lose("n1", "n2")
        job.run("init", restart("a", size=100), checkpoint("a", size=2000), restart("a", size=2000))
        assert flushed(job) == ["a"] and index(job)["DIR"]["a"]["DSET"] == {"3": {}}, index(job)


def test_replaced_output_leaves():
    """After a restart, too: a newer one has its name, so no flush of it is possible, nor needed."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a", size=900, flags="co"), checkpoint("a", size=100), "kill@0", dies=True)
        run = job.run("init", restart("a", size=100), checkpoint("b"), limit=20)
        run.says("FLUSH_SUPERSEDED", "dataset 1", times=1)
        assert job.cached() == [2, 3] and flushed(job) == ["a", "b"], job.cached()


def test_ids_go_on():
    """No id is used for two datasets, whichever traces of the first one exist."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2), SCR_FLUSH=0)
        job.run("init", series(3, 3), SCR_FLUSH=0)
        assert job.cached() == [2, 3], job.cached()
        job.run("init", series(4, 4), "finalize")
        job.lose("n1", "n2")
        job.run("init", series(5, 5), SCR_FLUSH=0)
        assert job.cached() == [5], job.cached()


# ---- current, delete, drop ----

def test_current():
    with Job(**PAIR, SCR_CACHE_SIZE=4, SCR_FLUSH=1) as job:
        job.run("init", series(1, 4), "current:c2", restart("c2"))
        assert job.cached() == [1, 2], job.cached()
        job.lose("n1", "n2")
        run = job.run("init", restart("c2"), "current:c3", restart("c3"))
        run.says("FETCH_COMPLETE", times=2)
        job.run("init", restart("c1"), SCR_CURRENT="c1")
        job.run("init => NO_DATASET", SCR_CURRENT="no")


def test_current_and_outputs():
    """Newer outputs are not lost: they go on to the prefix directory, also where they are checkpoints, which leave the cache."""
    for flags in "o", "co":
        with Job(**PAIR, SCR_CACHE_SIZE=4, SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, SCR_FLUSH_TYPE="PTHREAD", SCR_FLUSH_ASYNC_BW="100KB") as job:
            run = job.run("init", checkpoint("c1"), checkpoint("out", size=60000, flags=flags), "current:c1", restart("c1"), "finalize")
            run.says("FLUSH_STOPPED", times=0)
            assert len(list((job.prefix / "out").glob("rank_*"))) == 2, run
            job.lose("n1", "n2")
            job.run("init", restart("c1"))


def test_current_of_the_cache():
    with Job(**PAIR, SCR_CACHE_SIZE=4, SCR_FLUSH=0) as job:
        job.run("init", series(1, 3), "current:c2", restart("c2"), "start:new:c", "put:new/rank_%r",
                "complete:1")
        job.run("init", restart("new"))


def test_current_of_the_cache_but_not_of_the_index():
    """The current dataset stays current, although the index has a newer one."""
    with Job(**PAIR, SCR_FLUSH=2) as job:
        run = job.run("init", series(1, 2), "current:c1", restart("c1"), "finalize")
        run.says("FETCH_COMPLETE", times=0)
        job.lose("n1", "n2")
        job.run("init", restart("c1"))


def test_current_that_fails():
    """If the current dataset fails, an older one is next, not a newer one that was
    skipped."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", series(1, 3), "current:c2", "have => 1 c2", "start_restart",
                "complete_restart:0 => INVALID", restart("c1"), series(4, 4))
        job.lose("n1", "n2")
        job.run("init", restart("c4"))


def test_flushed_late():
    """An older checkpoint that reaches the prefix directory after a newer one is not used
    for a restart."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        (job.prefix / "c1").write_text("this is a file")
        job.run("init", checkpoint("c1", flags="co", code="FLUSH"), checkpoint("c2", flags="co"),
                "route@0:c1", "unlink@0", "finalize")
        assert flushed(job) == ["c1", "c2"] and index(job)["CURRENT"] == {"c2": {}}, index(job)
        job.lose("n1", "n2")
        job.run("init", restart("c2"))


def test_delete():
    with Job(**PAIR, SCR_CACHE_SIZE=4, SCR_FLUSH=1) as job:
        (job.prefix / "c2").mkdir()
        (job.prefix / "c2/mine").write_text("not of SCR")
        job.run("init", series(1, 3), "delete:c3", restart("c2"), "delete:c2", "delete:c2 => NO_DATASET",
                restart("c1"))
        assert job.cached() == [1] and flushed(job) == ["c1"], (job.cached(), index(job))
        assert not (job.prefix / "c3").exists()
        assert [path.name for path in (job.prefix / "c2").iterdir()] == ["mine"]


def test_delete_by_other_numbers_of_ranks():
    """The present ranks share out the files to delete, whoever wrote them."""
    for containers in (0, 1):
        with Job(4, 2, SCR_FLUSH=1, SCR_USE_CONTAINERS=containers) as job:
            job.run("init", series(1, 3), "finalize")
            run = job.run("init", "delete:c1", "delete:c2", "finalize", layout=[("n1", 1)])
            run.not_said("PREFIX_FILES_KEPT|could not")
            assert flushed(job) == ["c3"] and not list(job.prefix.glob("c[12]")), index(job)
            run = job.run("init", "delete:c3", "finalize", layout=[("n1", 3)], SCR_FLUSH_WIDTH=1)
            assert "DIR" not in index(job) and not list(job.prefix.glob("c*")), index(job)
            job.run("init", checkpoint("a"), "finalize", layout=[("n1", 1)])
            job.run("init", "delete:a", "finalize")
            assert not (job.prefix / "a").exists()


def test_delete_of_what_is_not_whole():
    """Deletion after an interrupted flush, with a missing directory, and with a damaged
    map."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        (job.prefix / "c4/rank_1").mkdir(parents=True)  # where a file should go
        run = job.run("init", series(1, 3), "start:c4:c", "put:c4/rank_%r:100", "complete:1 => FLUSH",
                      "delete:c4")
        run.says("FLUSH_FAILED", "dataset 4", "rank_1", times=1)
        run.says("PREFIX_FILES_KEPT", "c4", times=1)
        assert "c4" not in index(job)["DIR"] and not (job.prefix / "c4/.scr").exists()
        (job.prefix / "c3").rename(job.prefix / "elsewhere")
        (job.prefix / "c2/.scr/rank2file.scr").write_text("this is no map")
        job.run("init", "delete:c3", "delete:c2 => PREFIX", "finalize")
        assert set(index(job)["DIR"]) == {"c1", "c2"}, index(job)
        assert (job.prefix / "c2/rank_0").exists()
        (job.prefix / "c1").rename(job.prefix / "away")
        (job.prefix / "c1").symlink_to("away")
        run = job.run("init", "drop:c2", "delete:c1 => PREFIX", "finalize")
        run.says("DATASET_NOT_REMOVED", "c1", "a symbolic link, which is not followed", times=1)
        assert set(index(job)["DIR"]) == {"c1"} and (job.prefix / "away/rank_0").exists(), index(job)


def test_delete_name_used_twice():
    """All datasets of the name are deleted: an older one is not offered instead."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"), checkpoint("b"), checkpoint("b", 700), "delete:b", restart("a"),
                SCR_CACHE_SIZE=3)
        assert job.cached() == [1], job.cached()


def test_delete_only_cached():
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", series(1, 2), "delete:c2", restart("c1"), "delete:c1", "have => 0")
        assert job.cached() == [], job.cached()


def test_delete_is_no_restart():
    """An offered dataset that is deleted is gone."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        for call in ("delete:c2", "current:c1"):
            job.run("init", series(1, 2), "have => 1 c2", call, "start_restart => STATE (untouched)",
                    restart("c1"), "finalize")
            job.lose("n1", "n2")


def test_drop():
    """The entry is removed, the files stay."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", series(1, 2), "drop:c2")
        assert flushed(job) == ["c1"] and (job.prefix / "c2/rank_0").exists()
        job.lose("n1", "n2")
        job.run("init", restart("c1"))


if __name__ == "__main__":
    main(globals())
