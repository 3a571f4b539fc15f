#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A file that every checkpoint rewrites ("latest"), beside the own directory of each:
once a newer checkpoint has written to it, the older one is incomplete and not offered.
Files that were not written to are not read to detect that."""
import os
import shutil

from job import Job, main
from scavenged import command
import tree

PAIR = {"nodes": 2, "per_node": 2, "SCR_FLUSH": 1}
UNCHECKED = {"SCR_CRC_ON_COPY": 0, "SCR_CRC_ON_FLUSH": 0}
SIZE = 400_000


def begin(name, latest="latest_%r"):
    return [f"start:{name}:c", f"put:{name}/rank_%r:{SIZE}", f"put:{latest}:{SIZE}"]


def write(name):
    return begin(name) + ["complete:1"]


def read(name):
    return [f"have => 1 {name}", f"start_restart => {name}", f"get:{name}/rank_%r:{SIZE}", f"get:latest_%r:{SIZE}", "complete_restart:1"]


def lose_all(job):
    job.lose(*[node for node in job.nodes() if job.node(node).exists()])


def rewrite(path, at=SIZE // 2):
    """Changes one byte; the size stays."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def verify(job, name, result):
    done = command(job, "scr_index", "--verify", name, code=0 if result == "good" else 1)
    assert result in done.out, str(done)
    return done


def copy(job, keep):
    """Replaces the prefix directory by a copy of itself."""
    shutil.move(job.prefix, job.root / "original")
    shutil.copytree(job.root / "original", job.prefix, copy_function=shutil.copy2 if keep else shutil.copy)


def test_killed_in_the_second():
    """The second checkpoint was killed, whatever part of the file it had written."""
    for how in ({}, UNCHECKED, {"SCR_FETCH_BYPASS": 1}):
        for latest in ("latest_%r", "latest_1"):
            with Job(**PAIR, SCR_CACHE_BYPASS=1, **how) as job:
                job.run("init", write("a"), begin("b", latest), "kill:1", dies=True)
                done = verify(job, "a", "damaged")
                assert "latest_1" in done.err, str(done)
                run = job.run("init", "have => 0 =")
                run.says("FETCH_CHECKPOINT_DAMAGED", "a", r"latest_\d", times=1)


def test_killed_before():
    """Only the second checkpoint's own files were written: the first one is complete."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", write("a"), "start:b:c", f"put:b/rank_%r:{SIZE}", "kill:1", dies=True)
        verify(job, "a", "good")
        job.run("init", read("a"))


def test_quickly():
    """Clocks of file systems have ticks: the second checkpoint begins immediately after
    the first."""
    with Job(nodes=1, per_node=1, SCR_CACHE_BYPASS=1) as job:
        for number in range(10):
            name = f"a{number}"
            job.run("init", "start:%s:c" % name, "put:same:100", "complete:1", "start:b:c", "put:same:100", "kill:0", dies=True)
            verify(job, name, "damaged")
            job.run("init", "have => 0 =")


def test_the_second_failed():
    """The second checkpoint is complete, but the program cannot read it: the first one is
    not offered instead."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", write("a"), write("b"))
        verify(job, "b", "good")
        run = job.run("init", read("b"), "have => 1 b", "start_restart => b", "complete_restart:0 => INVALID", "have => 0 =")
        run.says("FETCH_CHECKPOINT_DAMAGED", "a", "latest_.* was written again", times=1)


def test_flushed():
    """The same for files that were copied to the prefix directory, and are read there in
    place or into the cache."""
    for how in ({}, UNCHECKED, {"SCR_FETCH_BYPASS": 1}, {"SCR_FETCH_BYPASS": 1, **UNCHECKED}):
        with Job(**PAIR, **how) as job:
            job.run("init", write("a"), "finalize")
            verify(job, "a", "good")
            lose_all(job)
            job.run("init", read("a"), begin("b"), "kill:1", dies=True, SCR_CACHE_BYPASS=1)
            verify(job, "a", "damaged")
            lose_all(job)
            run = job.run("init", "have => 0 =")
            run.says("FETCH_CHECKPOINT_DAMAGED", "a", r"latest_\d", times=1)


def test_written_by_somebody():
    """Without a known newer dataset and without checksums, it is unknown whether the file
    is the same. The checkpoint stays, and that is an error."""
    for bypass in (0, 1):
        with Job(**PAIR, SCR_CACHE_BYPASS=bypass, **UNCHECKED) as job:
            job.run("init", write("a"), "finalize")
            rewrite(job.prefix / "latest_1")
            lose_all(job)
            run = job.run("init", "have => PREFIX 0 =")
            run.says("FETCH_FAILED", "a", "latest_.* was written since .*no checksum.*cp -a", times=1)
            assert "damaged" in verify(job, "a", "damaged").out


def test_copied():
    """With checksums the files are read, and found complete; without, the copy must have
    kept their times."""
    for keep, checked, bypass in ((0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (0, 0, 0)):
        with Job(**PAIR, **({} if checked else UNCHECKED), SCR_FETCH_BYPASS=bypass) as job:
            job.run("init", write("a"), "finalize")
            lose_all(job)
            copy(job, keep)
            run = job.run("init", read("a") if keep or checked else "have => PREFIX 0 =")
            run.says("FETCH_CHECKPOINT_DAMAGED", times=0)
            run.says("FETCH_FAILED", "cp -a", times=not (keep or checked))


def test_nothing_is_read():
    """Nothing is read as long as nothing was written; then only the written files."""
    with Job(**PAIR, SCR_FETCH_BYPASS=1) as job:
        job.run("init", write("a"), "finalize")
        lose_all(job)
        for touched in (0, 1):
            if touched:
                os.utime(job.prefix / "latest_1")
            run = job.run("init", "have => 1 a", "largest:read")
            largest = [size >= 64 * 1024 for size in run.ops[-1]["flag"]]
            assert largest == [False, bool(touched), False, False], run


def test_maps_without_times():
    """Maps of earlier versions, which have no times, can be read."""
    with Job(**PAIR, SCR_CACHE_BYPASS=1) as job:
        job.run("init", write("a"), "finalize")
        path = job.prefix / "a/.scr/rank2file.0.0.scr"
        content = tree.read(path)
        files = [file for rank in content["RANK2FILE"]["RANK"].values() for file in rank["FILE"].values()]
        assert len(files) == 8 and all("MTIME" in file for file in files)
        for file in files:
            del file["MTIME"]
        tree.write(path, content)
        job.run("init", read("a"))
        verify(job, "a", "good")


if __name__ == "__main__":
    main(globals())
