#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run, scr_srun and scr_test_system in an allocation of Slurm, with several slurmd on
this machine, one of which is lost. Skipped if Slurm (Debian: slurmctld, slurmd,
slurm-client) is not installed."""
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

from job import MPI, Skip, descendants, main, wait_until
from run import TOOLS, Runs, newest, newest_name

NODES = 4
CONF = """ClusterName=scrtest
SlurmctldHost={host}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault={mpi}
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
SlurmdSpoolDir={spool}
TmpFS={spool}
SlurmdParameters=config_overrides
SlurmdTimeout=300
InactiveLimit=0
KillWait=2
MessageTimeout=10
TCPTimeout=2
TaskProlog={folder}/prolog
NodeName=n[1-{count}] {nodes} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# What a node has of its own; all else is that of this machine.
PROLOG = """#!/bin/sh
for what in CACHE CNTL; do echo export SCR_${{what}}_BASE={folder}/machines/$SLURMD_NODENAME/$what; done
echo export SCR_NODE_NAME=$SLURMD_NODENAME
"""


def free_ports(count):
    """Returns the first of that number of free ports; if another process takes one, the
    start fails."""
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
    """A controller, and a slurmd per node, as children of this process."""
    prolog, variables = PROLOG, MPI.together

    def __init__(self, folder):
        if not MPI.slurm:
            raise Skip(f"how srun starts programs of {MPI.mpi} is not known")
        for program in ("slurmctld", "slurmd", "salloc", "srun", "scancel", "squeue", "sinfo"):
            if not shutil.which(program):
                raise Skip(f"{program} is not installed")
        self.folder, self.daemons, port = folder, [], free_ports(NODES + 1)
        (folder / "state").mkdir(parents=True)
        self.conf = folder / "slurm.conf"
        self.conf.write_text(CONF.format(user=pwd.getpwuid(os.geteuid()).pw_name, port=port, folder=folder, count=NODES, mpi=MPI.slurm,
                                         **self.places(socket.gethostname().split(".")[0], port + 1)))
        # what finds out which version there is demands one; this plugin does nothing until it is used
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "prolog").write_text(self.prolog.format(folder=folder))
        (folder / "prolog").chmod(0o755)
        self.start("slurmctld", "-D", "-c")
        for number in range(1, NODES + 1):
            self.start_node(f"n{number}")
        self.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The job that uses the cluster ends the daemons."""

    def places(self, host, first):
        """Places of controller and nodes; ports from the first on are free."""
        return {"host": f"{host}(127.0.0.1)", "spool": f"{self.folder}/spool-%n",
                "nodes": f"NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{first + NODES - 1}] CPUs=8"}

    def start_node(self, node):
        (self.folder / "machines" / node).mkdir(parents=True)
        self.start("slurmd", "-D", "-c", "-N", node)

    def environment(self):
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def of_jobs(self, runs):
        """Environment of submitted jobs."""
        return {**runs.environment(), **self.variables, "SLURM_CONF": str(self.conf)}

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
                self.processes = set(descendants())
                return
            time.sleep(0.1)
        raise Skip("Slurm does not start here: " + (self.folder / "daemons.log").read_text()[-300:])

    def lose(self, node):
        """Switches the machine off: its slurmd, the processes of slurmd, and its
        memory."""
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
        env=cluster.of_jobs(runs), cwd=runs.prefix, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(runs, cluster, limit=200):
    """The process ends in time; otherwise diagnostics are printed."""
    try:
        runs.out, _ = runs.process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        steps = subprocess.run(["squeue", "--steps"], env=cluster.environment(), capture_output=True, text=True, check=False)
        for pid in set(descendants()) - cluster.processes:
            os.kill(pid, signal.SIGKILL)
        runs.out, _ = runs.process.communicate()
        raise AssertionError(f"not done after {limit} s\n{steps.stdout}{steps.stderr}{runs.log('')}{runs.out}") from None


def lose_node(make, *options, kind=Cluster, **parameters):
    """A command in an allocation, from make(runs), loses n2 and continues without it."""
    with Runs(SCR_NODE_TIMEOUT=20, SCR_NODE_INTERVAL=2, SCR_RUN_PAUSE=0, SCR_RUNS=2, SCR_MIN_NODES=3, SCR_JOB_ID=None,
              **{"SCR_WATCHDOG_TIMEOUT": 600, **parameters}) as runs, kind(runs.job.root / "slurm") as cluster:
        start(runs, cluster, make(runs), *options)
        until = time.monotonic() + 120
        while newest(runs) < 2:
            assert runs.process.poll() is None and time.monotonic() < until, runs.process.communicate(timeout=60)
            time.sleep(0.05)
        cluster.lose("n2")
        end(runs, cluster)
        assert runs.process.returncode == 0, runs.out
        runs.says("REBUILD_COMPLETE", "2 of 6 ranks")
        runs.job.layout = [("n1", 2), ("n2", 2), ("n3", 2)]
        runs.check_result()
        assert len(runs.log(" n2: .*NODE_DOWN")) == len(runs.log("run 2: .*RUN_LAUNCHED")), runs.out
        return runs.log("RUN_LAUNCHED")


def named(name):
    """scr_run under that name."""
    def make(runs):
        (runs.job.root / name).symlink_to(f"{TOOLS}/scr_run")
        return runs.job.root / name
    return make


def script_of_guide(runs):
    """The last script in docs/guide.md, with other numbers."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/guide.md").read_text(encoding="utf-8").split("```")[-2]
    for old, new in (("srun --immediate=60 --nodes=8", "run=$run srun --immediate=20 --nodes=3 --ntasks=6"),
                     ("./simulation input", '"$1"'), ("sleep 10 ", "sleep 2 "), ("sleep 60 ", "sleep 1 ")):
        assert old in text, old
        text = text.replace(old, new)
    path = runs.job.root / "script"
    path.write_text(f"#!/bin/sh\nPATH={TOOLS}:$PATH\n{text}")
    path.chmod(0o755)
    return path


