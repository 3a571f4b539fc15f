#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run, scr_srun, scr_test_system and the script of the guide in an allocation of
Slurm whose nodes are namespaces: one of them silently loses power, with its slurmd, its
steps and its network, while the program computes. Slurm keeps the step of that node, and
its processors on all nodes. Skipped without root, namespaces or Slurm."""
import os
import re
import shutil
import sys

import machines
import slurm
from job import SKIP, main, wait_until
from run import newest
from slurm import NODES, lose_node, named, script_of_guide


# In place of srun: the steps of scr_run, but not its commands, do not overlap others.
STUBBORN_SRUN = """#!/bin/sh
case "$*" in *--job-name=scr_run.*) unset SLURM_OVERLAP; esac
exec {srun} "$@"
"""


class Cluster(slurm.Cluster):
    """The controller on the head node, and nodes with as many processors as the program needs."""
    prolog, variables = "#!/bin/sh\n", {}

    def __init__(self, folder):
        self.machines = machines.Machines(*[f"n{number}" for number in range(1, NODES + 1)])
        super().__init__(folder)

    def places(self, host, first):
        return {"host": f"{host}({machines.NETWORK}.254)", "spool": f"{self.machines.local}/slurmd",
                "nodes": f"Port={first} CPUs=2"}

    def start_node(self, node):
        self.start("nsenter", "-t", str(self.machines.nodes[node][1]), "-m", "-u", "-i", "-n", "-p", "--", "slurmd", "-D", "-c")

    def __exit__(self, *_):
        self.machines.__exit__()

    def lose(self, node):
        self.machines.cut(node, silent=True)


def whole_node(make, *options, **parameters):
    begins = lose_node(make, *options, kind=Cluster, **parameters)
    assert len(begins) in (0, 2), begins


def test_scr_run():
    whole_node(named("scr_run"), "--nodes", "3", "--per-node", "2")


def test_scr_srun():
    whole_node(named("scr_srun"), "--nodes=3", "--ntasks=6")


def test_system():
    slurm.system(slurm.switched_off, kind=Cluster)


def test_no_place():
    """Without overlapping steps, the next launch cannot begin: it is abandoned in time,
    and cached data is saved."""
    def body(runs, cluster):
        (runs.job.root / "bin").mkdir()
        (runs.job.root / "bin/srun").write_text(STUBBORN_SRUN.format(srun=shutil.which("srun")))
        (runs.job.root / "bin/srun").chmod(0o755)
        runs.more["PATH"] = f"{runs.job.root}/bin:{os.environ['PATH']}"
        slurm.start(runs, cluster, named("scr_run")(runs), "--nodes", "3", "--per-node", "2")
        wait_until(lambda: newest(runs) >= 2)
        cluster.lose("n2")
        slurm.end(runs, cluster)
        runs.said("srun: error: Unable to create step for job 1: Requested nodes are busy")
        seconds, = re.findall(r"run 2: ended after (\d+)", "".join(runs.log("RUN_EXITED")))
        assert 19 <= int(seconds) < 40 and runs.process.returncode == 1, runs.out
        assert slurm.current(runs) == slurm.newest_name(runs) != "", runs.out
    slurm.system(body, kind=Cluster, SCR_FLUSH=0, SCR_RUNS=2, SCR_MIN_NODES=3)


def test_script_of_the_guide():
    """srun notices nothing; the watchdog ends the step."""
    whole_node(script_of_guide, SCR_WATCHDOG_TIMEOUT=15)


if __name__ == "__main__":
    problem = machines.begin()
    if problem:
        print(f"skipped: {problem}")
        sys.exit(SKIP)
    main(globals())
