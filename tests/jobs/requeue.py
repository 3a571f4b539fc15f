#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run --requeue within Slurm: a job that is preempted, or asked to end, writes a
checkpoint, saves it, returns to the queue, and continues from there. Skipped if Slurm is
not installed."""
import re
import subprocess

import slurm
from job import main, wait_until
from run import TOOLS, Runs, newest

GRACE = 60
slurm.CONF = slurm.CONF.replace("PartitionName=all Nodes=ALL Default=YES", f"""AuthInfo=cred_expire=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=off MaxTime=INFINITE State=UP
PartitionName=all Nodes=ALL Default=YES PriorityTier=1 GraceTime={GRACE}""").replace("sched_min_interval=1", "sched_min_interval=1,sched_interval=2")
BATCH = """#!/bin/sh
exec {tools}/scr_run --requeue --nodes 2 --per-node 2 {wrapper}
"""


class Jobs:
    """A batch job with two checkpoints, whose second run may end by itself."""

    def __init__(self, *options):
        self.options = options
        self.runs = Runs(last=2, SCR_FLUSH=0, SCR_RUNS=3, SCR_RUN_PAUSE=0, SCR_NODE_TIMEOUT=20, SCR_JOB_ID=None)

    def __enter__(self):
        runs = self.runs.__enter__()
        try:
            self.cluster = slurm.Cluster(runs.job.root / "slurm")
        except BaseException:
            runs.__exit__()
            raise
        self.out, script = runs.job.root / "batch.out", runs.job.root / "batch"
        script.write_text(BATCH.format(tools=TOOLS, wrapper=runs.wrapper))
        self.environment = self.cluster.of_jobs(runs)
        self.id = self.slurm("sbatch", "--parsable", *(self.options or ["--requeue"]), "--no-kill", f"--nodes={slurm.NODES}",
                             "--exclusive", "--open-mode=append", f"--output={self.out}", script).strip()
        wait_until(lambda: newest(runs) >= 2)
        return self

    def __exit__(self, *_):
        self.runs.__exit__()

    def slurm(self, *command):
        return subprocess.run(command, env=self.environment, cwd=self.runs.prefix, capture_output=True, text=True, check=True).stdout

    def fact(self, name):
        found = re.search(rf"\b{name}=(\S+)", self.slurm("scontrol", "show", "job", self.id))
        return found and found[1]

    def wait(self, *states):
        """Waits until the job is in one of these states."""
        wait_until(lambda: self.fact("JobState") in states)
        self.runs.out = self.out.read_text()

    def continued(self, *whys):
        """Checks that the job was requeued once for that reason, and continued from its
        newest checkpoint to its end."""
        runs = self.runs
        assert self.fact("Restarts") == "1", runs.out
        log = (runs.prefix / ".scr/runs.log").read_text()
        for why in (*whys, "RUN_REQUEUED", r"run 1: begins .*\n(.*\n)*.*run 1: begins ", "RUN_DONE"):
            assert re.search(why, log), (why, log)
        assert log.count("[RUN_LAUNCHED]") == 2 and "RUN_SAVE_FAILED" not in log, log
        saved = re.findall(r"heat: step (\d+): checkpoint done", runs.out.split("RUN_REQUEUED")[0])[-1]
        runs.said(rf"heat: restarted from ckpt\.{saved},")
        runs.job.layout = [("n1", 2), ("n2", 2)]
        runs.check_result()


def test_preempted():
    """Slurm notifies the program, not scr_run; a job with priority gets the nodes before
    the time is over."""
    with Jobs() as jobs:
        other = jobs.slurm("sbatch", "--parsable", "--partition=urgent", f"--nodes={slurm.NODES}", "--exclusive", "--output=/dev/null",
                           "--wrap=sleep 1").strip()
        jobs.wait("COMPLETED", "FAILED", "CANCELLED")
        assert f"JobId={other} " in jobs.slurm("scontrol", "show", "job", other)
        jobs.continued(r"SCR_SIGNAL: SIGTERM came to rank .*RUN_HALTED")


def test_signal():
    """scr_run gets SIGTERM, as from sbatch --signal=B:TERM@60: the program still ends
    with a checkpoint."""
    with Jobs() as jobs:
        jobs.slurm("scancel", "--batch", "--signal=TERM", jobs.id)
        jobs.wait("COMPLETED", "FAILED", "CANCELLED")
        jobs.continued("RUN_ASKED_TO_HALT", r"run 1: .* exit code 0: .*RUN_EXITED", "RUN_SIGNALLED")


def test_not_requeued():
    """A person ends the job, or cancels it."""
    with Jobs() as jobs:
        subprocess.run([f"{TOOLS}/scr_halt", "--reason", "enough", jobs.runs.prefix], check=True)
        jobs.wait("COMPLETED", "FAILED", "CANCELLED")
        assert jobs.fact("Restarts") == "0" and jobs.runs.log("RUN_HALTED") and not jobs.runs.log("REQUEUE"), jobs.runs.out
    with Jobs() as jobs:
        jobs.slurm("scancel", jobs.id)
        wait_until(lambda: not slurm.running("scr_run"))
        jobs.wait("CANCELLED")
        assert jobs.fact("Restarts") == "0" and not jobs.runs.log("REQUEUE"), jobs.runs.out


def test_refused():
    """Slurm may not requeue the job: this is reported, and everything is saved."""
    with Jobs("--no-requeue") as jobs:
        jobs.slurm("scancel", "--batch", "--signal=TERM", jobs.id)
        jobs.wait("COMPLETED", "FAILED", "CANCELLED")
        assert jobs.runs.log(r"scontrol: exit code 1.*RUN_REQUEUE_FAILED"), jobs.runs.out
        assert slurm.current(jobs.runs) == slurm.newest_name(jobs.runs) != "", jobs.runs.out


if __name__ == "__main__":
    main(globals())
