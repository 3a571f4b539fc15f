#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The prefix directory: damage there is detected, reported, and kept; the next older
checkpoint is offered."""
import concurrent.futures
import fcntl
import os
import struct
import time

from job import Job, checkpoint, main, restart, wait_until
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}


def entry(job, name):
    index = tree.read(job.prefix / ".scr/index.scr")
    number = tree.only(index["DIR"][name]["DSET"])
    return index["DSET"][number]["DIR"][name]


def lose_all(job):
    job.lose(*job.nodes())


def two_flushed(job):
    """c1 and c2 on the prefix directory, and nothing in the cache."""
    job.run("init", checkpoint("c1"), checkpoint("c2"))
    lose_all(job)


# ---- the index ----

def test_damaged_index():
    """A damaged index is set aside unchanged and reported; the datasets on the prefix
    directory make a new one."""
    for hurt in damage.CONTENTS:
        with Job(**PAIR) as job:
            index = job.prefix / ".scr/index.scr"
            two_flushed(job)
            hurt(index)
            bytes_ = index.read_bytes()
            run = job.run("init", restart("c2"), checkpoint("c3"), "finalize")
            run.says("INDEX_REBUILT", "index.scr", "is set aside as", "2 datasets", times=1)
            aside = list(index.parent.glob("index.scr.damaged*"))
            assert [path.read_bytes() for path in aside] == [bytes_], aside
            lose_all(job)
            run = job.run("init", restart("c3"))
            run.says("INDEX_REBUILT", times=0)


def test_damaged_again():
    """Earlier files that were set aside stay."""
    with Job(**PAIR) as job:
        index = job.prefix / ".scr/index.scr"
        texts = {"not an index", "nor is this", "and this is not an index"}
        for text in texts:
            index.parent.mkdir(exist_ok=True)
            index.write_text(text)
            job.run("init", "have => 0 =")
        assert {path.read_text() for path in index.parent.glob("index.scr.damaged*")} == texts


def test_damaged_index_and_cache():
    """The cache does not need the index."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        damage.garbage(job.prefix / ".scr/index.scr")
        run = job.run("init", restart("c2"), checkpoint("c3"), restart("c3"))
        run.says("INDEX_REBUILT", "is set aside as", times=1)


def test_lost_index_is_filled_again():
    """Cached datasets are flushed once more: without an entry they would not be found."""
    for hurt in (damage.flip, damage.remove):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"), "finalize")
            hurt(job.prefix / ".scr/index.scr")
            job.run("init", "finalize")
            lose_all(job)
            job.run("init", restart("c1"))


def test_prefix_folder_below():
    """A run in the prefix directory does not delete datasets of a prefix directory inside
    it."""
    with Job(**PAIR) as job:
        inner = job.prefix / "inner"
        inner.mkdir()
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize", prefix=inner, SCR_JOB_ID="other")
        job.run("init", "have => 0 =", checkpoint("c3"), checkpoint("c4"), "finalize", SCR_PREFIX_SIZE=1)
        job.run("init", restart("c2"), "finalize", prefix=inner, SCR_JOB_ID="other")


def test_index_damaged_during_the_run():
    with Job(**PAIR) as job:
        hurt = ["route@0:.scr/index.scr", "write@0:70"]  # outside of a phase names stay as they are
        run = job.run("init", checkpoint("c1"), hurt, checkpoint("c2"), hurt, "delete:c2", "finalize")
        run.says("INDEX_REBUILT", "is set aside as", times=2)
        lose_all(job)
        run = job.run("init", restart("c1"))


