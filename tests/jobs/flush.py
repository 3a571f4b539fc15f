#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Flushes: in the background, by each method, into containers, and by few ranks at a
time; and flushes that fail, are stopped, or are still under way when their dataset should
leave the cache."""
import os
import subprocess

from job import Job, Skip, checkpoint, main, messages, restart
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}
SLOW = {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "100KB"}  # per node: 200 kB take two seconds
LARGE = 200_000


def with_scr_transfer():
    """Puts the process of the method DAEMON into $PATH."""
    os.environ["PATH"] = f"{os.environ['JOB_PATH']}:{os.environ['PATH']}"


def lose_all(job):
    job.lose(*job.nodes())


def places(job, number):
    """The places of a dataset according to the flush file."""
    found = tree.read(job.prefix / ".scr/flush.scr").get("DSET", {}).get(str(number), {})
    return set(found.get("LOCATION", {}))


def stages(job):
    """Directories of flushes that did not end."""
    return sorted(job.prefix.rglob(".scr/stage"))


def temporaries(job):
    return stages(job) + list(job.prefix.rglob("*.tmp"))


# ---- each way ----

def test_types():
    """Flushes in the foreground and background, plain and packed: the dataset is complete
    on the prefix directory."""
    with_scr_transfer()
    packed = {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": 3000}
    for kind, background, more in (("SYNC", 0, {}), ("sync", 1, packed), ("PTHREAD", 0, packed),
                                   ("pthread", 1, {}), ("DAEMON", 1, {}), ("daemon", 0, packed)):
        with Job(nodes=2, per_node=2, SCR_FLUSH=1) as job:
            job.run("init", checkpoint("c1", 2000), checkpoint("c2", 2500), "finalize",
                    SCR_FLUSH_TYPE=kind, SCR_FLUSH_ASYNC=background, **more)
            assert not temporaries(job)
            lose_all(job)
            job.run("init", restart("c2", 2500))


def test_unknown_types():
    with Job(**PAIR) as job:
        run = job.run("init => CONFIG", SCR_FLUSH_TYPE="swallow")
        run.says("CONFIG_MISTAKE", 'SCR_FLUSH_TYPE="swallow" .*: must be SYNC, PTHREAD or DAEMON')


def test_bad_values():
    with Job(**PAIR) as job:
        run = job.run("init => CONFIG", SCR_FLUSH_WIDTH=0, SCR_FETCH_WIDTH=-1, SCR_CONTAINER_SIZE="many",
                      SCR_FLUSH_ASYNC_PERCENT=-5)
        for name in ("SCR_FLUSH_WIDTH", "SCR_FETCH_WIDTH", "SCR_CONTAINER_SIZE", "SCR_FLUSH_ASYNC_PERCENT"):
            run.said(f"{name}=")


def test_one_at_a_time():
    with Job(nodes=4, per_node=2, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("c1"), "finalize", SCR_FLUSH_WIDTH=1)
        lose_all(job)
        job.run("init", restart("c1"), SCR_FETCH_WIDTH=1)


# ---- containers ----

def test_containers():
    """The ranks of a node are consecutive, in files of the requested size; no rank has
    its own file."""
    with Job(nodes=3, per_node=2, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, SCR_CONTAINER_SIZE=2500) as job:
        job.run("init", checkpoint("c1", 1000), "finalize")
        folder = job.prefix / "c1/.scr"
        sizes = [path.stat().st_size for path in sorted(folder.glob("ctr.*.scr"))]
        assert sizes[:-1] == [2500, 2500] and 6000 <= sum(sizes) < 7500, sizes
        assert not (job.prefix / "c1/rank_0").exists()
        lose_all(job)
        job.run("init", restart("c1"))


def test_containers_deleted():
    with Job(SCR_USE_CONTAINERS=1, **PAIR) as job:
        job.run("init", checkpoint("c1"), "delete:c1", "finalize")
        assert not (job.prefix / "c1").exists()


def test_damaged_container():
    """Damage is detected and reported, and the next older dataset is used."""
    with Job(SCR_USE_CONTAINERS=1, **PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
        container = job.prefix / "c2/.scr/ctr.0.scr"
        content = bytearray(container.read_bytes())
        content[1500] ^= 1
        container.write_bytes(content)
        lose_all(job)
        run = job.run("init", restart("c1"))
        run.says("FETCH_CHECKPOINT_DAMAGED", "c2", r"c2/\.scr/ctr\.0\.scr, which has rank_1, was altered: CRC32")


# ---- the stage ----

def test_another_file_system():
    """Files that cannot be renamed to their final place are not copied first."""
    with Job(**PAIR) as job:
        other = job.prefix / "else"
        other.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", other]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            raise Skip("no file system could be mounted")
        try:
            run = job.run("init", "start:c1:c", "put:else/rank_%r:1000", "complete:1 => FLUSH", checkpoint("c2"), "finalize")
            run.says("FLUSH_FAILED", "else/rank_0 lies in another file system than the directory c1/.scr/stage/", times=1)
            assert not temporaries(job) and not list(other.iterdir())
            lose_all(job)
            job.run("init", restart("c2"))
        finally:
            subprocess.run(["umount", other], check=True)


# ---- in the background ----

def test_goes_on():
    """The flush is still under way when the call returns, and complete at the end."""
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("c1", LARGE), "need => 0", "exit => 0", "finalize", SCR_CACHE_KEEP=1, **SLOW)
        run.says("FLUSH_COMPLETE", "c1", "in the background", times=1)
        assert places(job, 1) >= {"PFS"} and "FLUSHING" not in places(job, 1)
        assert not temporaries(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_alone_is_enough():
    """SCR_FLUSH_ASYNC=1 without a type flushes in the background."""
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("c1"), "finalize", SCR_FLUSH_ASYNC=1)
        run.says("FLUSH_COMPLETE", "in the background", times=1)


def test_seen_to_end_by_other_calls():
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("c1"), "sleep:300", "need => 0", "start:x:c", "put:x/f_%r:10",
                      "complete:1", "finalize", SCR_FLUSH_ASYNC=1, SCR_FLUSH=1)
        run.says("FLUSH_COMPLETE", "in the background", times=2)


def test_one_after_the_other():
    """A second flush waits for the first; both are complete."""
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("c1", LARGE), checkpoint("c2", LARGE), "finalize", **SLOW)
        run.says("FLUSH_COMPLETE", "in the background", times=2)
        lose_all(job)
        job.run("init", "current:c1", restart("c1", LARGE))


def test_stays_in_the_cache_meanwhile():
    """With room for one dataset, the next checkpoint waits for the flush of the last."""
    with Job(SCR_CACHE_SIZE=1, **PAIR) as job:
        job.run("init", checkpoint("c1", LARGE), checkpoint("c2", 1000), "finalize", **SLOW)
        lose_all(job)
        job.run("init", "current:c1", restart("c1", LARGE))


def test_newest_is_not_given_up_for_one_that_is_flushed():
    """Two datasets are in the cache, and the older one is being flushed: a third one
    waits, and both newer ones stay."""
    with Job(SCR_CACHE_SIZE=2, nodes=2, per_node=1, SCR_FLUSH=2) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2", LARGE), checkpoint("c3"), checkpoint("c4"), **SLOW)
        assert job.cached() == [3, 4], job.cached()


def test_deleted_meanwhile():
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("c1", LARGE), "delete:c1", "have => 0", checkpoint("c2"), "finalize",
                      **SLOW)
        run.says("FLUSH_STOPPED", "dataset 1", times=1)
        run.not_said("warning")  # all is gone
        assert not temporaries(job)
        assert not (job.prefix / "c1").exists()
        lose_all(job)
        job.run("init", restart("c2"))


def test_killed_meanwhile():
    """The earlier flush is complete, the cache has the newer dataset, and nothing
    incomplete counts."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        job.run("init", checkpoint("c2", LARGE), "kill@0", dies=True, **SLOW)
        assert places(job, 2) == {"CACHE", "FLUSHING"}, places(job, 2)
        job.save()
        job.run("init", restart("c2", LARGE), "finalize")
        job.go_back()
        lose_all(job)
        job.run("init", restart("c1"))


