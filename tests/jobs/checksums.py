#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checksums in the cache: SCR_CRC_ON_COPY and SCR_CRC_ON_DELETE, and those of flushed files: SCR_CRC_ON_FLUSH."""
import json
import os

from job import Job, checkpoint, main, restart
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 0, "SCR_CACHE_SIZE": 1}


def cached_file(job, node, rank, dataset=1, name="a"):
    return job.cache(node) / f"scr.dataset.{dataset}/{name}/rank_{rank}"


# ---- SCR_CRC_ON_COPY ----

def recorded(job, node, rank):
    """Checksums of a rank's own files in its filemap."""
    files = tree.read(job.control(node) / "filemap_0.scriinfo")["RANK"][str(rank)]["DSET"]["1"]["FILE"]
    return [about["CRC"] for about in files.values() if "CRC" in about]


def test_nothing_is_read_for_checksums():
    """No file is read for checksums at the end of a checkpoint or when a complete one is
    offered; with redundancy, files are read only for the sums. SCR_Init reads only
    headers in any case."""
    for on, scheme, written, restarted in ((1, "SINGLE", True, True), (0, "SINGLE", False, False),
                                           (1, "XOR", True, True), (0, "XOR", True, False)):
        with Job(**PAIR, SCR_COPY_TYPE=scheme, SCR_CRC_ON_COPY=on) as job:
            start, put, complete = checkpoint("a", 400000)
            run = job.run("init", start, put, "largest:read", complete, "largest:read")
            assert [size >= 128 * 1024 for size in run.ops[-1]["flag"]] == [written] * 2, run
            assert len(recorded(job, "n1", 0)) == on, recorded(job, "n1", 0)
            run = job.run("init", "largest:read", "have => 1 a", "largest:read", restart("a", 400000))
            largest = [[size >= 128 * 1024 for size in op["flag"]] for op in run.ops
                       if op["op"] == "largest:read"]
            assert largest == [[False] * 2, [restarted] * 2], run


def test_only_sizes_count_without():
    """Altered bytes are detected only with checksums; a short file and a lost node are
    always detected."""
    for on in (1, 0):
        with Job(**PAIR, SCR_CRC_ON_COPY=on) as job:
            job.run("init", checkpoint("a"))
            damage.flip(cached_file(job, "n1", 0))
            run = job.run("init", restart("a") if on else "have => 1 a")
            run.says("REBUILD_COMPLETE", "1 of 2 ranks", times=on)
        with Job(**PAIR, SCR_CRC_ON_COPY=on) as job:
            job.run("init", checkpoint("a"))
            damage.cut(cached_file(job, "n1", 0))
            job.run("init", restart("a")).says("REBUILD_COMPLETE", "1 of 2 ranks", times=1)
            job.lose("n2")
            job.run("init", restart("a")).says("REBUILD_COMPLETE", "1 of 2 ranks", times=1)


def test_damage_is_mended_before_use():
    """SCR_Have_restart or a flush, whichever comes first, repairs damage once; other
    datasets are left alone."""
    with Job(**PAIR | {"SCR_CACHE_SIZE": 2}) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        for dataset, name in ((1, "a"), (2, "b")):
            damage.flip(cached_file(job, "n1", 0, dataset, name))
        run = job.run("init", "have => 1 b", "have => 1 b", restart("b"))
        run.says("REBUILD_COMPLETE", "dataset 2 .b.", "1 of 2 ranks", times=1)
        run.says("REBUILD_COMPLETE", times=1)
        run = job.run("init", "have => 1 b", "start_restart", "complete_restart:0 => INVALID", restart("a"))
        run.says("REBUILD_COMPLETE", "dataset 1 .a.", "1 of 2 ranks", times=1)
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        damage.flip(cached_file(job, "n1", 0))
        run = job.run("init", restart("a"), SCR_FLUSH_ON_RESTART=1, SCR_CRC_ON_FLUSH=0)
        run.says("REBUILD_COMPLETE", "1 of 2 ranks", times=1)
        job.lose("n1", "n2")
        job.run("init", restart("a")).says("FETCH_COMPLETE", times=1)


