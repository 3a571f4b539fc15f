#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run on a cluster of namespaces, under mpiexec: a node loses power while the program
computes, during a checkpoint, during an asynchronous flush, and while the caches are
saved. In every case the program ends with the result of an undisturbed run. Skipped
without root or namespaces."""
import os
import re
import signal
import subprocess
import sys

import machines
from job import JOB, MPI, SKIP, Skip, descendants, main, wait_until
from run import EVERY, LIMIT, TOOLS, Runs, newest

VICTIM, RANK = "n2", 2  # a rank of it: two on each node


class Cluster:
    """Four machines, three or all of which the program uses, and scr_run on the head
    node."""

    def __init__(self, last=2, **parameters):
        if not MPI.shell:
            raise Skip(f"how mpiexec of {MPI.mpi} reaches nodes is not known")
        self.machines = machines.Machines("n1", "n2", "n3", "n4")
        place = self.machines.local
        self.runs = Runs(last, SCR_NODELIST="n[1-4]", SCR_REMOTE="shell", SCR_CACHE_BASE=f"{place}/cache",
                         SCR_CNTL_BASE=f"{place}/cntl", SCR_NODE_TIMEOUT=10, SCR_NODE_INTERVAL=2, SCR_RUN_PAUSE=0,
                         SCR_USER_NAME="tester", **parameters)

    def __enter__(self):
        self.runs.__enter__()
        self.prefix, self.mark = self.runs.prefix, self.runs.job.root / "struck"
        self.cache = self.machines.local / "cache/tester" / f"scr.{JOB}"
        self.runs.more = {"PATH": f"{os.environ['JOB_PATH']}:{os.environ['PATH']}", **MPI.by_shell(self.machines.shell)}
        return self

    def __exit__(self, *_):
        self.machines.__exit__()
        self.runs.__exit__()

    def stop_at(self, number, program, below):
        """Returns the environment in which the victim's first program of that name stops
        before its n-th change in that directory."""
        return {"LD_PRELOAD": f"{os.environ['JOB_FAULTS']}:{MPI.preload}", "FAULTS_PROGRAM": program,
                "FAULTS_BELOW": below, "FAULTS_AT": number, "FAULTS_HOW": "stop", "FAULTS_MARK": self.mark,
                "FAULTS_ONCE": self.runs.job.root / "once"}

    def start(self, nodes=3, **more):
        self.nodes = nodes
        self.runs.more.update(more)
        ours = {key: value for key, value in self.runs.environment().items()
                if value and re.match("JOB_|FAULTS_|LAST_RUN|LD_|OMPI_", key)}
        for node in () if MPI.passes else self.machines.nodes:
            self.machines.preload(node, **ours)
        self.runs.start("--launcher", MPI.launcher, "--nodes", str(nodes), "--per-node", "2", "--runs", str(self.runs.last))

    def cut(self, *names, silent=False):
        for name in names:
            self.machines.cut(name, silent)

    def wait_until(self, condition):
        """Waits while scr_run is running."""
        try:
            wait_until(lambda: condition() or self.runs.process.poll() is not None)
        except AssertionError:
            self.runs.process.send_signal(signal.SIGINT)
        assert condition(), self.runs.process.communicate(timeout=LIMIT)[0]

    def cut_when_it_stops(self, silent=False):
        self.wait_until(self.mark.exists)
        self.cut(VICTIM, silent=silent)

    def finish(self, fails=False):
        self.runs.out, _ = self.runs.process.communicate(timeout=LIMIT)
        code = self.runs.process.returncode
        assert fails is None or (code != 0) == fails, f"exit code {code}\n{self.runs.out}"
        wait_until(lambda: not self.left())

    def left(self):
        """Returns leftover processes, here and on the nodes."""
        return [pid for pid in descendants() if pid not in self.machines.processes() and machines.goes_on(pid)]

    def check(self):
        """Checks the result and every file on the prefix directory."""
        self.runs.job.layout = [("n1", 2 * self.nodes)]
        self.runs.check_result()
        done = subprocess.run([f"{TOOLS}/scr_index", "--verify", "--prefix", self.prefix], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.runs.out}"

    def went_on(self):
        """Checks that the program continued on the spare node from a checkpoint."""
        assert self.runs.logged("RUN_LAUNCHED", "run 1: begins on n[1-3], 6 ranks", "run 2: begins on n[1,3-4], 6 ranks"), self.runs.out
        assert len(self.runs.log(" n2: .*NODE_DOWN")) == 1, self.runs.out
        self.runs.said("heat: restarted from ckpt")
        self.check()


# ---- while the program computes ----

def computing(silent):
    with Cluster() as cluster:
        cluster.start()
        cluster.wait_until(lambda: newest(cluster.runs) >= 2)
        cluster.cut(VICTIM, silent=silent)
        cluster.finish()
        cluster.runs.says("REBUILD_COMPLETE", "2 of 6 ranks")
        cluster.went_on()


def test_computing():
    computing(silent=False)


def test_computing_without_a_word():
    """The node fails silently, and mpiexec waits forever."""
    computing(silent=True)


# ---- while a checkpoint is written ----

def writing(number, *kept):
    """kept: checkpoints from which the next run may begin."""
    with Cluster() as cluster:
        dataset = f"{cluster.cache}/scr.dataset.3"
        cluster.start(**cluster.stop_at(number, "heat", dataset), FAULTS_RANK=RANK)
        cluster.cut_when_it_stops()
        cluster.finish()
        cluster.runs.said(rf"heat: restarted from ckpt\.({'|'.join(map(str, kept))}),")
        cluster.went_on()


def test_writing_begins():
    writing(2, 2 * EVERY)


def test_writing_goes_on():
    """The other nodes may already have completed the checkpoint."""
    writing(8, 2 * EVERY, 3 * EVERY)


# ---- while a flush goes on ----

def flushing(number, program="heat", **parameters):
    with Cluster(SCR_FLUSH=2, SCR_FLUSH_ASYNC=1, **parameters) as cluster:
        cluster.start(**cluster.stop_at(number, program, cluster.prefix / f"ckpt.{2 * EVERY}"), FAULTS_RANK=RANK)
        cluster.cut_when_it_stops()
        cluster.finish()
        cluster.went_on()
        listed = subprocess.run([f"{TOOLS}/scr_index", "--list", "--prefix", cluster.prefix], capture_output=True, text=True, check=True)
        assert f"ckpt.{2 * EVERY}" in listed.stdout, f"{listed.stdout}\n{cluster.runs.out}"


def test_flushing_begins():
    flushing(1)


def test_flushing_goes_on():
    flushing(4)


def test_flushing_in_the_background():
    flushing(2, "scr_transfer", SCR_FLUSH_TYPE="DAEMON")


# ---- while what is left is saved ----

def saving(number, silent=False):
    """The first failure leaves too few nodes; the second one hits the copy of the newest
    checkpoint."""
    with Cluster(last=1, SCR_FLUSH=0, SCR_COPY_TYPE="RS", SCR_SET_FAILURES=2) as cluster:
        runs = cluster.runs
        cluster.machines.preload(VICTIM, **cluster.stop_at(number, "scr_copy", cluster.prefix))
        runs.last = 9  # the first job does not come to the end of its run
        cluster.start(nodes=4)
        cluster.wait_until(lambda: newest(runs) >= 3)
        cluster.cut("n4")
        cluster.cut_when_it_stops(silent)
        cluster.finish(fails=True)
        runs.said("is only in the cache: it is copied from n.1-3.")
        # later, in another allocation
        cluster.cut("n1", "n3")
        cluster.machines.start_again()
        runs.last = len(runs.log("RUN_LAUNCHED")) + 1
        cluster.start(nodes=4)
        cluster.finish()
        runs.said("heat: restarted from ckpt")
        cluster.check()


def test_saving_begins():
    saving(1)


def test_saving_goes_on():
    saving(5)


def test_saving_without_a_word():
    saving(3, silent=True)


if __name__ == "__main__":
    problem = machines.begin()
    if problem:
        print(f"skipped: {problem}")
        sys.exit(SKIP)
    main(globals())
