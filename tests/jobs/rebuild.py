#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The index of a prefix directory: loss and rebuild, full disks, copies of a dataset, and
reused names."""
import os
import shutil
import subprocess

from job import Job, Skip, checkpoint, main, messages, restart
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}


def index(job):
    return tree.read(job.prefix / ".scr/index.scr")


def entries(job):
    """Names of the datasets that are complete in the index, by id."""
    return {int(number): sorted(name for name, about in entry["DIR"].items()
                                if tree.only(about["COMPLETE"]) == "1")
            for number, entry in index(job).get("DSET", {}).items()}


def lose_all(job):
    job.lose(*job.nodes())


# ---- an index that is gone ----

def test_lost_index():
    """Directories of any depth, outputs and containers are found; deleted datasets are
    not, and dropped ones are."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("run/x/c2"), checkpoint("out", flags="o"), checkpoint("c4"),
                checkpoint("bad"), "drop:c4", "delete:bad", SCR_USE_CONTAINERS=1)
        before = entries(job)
        damage.remove(job.prefix / ".scr/index.scr")
        lose_all(job)
        run = job.run("init", restart("c4"), checkpoint("c6"))
        run.says("INDEX_REBUILT", "index.scr is missing", "4 datasets", times=1)
        run.says("INDEX_REBUILT", "the first is", times=0)
        assert entries(job) == {**before, 4: ["c4"], 5: ["c6"]}, (before, entries(job))
        assert index(job)["CURRENT"] == {"c6": {}}


def test_found_by_a_search():
    """The search goes through the directories and does not follow links."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("run/x/c2"), checkpoint("c3", flags="o"))
        os.symlink("run/x", job.prefix / "link")
        damage.remove(job.prefix / ".scr/index.scr")
        lose_all(job)
        run = job.run("init", restart("run/x/c2"))
        run.says("INDEX_REBUILT", "3 datasets", times=1)
        assert entries(job) == {1: ["c1"], 2: ["run/x/c2"], 3: ["c3"]}, entries(job)


def test_earlier_index():
    """The index is intact, but the flush file knows newer datasets. Datasets that were
    dropped or deleted since stay away."""
    with Job(**PAIR, SCR_CACHE_SIZE=5) as job:
        job.run("init", checkpoint("c1"))
        before = (job.prefix / ".scr/index.scr").read_bytes()
        job.run("init", checkpoint("c2"), checkpoint("run/x/c3"), checkpoint("c4"), checkpoint("c5"), "drop:c4",
                "delete:c5")
        (job.prefix / ".scr/index.scr").write_bytes(before)
        lose_all(job)
        run = job.run("init", restart("run/x/c3"), checkpoint("c6"))
        run.says("INDEX_OUTDATED", ".scr/index.scr", "c2", times=1)
        assert entries(job) == {1: ["c1"], 2: ["c2"], 3: ["run/x/c3"], 4: ["c6"]}, entries(job)
        job.run("init", restart("c6")).says("INDEX_OUTDATED", times=0)


def test_first_start():
    """Existing directories are searched once; damage is reported then, and again if the
    index is lost."""
    with Job(**PAIR) as job:
        (job.prefix / "c1/.scr").mkdir(parents=True)
        (job.prefix / "c1/.scr/summary.scr").write_text("no summary")
        job.run("init", "have => 0 =").says("INDEX_REBUILT", "0 datasets", "the first is c1: ", times=1)
        job.run("init", "have => 0 =").not_said("index")
        damage.remove(job.prefix / ".scr/index.scr")
        job.run("init", "have => 0 =").says("INDEX_REBUILT", "0 datasets", "the first is c1: ", times=1)


def test_not_all_can_be_used():
    """Damage is reported and does not hide other datasets; damage that only a fetch
    detects is marked."""
    with Job(**PAIR) as job:
        job.run("init", [checkpoint(f"c{number}") for number in range(1, 6)])
        damage.remove(job.prefix / ".scr/index.scr")
        damage.flip(job.prefix / "c5/.scr/summary.scr")
        damage.flip(job.prefix / "c4/.scr/rank2file.scr")
        damage.flip(job.prefix / "c3/rank_0")
        shutil.rmtree(job.prefix / "c1")
        lose_all(job)
        run = job.run("init", restart("c2"))
        run.says("INDEX_REBUILT", "3 datasets", "2 are", times=1)
        run.says("FETCH_CHECKPOINT_DAMAGED", "c3", times=1)
        assert index(job)["DSET"]["3"]["DIR"]["c3"]["FAILED"], index(job)


def test_found_is_flushed():
    """A dataset that was found again is not flushed again; others are."""
    with Job(**PAIR, SCR_CACHE_KEEP=1) as job:
        job.run("init", checkpoint("c1"), "finalize")
        damage.remove(job.prefix / ".scr/index.scr")
        run = job.run("init", "finalize")
        run.says("FLUSH_COMPLETE", times=0)
        damage.remove(job.prefix / ".scr/index.scr")
        shutil.rmtree(job.prefix / "c1")
        run = job.run("init", "finalize")
        run.says("FLUSH_COMPLETE", "c1", times=1)
        lose_all(job)
        job.run("init", restart("c1"))


def test_killed_within_a_flush():
    """The index is lost as well: previously complete datasets are found."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"))
        job.run("init", checkpoint("c2", 200_000), "kill@0", dies=True, SCR_FLUSH_ASYNC=1,
                SCR_FLUSH_ASYNC_BW="100KB")
        assert (job.prefix / "c2/.scr/stage").exists()
        damage.remove(job.prefix / ".scr/index.scr")
        lose_all(job)
        job.run("init", restart("c1"))
        assert not (job.prefix / "c2").exists()