def test_hostile_index():
    """Names that lead out of the prefix directory, and impossible numbers: such entries
    are ignored, and the directory of the name is searched instead."""
    def changed(job, change, wanted):
        index = job.prefix / ".scr/index.scr"
        content = tree.read(index)
        change(content)
        tree.write(index, content)
        job.run("init", restart(wanted), "finalize")

    def rename(content):
        content["DIR"]["../c2"] = content["DIR"].pop("c2")
        dirs = content["DSET"]["2"]["DIR"]
        dirs["../c2"] = dirs.pop("c2")
        dirs["../c2"]["DSET"]["NAME"] = {"../c2": {}}
        content["CURRENT"] = {"../c2": {}}

    def big_number(content):
        content["DSET"]["2"]["DIR"]["c2"]["DSET"]["ID"] = {"99999999999": {}}

    def many_ranks(content):
        content["DSET"]["2"]["DIR"]["c2"]["DSET"]["RANKS"] = {"2147483647": {}}

    def no_dataset(content):
        del content["DSET"]["2"]["DIR"]["c2"]["DSET"]

    def wrong_current(content):
        content["CURRENT"] = {"no such": {}}
        content["DSET"]["2"]["DIR"]["c2"]["FAILED"] = {"now": {}}

    for change, wanted in ((rename, "c2"), (big_number, "c2"), (many_ranks, "c1"), (no_dataset, "c2"),
                           (wrong_current, "c1")):
        with Job(**PAIR) as job:
            two_flushed(job)
            changed(job, change, wanted)


def test_last_number():
    """No number follows the last one: no dataset becomes complete that cannot be read."""
    with Job(**PAIR) as job:
        two_flushed(job)
        index = job.prefix / ".scr/index.scr"
        content = tree.read(index)
        content["DSET"]["1000000000"] = content["DSET"].pop("2")
        content["DSET"]["1000000000"]["DIR"]["c2"]["DSET"]["ID"] = {"1000000000": {}}
        tree.write(index, content)
        run = job.run("init", "start:c3:c => FAILURE", restart("c2"))
        run.says("DATASET_IDS_EXHAUSTED", "1000000000", times=1)
        run.says("INDEX_CORRECTED", "dataset 1000000000 as c2", "dataset 2", times=1)


# ---- what belongs to one dataset ----

def falls_back(job, hurt, name):
    """c2 is damaged: this is reported and marked, and c1 is offered, also by the next
    run."""
    two_flushed(job)
    path = job.prefix / "c2" / name
    hurt(path)
    run = job.run("init", restart("c1"))
    run.says("FETCH_CHECKPOINT_DAMAGED", "c2", times=1)
    assert "FAILED" in entry(job, "c2"), entry(job, "c2")
    assert (job.prefix / "c2").is_dir()
    lose_all(job)
    run = job.run("init", restart("c1"), checkpoint("c2"))  # the name may be used again
    run.not_said("c2 .*(CHECKPOINT_DAMAGED|FETCH_FAILED)")
    lose_all(job)
    job.run("init", restart("c2"))


def test_damaged_data():
    for hurt in damage.CONTENTS + [damage.remove]:
        with Job(**PAIR) as job:
            falls_back(job, hurt, "rank_1")


def test_damaged_map():
    for hurt in damage.CONTENTS + [damage.remove]:
        with Job(**PAIR) as job:
            falls_back(job, hurt, ".scr/rank2file.scr")


def test_damaged_lower_map():
    for hurt in (damage.flip, damage.empty, damage.remove):
        with Job(**PAIR) as job:
            falls_back(job, hurt, ".scr/rank2file.0.0.scr")


def test_damaged_summary():
    for hurt in (damage.flip, damage.empty, damage.remove):
        with Job(**PAIR) as job:
            falls_back(job, hurt, ".scr/summary.scr")


def test_damaged_and_no_room():
    """A dataset that left the cache to make room for the damaged one is not offered from
    there, but fetched."""
    with Job(**PAIR) as job:
        two_flushed(job)
        job.run("init", "current:c1", restart("c1"))
        index = tree.read(job.prefix / ".scr/index.scr")
        del index["CURRENT"]
        tree.write(job.prefix / ".scr/index.scr", index)
        damage.flip(job.prefix / "c2/rank_0")
        run = job.run("init", restart("c1"), SCR_CACHE_SIZE=1)
        run.says("FETCH_CHECKPOINT_DAMAGED", "c2", times=1)


