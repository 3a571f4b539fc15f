# SPDX-License-Identifier: BSD-3-Clause
"""Whole jobs on simulated nodes.

A Job is a directory with a prefix directory and one directory per node. Its runs start
tests/jobs/probe.c under one mpiexec, in which every rank has the node name and the cache
of its node. Each operation of a run may specify its results on all ranks:

    job.run("init", "start:a:c", "put:a/f_%r:1000", "complete:0 => INVALID", "have => 0")

A word in capitals is the code (SUCCESS if there is none), a number the flag, any other
word the text ("=2" is the text 2, and "=" is no text); "=> ANY" accepts everything.
job.lose("n2") simulates the failure of a node. A scenario script is a set of functions
test_*; main() runs them and ends as Meson expects.
"""
import ctypes
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import launch  # noqa: E402
import signals  # noqa: E402, F401

CODES = ["SUCCESS", "FAILURE", "DISABLED", "STATE", "ARGUMENT", "CONFIG", "CACHE", "INVALID",
         "REDUNDANCY", "FLUSH", "NO_DATASET", "PREFIX"]
SKIP = 77
USER, JOB = "tester", "17"
MPI = launch.Launch(os.environ["JOB_BUILD"])
PR_SET_CHILD_SUBREAPER = 36
ALONE = 10  # seconds


class Skip(Exception):
    """The test cannot be performed here."""


# ---- operations ----

def checkpoint(name, size=1000, flags="c", valid="1", code="SUCCESS"):
    """A checkpoint with one file per rank."""
    return [f"start:{name}:{flags}", f"put:{name}/rank_%r:{size}", f"complete:{valid} => {code}"]


def restart(name, size=1000):
    """The checkpoint is offered, and every byte of it is right."""
    return [f"have => 1 {name}", f"start_restart => {name}", f"get:{name}/rank_%r:{size}",
            "complete_restart:1"]


def flat(operations):
    for operation in operations:
        if isinstance(operation, str):
            yield operation
        else:
            yield from flat(operation)


def complaints(wanted, got):
    """Lists the mistakes in the results of one operation."""
    words = wanted.split()
    if words == ["ANY"]:
        return []
    code, found = 0, []
    for word in words:
        if word in CODES:
            code = CODES.index(word)
        else:
            part, value = ("flag", int(word)) if word.isdigit() else ("text", word.removeprefix("="))
            if set(got.get(part, [])) != {value}:
                found.append(f"{part} is {got.get(part)}, not {value}")
    if any(c not in (code, None) for c in got["code"]):
        found.append(f"code is {got['code']}, not {code} ({CODES[code]})")
    return found


# ---- messages ----

def messages(text, identifier, *values):
    """Returns the lines of text with an identifier (a pattern) and all values, each a
    pattern of whole words."""
    words = [re.sub(r"^(?=\w)|(?<=\w)$", r"\\b", value) for value in values]
    return [line for line in text.splitlines()
            if re.search(rf" \[{identifier}\]$", line) and all(re.search(word, line) for word in words)]


# ---- one run ----

def merged(ops):
    """After the end of MPI every rank prints for itself: merges the n-th lines of all
    ranks."""
    late = {}
    for op in ops:
        if "late" in op:
            late.setdefault(op["late"], []).append(op)
    together = [op for op in ops if "late" not in op]
    for lines in zip(*late.values()):
        one = {"op": lines[0]["op"]}
        for part in ("code", "flag", "text"):
            values = [line[part][line["late"]] for line in lines if part in line]
            one.update({part: values} if values else {})
        together.append(one)
    return together


