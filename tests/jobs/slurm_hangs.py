#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A launcher that never returns: srun waits for ranks of a slurmd that has forgotten the
request to end them. Skipped if Slurm is not installed."""
import os
import shutil
import signal
import time

from job import main, wait_until
from run import TOOLS, Runs
from slurm import Cluster, start

# In place of srun: the first run of scr_run waits until the test is ready.
LATE_SRUN = """#!/bin/sh
case "$*" in *--job-name=scr_run.*.1\\ *)
    : >{folder}/asked
    while [ ! -e {folder}/ready ]; do sleep 0.1; done
esac
exec {srun} "$@"
"""
DIES = """#!/bin/sh
[ $SLURM_PROCID != 0 ] || [ "$(grep -c 'RUN_LAUNCHED' "$SCR_PREFIX/.scr/runs.log")" != 1 ] || kill -9 $$
exec {wrapper}
"""


def srun_hangs():
    """Returns 0 if srun returned nevertheless: n2 began its ranks before the request to
    end them."""
    with Runs(SCR_NODE_TIMEOUT=20, SCR_RUN_PAUSE=0, SCR_RUNS=2, SCR_JOB_ID=None, SCR_WATCHDOG=1, SCR_WATCHDOG_TIMEOUT=15) as runs:
        cluster = Cluster(runs.job.root / "slurm")
        (runs.job.root / "bin").mkdir()
        for path, text in (("bin/srun", LATE_SRUN.format(folder=runs.job.root, srun=shutil.which("srun"))),
                           ("dies", DIES.format(wrapper=runs.wrapper))):
            (runs.job.root / path).write_text(text)
            (runs.job.root / path).chmod(0o755)
        runs.wrapper = runs.job.root / "dies"
        runs.more["PATH"] = f"{runs.job.root}/bin:{os.environ['PATH']}"
        start(runs, cluster, f"{TOOLS}/scr_run", "--nodes", 2, "--per-node", 1)
        wait_until(lambda: (runs.job.root / "asked").exists() or runs.process.poll() is not None)
        slurmd = cluster.daemons[2]  # that of n2
        os.kill(slurmd.pid, signal.SIGSTOP)
        (runs.job.root / "ready").touch()
        said = ""
        for line in runs.process.stdout:
            said += line
            if "task 0: Killed" in line:
                break
        time.sleep(1)  # what n2 is told waits for it then
        os.kill(slurmd.pid, signal.SIGCONT)
        runs.out, _ = runs.process.communicate(timeout=120)
        runs.out = said + runs.out
        assert runs.process.returncode == 0 and len(runs.log("RUN_LAUNCHED")) == 2, runs.out
        if runs.log("run 1: .*: it failed.*RUN_EXITED"):
            return 0
        assert runs.log("run 1: .*SCR_WATCHDOG.*RUN_EXITED"), runs.out
        runs.job.layout = [("n1", 1), ("n2", 1)]
        runs.check_result()
        return 1


def test_srun_never_returns():
    """A rank is killed before the slurmd of another node has begun: that slurmd forgets
    the request to end its ranks, and srun waits for them forever. SCR_WATCHDOG
    notices."""
    assert any(srun_hangs() for _ in range(5)), "srun returned each time"


if __name__ == "__main__":
    main(globals())
