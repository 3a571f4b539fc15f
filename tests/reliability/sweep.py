# SPDX-License-Identifier: BSD-3-Clause
"""What all sweeps share: the story of a job, what must be true whatever happened to it, and trying
many points side by side.

A story is a script for tests/jobs/probe.c on four simulated nodes with a rank each. Each point is one
play of it with one fault, in a job of its own. Whatever the fault was,

  - the next run is offered the newest checkpoint that the story had completed, or a newer one, and every
    byte of it is right; it then writes one more, and ends;
  - what is complete on the prefix directory is right, too, and has every output that was completed;
  - nothing is left on the nodes, and no file on the prefix directory that belongs to no dataset.
"""
import argparse
import ctypes
import concurrent.futures
import functools
import multiprocessing.util
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "jobs"))
from job import CODES, MPI, Job, checkpoint, descendants, flat, messages, PR_SET_CHILD_SUBREAPER  # noqa: E402
import tree  # noqa: E402

SIZE, RANKS = 1000, 4
PROBE, DAEMON = "probe", "scr_transfer"
OURS = {"flush.scr", "halt.scr", "index.scr", "lock", "nodes.scr"}  # in .scr of the prefix directory

# the second checkpoint is flushed, the third evicts the first one, the output set evicts the second
STORY = ["init", checkpoint("c1"), checkpoint("c2"), checkpoint("c3"), checkpoint("o1", flags="o"),
         checkpoint("c4"), "finalize"]
PARAMETERS = {"SCR_FLUSH": 2, "SCR_CACHE_SIZE": 2, "SCR_SET_SIZE": 4}
METHODS = {
    "sync": {},
    "pthread": {"SCR_FLUSH_ASYNC": 1},
    "daemon": {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON",
               "PATH": f"{os.environ['JOB_PATH']}:{os.environ['PATH']}"},
}


def anyhow(*operations):
    """Whatever they give."""
    return [operation.partition(" => ")[0] + " => ANY" for operation in flat(operations)]


AFTERWARDS = anyhow("init", "have", "start_restart", f"get:%T/rank_%r:{SIZE}", "complete_restart:1") + \
    [checkpoint("next"), "finalize"]