class Run:
    """The output of a run: ops (decoded lines of probe), out, and SCR's messages in
    err."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.ops = merged([json.loads(line) for line in out.splitlines() if line.endswith("}")])

    def __str__(self):
        return f"exit code {self.code}\n{self.out}{self.err}"

    def check(self, operations, dies, ends=False):
        """Compares the results with those in the operations. dies: the run ends before
        its script does; None: it may. ends: SCR may end it earlier, with any exit
        code."""
        for number, (operation, wanted) in enumerate(operations):
            if number >= len(self.ops):
                assert ends or (dies is not False and self.code), f"nothing came of {operation}\n{self}"
                break
            found = complaints(wanted, self.ops[number])
            assert not found, f"operation {number}, {operation}: {'; '.join(found)}\n{self}"
        assert ends or dies is None or (self.code != 0) == dies, f"unexpected exit code\n{self}"

    def first(self, operation):
        """Returns the results of the first operation that begins so."""
        return next(op for op in self.ops if op["op"].startswith(operation))

    def said(self, pattern, times=None):
        """SCR printed matching lines, or that number of them."""
        lines = [line for line in self.err.splitlines() if re.search(pattern, line)]
        assert lines if times is None else len(lines) == times, \
            f"{len(lines)} lines match {pattern!r}\n{self}"

    def not_said(self, pattern):
        self.said(pattern, times=0)

    def says(self, identifier, *values, times=None):
        """SCR printed messages with that identifier (docs/messages.md) and all values, or
        that number of them."""
        found = messages(self.err, identifier, *values)
        assert found if times is None else len(found) == times, \
            f"{len(found)} messages {identifier} have {values}\n{self}"


def descendants():
    """Ids of all descendants of this process."""
    return [pid for pid, _ in processes_below(os.getpid())]


def processes_below(ancestor):
    """Ids of all descendants of a process, each with its state as in the kernel: Z if it
    has ended."""
    children = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            children.setdefault(int(parent), []).append((int(folder.name), state))
        except (OSError, IndexError):
            pass  # it ended just now
    found, level = [], [(ancestor, "")]
    while level:
        level = [child for pid, _ in level for child in children.get(pid, [])]
        found += level
    return found


def output(process, limit):
    """Returns the output of an mpiexec and its ranks until they end. If all its ranks
    have been dead for ALONE seconds, mpiexec is ended: that of Open MPI 4.1.4 may then
    wait for itself."""
    until, ranks, lonely = time.monotonic() + limit, False, time.monotonic()
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if any(state != "Z" for _, state in processes_below(process.pid)):
                ranks, lonely = True, now
            if ranks and now - lonely > ALONE:
                process.kill()
            elif now > until:
                raise


def bury():
    """Records all children that have ended, including those that this process adopted
    from their ended parents."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def nothing_is_left():
    bury()
    return not descendants()


def end_all():
    """Ends all descendants of this process."""
    while pids := descendants():
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        bury()
        time.sleep(0.01)


def wait_until(condition):
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "that took too long"
        time.sleep(0.01)


# ---- a job ----

