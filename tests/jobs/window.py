#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Datasets that are kept on the prefix directory: the window of checkpoints, and datasets
that a start deletes or moves there."""
import os

from job import Job, checkpoint, main, messages, restart, wait_until
from scavenged import command, scavenge
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}


def entry(job, name):
    found = tree.read(job.prefix / ".scr/index.scr")
    return found["DSET"][tree.only(found["DIR"][name]["DSET"])]["DIR"][name]


def kept(job):
    """Names in the index; exactly these have directories."""
    listed = sorted(tree.read(job.prefix / ".scr/index.scr").get("DIR", {}))
    there = sorted(str(path.parent.parent.relative_to(job.prefix))
                   for path in job.prefix.rglob(".scr/summary.scr"))
    assert listed == there, (listed, there)
    return listed


def series(first, last, **how):
    return [checkpoint(f"c{number}", **how) for number in range(first, last + 1)]


def places(job, number):
    found = tree.read(job.prefix / ".scr/flush.scr").get("DSET", {}).get(str(number), {})
    return set(found.get("LOCATION", {}))


# ---- the window ----

def test_sizes():
    for size, names in ((0, ["c1", "c2", "c3", "c4", "c5"]), (1, ["c5"]), (3, ["c3", "c4", "c5"])):
        with Job(**PAIR, SCR_PREFIX_SIZE=size) as job:
            run = job.run("init", series(1, 5), "finalize")
            assert kept(job) == names, kept(job)
            run.says("PREFIX_DATASET_DELETED", "SCR_PREFIX_SIZE", times=5 - len(names))
            job.lose("n1", "n2")
            job.run("init", restart("c5"), series(6, 6), "finalize")
            assert len(kept(job)) == (len(names) if size else 6)


def test_outputs_stay():
    """Outputs stay, and all other content of the directories."""
    with Job(**PAIR, SCR_PREFIX_SIZE=1) as job:
        (job.prefix / "c2").mkdir()
        (job.prefix / "c2/mine").write_text("not of SCR")
        job.run("init", checkpoint("o1", flags="o"), checkpoint("co", flags="co"), series(2, 4), "finalize")
        assert kept(job) == ["c4", "co", "o1"], kept(job)
        assert (job.prefix / "c2/mine").exists() and not (job.prefix / "c3").exists()


def test_folders_and_containers():
    for containers in (0, 1):
        with Job(nodes=2, per_node=2, SCR_FLUSH=1, SCR_PREFIX_SIZE=1, SCR_USE_CONTAINERS=containers) as job:
            for name in ("r/a", "r/b"):
                job.run("init", f"start:{name}:c", f"put:{name}/x/y/f_%r:100", f"put:{name}/x/g_%r:100",
                        "complete:1", "finalize")
            assert kept(job) == ["r/b"] and not (job.prefix / "r/a").exists(), kept(job)


def test_current_stays():
    with Job(**PAIR, SCR_CACHE_SIZE=4) as job:
        job.run("init", series(1, 4), "current:c2", restart("c2"))
        job.lose("n1", "n2")
        # c5 becomes current only when its flush is complete
        job.run("init", restart("c2"), series(5, 5), SCR_PREFIX_SIZE=1)
        assert kept(job) == ["c5"], kept(job)


def test_failed_ones_do_not_count():
    with Job(**PAIR, SCR_FLUSH_ASYNC=0) as job:
        job.run("init", series(1, 4))
        for number in (2, 4):
            damage.flip(job.prefix / f"c{number}/rank_0")
        job.lose("n1", "n2")
        run = job.run("init", restart("c3"), "current:c3", series(5, 5), SCR_PREFIX_SIZE=2)
        run.says("FETCH_CHECKPOINT_DAMAGED", times=1)
        assert kept(job) == ["c3", "c4", "c5"], kept(job)
        job.run("init", series(6, 6), SCR_PREFIX_SIZE=2)
        assert kept(job) == ["c5", "c6"], kept(job)


def test_failed_flush_deletes_nothing():
    with Job(**PAIR, SCR_PREFIX_SIZE=1) as job:
        (job.prefix / "c2/rank_1").mkdir(parents=True)
        job.run("init", series(1, 1), checkpoint("c2", code="FLUSH"))
        job.lose("n1", "n2")
        job.run("init", restart("c1"))


def test_cannot_be_deleted():
    """The failure is reported, does no harm, and deletion is tried again."""
    with Job(**PAIR, SCR_PREFIX_SIZE=1) as job:
        run = job.run("init", "start:c1:c", "put:c1/old_%r:100", "complete:1", "no_room@0,1:old_1", series(2, 2),
                      "no_room@0,1:", series(3, 3))
        run.says("PREFIX_DATASET_NOT_DELETED", "dataset 1 .c1.", "old_1: No space left", times=1)
        assert kept(job) == ["c3"] and not (job.prefix / "c1").exists(), kept(job)
        damage.flip(job.prefix / "c3/.scr/rank2file.scr")
        run = job.run("init", series(4, 5))
        run.says("PREFIX_DATASET_NOT_DELETED", "dataset 3 .c3.", times=2)
        assert kept(job) == ["c3", "c5"] and (job.prefix / "c3/rank_0").exists(), kept(job)


def test_not_seen_by_all():
    """A rank that does not see the directory yet, as on a file system with caches on nodes, cannot remove its share of the files: none is forgotten."""
    with Job(nodes=1, per_node=2, SCR_FLUSH=1) as job:
        done, moved, seen = job.root / "done", job.root / "moved", job.root / "seen"
        process = job.start(os.environ["JOB_PROBE"], "init", "start:a:c", "put:a/rank_%r:1000", "complete:1", f"touch@0:{done}",
                            f"await:{moved}", "delete:a", "finalize")
        wait_until(done.exists)
        job.prefix.rename(seen)  # rank 0 has it open, and rank 1 not
        job.prefix.mkdir()
        moved.touch()
        _, err = process.communicate(timeout=60)
        assert messages(err, "DATASET_NOT_REMOVED", "a", "not all ranks see its directory"), err
        job.prefix.rmdir()
        seen.rename(job.prefix)
        assert "DELETING" in entry(job, "a") and len(list(job.prefix.glob("a/rank_?"))) == 2, err
        run = job.run("init", "have => 0")
        run.says("PREFIX_DATASET_DELETED", "dataset 1 .a.", times=1)
        assert not (job.prefix / "a").exists()


def test_killed_while_it_deletes():
    """The next start continues the deletion."""
    with Job(**PAIR) as job:
        job.run("init", series(1, 2))
        run = job.run("init", "no_room@0,1:rank_1", "delete:c1 => PREFIX", "kill@0", dies=True)
        assert "DELETING" in entry(job, "c1") and (job.prefix / "c1/rank_1").exists(), run
        run = job.run("init", "current:c1 => NO_DATASET", restart("c2"))
        run.says("PREFIX_DATASET_DELETED", "dataset 1 .c1.", "as begun by an earlier run", times=1)
        assert kept(job) == ["c2"], kept(job)


def test_names_used_again():
    """Files outside of their dataset's directory belong to the newest dataset with these
    names, and stay with it."""
    with Job(**PAIR, SCR_PREFIX_SIZE=2) as job:
        again = [[f"start:c{number}:c", "put:rank_%r:1000", f"put:x{number}_%r:10", "complete:1"] for number in (1, 2, 3)]
        job.run("init", again, "delete:c2", "finalize")
        assert kept(job) == ["c3"] and not list(job.prefix.glob("x[12]_*")), list(job.prefix.iterdir())
        job.run("init", "have => 1 c3", "start_restart => c3", "get:rank_%r:1000", "get:x3_%r:10", "complete_restart:1",
                "delete:c3", "finalize")
        assert [path.name for path in job.prefix.iterdir()] == [".scr"]


def test_unnamed():
    """Files are where the program names them: those of older datasets are deleted, unless
    a newer one has their names."""
    with Job(**PAIR, SCR_PREFIX_SIZE=2) as job:
        job.run("init", [["start_checkpoint", f"put:ckpt_{i}/f_%r:100", "put:last_%r:100", "complete_checkpoint:1"]
                         for i in range(1, 5)], "finalize")
        assert kept(job) == ["scr.dataset.3", "scr.dataset.4"], kept(job)
        files = sorted(str(path.relative_to(job.prefix)) for path in job.prefix.glob("[a-z]*/f_0"))
        assert files == ["ckpt_3/f_0", "ckpt_4/f_0"] and (job.prefix / "last_1").exists(), files


def unnamed(number, *more):
    return ["start:%N:c", f"tag:scr.dataset.{number}", "put:last_%r:1000", more, "complete:1"]


def test_every_way_there():
    """Whichever way files reached the prefix directory, the map has their times there:
    all of them are deleted."""
    path = f"{os.environ['JOB_PATH']}:{os.environ['PATH']}"
    for how in ({"SCR_FLUSH_TYPE": "PTHREAD"}, {"SCR_FLUSH_ASYNC": 1}, {"SCR_FLUSH_TYPE": "DAEMON", "SCR_FLUSH_ASYNC": 1, "PATH": path},
                {"SCR_CACHE_BYPASS": 1}, {"SCR_FLUSH": 0}):
        with Job(**{**PAIR, **how}) as job:
            job.run("init", unnamed(1), "finalize" if "SCR_FLUSH" not in how else [])
            if "SCR_FLUSH" in how:
                scavenge(job, 1)
                command(job, "scr_index", "--add", "scr.dataset.1")
            assert len(list(job.prefix.glob("last_*"))) == 2, how
            run = job.run("init", "delete:scr.dataset.1", "finalize", SCR_FLUSH=0)
            run.says("PREFIX_FILES_REPLACED", times=0)
            assert not list(job.prefix.glob("last_*")), run


def forget_times(job, number):
    """Rewrites the map as earlier versions wrote it."""
    path = job.prefix / f"scr.dataset.{number}/.scr/rank2file.0.0.scr"
    content = tree.read(path)
    for rank in content["RANK2FILE"]["RANK"].values():
        for file in rank["FILE"].values():
            del file["MTIME"]
    tree.write(path, content)


def test_maps_without_times():
    """For these maps, size and name decide: a file of another size stays, and so do those
    of a newer dataset."""
    with Job(**PAIR) as job:
        job.run("init", unnamed(1, "put:long_%r:50", "put:short_%r:50"), unnamed(2), "finalize")
        forget_times(job, 1)
        damage.extend(job.prefix / "long_1")
        os.utime(job.prefix / "short_0")
        run = job.run("init", "delete:scr.dataset.1", "finalize")
        run.says("PREFIX_FILES_REPLACED", '"long_1" has', times=1)
        assert sorted(path.name for path in job.prefix.glob("[a-z]*_*")) == ["last_0", "last_1", "long_1"], run


def test_clock_that_stands_still():
    """Times do not distinguish files of a newer dataset from those of an older one."""
    with Job(**PAIR) as job:
        job.run("init", unnamed(1), "finalize")
        times = [(job.prefix / f"last_{rank}").stat().st_mtime_ns for rank in (0, 1)]
        job.run("init", "have => ANY", unnamed(2), "finalize")
        for rank, time in enumerate(times):
            os.utime(job.prefix / f"last_{rank}", ns=(time, time))
        job.run("init", "delete:scr.dataset.1", "finalize")
        job.lose("n1", "n2")
        job.run("init", "have => 1 scr.dataset.2", "start_restart", "get:last_%r:1000", "complete_restart:1", "finalize")


def test_purge_of_the_same_names():
    """Files belong to the newest dataset: none stays, and none is attributed to another
    one."""
    with Job(**PAIR) as job:
        job.run("init", [unnamed(number) for number in (1, 2, 3)], "finalize")
        run = job.run("init", "finalize", SCR_PREFIX_PURGE=1)
        run.says("PREFIX_DATASET_DELETED", times=3)
        run.says("PREFIX_FILES_REPLACED", times=0)
        assert [path.name for path in job.prefix.iterdir()] == [".scr"], run


def test_directory_of_its_own():
    """Files with the dataset's names in its directory are deleted, even if damaged, or
    copied without their times."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"), "finalize")
        damage.cut(job.prefix / "a/rank_0")
        os.utime(job.prefix / "a/rank_1")
        run = job.run("init", "delete:a", "finalize")
        run.says("PREFIX_FILES_REPLACED", times=0)
        assert not (job.prefix / "a").exists(), run