# ---- scr_test_system ----

# What switches off a node: it asks this test to, and waits until that is done.
SWITCH = """#!/bin/sh
echo $1 >{folder}/asked.new && mv {folder}/asked.new {folder}/asked
while [ ! -e {folder}/is-off ]; do sleep 0.1; done
"""


def reported(runs, code):
    """Rows of the report, by step: the finding if the result is good, else [result,
    finding]."""
    rest, _ = runs.process.communicate(timeout=300)
    runs.out += rest
    assert runs.process.returncode == code, f"exit code {runs.process.returncode}\n{runs.out}"
    rows = [json.loads(line) for line in runs.out.splitlines() if line.startswith("{")]
    assert len(rows) == 10, runs.out
    return {row["step"]: row["found"] if row["result"] == "good" else [row["result"], row["found"]] for row in rows}


def system(body, kind=Cluster, **parameters):
    with Runs(SCR_NODE_TIMEOUT=20, SCR_NODE_INTERVAL=2, SCR_RUN_PAUSE=0, SCR_JOB_ID=None, **parameters) as runs, \
            kind(runs.job.root / "slurm") as cluster:
        runs.out = ""
        body(runs, cluster)


def ends_as_undisturbed(runs, cluster):
    runs.job.layout = [("n1", 3)]
    runs.check_result()
    assert not [name for name in commands_left(cluster.processes) if "sleep" in name], "something of a launch is left"


def commands_left(known=()):
    for pid in descendants():
        try:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if line and pid not in known:
                yield line
        except OSError:
            pass  # it ended just now


def switched_off(runs, cluster):
    """Every step is good; a program of the site switches off the node."""
    switch = runs.job.root / "switch off"
    switch.write_text(SWITCH.format(folder=runs.job.root))
    switch.chmod(0o755)
    start(runs, cluster, f"{TOOLS}/scr_test_system", "--json", "--switch-off", f"'{switch}'")
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
    runs.says("SYSTEM_SWITCH_OFF", " n1 ")
    ends_as_undisturbed(runs, cluster)


def test_system():
    system(switched_off)


def test_bad_node():
    """A node has a cache that cannot be written: it is reported, and the others are
    tested without it; a node is switched off manually."""
    def body(runs, cluster):
        (runs.job.root / "slurm/machines/n1/CACHE").symlink_to("/proc/self")
        start(runs, cluster, f"{TOOLS}/scr_test_system", "--json")
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
        ends_as_undisturbed(runs, cluster)
    system(body)


