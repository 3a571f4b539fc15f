#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Healthy nodes of Slurm that look down: an administrator drains them while the program
computes, and the time of the job is over. They are not reported as down, and nothing is
lost with them. Skipped if Slurm is not installed."""
import os
import re
import signal
import subprocess
import time

import slurm
from job import main, wait_until
from run import TOOLS, Runs, newest

CHECKS = 8  # seconds in which nodes are checked more than once


def story(body, **parameters):
    with Runs(SCR_FLUSH=0, SCR_NODE_TIMEOUT=20, SCR_NODE_INTERVAL=1, SCR_RUN_PAUSE=0, SCR_JOB_ID=None, SCR_LOG_ENABLE=1,
              SCR_LOG_SYSLOG_ENABLE=0, **parameters) as runs, slurm.Cluster(runs.job.root / "slurm") as runs.cluster:
        slurm.start(runs, runs.cluster, f"{TOOLS}/scr_run", "--nodes", 3, "--per-node", 2)
        wait_until(lambda: newest(runs) >= 2 or runs.process.poll() is not None)
        body(runs)
        assert not runs.log("NODE_DOWN|down: "), runs.out
        assert " NODE_LOST " not in (runs.prefix / ".scr/log").read_text(), runs.out


def control(runs, *words):
    subprocess.run(["scontrol", "update", *words], env=runs.cluster.environment(), check=True)


def goes_on(runs):
    """The program continues while its nodes are checked."""
    time.sleep(CHECKS)
    before = newest(runs)
    wait_until(lambda: newest(runs) > before or runs.process.poll() is not None)
    if runs.process.poll() is not None or runs.log("RUN_EXITED"):
        slurm.end(runs, runs.cluster)
        raise AssertionError(runs.out)


def fail(runs):
    """Kills a rank."""
    os.kill(slurm.running("heat")[0], signal.SIGKILL)
    slurm.end(runs, runs.cluster)


def drain(runs):
    control(runs, "nodename=n[2-3]", "state=drain", "reason=test")
    goes_on(runs)
    fail(runs)


def saved_from(runs, nodes):
    """Returns the first dataset that is saved."""
    found = re.search(rf"dataset \d+ \((.*)\) is only in the cache: it is copied from {re.escape(nodes)}\n", runs.out)
    assert found, runs.out
    return found[1]


def test_drained():
    """Two nodes of three are drained: the next run does without them, and begins with
    their data, too."""
    def body(runs):
        drain(runs)
        assert runs.process.returncode == 0, runs.out
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on n[1-3], 6 ranks", "run 2: begins on n[1,4], 6 ranks"), runs.out
        runs.said(f"heat: restarted from {re.escape(saved_from(runs, 'n[1-4]'))},")
        runs.job.layout = [("n1", 6)]
        runs.check_result()
    story(body, SCR_RUNS=2, SCR_MIN_NODES=2)


def test_drained_and_needed():
    """Too few other nodes are left: a drained one is used once more."""
    def body(runs):
        drain(runs)
        assert runs.process.returncode == 0, runs.out
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on n[1-3], 6 ranks", "run 2: begins on n[1-2,4], 6 ranks"), runs.out
        assert saved_from(runs, "n[1-4]") and runs.logged("NODE_DRAINED", " n3 "), runs.out
    story(body, SCR_RUNS=2, SCR_MIN_NODES=3)


def test_drained_at_the_end():
    def body(runs):
        drain(runs)
        assert saved_from(runs, "n[1-4]") == slurm.newest_name(runs) == slurm.current(runs), runs.out
    story(body, SCR_RUNS=1)


def test_time_is_over():
    """For up to half a minute Slurm lets no step begin, not even one that queries a node,
    although the job continues; then it is ended."""
    def body(runs):
        control(runs, "jobid=1", f"EndTime={time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(time.time() + 2))}")
        slurm.end(runs, runs.cluster)
        assert runs.logged("RUN_ALLOCATION_OVER", ""), runs.out
    story(body, SCR_RUNS=2, SCR_MIN_NODES=1, SCR_HALT_SIGNALS="NONE")


if __name__ == "__main__":
    main(globals())