# ---- no room ----

def test_no_room_for_records():
    """Each record in turn cannot be written: the flush fails, the job continues, and
    later everything works."""
    for name in ("index.scr", "summary.scr", "rank2file.scr"):
        with Job(**PAIR) as job:
            run = job.run("init", checkpoint("c1"), f"no_room@0:{name}", checkpoint("c2", code="FLUSH"),
                          restart("c2"), "no_room@0:", checkpoint("c3"), "finalize")
            run.says("FLUSH_FAILED", "dataset 2", "No space left on device", times=1)
            lose_all(job)
            job.run("init", restart("c3"))


def test_no_room_for_other_records():
    """Failures of optional records are reported, and nothing fails."""
    with Job(**PAIR) as job:
        run = job.run("init", "no_room@0:flush.scr", checkpoint("c1"), "no_room@0:halt.scr", checkpoint("c2"),
                      "finalize")
        run.says("FLUSH_FILE_NOT_WRITTEN", "No space left", times=3)
        run.says("HALT_FILE_NOT_WRITTEN", "No space left", times=1)
        lose_all(job)
        run = job.run("init", "no_room@0:index.scr", restart("c2"), "current:c1 => PREFIX",
                      "delete:c1 => PREFIX", "drop:c1 => PREFIX", "no_room@0:", "delete:c1")
        run.says("INDEX_NOT_WRITTEN", "No space left", times=4)
        run.says("DATASET_NOT_SELECTED", "SCR_Current: .*No space left", times=1)


def test_full_prefix_folder():
    with Job(**PAIR) as job:
        mount = ["mount", "-t", "tmpfs", "-o", "size=300k,mode=0700", "tmpfs", job.prefix]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            raise Skip("no file system could be mounted")
        try:
            run = job.run("init", checkpoint("c1", 20_000), checkpoint("c2", 200_000, code="FLUSH"),
                          restart("c2", 200_000), checkpoint("c3", 20_000), "delete:c2", "finalize")
            run.says("FLUSH_FAILED", "dataset 2", "No space left on device", times=1)
            lose_all(job)
            job.run("init", restart("c3", 20_000))
        finally:
            subprocess.run(["umount", job.prefix], check=True)


# ---- copies and names ----

def test_copies():
    """A dataset exists under several names: if one copy is damaged, the next one is tried
    before anything older."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        for copy in ("kept/a", "kept/b"):
            shutil.copytree(job.prefix / "c2", job.prefix / copy)
        damage.remove(job.prefix / ".scr/index.scr")
        job.run("init")
        assert entries(job) == {1: ["c1"], 2: ["c2", "kept/a", "kept/b"]}, entries(job)
        damage.flip(job.prefix / "c2/rank_1")
        damage.remove(job.prefix / "kept/a/.scr/rank2file.scr")
        lose_all(job)
        run = job.run("init", "have => 1 kept/b", "start_restart => kept/b", "tag:c2", "route:kept/b/rank_%r => ANY",
                      "complete_restart:1")
        tried = [name for name in ("c2", "kept/a") if messages(run.err, "FETCH_CHECKPOINT_DAMAGED", name)]
        run.says("FETCH_CHECKPOINT_DAMAGED", times=len(tried) or None)
        job.run("init", "delete:c2", "have => 1 kept/b", "delete:kept/b", "finalize")
        assert entries(job) == {1: ["c1"], 2: ["kept/a"]}, entries(job)


def test_name_used_again():
    """A restart gets the earlier files until the new ones are in place."""
    slow = {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "100KB"}
    with Job(**PAIR) as job:
        job.run("init", checkpoint("other"), checkpoint("c"))
        job.run("init", checkpoint("c", 200_000), "kill@0", dies=True, **slow)
        assert entries(job) == {1: ["other"], 2: ["c"], 3: []}, entries(job)
        lose_all(job)
        job.save()
        job.run("init", restart("c"))
        job.go_back()
        job.run("init", checkpoint("c", 5000), "finalize")
        assert entries(job) == {1: ["other"], 4: ["c"]}, entries(job)
        lose_all(job)
        job.run("init", restart("c", 5000), "delete:c")
        assert entries(job) == {1: ["other"]} and not (job.prefix / "c/rank_0").exists(), entries(job)


def test_flush_under_an_old_name_fails():
    """The earlier files are still there."""
    for name in ("rank2file.scr", "index.scr"):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c"), f"no_room@0:{name}", checkpoint("c", 5000, code="FLUSH"))
            lose_all(job)
            job.run("init", restart("c"))


if __name__ == "__main__":
    main(globals())