def test_nothing_is_good():
    with Job(**PAIR) as job:
        two_flushed(job)
        for name in ("c1", "c2"):
            damage.flip(job.prefix / name / "rank_0")
        run = job.run("init", "have => 0 =", checkpoint("c3"), restart("c3"))
        run.says("FETCH_CHECKPOINT_DAMAGED", times=2)
        assert not job.cached() == [], job.cached()


def test_folder_gone():
    """A missing directory is reported and marked, also when the dataset is chosen again;
    the entry can be deleted."""
    with Job(**PAIR) as job:
        two_flushed(job)
        (job.prefix / "c2").rename(job.prefix / "elsewhere")
        run = job.run("init", restart("c1"))
        run.says("FETCH_CHECKPOINT_DAMAGED", "c2", "rank 0: its directory is not there", times=1)
        assert "FAILED" in entry(job, "c2"), entry(job, "c2")
        run = job.run("init", "current:c2", restart("c1"))
        run.says("FETCH_CHECKPOINT_DAMAGED", "c2", "rank 0: its directory is not there", times=1)
        (job.prefix / "c2").symlink_to(job.prefix / "elsewhere")
        run = job.run("init", "current:c2", restart("c1"))
        run.says("FETCH_CHECKPOINT_DAMAGED", "its directory is not there any more; what has its name is a link", times=1)
        (job.prefix / "c2").unlink()
        job.run("init", "delete:c2", "delete:c2 => NO_DATASET")


def test_home():
    """"~/" is the home directory in any value; homes of other users are not guessed."""
    with Job(2, 1) as job:
        (job.root / "home/run").mkdir(parents=True)
        (job.prefix / "f.yaml").write_text("SCR_PREFIX: ~/new\n")
        home = {"HOME": job.root / "home"}
        job.run("config:SCR_PREFIX => 1 " + str(job.root / "home/run"), "init", "start:a:c", f"put:{job.root}/home/run/a/%r:10", "complete:1",
                "finalize", SCR_PREFIX="~/run", **home)
        job.run("init", "config:SCR_PREFIX => 1 " + str(job.root / "home/new"), "finalize", SCR_PREFIX=None, SCR_CONF_FILE=job.prefix / "f.yaml",
                **home)
        job.run("config:SCR_PREFIX=~", "init", "config:SCR_PREFIX => 1 " + str(job.root / "home"), "finalize", SCR_PREFIX=None, **home)
        assert (job.root / "home/run/a/1").exists() and (job.root / "home/new/.scr").exists()
        for value in ("~nobody/x", "~nobody"):
            run = job.run("init => CONFIG", SCR_PREFIX=value, **home)
            run.says("CONFIG_MISTAKE", f'SCR_PREFIX="{value}" .*: home directories of other users', times=1)
        run = job.run("init => CONFIG", SCR_PREFIX="~/x", HOME="")
        run.says("CONFIG_MISTAKE", 'SCR_PREFIX="~/x" .*: HOME is not set', times=1)
        assert not list(job.root.glob("**/~*"))
        job.run("init", "finalize", SCR_PREFIX="./~", **home)
        assert (job.prefix / "~/.scr").is_dir()


def test_parent_is_missing():
    """Only the last component of the prefix directory is made, so that a typing error is
    not."""
    with Job(2, 1) as job:
        for value, parent in (("tpyo/run", "tpyo"), (f"{job.root}/x/y/z/", "x/y"), ("tpyo/../../x/run", "x")):
            run = job.run("init => PREFIX", SCR_PREFIX=value)
            run.says("PREFIX_NOT_OPENED", f"the directory .*{parent} is missing", times=1)
        assert not (job.prefix / "tpyo").exists() and not (job.root / "x").exists()
        job.run("init", "finalize", SCR_PREFIX="new")
        assert (job.prefix / "new/.scr").is_dir()


def test_prefix_folder_moves():
    """All names are relative to it."""
    with Job(**PAIR) as job:
        two_flushed(job)
        moved = job.root / "moved"
        job.prefix.rename(moved)
        job.prefix = moved
        job.run("init", restart("c2"))