# a file that all ranks write beside those of each: unit and rounds of it (probe_parts.c), and its bytes
UNIT, ROUNDS = 700, 2
SHARED = ROUNDS * (RANKS * UNIT + RANKS * (RANKS - 1) // 2)
HAVE_SHARED = {"d1", "d2", "d3", "newer"}
LOCAL = ("put", "get", "fetch_share")  # operations in which a rank fails alone


def with_shared(name):
    """A checkpoint of both."""
    return [f"start:{name}:c", f"put:{name}/rank_%r:{SIZE}", f"put_parts:{name}/all:{UNIT}:{ROUNDS}", "complete:1"]


# the second one is flushed, the third evicts the first one and is flushed at the end; the next run reads parts that it wrote,
# and has those of others brought
STORIES = {
    "plain": (STORY, AFTERWARDS),
    "parts": (["init", with_shared("d1"), with_shared("d2"), with_shared("d3"), "finalize"],
              anyhow("init", "have", "start_restart", f"get:%T/rank_%r:{SIZE}", f"get_parts:%T/all:{UNIT}:{ROUNDS}",
                     f"fetch_share:%T/all:5:{SHARED - 9}", "complete_restart:1") + [with_shared("newer"), "finalize"]),
}


# ---- contents, as probe_data.c makes them ----

MASK = 2 ** 64 - 1


def mix(number, text):
    for byte in text.encode():
        number = (number ^ byte) * 0x100000001b3 & MASK
    return (number ^ 0xff) * 0x100000001b3 & MASK


@functools.lru_cache(maxsize=None)
def contents(name, rank, tag=None, size=SIZE):
    """Of the file of that rank; tag: what it was written under, if not the dataset's name."""
    state = 0xcbf29ce484222325
    for text in (tag or name, str(rank), f"{name}/rank_{rank}"):
        state = mix(state, text)
    state |= 1
    data = bytearray()
    for _ in range(size + 13 * rank):
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        data.append(state >> 32 & 255)
    return bytes(data)


def shared_contents(name):
    """Of the file that all ranks wrote."""
    seed = 17
    for byte in (name + name + "/all").encode():
        seed = seed * 31 + byte
    return bytes(seed + at * 31 + at // 251 & 255 for at in range(SHARED))


# ---- what a run did ----

def completed(run):
    """Names of the datasets that were completed, in their order."""
    names, name = [], None
    for op in run.ops:
        if op["op"].startswith("start:"):
            name = op["op"].split(":")[1]
        elif op["op"].startswith("complete:") and set(op["code"]) == {0}:
            names.append(name)
    return names


def agreed(run):
    """All ranks got the same from every collective call."""
    for op in run.ops:
        if not op["op"].startswith(LOCAL):
            assert len(set(op["code"])) == 1, f"ranks got different codes\n{run}"


# ---- what must be true ----

def on_prefix(job):
    """{name: its newest entry} of what the index has."""
    path = job.prefix / ".scr/index.scr"
    sets = tree.read(path).get("DSET", {}) if path.exists() else {}
    return {name: entry for _, folders in sorted(sets.items(), key=lambda item: int(item[0]))
            for name, entry in folders["DIR"].items()}


def is_complete(entry):
    return tree.only(entry.get("COMPLETE", {"0": {}})) == "1"


def check_dataset(folder, name, ranks, size):
    if name in HAVE_SHARED:
        assert (folder / "all").read_bytes() == shared_contents(name), f"the shared file of {name} has other bytes"
    parts = list(folder.rglob("*.scr-part.*"))
    assert not parts, f"parts are files of their own: {parts}"
    containers = sorted((folder / ".scr").glob("ctr.*.scr"), key=lambda path: int(path.name.split(".")[1]))
    if containers:
        found = b"".join(path.read_bytes() for path in containers)
        assert found == b"".join(contents(name, rank, size=size) for rank in range(ranks)), f"{name} has other bytes"
        return
    for rank in range(ranks):
        path = folder / f"rank_{rank}"
        assert path.exists(), f"{path} is missing, and the index says that {name} is complete"
        assert path.read_bytes() == contents(name, rank, size=size), f"{path} has other bytes"


def check_prefix(job, names, ranks=RANKS, hurt=(), size=SIZE):
    """Names: what has to be there. hurt: what the test itself spoilt there."""
    entries = on_prefix(job)
    for name, entry in entries.items():
        if is_complete(entry) and name not in hurt:
            check_dataset(job.prefix / name, name, ranks, size)
    for name in names:
        assert name in entries and is_complete(entries[name]), f"{name} is not on the prefix directory"
    for path in job.prefix.rglob("*"):
        parts = path.relative_to(job.prefix).parts
        known = parts[0] in entries or parts[0] in hurt or parts[0] == ".scr" and (len(parts) == 1 or parts[1] in OURS)
        assert known and not path.name.endswith(".tmp"), f"nobody owns {path}"
        if ".scr/stage" in str(path):
            warnings = messages(job.told, "FLUSH_STAGE_KEPT", rf"\({parts[0]}\)")
            assert warnings and (path.is_dir() or path.name == "stage.scr"), f"nobody owns {path}"


def check_nodes(job):
    left = [path for node in job.nodes() for path in job.node(node).glob("*/*")]
    assert not left, f"left on the nodes: {left}"


def check_processes():
    """A background process has a moment to see that it is not needed."""
    for _ in range(100):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.05)
    raise AssertionError(f"processes are left: {descendants()}")


def judge(job, done, kept=(), story="plain", **parameters):
    """done: what was completed before; kept: what must be on the prefix directory, besides outputs. Plays the next run,
    and looks at what is left."""
    afterwards = list(flat(STORIES[story][1]))
    newest = [op.split(":")[1] for op in afterwards if op.startswith("start:")][-1]
    run = job.run(afterwards, **parameters)
    agreed(run)
    checkpoints = [name for name in done if name[0] != "o"]
    offered = run.first("have")
    if set(offered["flag"]) == {1}:
        name = offered["text"][0]
        assert not checkpoints or name >= checkpoints[-1], f"{checkpoints[-1]} was lost for {name}\n{run}"
        for op in ("start_restart", "get:", "complete_restart") + (("get_parts:", "fetch_share:") if newest in HAVE_SHARED else ()):
            assert set(run.first(op)["code"]) == {0}, f"{op} failed\n{run}"
    else:
        assert not checkpoints, f"{checkpoints[-1]} was lost\n{run}"
    try:
        check_prefix(job, [name for name in done if name[0] == "o"] + [*kept, newest])
        check_nodes(job)
        check_processes()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run}") from None


# ---- jobs that are set back ----

def start_over(job):
    """Nothing is on the nodes and in the prefix directory, as on the first day."""
    for folder in (job.root / "nodes", job.prefix):
        shutil.rmtree(folder)
        folder.mkdir()


stages = {}  # of this process: the last one


def end_stages():
    while stages:
        stages.popitem()[1].__exit__()


def stage(make, *key):
    """The job make(*key) as it was when that returned; points that ask for the same one after the other
    share it."""
    if (make, key) in stages:
        job = stages[make, key]
        job.go_back()
    else:
        end_stages()
        multiprocessing.util.Finalize(None, end_stages, exitpriority=1)
        job = stages[make, key] = make(*key)
        job.save()
        job.layout_at_first = job.layout
    job.layout = job.layout_at_first
    return job