def test_what_cannot_be_mended_is_not_used():
    """The next best dataset is offered, and no part of a damaged dataset is flushed."""
    with Job(**PAIR | {"SCR_CACHE_SIZE": 2}) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        for node, rank in (("n1", 0), ("n2", 1)):
            damage.flip(cached_file(job, node, rank, 2, "b"))
        run = job.run("init", restart("a"))
        run.says("REBUILD_IMPOSSIBLE", "dataset 2 .b.", "rank_0 has checksum", times=1)
        assert job.cached() == [1, 2], job.cached()
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for node, rank in (("n1", 0), ("n2", 1)):
            damage.flip(cached_file(job, node, rank))
        run = job.run("init", "have => 0 =", SCR_FLUSH_ON_RESTART=1, SCR_CRC_ON_FLUSH=0)
        run.says("REBUILD_IMPOSSIBLE", "dataset 1 .a.", times=1)
        run.says("FLUSH_FAILED", "dataset 1", times=1)
        assert job.cached() == [1] and not (job.prefix / "a").exists(), tree


def test_flush_and_fetch_without():
    """The flush computes its own checksums, which the fetch compares."""
    with Job(**PAIR | {"SCR_FLUSH": 1}, SCR_CRC_ON_COPY=0) as job:
        job.run("init", checkpoint("a"), "finalize")
        job.run("init", restart("a")).says("FETCH_COMPLETE", times=1)
        job.lose("n1", "n2")
        damage.flip(job.prefix / "a/rank_1")
        job.run("init", "have => 0 =")


def test_settings_may_change():
    """A run with checksums uses caches without, and vice versa; new datasets follow its
    own setting."""
    for on in (0, 1):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("a"), SCR_CRC_ON_COPY=on)
            job.lose("n2")
            job.run("init", restart("a"), SCR_CRC_ON_COPY=1 - on)
            assert len(recorded(job, "n2", 1)) == on
            job.lose("n1")
            job.run("init", restart("a"), SCR_CRC_ON_COPY=1 - on)


# ---- SCR_CRC_ON_FLUSH ----

def test_flush_without():
    """A dataset flushed without checksums is fetched as it is, unless it was written to;
    with checksums, damage is detected."""
    for on in (1, 0):
        with Job(**PAIR | {"SCR_FLUSH": 1}, SCR_CRC_ON_FLUSH=on) as job:
            job.run("init", checkpoint("a"), "finalize")
            path = job.prefix / "a/rank_1"
            before = path.stat()
            damage.flip(path)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as when a disk does that
            run = job.run("init", "have => 0 =" if on else "have => 1 a")
            run.says("FETCH_COMPLETE", times=not on)


# ---- SCR_CRC_ON_DELETE ----

def spoiled(how):
    """The application alters a file of "a" after its completion, and the next checkpoint
    evicts "a"."""
    return ["init", checkpoint("a"), how, checkpoint("b"), "have => 1 b"]


def test_damage_is_told_when_the_dataset_leaves():
    """Altered bytes and sizes, on one rank and on both, are reported in the message and
    the log."""
    for how, pattern in (("tag:x", None), ("write@1:1000", "rank 1: node n2: .*/rank_1 has checksum "),
                         ("write:1000", "on 2 ranks, first rank 0: node n1: .*/rank_0 has checksum "),
                         ("unlink@0", "rank 0: node n1: .*/rank_0: No such file"),
                         ("stretch@0:9", "rank 0: node n1: .*/rank_0 has 1010 bytes, not 1000")):
        for on in (0, 1):
            with Job(**PAIR, SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0, SCR_LOG_JSON_ENABLE=1) as job:
                run = job.run(spoiled(["tag:x", how]), SCR_CRC_ON_DELETE=on)
                told = pattern is not None and on
                run.says("CACHE_DATASET_DAMAGED", "dataset 1", pattern or "", times=told)
                assert job.cached() == [2], job.cached()
                notes = [json.loads(line).get("note", "") for line in (job.prefix / ".scr/log.jsonl").open()]
                assert sum(note.endswith("[CACHE_DATASET_DAMAGED]") for note in notes) == told, notes


def test_what_another_run_left():
    """A process that did not write the dataset also reports damage; missing data was lost
    earlier."""
    for hurt, pattern in ((None, None), (damage.flip, "has checksum"), (damage.cut, "has 500 bytes, not 1000"),
                          (damage.link, "is a symbolic link"), (damage.remove, None)):
        with Job(**PAIR, SCR_CRC_ON_DELETE=1) as job:
            job.run("init", checkpoint("a"))
            if hurt:
                hurt(cached_file(job, "n1", 0))
            run = job.run("init", "have => 0 =", SCR_CACHE_PURGE=1, layout=[("n2", 1), ("n1", 1)])
            run.says("CACHE_DATASET_DAMAGED", "dataset 1", f"rank 1: node n1: .*/rank_0.*{pattern}", times=pattern is not None)
            run.says("CACHE_DATASET_DAMAGED", "rank_1", times=0)
            assert job.cached() == [], job.cached()


if __name__ == "__main__":
    main(globals())