def test_unused_files_stay():
    """Files of the application beside those of SCR."""
    with Job(**PAIR) as job:
        (job.prefix / "c1/.scr").mkdir(parents=True)
        (job.prefix / "c1/.scr/mine").write_text("x")
        (job.prefix / "c1/mine").write_text("x")
        job.run("init", checkpoint("c1"), "finalize")
        lose_all(job)
        job.run("init", restart("c1"))
        assert (job.prefix / "c1/mine").read_text() == "x"


# ---- what the application says of a restart ----

def test_not_restarted_from_the_cache():
    with Job(**{**PAIR, "SCR_FLUSH": 0}) as job:
        run = job.run("init", checkpoint("c1"), checkpoint("c2"),
                      "have => 1 c2", "start_restart", "complete_restart:0 => INVALID",
                      "start_restart => STATE (untouched)",
                      "have => 1 c1", "start_restart", "complete_restart:!1 => INVALID",
                      "have => 0 =", "finalize")
        run.says("RESTART_FAILED", "dataset 2", times=1)
        run.says("RESTART_FAILED", "dataset 1", times=1)
        assert job.cached() == [1, 2], job.cached()
        job.run("init", "have => 0 =", checkpoint("c3"))
        assert job.cached() == [3], job.cached()


def test_not_restarted_at_all():
    """Datasets are offered from the newest to the oldest, in the cache and on the prefix
    directory, and then none."""
    with Job(**PAIR) as job:
        refuse = [["have => 1 c%d" % number, "start_restart => c%d" % number, "get:c%d/rank_%%r" % number,
                   "complete_restart:!0 => INVALID"] for number in (4, 3, 2, 1)]
        job.run("init", [checkpoint(f"c{number}") for number in (1, 2, 3, 4)], refuse, "have => 0 =",
                "finalize")
        assert all("FAILED" in entry(job, f"c{number}") for number in (1, 2, 3, 4))
        run = job.run("init", "have => 0 =", checkpoint("c5"), "finalize")
        run.not_said("FETCH_")
        lose_all(job)
        job.run("init", restart("c5"))


def test_failed_is_not_tried_again():
    with Job(**PAIR) as job:
        two_flushed(job)
        job.run("init", "have => 1 c2", "start_restart", "complete_restart:0 => INVALID", restart("c1"))
        lose_all(job)
        job.run("init", restart("c1"))


# ---- other files of SCR ----

def test_damaged_flush_file():
    """The file is made again."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        for hurt in damage.CONTENTS + [damage.remove]:
            hurt(job.prefix / ".scr/flush.scr")
            job.run("init", restart("c1"), "finalize")


def test_halt():
    """Conditions that scripts write into the halt file."""
    for content in ({"ExitReason": {"TIME_LIMIT": {}}}, {"CheckpointsLeft": {"0": {}}},
                    {"ExitAfter": {str(int(time.time()) - 5): {}}},
                    {"ExitBefore": {str(int(time.time()) + 50): {}}, "HaltSeconds": {"100": {}}}):
        with Job(**PAIR) as job:
            (job.prefix / ".scr").mkdir()
            tree.write(job.prefix / ".scr/halt.scr", content)
            run = job.run("init", "need => 1", "exit => 1", "finalize")
            run.says("HALT_REQUESTED", times=1)


def test_halt_after_checkpoints():
    with Job(**PAIR) as job:
        (job.prefix / ".scr").mkdir()
        tree.write(job.prefix / ".scr/halt.scr", {"CheckpointsLeft": {"2": {}}})
        job.run("init", "exit => 0", checkpoint("c1"), "exit => 0", checkpoint("bad", valid="0", code="INVALID"),
                "need => 0", checkpoint("c2"), "exit => 1", "need => 1", "finalize")


def test_damaged_halt_file():
    """Its conditions are unknown; it does not keep SCR from working."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        for hurt in damage.CONTENTS + [damage.remove]:
            hurt(job.prefix / ".scr/halt.scr")
            run = job.run("init", "exit => 0", restart("c1"), "finalize")
            run.says("HALT_FILE_REPLACED", times=int(hurt != damage.remove))
            tree.read(job.prefix / ".scr/halt.scr")