def test_not_switched_off():
    """The command fails, or succeeds, but the node is still there."""
    def body(runs, cluster):
        start(runs, cluster, f"{TOOLS}/scr_test_system", "--json", "--switch-off", "echo no power supply; exit 3 #")
        found = reported(runs, 1)
        assert found["detect"][0] == "BAD" and "exit code 3: no power supply" in found["detect"][1], found
        assert found["again"][0] == found["cycle"][0] == "BAD", found
        assert found["return"] == ["not made", "sh: exit code 3: no power supply"], found
        runs.out, runs.more["run"] = "", 1  # the program does not end by itself; the command lets it end, and that well
        start(runs, cluster, f"{TOOLS}/scr_test_system", "--json", "--switch-off", f"{TOOLS}/scr_halt --checkpoints 1 #")
        found = reported(runs, 1)
        assert found["detect"] == ["BAD", "n1: it was not found to be down"], found
        assert found["return"] == ["not made", "the program ended by itself"], found
        assert found["again"][0] == "BAD" and found["cycle"] == ["BAD", "no node was lost; see .scr/runs.log"], found
    system(body)


# ---- signals ----

# Within salloc; which steps there still are when the command has ended. The controller may learn late that one has.
THEN_STEPS = """#!/bin/sh
"$@"
code=$?
for moment in $(seq 300); do
    squeue --noheader --steps --format='%i %j' >{folder}/steps
    [ -s {folder}/steps ] || break
    sleep 0.1
done
exit $code
"""
BATCH = """#!/bin/sh
exec {tools}/scr_run --nodes 2 --per-node 2 {wrapper}
"""


def told(*arguments):
    return subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=True).stdout


def current_row(runs):
    """Row of scr_index with the dataset from which the next job begins, in words; none if
    there is no such dataset."""
    if not (runs.prefix / ".scr").exists():
        return []
    rows = told(f"{TOOLS}/scr_index", "--list", "--prefix", runs.prefix).splitlines()
    return "".join(row for row in rows if " * " in row).split()


def current(runs):
    """Its name; "" if there is none."""
    return "".join(current_row(runs)[-1:])


def running(program):
    """Ids of processes with that program, optionally of a rank or a node; parents
    first."""
    found = []
    for pid in descendants():
        try:
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(f"/{program}".encode()):
                found.append(pid)
        except OSError:
            pass  # it ended just now
    return found


def expect_clean(runs):
    """No step of Slurm, no process except the daemons, and no temporary file, except of a
    killed copy whose dataset is not saved. Slurm's own processes need a moment."""
    until = time.monotonic() + 60
    while left := list(commands_left(runs.cluster.processes)):
        assert time.monotonic() < until, (left, runs.out)
        time.sleep(0.05)
    left = [*(runs.job.root / "tmp").iterdir()]
    left += [path for path in runs.prefix.rglob("*.tmp") if "/.scr/scavenge." not in str(path)]
    if current(runs) == newest_name(runs):
        left += (runs.prefix / current(runs)).rglob("scavenge*")
    assert not left, (left, runs.out)


class Interrupted:
    """Jobs of scr_run one after the other on one cluster, each of which is asked to
    end."""

    def __init__(self, **parameters):
        self.runs = Runs(last=99, SCR_FLUSH=0, SCR_RUNS=3, SCR_RUN_PAUSE=0, SCR_NODE_TIMEOUT=20, SCR_JOB_ID=None, **parameters)

    def __enter__(self):
        runs = self.runs.__enter__()
        try:
            runs.cluster = Cluster(runs.job.root / "slurm")
        except BaseException:
            runs.__exit__()
            raise
        self.script = runs.job.root / "then steps"
        self.script.write_text(THEN_STEPS.format(folder=runs.job.root))
        self.script.chmod(0o755)
        return self

    def __exit__(self, *_):
        self.runs.__exit__()

    def forget(self):
        """Forgets output of earlier jobs, except for the dataset from which the next one
        begins."""
        self.first = int("".join(current_row(self.runs)[:1]) or 0)
        for name in ("runs.log", "flush.scr"):
            (self.runs.prefix / ".scr" / name).unlink(missing_ok=True)

    def start(self):
        """Runs until there are two new checkpoints."""
        runs = self.runs
        self.forget()
        start(runs, runs.cluster, self.script, f"{TOOLS}/scr_run", "--nodes", 2, "--per-node", 2)
        self.wait(lambda: newest(runs) >= self.first + 2)

    def wait(self, condition):
        process = self.runs.process
        wait_until(lambda: condition() or process.poll() is not None)
        assert process.poll() is None, process.communicate()

    def signal(self, number):
        """Sends the signal as Ctrl-C does; the launcher has its own process group."""
        os.kill(running("scr_run")[0], number)  # a child has its name, too, until it is another program

    def finish(self, code=None):
        """The job ends with that exit code, or with that of the last run."""
        runs = self.runs
        runs.out, _ = runs.process.communicate(timeout=120)
        ends = runs.log("RUN_EXITED")
        last = int(re.search(r" exit code (\d+)", ends[-1])[1])
        assert runs.process.returncode == (last if code is None else code), (runs.process.returncode, runs.out)
        assert runs.logged("RUN_SIGNALLED", ""), runs.out
        assert not (runs.job.root / "steps").read_text(), (runs.job.root / "steps").read_text()
        expect_clean(runs)


