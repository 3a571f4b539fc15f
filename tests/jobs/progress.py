#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR_PROGRESS=1: while a run waits, it reports the progress of the flush, fetch, rebuild
or deletion every 10 seconds. Files are slow here."""
import os
import re

from job import Job, checkpoint, main, restart
from scavenged import command

PAIR = {"nodes": 2, "per_node": 2}
FORM = r"(\d+)%, ([\d.]+) ([kM])B of ([\d.]+) ([kM])B, [\d.]+ [kM]?B/s, (?:[\d.]+ s|1 min \d+ s) left \[{}\]"
KILO = {"k": 1, "M": 1000}


def slow(folder, milliseconds):
    """Each call that moves bytes below folder takes that long."""
    return {"FAULTS_BELOW": str(folder), "FAULTS_READING": "1", "FAULTS_HOW": "slow", "FAULTS_AT": "1", "FAULTS_STAYS": "1",
            "FAULTS_NAP": str(milliseconds)}


def progress(run, identifier, what, total, who="SCR"):
    """The percentages of the lines, each with that total of a node in kB. The last steps
    may follow the last byte."""
    lines = [line for line in run.err.splitlines() if identifier in line and re.search(f": {what}: ", line) and " so far " not in line]
    found = [re.fullmatch(who + ": " + what + ": " + FORM.format(identifier), line) for line in lines]
    assert found and all(found), f"{what}\n{run}"
    shares = [int(one[1]) for one in found]
    assert shares == sorted(shares) and 0 < shares[0] < 100, run
    assert all(float(one[4]) * KILO[one[5]] == total for one in found), run
    assert all(abs(float(one[2]) * KILO[one[3]] * 100 / total - int(one[1])) < 1.5 for one in found), run
    return shares


def test_flush_at_the_end():
    """In the background: each node has 120 kB, and sends 8 kB per second. scr_transfer
    reports synced bytes."""
    background = {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_ASYNC_BW": "8000", "SCR_FILE_BUF_SIZE": "4KB", "SCR_FLUSH": 1}
    path = f"{os.environ['JOB_PATH']}:{os.environ['PATH']}"
    for method in ("PTHREAD", "DAEMON"):
        with Job(**PAIR, **background, SCR_FLUSH_TYPE=method) as job:
            run = job.run("init", checkpoint("a", 60_000), "finalize", SCR_PROGRESS=1, PATH=path)
            if method == "PTHREAD":
                assert progress(run, "FLUSH_PROGRESS", r"flush of dataset 1 \(a\)", 120)[0] > 40
            run.says("FLUSH_PROGRESS", r"dataset 1 \(a\): \d+%, .* of 120 kB")


def test_nothing_is_said_without_a_wish():
    with Job(**PAIR, SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW="8000", SCR_FILE_BUF_SIZE="4KB", SCR_FLUSH=1, SCR_DEBUG=2) as job:
        run = job.run("init", checkpoint("a", 60_000), "finalize")
        run.says("FLUSH_COMPLETE")
        run.not_said("PROGRESS")


def test_flush_and_fetch():
    """The ranks make 40 calls of 0.35 seconds to write the data of a rank, and as many to
    read it."""
    for more in ({}, {"SCR_FLUSH_FORM": "containers", "SCR_FLUSH_ALIGN": "4KB"}):
        with Job(**PAIR, SCR_FILE_BUF_SIZE="4KB", **more) as job:
            leads = "SCR_FLUSH_FORM" in more  # one rank copies for both of its node
            run = job.run("init", checkpoint("a", 160_000), "finalize", SCR_PROGRESS=1, faults=slow(job.prefix / "a", 175 if leads else 350))
            progress(run, "FLUSH_PROGRESS", r"flush of dataset 1 \(a\)", 320)
            run = job.run("init", restart("a", 160_000), SCR_PROGRESS=1, faults=slow(job.prefix / "a", 350))
            progress(run, "FETCH_PROGRESS", r"fetch of dataset 1 \(a\)", 320)


def test_rebuild():
    """A node is lost: the others read their files in pieces."""
    with Job(**PAIR, SCR_FLUSH=0, SCR_MPI_BUF_SIZE="4KB") as job:
        job.run("init", checkpoint("a", 160_000))
        job.lose("n2")
        run = job.run("init", restart("a", 160_000), SCR_PROGRESS=1, faults=slow(job.node("n1") / "cache", 250))
        run.says("REBUILD_COMPLETE", times=1)
        progress(run, "REBUILD_PROGRESS", r"check and rebuild of dataset 1 \(a\)", 640)


def test_other_ranks():
    """Each of two ranks reads data of two writers: their files, and the same amount of
    redundancy data."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a", 5_000_000))
        run = job.run("init", "have => 1 a", layout=[("n1", 1), ("n2", 1)], SCR_RESTART_RANKS="any", SCR_PROGRESS=1,
                      faults=slow(job.node("n1") / "cache", 400))
        progress(run, "REBUILD_PROGRESS", r"check and rebuild of dataset 1 \(a\)", 20_000)


