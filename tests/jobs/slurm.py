#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run and scr_srun within an allocation of Slurm, with several slurmd on this machine, one of which is lost. Skipped where Slurm
(Debian: slurmctld, slurmd, slurm-client) is not installed."""
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

from job import Skip, descendants, main
from run import BUILD, Runs, newest

NODES = 4
CONF = """ClusterName=scrtest
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=1
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmdParameters=config_overrides
SlurmdTimeout=300
InactiveLimit=0
KillWait=2
MessageTimeout=10
TCPTimeout=2
TaskProlog={folder}/prolog
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# What a node has of its own; all else is that of this machine.
PROLOG = """#!/bin/sh
for what in CACHE CNTL; do echo export SCR_${{what}}_BASE={folder}/machines/$SLURMD_NODENAME/$what; done
echo export SCR_NODE_NAME=$SLURMD_NODENAME
"""


def free_ports(count):
    """The first of so many that nobody has; who comes in between makes the start fail."""
    for _ in range(100):
        first = random.randrange(20000, 30000)
        try:
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise Skip("no free ports")


class Cluster:
    """A controller and a slurmd per node, as children of this process."""

    def __init__(self, folder):
        for program in ("slurmctld", "slurmd", "salloc", "srun", "scancel", "squeue", "sinfo"):
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")
        if os.geteuid() != 0:
            raise Skip("slurmd wants to be root")
        self.folder, port = folder, free_ports(NODES + 1)
        (folder / "state").mkdir(parents=True)
        self.conf = folder / "slurm.conf"
        self.conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], user="root", port=port, folder=folder,
                                         nodes=NODES, first=port + 1, last=port + NODES))
        (folder / "prolog").write_text(PROLOG.format(folder=folder))
        (folder / "prolog").chmod(0o755)
        self.start("slurmctld", "-D", "-c")
        for number in range(1, NODES + 1):
            (folder / f"machines/n{number}").mkdir(parents=True)
            self.start("slurmd", "-D", "-c", "-N", f"n{number}")
        self.wait()

    def environment(self):
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def start(self, *command):
        with open(self.folder / "daemons.log", "a", encoding="utf-8") as log:
            subprocess.Popen(command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                             start_new_session=True)

    def wait(self):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            done = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], env=self.environment(), capture_output=True,
                                  text=True, check=False)
            if done.stdout.strip() == str(NODES):
                return
            time.sleep(0.1)
        raise Skip("Slurm does not start here: " + (self.folder / "daemons.log").read_text()[-300:])

    def lose(self, node):
        """The machine is off: its slurmd, what that started, and its memory."""
        for pid in descendants():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if (words[0].endswith(b"slurmd") and node.encode() in words) or \
                        f"SLURMD_NODENAME={node}".encode() in variables:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it ended just now
        shutil.rmtree(self.folder / "machines" / node, ignore_errors=True)


def start(runs, cluster, *command):
    runs.process = subprocess.Popen(
        ["salloc", "--quiet", "--no-kill", f"--nodes={NODES}", "--exclusive", *command, runs.wrapper],
        env={**runs.environment(), "SLURM_CONF": str(cluster.conf)}, cwd=runs.prefix, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def lose_node(make, *options):
    """A command in an allocation, which make(runs) gives, loses n2 and goes on without it."""
    with Runs(SCR_NODE_TIMEOUT=20, SCR_NODE_INTERVAL=2, SCR_RUN_PAUSE=0, SCR_RUNS=2, SCR_MIN_NODES=3, SCR_JOB_ID=None,
              SCR_WATCHDOG_TIMEOUT=600) as runs:
        cluster = Cluster(runs.job.root / "slurm")
        start(runs, cluster, make(runs), *options)
        until = time.monotonic() + 120
        while newest(runs) < 2:
            assert runs.process.poll() is None and time.monotonic() < until, runs.process.communicate(timeout=60)
            time.sleep(0.05)
        cluster.lose("n2")
        runs.out, _ = runs.process.communicate(timeout=300)
        assert runs.process.returncode == 0, runs.out
        runs.said("files of 2 of 6 ranks were rebuilt")
        runs.job.layout = [("n1", 2), ("n2", 2), ("n3", 2)]
        runs.check_result()
        assert len(runs.log("node n2 is down: ")) == len(runs.log("run 2: begins")), runs.out
        return runs.log("begins")


def named(name):
    """scr_run by that name."""
    def make(runs):
        (runs.job.root / name).symlink_to(f"{BUILD}/scr_run")
        return runs.job.root / name
    return make


def script_of_guide(runs):
    """The last script in docs/guide.md, with other numbers."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/guide.md").read_text(encoding="utf-8").split("```")[-2]
    for old, new in (("srun --nodes=8", "run=$run srun --nodes=3 --ntasks=6"), ("./simulation input", '"$1"'),
                     ("sleep 10 ", "sleep 2 "), ("sleep 60 ", "sleep 1 ")):
        assert old in text, old
        text = text.replace(old, new)
    path = runs.job.root / "script"
    path.write_text(f"#!/bin/sh\nPATH={BUILD}:$PATH\n{text}")
    path.chmod(0o755)
    return path


def test_scr_run():
    begins = lose_node(named("scr_run"), "--nodes", "3", "--per-node", "2")
    assert begins == ["run 1: begins on n[1-3], 6 ranks", "run 2: begins on n[1,3-4], 6 ranks"], begins


def test_scr_srun():
    """The arguments of srun; which of its nodes it takes, and how many, is said by them."""
    begins = lose_node(named("scr_srun"), "--nodes=3", "--ntasks=6")
    assert begins == ["run 1: begins on n[1-4]", "run 2: begins on n[1,3-4]"], begins


def test_script_of_the_guide():
    lose_node(script_of_guide)


if __name__ == "__main__":
    main(globals())