def test_interrupted():
    """Ctrl-C, or SIGTERM, while the program computes: its work is saved, and the next job
    continues from there."""
    with Interrupted() as jobs:
        before = ""
        for number in (signal.SIGINT, signal.SIGTERM):
            jobs.start()
            jobs.signal(number)
            jobs.finish()
            runs = jobs.runs
            assert len(runs.log("RUN_LAUNCHED")) == 1 and runs.log(f"run 1: .*: signal {number:d} .*RUN_EXITED"), runs.out
            assert current(runs) == newest_name(runs) != before and not runs.log("RUN_SAVE_FAILED"), runs.out
            if before:
                runs.said(f"heat: restarted from {re.escape(before)},")
            before = current(runs)


def test_interrupted_between_runs():
    """A rank is killed; the signal arrives when its run has ended, and when the next one
    begins."""
    with Interrupted() as jobs:
        for number, moment, count in ((signal.SIGTERM, "run 1: .*RUN_EXITED", 1), (signal.SIGINT, "run 2: .*RUN_LAUNCHED", 2)):
            jobs.start()
            os.kill(running("heat")[0], signal.SIGKILL)
            jobs.wait(lambda: jobs.runs.log(moment))
            jobs.signal(number)
            jobs.finish()
            assert len(jobs.runs.log("RUN_LAUNCHED")) == count and jobs.runs.log("run 1: .* exit code [^0].*RUN_EXITED"), jobs.runs.out
            assert current(jobs.runs) == newest_name(jobs.runs) and not jobs.runs.log("RUN_SAVE_FAILED"), jobs.runs.out


def test_saving_is_given_up():
    """Ctrl-C while the program computes, and again while a node copies: the unsaved
    dataset is reported, and the next job, on the same nodes, begins with an earlier
    one."""
    with Interrupted() as jobs:
        jobs.start()
        jobs.signal(signal.SIGTERM)
        jobs.finish()
        runs, before = jobs.runs, current(jobs.runs)
        struck = runs.job.root / "struck"
        runs.more.update(LD_PRELOAD=f"{MPI.preload}:{os.environ['JOB_FAULTS']}", FAULTS_PROGRAM="scr_copy", FAULTS_AT=9,
                         FAULTS_BELOW=runs.prefix, FAULTS_HOW="stop", FAULTS_MARK=struck, FAULTS_ONCE=runs.job.root / "once")
        jobs.start()
        jobs.signal(signal.SIGINT)
        jobs.wait(struck.exists)
        jobs.signal(signal.SIGINT)
        jobs.finish(128 + signal.SIGINT)
        name = newest_name(runs)
        assert name != before == current(runs), runs.out
        runs.says("DATASET_UNSAVED", rf"dataset {newest(runs)} \({re.escape(name)}\) ")
        assert runs.log("RUN_SAVE_ABANDONED"), runs.out
        runs.more.clear()
        jobs.start()
        jobs.signal(signal.SIGINT)
        jobs.finish()
        runs.said(f"heat: restarted from {re.escape(before)},")


class Batch(Interrupted):
    """The same as batch jobs."""

    def start(self):
        runs = self.runs
        script, self.out = runs.job.root / "batch", runs.job.root / "batch.out"
        self.out.unlink(missing_ok=True)
        script.write_text(BATCH.format(tools=TOOLS, wrapper=runs.wrapper))
        self.forget()
        self.environment = runs.cluster.of_jobs(runs)
        self.id = self.slurm("sbatch", "--parsable", "--no-kill", "--no-requeue", f"--nodes={NODES}", "--exclusive",
                             f"--output={self.out}", script).strip()
        wait_until(lambda: newest(runs) >= self.first + 2)

    def slurm(self, *command):
        return subprocess.run(command, env=self.environment, cwd=self.runs.prefix, capture_output=True, text=True,
                              check=True).stdout

    def end(self, *how):
        """Ends as Slurm does; returns the final state of the job."""
        runs = self.runs
        self.slurm("scancel", *how, self.id)
        wait_until(lambda: not self.slurm("squeue", "--noheader", f"--job={self.id}"))
        wait_until(lambda: not running("scr_run"))
        runs.out = self.out.read_text()
        expect_clean(runs)
        return re.search(r"JobState=(\S+)", self.slurm("scontrol", "show", "job", self.id))[1]