class Job:
    def __init__(self, nodes=4, per_node=2, layout=None, **parameters):
        """Makes that number of nodes with that number of ranks each; or layout, [(name of
        a node, its ranks), ...]."""
        shm = pathlib.Path("/dev/shm")
        base = shm if os.access(shm, os.W_OK) and "TMPDIR" not in os.environ else None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="scr-job-", dir=base))
        self.prefix = self.root / "prefix"
        self.prefix.mkdir()
        self.layout = layout or [(f"n{i + 1}", per_node) for i in range(nodes)]
        self.parameters = parameters
        self.told = ""  # the output of all runs of probe
        self.identity = {}  # user, group, umask: whose processes they are, as subprocess names that

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_all()
        shutil.rmtree(self.root)

    # -- places --

    def node(self, node):
        return self.root / "nodes" / node

    def cache(self, node):
        return self.node(node) / "cache" / USER / f"scr.{JOB}"

    def control(self, node):
        return self.node(node) / "cntl" / USER / f"scr.{JOB}" / node

    def nodes(self):
        return [node for node, _ in self.layout]

    def cached(self, node="n1"):
        """Ids of the datasets that have a directory in the node's cache."""
        return sorted(int(folder.name.rsplit(".", 1)[1])
                      for folder in self.cache(node).glob("scr.dataset.*"))

    def lose(self, *nodes):
        for node in nodes:
            shutil.rmtree(self.node(node))

    def replace(self, old, new):
        """Replaces node old by new in the next run; the order of ranks stays."""
        self.layout = [(new if node == old else node, count) for node, count in self.layout]

    def save(self):
        """Remembers the current content of the nodes and the prefix directory, for
        go_back()."""
        for name in ("nodes", "prefix"):
            shutil.copytree(self.root / name, self.root / "saved" / name, symlinks=True)

    def go_back(self):
        for name in ("nodes", "prefix"):
            shutil.rmtree(self.root / name)
            shutil.copytree(self.root / "saved" / name, self.root / name, symlinks=True)

    # -- runs --

    def environment(self, parameters):
        ours = {"SCR_PREFIX": self.prefix, "SCR_JOB_ID": JOB, "SCR_USER_NAME": USER, "SCR_DEBUG": 1,
                **self.parameters, **parameters}
        env = {key: value for key, value in os.environ.items()
               if not re.match("SCR_|SLURM_|PBS_|LSB_|FLUX_", key)}
        env.update({key: str(value) for key, value in ours.items() if value is not None})
        env["JOB_LATE"] = f"{self.root}/late"
        return {**env, **MPI.places(self.root)}

    def command(self, program, layout, of_node, faults):
        sections = [(count, {"SCR_NODE_NAME": node, "SCR_CACHE_BASE": self.node(node) / "cache",
                             "SCR_CNTL_BASE": self.node(node) / "cntl", **of_node.get(node, {})}, program) for node, count in layout]
        return MPI.command(sections, preload=[os.environ["JOB_FAULTS"]] if faults else [])

    def start(self, *program, layout=None, of_node={}, prefix=None, faults={}, **parameters):
        """Starts a program with arguments on all nodes; returns a Popen. Parameters as
        for run()."""
        if prefix:
            parameters["SCR_PREFIX"] = prefix
        return subprocess.Popen(self.command(program, layout or self.layout, of_node, faults),
                                cwd=prefix or self.prefix, env=self.environment({**parameters, **faults}),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, errors="replace", **self.identity)

    def late(self):
        """Returns and forgets the output of ranks after the end of MPI."""
        text = ""
        for path in sorted(self.root.glob("late.*")):
            text += path.read_text()
            path.unlink()
        return text

    def run(self, *operations, layout=None, dies=False, ends=False, limit=60, of_node={}, prefix=None,
            **parameters):
        """Runs probe and checks its results. parameters: SCR_... for all; of_node: per
        node; prefix: another prefix directory than the job's."""
        pairs = [operation.partition(" => ")[::2] for operation in flat(operations)]
        process = self.start(os.environ["JOB_PROBE"], *[operation for operation, _ in pairs],
                             layout=layout, of_node=of_node, prefix=prefix, **parameters)
        try:
            out, err = output(process, limit)
        except subprocess.TimeoutExpired:
            end_all()
            out, err = process.communicate()
            raise AssertionError(f"not done after {limit} s\n{out}{err}") from None
        run = Run(process.returncode, out + self.late(), err)
        self.told += run.out + run.err
        run.check(pairs, dies, ends)
        run.says("RUN_NOT_FINALIZED", "MPI", times=0)
        return run


# ---- a script ----

def run_one(name, test):
    start = time.monotonic()
    try:
        test()
        result, text = "ok", ""
    except Skip as reason:
        result, text = "skipped", f": {reason}"
    except Exception as error:
        where = inspect.trace()
        lines = [frame.lineno for frame in where if frame.function == name]
        result, text = "FAILED", f", line {lines[-1] if lines else '?'}: {error!r:.0}{error}"
    print(f"{name}: {result} ({time.monotonic() - start:.1f} s){text}", flush=True)
    return result


def stop(*_):
    sys.exit("ended from outside")


def main(names):
    """Runs the functions test_* among names, or those given as arguments."""
    signal.signal(signal.SIGTERM, stop)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tests = {name: test for name, test in names.items() if name.startswith("test_")}
    chosen = sys.argv[1:] or tests
    results = [run_one(name, tests[name]) for name in chosen]
    MPI.remove_leftovers()
    if "FAILED" in results or not results:
        sys.exit(1)
    sys.exit(SKIP if set(results) == {"skipped"} else 0)