def test_fails_meanwhile():
    """The next completion returns the error once; the job continues, and the cache has
    everything."""
    with Job(**PAIR) as job:
        (job.prefix / "c1/rank_1").mkdir(parents=True)
        run = job.run("init", checkpoint("c1", code="SUCCESS"), "sleep:200", "need => 0",
                      checkpoint("c2", code="FLUSH"), checkpoint("c3"), "finalize", SCR_FLUSH_ASYNC=1)
        run.says("FLUSH_FAILED", "dataset 1", "rank_1 is a directory", times=1)
        lose_all(job)
        job.run("init", restart("c3"))


def test_older_of_the_same_name():
    """An output that could not be flushed does not overwrite a newer one later."""
    with Job(**PAIR) as job:
        job.run("init", "no_room@0:rank2file.scr", checkpoint("o", 500, flags="o", code="FLUSH"), "no_room@0:",
                checkpoint("o", 700, flags="co"), "finalize")
        job.run("init", restart("o", 700))


def test_output_that_cannot_be_flushed():
    """The output stays, exceeding the size of the cache, and is flushed when possible."""
    with Job(**PAIR, SCR_FLUSH_ASYNC=1) as job:
        more = [checkpoint(f"c{n}", code="ANY") for n in (2, 3, 4)]
        run = job.run("init", checkpoint("c1"), "no_room@0:rank2file.scr", checkpoint("o", flags="o", code="ANY"),
                      more, "no_room@0:", checkpoint("c5", code="ANY"), "finalize => ANY")
        run.says("CACHE_OVER_CAPACITY", "dataset 2")
        assert (job.prefix / "o" / "rank_1").exists(), run
        assert all(len(job.cached(node)) <= 3 for node in job.nodes())