def test_batch():
    """SIGUSR1 to the program, and SIGTERM to scr_run, as from sbatch --signal=USR1@600
    and B:TERM@600: everything is saved. After scancel nothing can begin on other nodes:
    they are not reported as down, and saved datasets are reported."""
    with Batch() as jobs:
        runs, before = jobs.runs, ""
        for how, why in ((("--signal=USR1",), r": SCR_SIGNAL: .*\[RUN_HALTED"), (("--batch", "--signal=TERM"), "RUN_SIGNALLED")):
            jobs.start()
            jobs.end(*how)
            assert runs.log(why) and current(runs) == newest_name(runs) != before, runs.out
            before = current(runs)
        jobs.start()
        assert jobs.end() == "CANCELLED"
        runs.said(f"heat: restarted from {re.escape(before)},")
        assert runs.log("RUN_SIGNALLED|RUN_ALLOCATION_OVER"), runs.out
        assert len(runs.log("RUN_LAUNCHED")) == 1 and not runs.log("NODE_DOWN"), runs.out
        assert current(runs) == newest_name(runs) or "the files of 2 of 4 ranks are missing" in runs.out, runs.out


def test_revoked():
    """scancel of an interactive job does not notify scr_run: its nodes are not reported
    as down."""
    with Interrupted(SCR_HALT_SIGNALS="NONE") as jobs:
        jobs.start()
        runs = jobs.runs
        told("env", f"SLURM_CONF={runs.cluster.conf}", "scancel", "1")
        runs.out, _ = runs.process.communicate(timeout=120)
        assert runs.process.returncode != 0 and runs.logged("RUN_ALLOCATION_OVER", ""), runs.out
        assert len(runs.log("RUN_LAUNCHED")) == 1 and not runs.log("NODE_DOWN"), runs.out
        runs.says("DATASET_UNSAVED", rf"dataset {newest(runs)} \({re.escape(newest_name(runs))}\)")
        assert not current(runs), runs.out
        expect_clean(runs)


# ---- scr_run ----

def test_scr_run():
    begins = lose_node(named("scr_run"), "--nodes", "3", "--per-node", "2")
    assert begins == [f"run {text} [RUN_LAUNCHED]" for text in ("1: begins on n[1-3], 6 ranks", "2: begins on n[1,3-4], 6 ranks")], begins


def test_scr_srun():
    """The arguments of srun choose its nodes and their number."""
    begins = lose_node(named("scr_srun"), "--nodes=3", "--ntasks=6")
    assert begins == [f"run {text} [RUN_LAUNCHED]" for text in ("1: begins on n[1-4]", "2: begins on n[1,3-4]")], begins


ASKS = """PATH={tools}:$PATH
unset SLURM_JOB_END_TIME # newer versions set it
echo asked $(SLURM_TIME_FORMAT=relative scr_env --endtime)
srun --nodes=1 --ntasks=1 sleep 0
scr_kill_jobstep $SLURM_JOB_ID.0
echo killed $?
scr_run --nodes 2 --per-node 1 sh -c 'echo given $SCR_END_TIME'
"""


def test_questions():
    """The end of the allocation, also for the program; and a step that has ended. Each
    answer follows a name."""
    def body(runs, cluster):
        script = runs.job.root / "asks"
        script.write_text(ASKS.format(tools=TOOLS))
        for begin, minutes in (time.time(), 10), (0, 0):  # 0: any number
            start(runs, cluster, f"--time={minutes}", "sh", script)
            out, _ = runs.process.communicate(timeout=120)
            said = {line.split(" ")[0]: line.split(" ")[1:] for line in out.splitlines()}
            assert said["killed"] == ["0"] and said["asked"] == said["given"], out
            assert begin + 595 < int(*said["asked"]) < time.time() + 605 if minutes else not said["asked"], out
    system(body)


def test_script_of_the_guide():
    lose_node(script_of_guide)


if __name__ == "__main__":
    main(globals())
