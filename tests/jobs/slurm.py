#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run, scr_srun and scr_test_system within an allocation of Slurm, with several slurmd on this machine, one of which is lost.
Skipped where Slurm (Debian: slurmctld, slurmd, slurm-client) is not installed."""
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import time

from job import Skip, descendants, main, wait_until
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
        self.folder, self.daemons, port = folder, [], free_ports(NODES + 1)
        (folder / "state").mkdir(parents=True)
        self.conf = folder / "slurm.conf"
        self.conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], user=pwd.getpwuid(os.geteuid()).pw_name,
                                         port=port, folder=folder, nodes=NODES, first=port + 1, last=port + NODES))
        # what finds out which version there is demands one; this plugin does nothing until it is used
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
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
            self.daemons.append(subprocess.Popen(command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=log, start_new_session=True))

    def wait(self):
        until = time.monotonic() + 120
        while time.monotonic() < until and all(daemon.poll() is None for daemon in self.daemons):
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
        ["salloc", "--quiet", "--no-kill", f"--nodes={NODES}", "--exclusive", *map(str, command), runs.wrapper],
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


# ---- scr_test_system ----

# What switches off a node: it asks this test to, and waits until that is done.
SWITCH = """#!/bin/sh
echo $1 >{folder}/asked.new && mv {folder}/asked.new {folder}/asked
while [ ! -e {folder}/is-off ]; do sleep 0.1; done
"""


def reported(runs, code):
    """Rows of the report, by step: what was found where the result is good, else [result, what was found]."""
    rest, _ = runs.process.communicate(timeout=300)
    runs.out += rest
    assert runs.process.returncode == code, f"exit code {runs.process.returncode}\n{runs.out}"
    rows = [json.loads(line) for line in runs.out.splitlines() if line.startswith("{")]
    assert len(rows) == 10, runs.out
    return {row["step"]: row["found"] if row["result"] == "good" else [row["result"], row["found"]] for row in rows}


def system(body, **parameters):
    with Runs(SCR_NODE_TIMEOUT=20, SCR_NODE_INTERVAL=2, SCR_RUN_PAUSE=0, SCR_JOB_ID=None, **parameters) as runs:
        runs.out = ""
        body(runs, Cluster(runs.job.root / "slurm"))


def ends_as_undisturbed(runs):
    runs.job.layout = [("n1", 3)]
    runs.check_result()
    assert not [name for name in commands_left() if "sleep" in name], "something of a launch is left"


def commands_left():
    for pid in descendants():
        try:
            yield pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass  # it ended just now


def test_system():
    """Every step is good; a program of the site switches off the node."""
    def body(runs, cluster):
        switch = runs.job.root / "switch off"
        switch.write_text(SWITCH.format(folder=runs.job.root))
        switch.chmod(0o755)
        start(runs, cluster, f"{BUILD}/scr_test_system", "--json", "--switch-off", f"'{switch}'")
        asked = runs.job.root / "asked"
        wait_until(lambda: asked.exists() or runs.process.poll() is not None)
        assert asked.exists(), runs.process.communicate()
        assert asked.read_text() == "n1\n"
        cluster.lose("n1")
        (runs.job.root / "is-off").touch()
        found = reported(runs, 0)
        assert found["nodes"] == "4 nodes" and found["steer"] == "without n4" and found["crash"].startswith("exit code "), found
        assert found["detect"].startswith("n1: ") and found["again"] == "on n[2-4]", found
        assert re.fullmatch(r"from ckpt\.\d+; see .scr/runs.log", found["cycle"]), found
        runs.said("node n1 is switched off\n")
        ends_as_undisturbed(runs)
    system(body)


def test_bad_node():
    """A node with a cache that nobody can write to is told, and the others are tried without it; somebody switches off a node."""
    def body(runs, cluster):
        (runs.job.root / "slurm/machines/n1/CACHE").symlink_to("/proc/self")
        start(runs, cluster, f"{BUILD}/scr_test_system", "--json")
        for line in runs.process.stdout:
            runs.out += line
            if "now switch off node n2" in line:
                cluster.lose("n2")
                break
        found = reported(runs, 1)
        result, why = found.pop("nodes")
        assert result == "BAD" and why.startswith("n1: ") and "/n1/CACHE: a new file" in why, why
        assert not [what for what in found.values() if isinstance(what, list)], found
        assert found["detect"].startswith("n2: ") and found["again"] == "on n[3-4]", found
        ends_as_undisturbed(runs)
    system(body)


def test_not_switched_off():
    """The command says that it failed, or that it did not, but the node is still there."""
    def body(runs, cluster):
        start(runs, cluster, f"{BUILD}/scr_test_system", "--json", "--switch-off", "echo no power supply; exit 3 #")
        found = reported(runs, 1)
        assert found["detect"][0] == "BAD" and "exit code 3: no power supply" in found["detect"][1], found
        assert found["again"][0] == found["cycle"][0] == "BAD", found
        assert found["return"] == ["not made", "sh: exit code 3: no power supply"], found
        runs.out, runs.more["run"] = "", 1  # the program does not end by itself; the command lets it end, and that well
        start(runs, cluster, f"{BUILD}/scr_test_system", "--json", "--switch-off", f"{BUILD}/scr_halt --checkpoints 1 #")
        found = reported(runs, 1)
        assert found["detect"] == ["BAD", "n1: it was not found to be down"], found
        assert found["return"] == ["not made", "the program ended by itself"], found
        assert found["again"][0] == "BAD" and found["cycle"] == ["BAD", "no node was lost; see .scr/runs.log"], found
    system(body)


# ---- scr_run ----

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
