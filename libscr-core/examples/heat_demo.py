#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration: a heat diffusion program (heat.c) runs on four simulated nodes of
two ranks each. It loses a node, continues from its newest checkpoint, loses all caches,
continues from the prefix directory, and ends with the same result, to the last bit, as an
undisturbed run.

    heat_demo.py BUILD [--points N] [--steps N]

A node is simulated by a name (SCR_NODE_NAME) and its own cache directory in memory. Exits
with 0 only if every step happened as described."""
import argparse
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/support"))
import launch  # noqa: E402

RANKS_PER_NODE = 2
EVERY = 20        # steps per checkpoint
FLUSH = 8         # every 8th checkpoint goes to the prefix directory
KILL_NODE_AT = 6  # the node is lost after this checkpoint, ...
KILL_ALL_AT = 9   # ... and all caches after this one
TIME_LIMIT = 60   # seconds per launch

COMPLETE = re.compile(r"dataset \d+ \((\S+)\) is complete in the cache: (\d+) files, (\d+) bytes, "
                      r"([\d.]+) s, ([\d.]+) MB/s")
FLUSHED = re.compile(r"dataset \d+ \((\S+)\) is flushed to \S+: (\d+) bytes, ([\d.]+) s, ([\d.]+) MB/s")
FETCHED = re.compile(r"dataset \d+ \((\S+)\) is fetched from \S+: (\d+) bytes, ([\d.]+) s, ([\d.]+) MB/s")
REBUILT = re.compile(r"dataset \d+ \((\S+)\) is complete again: files of (\d+) of (\d+) ranks were rebuilt "
                     r"in ([\d.]+) s")
RESTARTED = re.compile(r"heat: restarted from (\S+), at step (\d+)")
DONE = re.compile(r"heat: step (\d+): checkpoint done")


class Failed(Exception):
    pass


def expect(condition, text, job=None):
    if not condition:
        shown = "".join("      | " + line + "\n" for line in job.lines[-30:]) if job else ""
        raise Failed(text + ("\n" + shown if shown else ""))


class Job:
    """One mpiexec. Its output is collected by lines, so the story can wait for events."""

    def __init__(self, demo, nodes, folder, result=None, environment=None):
        env = {**demo.mpi.environment, **os.environ}
        env.update(SCR_PREFIX=folder, SCR_JOB_ID="demo", SCR_DEBUG="1",
                   SCR_FLUSH=str(FLUSH), **demo.mpi.places(demo.shared), **(environment or {}))
        heat = [demo.heat, "-n", str(demo.points), "-t", str(demo.steps), "-c", str(EVERY), *(["-o", result] if result else [])]
        command = demo.mpi.command([
            (RANKS_PER_NODE, {"SCR_NODE_NAME": node, "SCR_CACHE_BASE": demo.cache(node), "SCR_CNTL_BASE": demo.cache(node)}, heat)
            for node in nodes])
        os.makedirs(folder, exist_ok=True)
        self.lines = []
        self.changed = threading.Condition()
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, cwd=folder, env=env, text=True, start_new_session=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def find(self, pattern):
        return [m for m in (pattern.search(line) for line in list(self.lines)) if m]

    def wait_for(self, pattern, value):
        """Waits until a line matches the pattern with this value as first group."""
        with self.changed:
            seen = self.changed.wait_for(
                lambda: any(m.group(1) == value for m in self.find(pattern)), TIME_LIMIT)
        expect(seen, f"never seen: {pattern.pattern} with {value}", self)

    def wait(self):
        try:
            code = self.process.wait(max(1, self.started + TIME_LIMIT - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"the job did not end within {TIME_LIMIT} s") from None
        self.reader.join()
        self.seconds = time.monotonic() - self.started
        return code

    def ranks_on(self, node):
        """Returns the process ids of the ranks on a simulated node."""
        found = []
        for pid in (int(d) for d in os.listdir("/proc") if d.isdigit()):
            try:
                if os.getsid(pid) != self.process.pid and not self.descends(pid):
                    continue
                with open(f"/proc/{pid}/environ", "rb") as f:
                    environment = f.read().split(b"\0")
                with open(f"/proc/{pid}/comm") as f:
                    program = f.read().strip()
            except (OSError, ProcessLookupError):
                continue
            if f"SCR_NODE_NAME={node}".encode() in environment and program == "heat":
                found.append(pid)
        return found

    def descends(self, pid):
        while pid > 1:
            if pid == self.process.pid:
                return True
            with open(f"/proc/{pid}/stat") as f:
                pid = int(f.read().rsplit(")", 1)[1].split()[1])
        return False

    def kill_ranks(self, *nodes):
        """Kills the ranks of the nodes by SIGKILL; returns their number."""
        pids = [pid for node in nodes for pid in self.ranks_on(node)]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # mpiexec was faster: it ends all ranks when the first one dies
        return len(pids)

    def kill(self):
        """Ends all processes of the job, as a power cut would."""
        killed = self.kill_ranks("n1", "n2", "n3", "n4", "n5")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join()
        return killed


class Demo:
    def __init__(self, build, points, steps):
        self.build, self.points, self.steps = os.path.abspath(build), points, steps
        self.heat = os.path.join(self.build, "libscr-core/heat")
        self.mpi = launch.Launch(self.build)
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.caches = tempfile.mkdtemp(prefix="scr-demo-", dir=memory)
        self.shared = tempfile.mkdtemp(prefix="scr-demo-", dir=memory)  # shared memory of MPI between ranks
        self.work = tempfile.mkdtemp(prefix="scr-demo-")
        self.jobs = []

    def cache(self, node):
        return os.path.join(self.caches, node)

    def launch(self, *args, **kwargs):
        self.jobs.append(Job(self, *args, **kwargs))
        return self.jobs[-1]

    def clean(self):
        for job in self.jobs:
            if job.process.poll() is None:
                job.kill()
        for folder in (self.caches, self.shared, self.work):
            shutil.rmtree(folder, ignore_errors=True)
        self.mpi.remove_leftovers()


def say(text):
    """Prints text in lines of 80 columns."""
    print(textwrap.fill(" ".join(text.split()), 80, initial_indent="   " if text[0] == " " else "", subsequent_indent="   "), flush=True)


def megabytes(text):
    return f"{int(text) / 1e6:.1f} MB"


def undisturbed(demo):
    result = os.path.join(demo.work, "undisturbed.bin")
    job = demo.launch(["n1", "n2", "n3", "n4"], os.path.join(demo.work, "undisturbed"), result,
                      environment={"SCR_ENABLE": "0"})
    expect(job.wait() == 0, "the undisturbed run failed", job)
    say(f"1. Undisturbed, without SCR: {demo.steps} steps on a plate of {demo.points} x {demo.points} "
        f"points, 8 ranks on nodes n1 n2 n3 n4: {job.seconds:.2f} s.")
    return result


def lose_a_node(demo, prefix):
    job = demo.launch(["n1", "n2", "n3", "n4"], prefix)
    job.wait_for(DONE, str(KILL_NODE_AT * EVERY))
    victims = job.kill_ranks("n3")
    code = job.wait()
    shutil.rmtree(demo.cache("n3"))
    made = job.find(COMPLETE)
    expect(victims == RANKS_PER_NODE, f"{victims} ranks were found on n3, not 2", job)
    expect(code != 0, "the job ended well although a node was lost", job)
    expect(len(made) >= KILL_NODE_AT, "too few checkpoints", job)
    bandwidths = sorted(float(m.group(5)) for m in made)
    say(f"2. With SCR: {len(made)} checkpoints of {megabytes(made[0].group(3))} in {made[0].group(2)} files,"
        f" XOR over the four nodes, {bandwidths[len(bandwidths) // 2]:.0f} MB/s each. After "
        f"{made[-1].group(1)} node n3 is lost: its 2 ranks are killed, its cache directory is deleted. "
        f"The job ends with code {code}.")
    return made[-1].group(1)


def go_on_with_spare(demo, prefix, newest):
    job = demo.launch(["n1", "n2", "n5", "n4"], prefix)
    job.wait_for(DONE, str(KILL_ALL_AT * EVERY))
    killed = job.kill()
    rebuilt, restarted = job.find(REBUILT), job.find(RESTARTED)
    flushed = job.find(FLUSHED)
    expect(rebuilt and all(m.group(2) == "2" for m in rebuilt), "no files were rebuilt", job)
    # one more checkpoint may have become complete between the message and the kill
    expect(restarted and int(restarted[0].group(2)) >= int(newest.split(".")[1]),
           f"did not restart from {newest}", job)
    expect(flushed, "nothing was flushed", job)
    expect(killed == 4 * RANKS_PER_NODE, f"{killed} ranks were killed, not 8", job)
    shutil.rmtree(demo.caches)
    os.mkdir(demo.caches)
    names = " and ".join(m.group(1) for m in rebuilt)
    be = "is" if len(rebuilt) == 1 else "are"
    say(f"3. Launched again, spare node n5 in the place of n3: {names} {be} complete again; the files of "
        f"2 of 8 ranks were rebuilt from XOR in {' and '.join(m.group(4) for m in rebuilt)} s. The "
        f"program resumes from {restarted[0].group(1)}, step {restarted[0].group(2)}.")
    say(f"   {flushed[0].group(1)} is flushed to the prefix directory: {megabytes(flushed[0].group(2))}, "
        f"{flushed[0].group(3)} s, {flushed[0].group(4)} MB/s. After ckpt.{KILL_ALL_AT * EVERY} power "
        f"fails on all nodes: all ranks are killed, all caches are gone.")
    return flushed[-1].group(1)


def finish_from_prefix(demo, prefix, saved):
    result = os.path.join(demo.work, "result.bin")
    job = demo.launch(["n1", "n2", "n3", "n4"], prefix, result)
    code = job.wait()
    fetched, restarted = job.find(FETCHED), job.find(RESTARTED)
    expect(code == 0, f"the last launch ended with code {code}", job)
    expect(fetched and fetched[0].group(1) == saved, f"{saved} was not fetched", job)
    expect(restarted and restarted[0].group(1) == saved, f"did not restart from {saved}", job)
    say(f"4. Launched a third time, with empty caches: {saved} is fetched from the prefix directory, "
        f"{megabytes(fetched[0].group(2))}, {fetched[0].group(3)} s, {fetched[0].group(4)} MB/s. The "
        f"program resumes from step {restarted[0].group(2)} and finishes in {job.seconds:.2f} s.")
    return result


def tell(demo):
    prefix = os.path.join(demo.work, "prefix")
    wanted = undisturbed(demo)
    newest = lose_a_node(demo, prefix)
    saved = go_on_with_spare(demo, prefix, newest)
    result = finish_from_prefix(demo, prefix, saved)
    size = os.path.getsize(result)
    expect(size == demo.points ** 2 * 8, f"the result has {size} bytes")
    expect(filecmp.cmp(result, wanted, shallow=False), "the results differ")
    say(f"5. Compared: all {size} bytes of the final field are the same as in the undisturbed run.")


def main():
    parser = argparse.ArgumentParser(description="SCR's demonstration")
    parser.add_argument("build", help="build directory")
    parser.add_argument("--points", type=int, default=2048, help="points per side of the plate")
    parser.add_argument("--steps", type=int, default=300, help="time steps")
    options = parser.parse_args()
    demo = Demo(options.build, options.points, options.steps)
    try:
        tell(demo)
        return 0
    except Failed as failure:
        print(f"FAILED: {failure}", flush=True)
        return 1
    finally:
        demo.clean()


if __name__ == "__main__":
    sys.exit(main())