def test_too_many_outputs_that_cannot_be_flushed():
    """At most as many outputs stay as the cache has places."""
    with Job(**PAIR, SCR_FLUSH_ASYNC=1) as job:
        outputs = [[f"start:o{n}:o", f"put:o{n}/rank_%r:1000", "complete:1 => ANY"] for n in range(1, 7)]
        run = job.run("init", checkpoint("c"), "no_room@0:rank2file.scr", outputs, restart("c"))
        for lost in (4, 5, 6):
            run.says("CACHE_EVICTED_UNFLUSHED", f"dataset {lost}", times=1)
        assert job.cached() == [1, 2, 3, 7], job.cached()


def test_stage_cannot_be_removed():
    """The flush is complete nevertheless, and the remaining directory is reported. For
    each use of the stage in turn, the disk fails from that use on."""
    stay = 0
    for number in range(1, 200):
        with Job(**PAIR) as job:
            struck = job.root / "struck"
            run = job.run("init => ANY", "start:a:c => ANY", "put:a/rank_%r:1000 => ANY", "complete:1 => ANY", "finalize => ANY", dies=None,
                          faults={"FAULTS_BELOW": job.prefix / "a/.scr/stage", "FAULTS_RANK": 0, "FAULTS_AT": number, "FAULTS_STAYS": 1,
                                  "FAULTS_HOW": "EIO", "FAULTS_READING": 1, "FAULTS_MARK": struck})
            if not struck.exists():
                break
            if not messages(run.err, "FLUSH_COMPLETE"):
                continue
            assert bool(stages(job)) == bool(messages(run.err, "FLUSH_STAGE_KEPT")), (number, str(run))
            stay += bool(stages(job))
            lose_all(job)
            job.run("init", restart("a"), "finalize")
    assert stay > 0 and number > 5, (stay, number)


def test_fails_at_the_end():
    with Job(**PAIR) as job:
        (job.prefix / "c1/rank_0").mkdir(parents=True)
        run = job.run("init", checkpoint("c1"), "finalize => FLUSH", SCR_FLUSH_ASYNC=1)
        run.says("FLUSH_FAILED", "rank_0 is a directory")


def test_on_the_prefix_directory_already():
    """A cached dataset that is in the index is not flushed again, even without a flush
    file: an interrupted flush would destroy it."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("c1"), "kill@0", dies=True)
        (job.prefix / ".scr/flush.scr").unlink()
        run = job.run("init", restart("c1"), "finalize")
        run.says("FLUSH_NOT_NEEDED", "dataset 1 .c1.", times=1)
        run.says("FLUSH_COMPLETE", times=0)


if __name__ == "__main__":
    main(globals())
