#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Messages name the place, the reason, and a remedy."""
import os
import subprocess

import damage
from job import Job, Skip, checkpoint, main, restart


class Mounted:
    """A small file system mounted at a directory, if possible."""
    def __init__(self, folder, options):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
                                               capture_output=True).returncode:
            raise Skip("no file system can be mounted here")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.folder], check=True)


def test_rebuilt():
    """A dataset that was completed again does not cause an error about a file."""
    with Job(nodes=4, per_node=1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.lose("n2")
        job.replace("n2", "n5")
        run = job.run("init", restart("a"))
        run.says("REBUILD_COMPLETE", "1 of 4 ranks", "lost members 1 .*2_of_4_in_0.xor is missing", times=1)
        run.not_said("No such file")


def test_one_line_for_all():
    """One line is printed, whatever the number of ranks and files."""
    with Job(nodes=4, per_node=2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for path in job.cache("n2").glob("scr.dataset.1/a/*"):
            damage.cut(path)
        run = job.run("init", restart("a"))
        run.says("CACHE_FILES_LOST", r"dataset 1 \(a\)", "count as lost: on 2 ranks, first rank 2: node n2", times=1)
        run.says("CACHE_FILES_LOST", times=1)
    with Job(nodes=4, per_node=2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for path in job.cache("n2").glob("scr.dataset.1/*.xor"):
            damage.flip_first(path)
        run = job.run("init", restart("a"))
        run.says("CACHE_REDUNDANCY_LOST", "node n2: 2", "dataset 1", times=1)


def test_one_reason_of_all_ranks():
    """Each node prints a line at once; the job prints one if the ranks agree; a rank with
    another reason is in both."""
    with Job(nodes=4, per_node=2, SCR_FLUSH=0) as job:
        run = job.run("init", "start:a:c", "no_room:a", "no_room@3:", "unreadable@3:a", "route:a/rank_%r => CACHE", "route:a/other_%r => CACHE",
                      "complete:1 => INVALID", "no_room:", "unreadable@3:", checkpoint("b"), "finalize")
        for node in range(4):
            first, second = 2 * node, 2 * node + 1
            both = [len([line for line in run.err.splitlines() if "ROUTE_REFUSED" in line and f"rank {rank}: " in line])
                    for rank in (first, second)]
            assert both == [2, 2] if node == 1 else sorted(both) == [0, 2], (both, run)
        run.says("ROUTE_REFUSED", "rank 3: .*Input/output error", times=2)
        run.says("OUTPUT_FAILED", "dataset 1 .a.", "on 8 ranks, first rank 0: SCR_Route_file failed.*make directory .*a: No space left on device"
                                  "; 1 with another reason, first rank 3: SCR_Route_file failed.*Input/output error", times=1)
        run.says("OUTPUT_FAILED", times=1)
        assert not list(job.root.rglob("reported.*"))


def test_reports_of_a_killed_run():
    """Resources of a killed run are free in the next run."""
    with Job(nodes=1, per_node=2, SCR_FLUSH=0) as job:
        for _ in range(2):
            run = job.run("init", "start:a:c", "route:/tmp/x => ARGUMENT")
            run.says("ROUTE_REFUSED", "is not below the prefix directory", times=1)
            assert len(list(job.root.rglob("reported.*"))) == 1


DETAILS = ["RUN_STARTED", "RUN_READY", "FETCH_STARTED", "RESTART_OFFERED", "RESTART_STARTED", "RESTART_COMPLETE", "OUTPUT_STARTED",
           "FLUSH_STARTED", "CACHE_EVICTED", "RUN_FINALIZED"]
EVENTS = ["OUTPUT_COMPLETE", "FLUSH_COMPLETE", "RUN_SUMMARY"]


def test_levels():
    """Additional messages with SCR_DEBUG."""
    for debug in range(3):
        with Job(nodes=2, per_node=1, SCR_FLUSH=1, SCR_DEBUG=debug, SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0) as job:
            job.run("init", checkpoint("a"))
            job.run("init", restart("a")).says("REBUILD_STARTED", times=int(debug == 2))
            job.lose("n1", "n2")
            run = job.run("init", restart("a"), checkpoint("b"), checkpoint("c"), "finalize")
            run.says("FETCH_COMPLETE", times=1)
            for level, identifiers in ((1, EVENTS), (2, DETAILS)):
                for identifier in identifiers:
                    run.says(identifier, times=None if debug >= level else 0)


def test_text_of_others():
    """A colleague's reason for a halt cannot move the cursor, hide text, or begin a
    line."""
    with Job(nodes=1, per_node=1) as job:
        for reason in ("x\u009b2J\u202ey", "x\x9b2Jy".encode("latin-1"), "x\nSCR: y"):
            subprocess.run([f"{os.environ['JOB_TOOLS']}/scr_halt", "--reason", reason, job.prefix], env=job.environment({}), check=True,
                           capture_output=True)
            job.run("init", "exit => 1", "finalize").said(r"the run should end: x[?]+(2J[?]+|2J|SCR: )y; to continue: scr_halt --remove .* \[HALT_REQUESTED\]", times=1)


def test_cache_is_full():
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job, Mounted(job.node("n2") / "cache", "size=200k"):
        run = job.run("init", "start:b:c", "put:b/f_%r:120000", "complete:1 => REDUNDANCY")
        run.says("OUTPUT_FAILED", "dataset 1", rf"No space left on device; {job.cache('n2')} on node n2 has \d+ of 204800 bytes free", times=1)


def test_prefix_is_read_only():
    with Job(nodes=1, per_node=2) as job, Mounted(job.prefix, "ro"):
        run = job.run("init => ANY")
        run.says("PREFIX_NOT_OPENED", f"prefix directory {job.prefix}: make directory .scr: Read-only file system", times=1)


if __name__ == "__main__":
    main(globals())