def test_of_more_ranks():
    """The window also deletes datasets of a larger run."""
    with Job(4, 2, SCR_FLUSH=1) as job:
        job.run("init", series(1, 2))
        job.run("init", "have => 0", checkpoint("small"), layout=[("n1", 1), ("n2", 1)], SCR_PREFIX_SIZE=1)
        assert kept(job) == ["small"] and not list(job.prefix.glob("c*")), kept(job)


def test_many_files():
    """There are more names than fit into one piece; any number of helpers share them."""
    for width in (1, 256):
        with Job(nodes=2, per_node=2, SCR_FLUSH=1, SCR_PREFIX_SIZE=1, SCR_FLUSH_WIDTH=width) as job:
            job.run("init", "start:big:c", [f"put:big/{i}/a file with a longer name of its own %r:1" for i in range(60)],
                    "complete:1", checkpoint("c2"), "finalize")
            assert kept(job) == ["c2"] and not (job.prefix / "big").exists(), kept(job)


# ---- at start ----

def test_purge():
    """Everything in the index is deleted, including outputs; cached datasets stay, and
    count as not flushed."""
    with Job(**PAIR, SCR_CACHE_KEEP=1) as job:
        (job.prefix / "mine").write_text("not of SCR")
        job.run("init", series(1, 2), checkpoint("o", flags="o"), "finalize")
        run = job.run("init", restart("c2"), "finalize", SCR_PREFIX_PURGE=1)
        run.says("PREFIX_PURGED", "3 datasets", times=1)
        run.says("PREFIX_DATASET_DELETED", times=3)
        assert kept(job) == ["c2"] and (job.prefix / "mine").exists(), kept(job)
        assert places(job, 2) == {"CACHE", "PFS"}
        job.lose("n1", "n2")
        run = job.run("init", "have => 0 =", checkpoint("c4"), SCR_PREFIX_PURGE=1)
        assert kept(job) == ["c4"], kept(job)
        run = job.run("init", SCR_PREFIX_PURGE=1)
        run = job.run("init", SCR_PREFIX_PURGE=1)
        run.not_said("PREFIX_PURGED")