# ---- faults ----

def fault(job, program, rank, **how):
    """For Job.run(faults=...): see tests/support/faults.c."""
    return {"FAULTS_BELOW": f"{job.root}/nodes:{job.prefix}", "FAULTS_PROGRAM": program, "FAULTS_RANK": rank,
            "FAULTS_ONCE": job.root / "once" if program == DAEMON else None, "FAULTS_MARK": job.root / "struck",
            **{f"FAULTS_{key.upper()}": value for key, value in how.items()}}


def calls_of(script, program, before=None, how="kill", reading=None, **parameters):
    """What each rank's program does to files while the script is played, as far as it can go wrong in
    that way: for each rank a list of (time, call, path). before: what the job goes through first, a function."""
    with Job(RANKS, 1, **PARAMETERS) as job:
        if before:
            before(job)
        log = job.root / "calls"
        faults = fault(job, program, None, log=log, how=how, reading=reading)
        job.run(anyhow(script), dies=None, faults=faults, **parameters)
        logs = [job.root / f"calls.{rank}" for rank in range(RANKS)]
        return [[tuple(line.split(" ", 3)[1:]) for line in log.read_text().splitlines()] if log.exists() else []
                for log in logs]


def has_struck(job):
    return (job.root / "struck").exists()


# ---- many points ----

def begin_worker():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def attempt(try_point, point):
    """What is wrong, or None; and whether the fault struck at all."""
    try:
        return None, try_point(*point)
    except Exception as error:  # whatever it is, it is this point's
        return f"{point}: {error!r:.0}{error}", True


def call(function, args, named):
    return function(*args, **named)


def answer(question, args, parameters):
    return question(*args, **parameters)


def options(description, sample, more=None):
    """more: adds options of one sweep."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--all", action="store_true", help="all points, not a sample")
    parser.add_argument("--sample", type=int, default=sample, help="so many points, from all over them (%(default)s)")
    parser.add_argument("--part", default="1/1", metavar="K/N",
                        help="only part K of N (from 1) of the points: together, the parts are all of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="that many at a time (%(default)s)")
    parser.add_argument("--only", default="", help="only kinds whose names have this in them")
    if more:
        more(parser)
    given = parser.parse_args()
    given.sample = None if given.all else given.sample
    return given


class Sweep:
    """Kinds of points, and how each is tried."""

    def __init__(self, given):
        self.given, self.kinds, self.failed, self.struck = given, [], 0, 0
        self.pool = concurrent.futures.ProcessPoolExecutor(given.jobs, initializer=begin_worker)

    def ask(self, function, *args, **named):
        """What the function returns, played by a worker: whoever ends a job ends all that it started."""
        return self.pool.submit(call, function, args, named).result()

    def add(self, kind, try_point, points):
        """Points are tuples of arguments of try_point, which raises AssertionError where one fails, and
        returns whether anything happened there."""
        if self.given.only in kind:
            self.kinds.append((kind, try_point, list(points)))

    def choose(self):
        """Takes away what is not in the sample, or not in the part of it."""
        total, sample, before = sum(len(points) for _, _, points in self.kinds), self.given.sample, 0
        part, parts = map(int, self.given.part.split("/"))
        sample = total if sample is None else min(sample, total)
        chosen = {(2 * i + 1) * total // (2 * sample) for i in range(part - 1, sample, parts)}
        for _, _, points in self.kinds:
            count = len(points)
            points[:] = [point for number, point in enumerate(points, before) if number in chosen]
            before += count

    def try_kind(self, kind, tries, total):
        start, failed = time.monotonic(), 0
        for done in tries:
            problem, struck = done.result()
            self.struck += struck
            if problem:
                failed += 1
                print(f"FAILED {kind} {problem}", flush=True)
        self.failed += failed
        print(f"{kind}: {len(tries)} of {total} points, {failed} failed ({time.monotonic() - start:.0f} s)",
              flush=True)

    def run(self):
        totals = [len(points) for _, _, points in self.kinds]
        self.choose()
        tries = [[self.pool.submit(attempt, try_point, point) for point in points]
                 for _, try_point, points in self.kinds]
        for (kind, _, points), each, total in zip(self.kinds, tries, totals):
            if points:
                self.try_kind(kind, each, total)
        self.pool.shutdown()
        MPI.remove_leftovers()
        tried = sum(len(points) for _, _, points in self.kinds)
        print(f"{tried} of {sum(totals)} points, {self.struck} of them struck, {self.failed} failed")
        # threads and other processes make the numbers of calls differ a little from run to run
        sys.exit(1 if self.failed or not tried or self.struck < 0.8 * tried else 0)
