#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run on simulated nodes with the example heat: nodes are lost or hang while it
computes and while it writes checkpoints; it continues on spare nodes or on fewer, and
ends with the result of an undisturbed run."""
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import time

from job import MPI, Job, Skip, descendants, main, messages, wait_until

POINTS, EVERY = 48, 20
TOOLS = os.environ["JOB_TOOLS"]
LIMIT = 200  # seconds per job

# Each rank begins with this. Only the last run ends by itself: 3 checkpoints after the
# newest one.
WRAPPER = f"""#!/bin/sh
[ "$run" ] || run=$(grep -c 'RUN_LAUNCHED' "$SCR_PREFIX/.scr/runs.log")
steps=100000000
if [ "$run" -ge "$LAST_RUN" ]; then
    id=$("{TOOLS}/scr_flush_file" --latest 2>/dev/null)
    name=$("{TOOLS}/scr_flush_file" --subdir "${{id:-0}}" 2>/dev/null)
    # nothing is cached when another job begins
    [ "$name" ] || name=ckpt.$(ls "$SCR_PREFIX" | sed -n 's/^ckpt[.]//p' | sort -n | tail -n 1)
    [ "$name" != ckpt. ] || name=ckpt.0
    steps=$((${{name#ckpt.}} + {3 * EVERY}))
    echo $steps >"$SCR_PREFIX/steps"
fi
exec "${{HEAT:-$JOB_HEAT}}" -n {POINTS} -t $steps -c {EVERY} -o "$SCR_PREFIX/result"
"""


class Runs:
    """A job under scr_run; last: the run that may end by itself."""

    def __init__(self, last=2, **parameters):
        self.last, self.parameters, self.more = last, parameters, {}

    def __enter__(self):
        self.job = Job(**self.parameters)
        self.prefix = self.job.prefix
        self.wrapper = self.job.root / "wrapper"
        self.wrapper.write_text(WRAPPER)
        self.wrapper.chmod(0o755)
        (self.job.root / "tmp").mkdir()
        return self

    def __exit__(self, *_):
        self.job.__exit__()

    def environment(self):
        env = self.job.environment({})
        env.update(LD_PRELOAD=MPI.preload, LAST_RUN=str(self.last), TMPDIR=str(self.job.root / "tmp"))
        env.update({name: str(value) for name, value in self.more.items()})
        return env

    def start(self, *options):
        self.process = subprocess.Popen([f"{TOOLS}/scr_run", *options, self.wrapper], env=self.environment(), cwd=self.prefix,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def start_unread(self, options=(), **output):
        """Starts without a reader of the output, or only of that in `output`; the file
        begun shows that the program runs."""
        reader, writer = os.pipe()
        os.close(reader)
        self.process = subprocess.Popen([f"{TOOLS}/scr_run", *options, self.wrapper], env=self.environment(), cwd=self.prefix,
                                        stdin=subprocess.DEVNULL, text=True, **{"stdout": writer, "stderr": writer, **output})
        os.close(writer)

    def finish(self, fails=False):
        """scr_run ends, and nothing of it is left. fails None: mpiexec decides the exit
        code."""
        self.out, _ = self.process.communicate(timeout=LIMIT)
        assert fails is None or (self.process.returncode != 0) == fails, f"exit code {self.process.returncode}\n{self.out}"
        assert not descendants(), "processes are left"
        assert not list((self.job.root / "tmp").iterdir()), "simulated nodes are left"

    def run(self, *options, fails=False):
        self.start(*options)
        self.finish(fails)

    def log(self, pattern):
        path = self.prefix / ".scr/runs.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split("  ", 1)[1] for line in lines if re.search(pattern, line)]

    def logged(self, identifier, *values):
        """Whether the log has a message of that identifier for each of the values, in
        this order, and no others."""
        found = self.log(rf" \[{identifier}\]$")
        return len(found) == len(values) and all(value in line for value, line in zip(values, found))

    def says(self, identifier, *values):
        assert messages(self.out, identifier, *values), f"no message {identifier} has {values}\n{self.out}"

    def said(self, pattern):
        assert re.search(pattern, self.out), f"nothing matches {pattern!r}\n{self.out}"

    def check_result(self):
        steps, result = (self.prefix / "steps").read_text().split()[-1], self.job.root / "undisturbed"
        done = self.job.start(os.environ["JOB_HEAT"], "-n", str(POINTS), "-t", steps, "-c", str(EVERY), "-o", str(result),
                              SCR_ENABLE=0)
        done.communicate(timeout=LIMIT)
        assert (self.prefix / "result").read_bytes() == result.read_bytes(), f"another result\n{self.out}"


def simulate_idle(preload):
    """Returns the processor time of many ranks that often wait for each other, and their
    preloaded module."""
    with Runs() as runs:
        runs.more = {"LD_PRELOAD": preload, "SCR_FLUSH": "0"}
        heat = [os.environ["JOB_HEAT"], "-n", str(POINTS), "-t", "40", "-c", "20"]
        ask = runs.job.root / "ask"
        ask.write_text('#!/bin/sh\necho "ranks have $LD_PRELOAD."\nexec "$@"\n')
        ask.chmod(0o755)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([f"{TOOLS}/scr_run", "--quiet", "--simulate", "8x2", ask, *heat], env=runs.environment(), cwd=runs.prefix,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == 0, done
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, set(re.findall("ranks have (.*)[.]", done.stdout))


def test_idle_ranks():
    """If there are more ranks than processors, ranks of MPICH sleep while they wait;
    LD_PRELOAD of the user is not changed."""
    if not MPI.preload:
        raise Skip(f"ranks of {MPI.mpi} yield")
    if not os.path.exists(f"{TOOLS}/scr_idle.so") or len(os.sched_getaffinity(0)) >= 16:
        raise Skip("with sanitizers, or as many processors as ranks")
    sleeping, preload = simulate_idle("")
    assert preload == {f"{TOOLS}/scr_idle.so"}, preload
    polling, preload = simulate_idle("libm.so.6")
    assert preload == {"libm.so.6"} and polling > 2 * sleeping, (preload, polling, sleeping)


def test_node_lost():
    with Runs() as runs:
        runs.run("--simulate", "5x2", "--nodes", "4", "--runs", "3", "--fail", "node=3,after=2checkpoints")
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on node[1-4], 8 ranks", "run 2: begins on node[1-2,4-5], 8 ranks")
        assert runs.logged("RUN_FAILURE_SIMULATED", "run 1: node3 ") and runs.logged("NODE_DOWN", ": node3: Host is down"), runs.out
        # mpiexec may have ended by itself before node3 is found to be down
        assert len(runs.log(r"node3(?!.* \[RUN_EXITED\])")) == 2 and not runs.logged("RUN_EXITED", "exit code 0"), runs.out
        assert runs.logged("RUN_DONE", "")
        runs.says("REBUILD_COMPLETE", "2 of 8 ranks")
        runs.check_result()


def test_node_lost_while_it_writes():
    with Runs(SCR_FLUSH=3) as runs:
        runs.run("--simulate", "5x2", "--nodes", "4", "--runs", "3", "--fail", "node=1,after=2,while=checkpoint")
        assert runs.logged("RUN_LAUNCHED", "run 1: ", "run 2: begins on node[2-5], 8 ranks")
        runs.said("heat: restarted from ckpt")
        runs.check_result()


def test_fewer_nodes():
    with Runs(SCR_MIN_NODES=3) as runs:
        runs.run("--simulate", "4x2", "--runs", "-1", "--fail", "node=4,after=2")
        assert runs.logged("RUN_LAUNCHED", "run 1: ", "run 2: begins on node[1-3], 8 ranks")
        runs.said("heat: restarted from ckpt")
        runs.check_result()


def test_fewer_ranks():
    """A program that restarts with any number of ranks continues with as many ranks per
    node."""
    with Runs(SCR_MIN_NODES=3, SCR_RESTART_RANKS="any") as runs:
        runs.more = {"HEAT": os.environ["JOB_HEAT_ELASTIC"]}
        runs.run("--simulate", "4x2", "--per-node", "2", "--runs", "-1", "--fail", "node=4,after=2")
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on node[1-4], 8 ranks", "run 2: begins on node[1-3], 6 ranks"), runs.out
        runs.said("heat: restarted from ckpt")
        runs.check_result()


def test_one_after_the_other():
    with Runs(last=3) as runs:
        runs.run("--simulate", "6x2", "--nodes", "4", "--runs", "-1", "--fail", "node=3,after=2", "--fail", "node=1,after=1,run=2")
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on node[1-4], 8 ranks", "run 2: begins on node[1-2,4-5], 8 ranks",
                           "run 3: begins on node[2,4-6], 8 ranks")
        runs.check_result()


def told_at(runs, pattern):
    """Returns the time of the only matching line."""
    line, = [line for line in (runs.prefix / ".scr/runs.log").read_text().splitlines() if re.search(pattern, line)]
    return datetime.datetime.fromisoformat(line.split("  ", 1)[0])


def test_node_hangs():
    """mpiexec would wait forever: the check of the nodes ends the run. That check has
    waited for the node; nothing waits for it again."""
    with Runs(SCR_NODE_TIMEOUT=6, SCR_NODE_INTERVAL=1) as runs:
        runs.run("--simulate", "3x2", "--nodes", "2", "--runs", "2", "--fail", "node=2,after=2,how=hang")
        assert runs.log("run 1: .* down: node2.*RUN_EXITED"), runs.out
        waited = told_at(runs, " node2: .*NODE_DOWN") - told_at(runs, "run 1: .*RUN_EXITED")
        assert waited.total_seconds() < 6, runs.out
        assert runs.logged("RUN_LAUNCHED", "run 1: ", "run 2: begins on node[1,3], 4 ranks")
        runs.said("heat: restarted from ckpt")
        runs.job.layout = [("n1", 2), ("n2", 2)]
        runs.check_result()


def test_watched_with_bypass():
    """Nothing is cached, but the index of the prefix directory shows progress."""
    with Runs(last=9, SCR_CACHE_BYPASS=1, SCR_WATCHDOG=1, SCR_WATCHDOG_TIMEOUT=3) as runs:
        runs.start("--simulate", "2x2")
        time.sleep(6)
        runs.process.send_signal(signal.SIGINT)
        runs.finish(fails=None)
        assert runs.log("RUN_SIGNALLED") and not runs.log("SCR_WATCHDOG"), runs.out


def test_node_lost_with_bypass():
    for more in ("", ",while=checkpoint"):
        with Runs(SCR_CACHE_BYPASS=1) as runs:
            runs.run("--simulate", "3x2", "--nodes", "2", "--runs", "2", "--fail", f"node=2,after=2checkpoints{more}")
            assert runs.logged("RUN_LAUNCHED", "run 1: ", "run 2: begins on node[1,3], 4 ranks"), runs.out
            runs.said("heat: restarted from ckpt")
            runs.job.layout = [("n1", 2), ("n2", 2)]
            runs.check_result()


def test_only_new_ones_count():
    """A job begins with a fetched checkpoint of a high id: its node is lost after 5 new
    ones."""
    with Runs(last=3, SCR_FLUSH=0) as runs:
        runs.start("--simulate", "2x2")
        wait_until(lambda: newest(runs) >= 15)
        runs.process.send_signal(signal.SIGINT)
        runs.finish(fails=None)
        runs.run("--simulate", "3x2", "--nodes", "2", "--runs", "2", "--fail", "node=2,after=5checkpoints")
        first, second = map(int, re.findall(r"heat: restarted from ckpt\.(\d+)", runs.out))
        assert second >= first + 5 * EVERY, runs.out
        runs.job.layout = [("n1", 2), ("n2", 2)]
        runs.check_result()


def test_node_comes_and_goes():
    """A node that fails a single check while the program runs remains excluded, and is
    reported."""
    with Runs(SCR_NODE_INTERVAL=1, SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0) as runs:
        tests, hot = runs.job.root / "tests", runs.job.root / "hot"
        tests.mkdir()
        (tests / "heat").write_text(f'#!/bin/sh\n[ "$SCR_NODE_NAME" = node2 ] && rm {hot} 2>/dev/null || exit 0\n'
                                    'echo too hot\nexit 1\n')
        (tests / "heat").chmod(0o755)
        runs.more["SCR_NODE_TESTS"] = tests
        runs.start("--simulate", "3x2", "--nodes", "2", "--runs", "3")
        wait_until(lambda: newest(runs) >= 2)
        hot.touch()
        runs.finish()
        assert runs.log("run 1: .* down: node2.*RUN_EXITED") and not hot.exists(), runs.out
        assert len(runs.log(" node2: .*too hot.*NODE_DOWN")) == 1, runs.out
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on node[1-2], 4 ranks", "run 2: begins on node[1,3], 4 ranks"), runs.out
        events = re.findall(" NODE_LOST .*", (runs.prefix / ".scr/log").read_text())
        assert len(events) == 1 and re.search('node="node2" .*too hot', events[0]), events
        runs.job.layout = [("n1", 2), ("n2", 2)]
        runs.check_result()


def test_shared_stores():
    """Simulated nodes share one store that descriptors name: this is reported."""
    for variables, warnings in (({}, ["disk"]), ({"SCR_COPY_TYPE": "SINGLE"}, [])):
        with Runs(last=1) as runs:
            stores = {name: runs.job.root / name for name in ("disk", "all", "unused")}
            for store in stores.values():
                store.mkdir()
            (runs.prefix / "scr.yaml").write_text(
                "SCR_COPY_TYPE: FILE\n"
                f"STORE:\n  {stores['disk']}: {{COUNT: 2}}\n  {stores['all']}: {{GROUP: WORLD}}\n"
                f"  {stores['unused']}: {{COUNT: 1}}\n"
                f"CKPT:\n  0: {{STORE: {stores['disk']}, TYPE: SINGLE}}\n"
                f"  1: {{INTERVAL: 2, STORE: {stores['all']}, TYPE: SINGLE}}\n")
            runs.more.update(variables)
            runs.run("--simulate", "2x1")
            assert runs.logged("RUN_STORE_SHARED", *(str(stores[name]) for name in warnings)), runs.out


# In place of a remote shell: "ssh NODE COMMAND...". The nodes are processes and
# directories here, but have their own proxies.
SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
SCR_NODE_NAME=$1
[ -d "$NODES/$1" ] || { echo "no route to $1" >&2; exec sleep 1000; }
SCR_CACHE_BASE=$NODES/$1/cache SCR_CNTL_BASE=$NODES/$1/cntl
export SCR_NODE_NAME SCR_CACHE_BASE SCR_CNTL_BASE
shift
exec setsid -w sh -c "$*"
"""


def end_node(runs, node, number):
    """Sends the signal to the processes of a node, including the proxy, and removes its
    memory."""
    for pid in descendants():
        try:
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if f"SCR_NODE_NAME={node}".encode() in variables:
                os.kill(pid, number)
        except OSError:
            pass  # it ended just now
    shutil.rmtree(runs.nodes / node)


def newest(runs):
    """Returns the id of the newest dataset, or 0."""
    done = subprocess.run([f"{TOOLS}/scr_flush_file", "--latest", runs.prefix], capture_output=True, check=False)
    return int(done.stdout or 0)


def newest_name(runs):
    return subprocess.run([f"{TOOLS}/scr_flush_file", "--subdir", str(newest(runs)), runs.prefix], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def make_machines(runs):
    if not MPI.shell:
        raise Skip(f"how mpiexec of {MPI.mpi} reaches nodes is not known")
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError as error:
        raise Skip(f"mpiexec's proxies would not find the way back: {error}") from None
    runs.nodes, shell = runs.job.root / "machines", runs.job.root / "shell"
    for node in ("n1", "n2", "n3", "n4"):
        (runs.nodes / node).mkdir(parents=True)
    shell.write_text(SHELL)
    shell.chmod(0o755)
    runs.more = {"NODES": runs.nodes, **MPI.together, **MPI.by_shell(shell)}


def lose_under_mpiexec(number):
    with Runs(SCR_NODE_TIMEOUT=5, SCR_NODE_INTERVAL=1, SCR_RUN_PAUSE=0, SCR_NODELIST="n[1-4]", SCR_REMOTE="shell") as runs:
        make_machines(runs)
        runs.start("--launcher", MPI.launcher, "--nodes", "3", "--per-node", "2", "--runs", "2")
        wait_until(lambda: newest(runs) >= 2)
        end_node(runs, "n2", number)
        runs.finish()
        assert runs.logged("RUN_LAUNCHED", "run 1: begins on n[1-3], 6 ranks", "run 2: begins on n[1,3-4], 6 ranks"), runs.out
        assert len(runs.log(" n2: .*no answer: .*NODE_DOWN")) == 1
        runs.says("REBUILD_COMPLETE", "2 of 6 ranks")
        runs.job.layout = [("n1", 2), ("n2", 2), ("n3", 2)]
        runs.check_result()


def test_mpiexec():
    """mpiexec and its proxies on nodes that are reached by a remote shell."""
    lose_under_mpiexec(signal.SIGKILL)


def test_mpiexec_without_a_word():
    """As when a node loses power: mpiexec does not notice."""
    lose_under_mpiexec(signal.SIGSTOP)


def test_nobody_could_ask():
    """The remote shell prints more than is accepted: this is not a failure of the nodes,
    and no reason to end the program."""
    with Runs(last=9, SCR_NODE_INTERVAL=1, SCR_NODELIST="n[1-2]", SCR_REMOTE="shell") as runs:
        make_machines(runs)
        talks, talked = runs.job.root / "talks", runs.job.root / "talked"
        (runs.job.root / "shell").write_text(
            SHELL.replace("exec setsid", f"[ -e {talks} ] && echo $SCR_NODE_NAME >>{talked} && yes | head -c 99999\nexec setsid"))
        runs.start("--launcher", MPI.launcher, "--per-node", "2")
        wait_until(lambda: newest(runs) >= 2)
        talks.touch()
        wait_until(lambda: talked.exists() and talked.read_text().split().count("n2") >= 3)
        talks.unlink()
        runs.process.send_signal(signal.SIGINT)
        runs.finish(fails=None)
        assert not runs.log("down") and runs.log("RUN_SIGNALLED"), runs.out


def test_saved_for_the_next_job():
    """Too few nodes are left; the newest checkpoint is saved from their caches, and the
    next job begins with it."""
    with Runs(SCR_FLUSH=0) as runs:
        runs.run("--simulate", "4x2", "--runs", "-1", "--fail", "node=2,after=3", fails=True)
        assert len(runs.log("RUN_LAUNCHED")) == 1
        assert runs.logged("RUN_NODES_LOST", "3 of 4 nodes are left, 4 are needed")
        runs.said(r"dataset \d+ \(ckpt\.\d+\) is only in the cache: it is copied from node.1,3-4.")
        assert not runs.log("RUN_SAVE_FAILED"), runs.out
        runs.run("--simulate", "4x2")
        runs.says("FETCH_COMPLETE", r"dataset \d+ \(ckpt\.\d+\)")
        runs.said("heat: restarted from ckpt")
        runs.check_result()


def test_interrupted_and_saved():
    """Ctrl-C while the program runs; the caches are still saved."""
    with Runs(SCR_FLUSH=0) as runs:
        runs.start("--simulate", "4x2", "--runs", "-1")
        wait_until(lambda: newest(runs) >= 1)
        runs.process.send_signal(signal.SIGINT)
        runs.finish(fails=None)
        assert runs.log("RUN_SIGNALLED") and not runs.log("RUN_SAVE_FAILED"), runs.out
        runs.run("--simulate", "4x2")
        runs.said("heat: restarted from ckpt")


def is_saved(runs):
    """The newest checkpoint is saved; the next job begins with it."""
    assert runs.log("RUN_FINISHED") and not runs.log("RUN_SAVE_"), runs.log("")
    saved = newest(runs)
    runs.more = {}
    runs.run("--simulate", "4x2")
    runs.says("FETCH_COMPLETE", rf"dataset {saved} \(ckpt")
    runs.said("heat: restarted from ckpt")
    runs.check_result()


def test_interrupted_and_nobody_reads():
    """Ctrl-C in "scr_run ... 2>&1 | tee log", where tee dies first, and similar
    pipelines. The program cannot die of its own output, which is a file."""
    for options, output in (((), {}), (("--quiet",), {}), ((), {"stderr": subprocess.DEVNULL})):
        with Runs(SCR_FLUSH=0) as runs:
            runs.wrapper.write_text(WRAPPER.replace("exec ", "exec >>said 2>&1 "))
            runs.start_unread(("--simulate", "4x2", "--runs", "-1", *options), **output)
            wait_until(lambda: newest(runs) >= 1)
            runs.process.send_signal(signal.SIGINT)
            runs.finish(fails=None)
            runs.wrapper.write_text(WRAPPER)
            is_saved(runs)


def test_program_dies_of_it():
    """As in "scr_run ... | head", where the program would die without scr_run, too: it is
    started as often as planned, and cleaned up."""
    if MPI.launcher != "hydra":
        raise Skip(f"mpiexec of {MPI.mpi} ends ranks by SIGTERM when its own output ends, so they halt")
    with Runs(last=9, SCR_FLUSH=0) as runs:
        runs.wrapper.write_text(WRAPPER.replace("exec ", "echo it begins || exit\nexec "))
        runs.start_unread(("--simulate", "2x2", "--runs", "2"), stderr=subprocess.DEVNULL)
        runs.finish(fails=True)
        assert len(runs.log("RUN_LAUNCHED")) == 2 and len(runs.log("RUN_EXITED")) == 2, runs.log("")
        assert runs.logged("RUN_USED_UP", "SCR_RUNS") and runs.log("RUN_FINISHED"), runs.log("")


def test_output_is_lost():
    """The disk is full: the newest checkpoint is saved, an older cached one is not."""
    with Runs(SCR_FLUSH=0, SCR_CACHE_SIZE=2) as runs, open("/dev/full", "w", encoding="utf-8") as full:
        runs.wrapper.write_text(WRAPPER.replace("exec ", "exec >>said 2>&1 "))
        runs.start_unread(("--simulate", "4x2", "--runs", "-1", "--fail", "node=2,after=3"), stdout=full, stderr=full)
        runs.finish(fails=True)
        assert runs.logged("RUN_SAVE_FAILED", " exit code 1"), runs.log("")
        assert [path.name for path in runs.prefix.glob("ckpt.*")] == [f"ckpt.{EVERY * newest(runs)}"]
        runs.wrapper.write_text(WRAPPER)
        runs.run("--simulate", "4x2")
        runs.said("heat: restarted from ckpt")
        runs.check_result()


def stop_copying(runs, at):
    """The first scr_copy that gets to that change of the prefix directory stops there;
    returns the file that shows this."""
    struck = runs.job.root / "struck"
    runs.more.update(LD_PRELOAD=f"{MPI.preload}:{os.environ['JOB_FAULTS']}", FAULTS_PROGRAM="scr_copy",
                     FAULTS_BELOW=runs.prefix, FAULTS_AT=at, FAULTS_HOW="stop", FAULTS_MARK=struck,
                     FAULTS_ONCE=runs.job.root / "once")
    return struck


def go_on(name):
    for pid in descendants():
        try:
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == f"{name}\n":
                os.kill(pid, signal.SIGCONT)
        except OSError:
            pass  # it ended just now


def test_interrupted_while_it_saves():
    """The first Ctrl-C arrives when the program has ended by itself: saving continues."""
    with Runs(SCR_FLUSH=0) as runs:
        struck = stop_copying(runs, 9)
        runs.start("--simulate", "4x2", "--runs", "-1", "--fail", "node=2,after=3")
        wait_until(struck.exists)
        runs.process.send_signal(signal.SIGINT)
        wait_until(lambda: runs.log("RUN_SIGNAL]"))
        go_on("scr_copy")
        runs.finish(fails=True)
        assert runs.process.returncode > 0 and not runs.log("RUN_SAVE_"), runs.out
        runs.more = {}
        runs.run("--simulate", "4x2")
        runs.said("heat: restarted from ckpt")
        runs.check_result()


def give_up(at):
    with Runs(SCR_FLUSH=0, SCR_NODELIST="n[1-4]", SCR_REMOTE="shell") as runs:
        make_machines(runs)
        struck = stop_copying(runs, at)
        runs.start("--launcher", MPI.launcher, "--per-node", "2")
        wait_until(lambda: newest(runs) >= 1)
        runs.process.send_signal(signal.SIGINT)
        wait_until(struck.exists)
        runs.process.send_signal(signal.SIGINT)
        runs.finish(fails=None)
        number, name = newest(runs), newest_name(runs)
        assert runs.process.returncode == -signal.SIGINT, (runs.process.returncode, runs.out)
        runs.says("DATASET_UNSAVED", rf"dataset {number} \({re.escape(name)}\) ", f"; scr_postrun --prefix={runs.prefix} ")
        assert runs.log(f" scr_postrun --prefix={runs.prefix} .*RUN_SAVE_ABANDONED"), runs.out
        index = subprocess.run([f"{TOOLS}/scr_index", "--list", runs.prefix], capture_output=True, text=True, check=False)
        assert name not in index.stdout and not list(runs.prefix.glob(f"{name}/rank_*")), index.stdout
        runs.more["LD_PRELOAD"] = ""
        subprocess.run([f"{TOOLS}/scr_postrun"], env=runs.environment(), cwd=runs.prefix, stdout=subprocess.DEVNULL, check=True)
        left = [path for path in runs.prefix.rglob("*") if path.name.endswith(".tmp") or path.name.startswith("scavenge")]
        assert not left, left
        shutil.rmtree(runs.nodes)
        make_machines(runs)
        runs.run("--launcher", MPI.launcher, "--per-node", "2")
        runs.said(f"heat: restarted from {re.escape(name)}")
        runs.job.layout = [(node, 2) for node in ("n1", "n2", "n3", "n4")]
        runs.check_result()


def test_saving_is_given_up():
    """A second Ctrl-C while a node copies: nothing incomplete looks saved, and
    scr_postrun saves it later."""
    for at in (3, 12):
        give_up(at)


def test_interrupted():
    """Ctrl-C while the program runs."""
    with Runs() as runs:
        runs.start("--simulate", "2x2", "--runs", "-1")
        wait_until(lambda: (runs.prefix / ".scr/flush.scr").exists())
        runs.process.send_signal(signal.SIGINT)
        runs.finish(fails=None)
        assert len(runs.log("RUN_LAUNCHED")) == 1 and runs.log("RUN_SIGNALLED"), runs.out


def test_system():
    """scr_test_system, with a real mpiexec."""
    with Runs() as runs:
        runs.process = subprocess.Popen([f"{TOOLS}/scr_test_system", "--simulate", "4x2", "--json", runs.wrapper],
                                        env=runs.environment(), cwd=runs.prefix, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        runs.finish()
        rows = [json.loads(line) for line in runs.out.splitlines() if line.startswith("{")]
        assert len(rows) == 10 and all(row["result"] == "good" for row in rows), runs.out
        found = {row["step"]: row["found"] for row in rows}
        assert found["detect"] == "node1: no answer: node1: Host is down" and found["again"] == "on node[2-4]", runs.out
        assert re.fullmatch(r"from ckpt\.\d+; see .scr/runs.log", found["cycle"]), runs.out
        runs.check_result()


def test_halt():
    """The program ends by itself after a number of checkpoints, or before the allocation
    ends: it is halted, not done, and the remedy is printed. Then it continues, and is
    done."""
    def halted(runs, why, remedy, **more):
        runs.more = more
        runs.run("--simulate", "2x2", "--runs", "-1")
        assert len(runs.log("RUN_LAUNCHED")) == 1 and not runs.log("RUN_DONE"), runs.out
        assert runs.log(f": {why} \\[RUN_HALTED") and runs.log(f"exit code 0: .*: {why} \\[RUN_EXITED"), runs.out
        assert runs.logged("HALT_REMEDY", remedy), runs.out
        os.unlink(runs.prefix / ".scr/runs.log")

    with Runs(last=9) as runs:
        subprocess.run([f"{TOOLS}/scr_halt", "--checkpoints", "3", runs.prefix], stdout=subprocess.DEVNULL, check=True)
        remove = f"scr_halt --remove {runs.prefix}"
        halted(runs, ".*checkpoints.*", f": {remove}, ")
        subprocess.run(remove.replace("scr_halt", f"{TOOLS}/scr_halt").split(), stdout=subprocess.DEVNULL, check=True)
        halted(runs, r"\d+ seconds .*\(SCR_END_TIME\)", "a new allocation",
               SCR_HALT_SECONDS="1h", SCR_END_TIME=int(time.time()) + 1800)
        halted(runs, r"SCR_HALT_EXIT: \d+ seconds .*\(SCR_END_TIME\)", "a new allocation",
               SCR_HALT_SECONDS="1h", SCR_END_TIME=int(time.time()) + 1800, SCR_HALT_EXIT=1)
        runs.last, runs.more = 1, {}
        runs.run("--simulate", "2x2")
        assert runs.logged("RUN_DONE", "") and not runs.log("HALT_REMEDY"), runs.out
        runs.said("heat: restarted from ckpt")
        runs.check_result()


if __name__ == "__main__":
    main(globals())