def test_global_restart():
    """Cached datasets are flushed to the prefix directory, and read there."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), SCR_FLUSH=0)
        run = job.run("init", restart("c2"), checkpoint("c3"), "finalize", SCR_GLOBAL_RESTART=1)
        run.says("FLUSH_COMPLETE", "c2", times=1)
        run.says("FETCH_DIRECT", "c2", times=1)
        job.run("init", checkpoint("c4"), SCR_FLUSH=0)
        run = job.run("init", "have => 1 c4", "finalize", SCR_GLOBAL_RESTART=1, SCR_FLUSH=0)
        run.says("FETCH_DIRECT", "c4", times=1)
        run = job.run("init", restart("c4"), SCR_GLOBAL_RESTART=1)  # another allocation
        run.says("FETCH_DIRECT", "c4", times=1)


def test_global_restart_without_fetch():
    """Nothing could be fetched back, so nothing leaves the cache."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), SCR_FLUSH=0)
        run = job.run("init", restart("c1"), SCR_GLOBAL_RESTART=1, SCR_FETCH=0)
        run.says("CONFIG_GLOBAL_RESTART_UNUSED", "SCR_GLOBAL_RESTART=1", "SCR_FETCH=0", times=1)


def test_global_restart_without_room():
    """Datasets that cannot be flushed stay in the cache."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), SCR_FLUSH=0)
        (job.prefix / "c1/rank_1").mkdir(parents=True)
        run = job.run("init", restart("c1"), SCR_GLOBAL_RESTART=1)
        run.says("CACHE_KEPT_NOT_FLUSHED", times=1)


if __name__ == "__main__":
    main(globals())