def test_unusable_halt_file():
    """It is reported once, however often the application asks."""
    with Job(**PAIR) as job:
        empty = f"touch@0:{job.prefix}/.scr/halt.scr"
        for name in ("c1", "c2"):
            run = job.run("init", "exit => 0", empty, ["exit => 0"] * 20, "need => 0", checkpoint(name), "finalize")
            run.says("HALT_FILE_UNUSABLE", times=1)


def lock(path):
    """Returns the open file, locked like by a command that changes it."""
    file = open(path, "r+b")
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return file


def test_index_is_changed_under_its_lock():
    """While a command changes the index, a run does not change it."""
    with Job(**PAIR) as job, concurrent.futures.ThreadPoolExecutor() as pool:
        job.run("init", checkpoint("c1"))
        begun = job.root / "begun"
        index = (job.prefix / ".scr/index.scr").stat().st_ino
        with lock(job.prefix / ".scr/lock"):
            run = pool.submit(job.run, "init", f"touch:{begun}", restart("c1"), checkpoint("c2"), "finalize")
            try:
                wait_until(begun.exists)
                time.sleep(0.5)
            finally:
                there = (job.prefix / ".scr/index.scr").stat().st_ino
        run.result().not_said("had the lock")
        assert there == index, "the index was replaced"
        assert entry(job, "c1") and entry(job, "c2")


def test_halt_written_while_it_runs():
    """SCR keeps conditions that a script wrote since SCR last read the file."""
    wish = {"ExitBefore": {"4000000000": {}}, "CheckpointsLeft": {"2": {}}}
    with Job(**PAIR) as job:
        asked, written = job.root / "asked", job.root / "written"

        def write():
            wait_until(asked.exists)
            tree.write(job.prefix / ".scr/halt.scr", wish)
            written.touch()

        with concurrent.futures.ThreadPoolExecutor() as pool:
            writer = pool.submit(write)
            job.run("init", "exit => 0", f"touch:{asked}", f"await:{written}", checkpoint("c1"), "finalize")
            writer.result()
        halt = tree.read(job.prefix / ".scr/halt.scr")
        assert halt == {"ExitBefore": {"4000000000": {}}, "CheckpointsLeft": {"1": {}},
                        "ExitReason": {"SCR_FINALIZE_CALLED": {}}}, halt


def test_finalize_is_no_halt():
    """The recorded end of a run does not keep the next run from starting."""
    with Job(**PAIR) as job:
        job.run("init", "exit => 0", "finalize")
        halt = tree.read(job.prefix / ".scr/halt.scr")
        assert halt["ExitReason"] == {"SCR_FINALIZE_CALLED": {}}, halt
        job.run("init", "exit => 0", "need => 0")


def test_no_prefix_folder():
    """The prefix directory cannot be made, or cannot hold the records."""
    with Job(**PAIR) as job:
        (job.root / "file").write_text("")
        run = job.run("init => PREFIX", "have => STATE 0", SCR_PREFIX=job.root / "file" / "prefix")
        run.says("PREFIX_NOT_OPENED", "file/prefix", times=1)
        (job.prefix / ".scr").write_text("")
        run = job.run("init => PREFIX")
        run.says("PREFIX_NOT_OPENED", r"\.scr", times=1)


def test_temporary_that_is_a_folder():
    """A directory with the name of a temporary file stays."""
    with Job(2, 1, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"), "finalize")
        (job.prefix / ".scr/.0123456789abcdef.tmp").mkdir()
        run = job.run("init", restart("a"), "finalize")
        run.says("PREFIX_TEMPORARY_FILES_KEPT", f"{job.prefix}/.scr", "Is a directory", times=1)


if __name__ == "__main__":
    main(globals())