def test_files_of_other_ranks():
    """A file of the other node arrives in pieces; from a container, a process of each
    node reads it."""
    with Job(**PAIR, SCR_MPI_BUF_SIZE="4KB") as job:
        read = ["have => 1 a", "start_restart", "take_file:a/rank_3:3:160000", "complete_restart:1"]
        job.run("init", checkpoint("a", 160_000), SCR_FLUSH=0)
        run = job.run("init", read, SCR_PROGRESS=1, faults=slow(job.node("n1") / "cache", 350))
        progress(run, "FETCH_PROGRESS", r"fetch of files of dataset 1 \(a\)", 160)


def test_files_in_containers():
    """A file that SCR_Fetch_files brings from a container to both nodes is read in pieces
    by a process of each."""
    form = {"SCR_FLUSH_FORM": "containers", "SCR_FLUSH_ALIGN": "4KB", "SCR_FLUSH": 1}
    with Job(**PAIR, **form, SCR_FETCH_BYPASS=1) as job:
        job.run("init", checkpoint("a", 1_600_000), "finalize")
        for node in ("n1", "n2"):
            job.lose(node)
        read = ["have => 1 a", "start_restart", "take_file:a/rank_3:3:1600000", "complete_restart:1"]
        run = job.run("init", read, SCR_PROGRESS=1, faults=slow(job.prefix / "a", 600))
        progress(run, "FETCH_PROGRESS", r"fetch of files of dataset 1 \(a\)", 1600)


def test_commands():
    """After a job that lost a node: the data of the other one is copied, and the rest is
    rebuilt, which reads 20 MB and writes as much."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a", 5_000_000))
        job.lose("n2")
        done = command(job, "scr_copy", "--id", 1, node="n1", faults=slow(job.node("n1") / "cache", 400))
        progress(done, "COMMAND_PROGRESS", "copy", 20_000, who="scr_copy")
        done = command(job, "scr_index", "--add", "a", faults=slow(job.prefix / "a", 250))
        progress(done, "COMMAND_PROGRESS", "rebuild", 40_000, who="scr_index")


def test_many_files():
    """Complete files are renamed one by one. Each of 26 renames takes 0.45 seconds."""
    with Job(1, 1, SCR_FLUSH=0) as job:
        job.run("init", "start:a:c", *[f"put:a/f_{i}:100" for i in range(26)], "complete:1")
        command(job, "scr_copy", "--id", 1, node="n1")
        done = command(job, "scr_index", "--add", "a", faults=slow(job.prefix / "a", 450))
        lines = re.findall(r"scr_index: add: (\d+)%, (\d+) of 26 files, [\d.]+ s left \[COMMAND_PROGRESS\]", done.err)
        assert 1 <= len(lines) <= 2 and 0 < int(lines[0][1]) <= 26, done


def test_deletion():
    with Job(1, 1, SCR_FLUSH=1) as job:
        job.run("init", "start:a:c", *[f"put:a/f_{i}:100" for i in range(30)], "complete:1", "finalize")
        run = job.run("init", "delete:a", SCR_PROGRESS=1, faults=slow(job.prefix / "a", 500))
        lines = re.findall(r"SCR: deletion from (\S+): (\d+)%, (\d+) of 30 files, [\d.]+ s left \[PREFIX_REMOVAL_PROGRESS\]", run.err)
        assert [line[0] for line in lines] == [str(job.prefix)], run
        assert 15 <= int(lines[0][2]) <= 20, run


if __name__ == "__main__":
    main(globals())
