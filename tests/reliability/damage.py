#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Damage sweep: between two runs each kind of file that a job has is altered without a word: bytes change, it
is cut short, longer, empty, gone, or what it was earlier; one file at a time, and two. A record may also be whole,
but wrong: that of another node, rank, dataset, moment or job, on one node or on all, while a node is lost, too.

What is lost by that follows from what the files are for. The newest checkpoint that is whole elsewhere, or can
be made whole by its scheme, is offered, every byte of it is right, and SCR names the file."""
import itertools
import re

from sweep import (Job, METHODS, RANKS, Sweep, agreed, anyhow, check_nodes, check_prefix, check_processes, checkpoint,
                   options, stage, start_over)
from job import JOB, USER, end_all
from schemes import covers, sets_of
import damage

NAMES = {1: "c1", 2: "c2"}
SIZE = 9000
TWIN = "twin"


# ---- stories ----

class Story:
    """Two runs, from which files remain. first, second: their operations; how: parameters of the second one;
    nodes: whether the nodes are still there. next: parameters of the run that follows."""

    def __init__(self, scheme, first, second, nodes=True, how={}, next={}, **parameters):
        self.scheme, self.runs, self.nodes, self.how, self.next = scheme, (first, second), nodes, how, next
        kind, _, failures = scheme.partition(" ")
        self.parameters = {"SCR_COPY_TYPE": kind, "SCR_SET_FAILURES": failures or None, "SCR_FILE_BUF_SIZE": 4096,
                           **parameters}


def written(name, flags="c"):
    return checkpoint(name, SIZE, flags)


CACHED = (["init", written("c1", "co")], ["init", written("c2")])
ENDED = (["init", written("c1"), "finalize"], ["init", written("c2"), "finalize"])
KEPT = {"SCR_FLUSH": 1, "SCR_CACHE_KEEP": 1}
DIES = (["init", written("c1"), "finalize"], ["init", written("c2"), "kill@0"])
SLOW = {"SCR_FLUSH_ASYNC_BW": "10KB"}
STORIES = {
    "cache, XOR": Story("XOR", *CACHED, SCR_FLUSH=0),
    "cache, PARTNER": Story("PARTNER", *CACHED, SCR_FLUSH=0),
    "cache, RS": Story("RS 2", *CACHED, SCR_FLUSH=0),
    "cache and prefix": Story("XOR", *ENDED, **KEPT),
    "prefix": Story("XOR", *ENDED, nodes=False, **KEPT),
    "containers": Story("XOR", *ENDED, nodes=False, SCR_USE_CONTAINERS=1, SCR_CONTAINER_SIZE=20000, **KEPT),
    "transfer": Story("XOR", *DIES, how={**METHODS["daemon"], **SLOW}, next=METHODS["daemon"], **KEPT),
    "threads": Story("XOR", *DIES, how={**METHODS["pthread"], **SLOW}, **KEPT),
}


# ---- files ----

def short(path):
    """n1/cache/2/c2/rank_0, n1/cntl/filemap_0.scriinfo, prefix/c2/rank_0, prefix/c2/.scr/stage/0/0.0"""
    for pattern, to in ((r"^nodes/", ""), (f"/cache/{USER}/scr.{JOB}/scr.dataset.", "/cache/"),
                        (f"/cntl/{USER}/scr.{JOB}/n[0-9]+/", "/cntl/"), ("/stage/[0-9a-f]{16}/", "/stage/")):
        path = re.sub(pattern, to, path)
    return path


def files_of(job):
    """{short name: path}"""
    return {short(str(path.relative_to(job.root))): path
            for folder in (job.root / "nodes", job.prefix) for path in folder.rglob("*") if path.is_file()}


def names_of_files(story):
    """Of every kind of file that the story leaves: of two nodes, and of two ranks."""
    suffix = story.scheme.partition(" ")[0].lower()
    for rank, node in ((0, "n1"), (2, "n3")) if story.nodes else ():
        for id_, name in NAMES.items():
            yield from (f"{node}/cache/{id_}/{name}/rank_{rank}",
                        f"{node}/cache/{id_}/{rank + 1}_of_{RANKS}_in_0.{suffix}")
        yield from (f"{node}/cntl/{name}" for name in ("filemap_0.scriinfo", "filemap.scriinfo", "prefix.scriinfo",
                                                       "run.lock"))
        if story.next:
            yield f"{node}/cntl/transfer_{rank}.scrinfo"
    yield from (f"prefix/.scr/{name}" for name in ("flush.scr", "index.scr", "lock", "nodes.scr"))
    if "finalize" in story.runs[0]:
        yield "prefix/.scr/halt.scr"
    for name in NAMES.values():
        if name == "c1" or "finalize" in story.runs[1]:
            yield from (f"prefix/{name}/.scr/{record}" for record in ("rank2file.scr", "rank2file.0.0.scr", "summary.scr"))
            if "SCR_USE_CONTAINERS" in story.parameters:
                yield from (f"prefix/{name}/.scr/ctr.{number}.scr" for number in (0, 1))
            else:
                yield from (f"prefix/{name}/rank_{rank}" for rank in (0, 2))
        elif story.how:
            yield from (f"prefix/{name}/.scr/stage/{file}" for file in ("stage.scr", "0/0.0", "0/2.0"))


def others(name):
    """What is alike on other nodes and ranks."""
    return re.sub(r"[0-9]+(_of_|\.scrinfo|\.0$|$)", r"#\1", re.sub(r"^n[0-9]|ctr\.[0-9]", "#", name))


def expect_files(job, story):
    named = {others(name) for name in names_of_files(story)}
    # beside a state file its lock is there as long as somebody copies
    found = {others(name) for name in files_of(job)} - {"#/cntl/transfer_#.scrinfo.lock"}
    assert found == named, f"only left: {found - named}; only expected: {named - found}"


# ---- the job before the damage ----

def remember(job, versions):
    for name, path in files_of(job).items():
        versions[name] = path.read_bytes()


def live(job, story, tag, middle):
    """Both runs. tag: what the application writes, if not what belongs to the dataset."""
    for number, script in enumerate(story.runs):
        operations = []
        for operation in itertools.chain(*([part] if isinstance(part, str) else part for part in script)):
            operations.append(operation)
            if tag and operation.startswith("start:"):
                operations.append(f"tag:{tag}")
        job.run(operations, dies=None, **(story.how if number else {}))
        if not number:
            remember(job, middle)
    end_all()


def begin(name):
    story = STORIES[name]
    job = Job(RANKS, 1, **story.parameters)
    job.versions = {"middle": {}, TWIN: {}}
    live(job, story, TWIN, {})
    remember(job, job.versions[TWIN])
    start_over(job)
    live(job, story, None, job.versions["middle"])
    if not story.nodes:
        job.lose(*job.nodes())
    expect_files(job, story)
    return job


# ---- ways to damage ----

# a tree's file begins with magic, type, version, size, flags, count, and its first key
PLACES = [0, 4, 6, 12, 19, 23, 24] + [part / 10 for part in range(1, 10)] + [1.0]


def flip(path, at):
    data = bytearray(path.read_bytes())
    at = int(at * len(data)) if isinstance(at, float) else at
    if data:
        data[min(at, len(data) - 1)] ^= 0x10
    path.write_bytes(data)


def cut(path, at):
    data = path.read_bytes()
    path.write_bytes(data[:int(at * len(data)) if isinstance(at, float) else at])


def double(path):
    path.write_bytes(2 * path.read_bytes())


def blank(path):
    """A block that reads as zeros, as after a power failure."""
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 3] + bytes(len(data) - len(data) // 3))


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


WAYS = {f"flip {at}": (lambda path, at=at: flip(path, at)) for at in PLACES}
WAYS |= {f"cut {at}": (lambda path, at=at: cut(path, at)) for at in (1, 20, 0.5, -1)}
WAYS |= {"extend": damage.extend, "double": double, "empty": damage.empty, "blank": blank, "zeros": zeros,
         "garbage": damage.garbage, "remove": damage.remove}
OLD = ["middle", TWIN]  # its own older version, of an earlier run, or of another job with the same names and ids
IN_PAIRS = ["flip 0.5", "cut 0.5", "empty", "remove", "garbage", TWIN]


def hurt(job, name, way):
    """Whether the file is another one now."""
    path = files_of(job).get(name)
    if not path:
        return False  # removed with what it belongs to
    before = path.read_bytes()
    if way in OLD:
        if name not in job.versions[way]:
            return False
        path.write_bytes(job.versions[way][name])
    else:
        WAYS[way](path)
    return not path.is_file() or path.is_symlink() or path.read_bytes() != before


# ---- records that are whole, but wrong ----

def counterpart(story, name, kind):
    """The same record of another node and rank, or of the other dataset; None."""
    if kind == "node":
        names = [other for other in names_of_files(story) if others(other) == others(name) and other != name]
        return names[0] if names else None
    other = re.sub("(cache/|prefix/c)([12])/", lambda found: f"{found[1]}{3 - int(found[2])}/", name)
    return other if other != name else None


def copied(job, story, name, kind):
    files, other = files_of(job), counterpart(story, name, kind)
    return {name: files[other].read_bytes()} if {name, other} <= files.keys() else {}


def exchanged(job, story, name, kind):
    files, other = files_of(job), counterpart(story, name, kind)
    return {name: files[other].read_bytes(), other: files[name].read_bytes()} if {name, other} <= files.keys() else {}


def everywhere(job, story, name, kind):
    """Of an earlier moment, or of another job, on all nodes."""
    return {other: data for other, data in job.versions[kind].items() if others(other) == others(name) and other in files_of(job)}


WRONG = {"copied": (copied, "node"), "exchanged": (exchanged, "node"), "of the other dataset": (copied, "dataset"),
         "exchanged with the other dataset": (exchanged, "dataset"), "earlier everywhere": (everywhere, "middle"),
         "of another job everywhere": (everywhere, TWIN)}


def wrong_points(story):
    """Records, and the ways in which they can be others. Lock and owner are the same on all nodes."""
    for name in names_of_files(STORIES[story]):
        if re.search(r"/cntl/[ft]|_of_|/\.scr/(?!ctr)", name):
            yield from ((story, name, way) for way, (how, kind) in WRONG.items()
                        if how == everywhere or counterpart(STORIES[story], name, kind))


def put_wrong(job, story, name, way):
    """The files that are others now."""
    how, kind = WRONG[way]
    files, changed = files_of(job), []
    for other, data in how(job, story, name, kind).items():
        if files[other].read_bytes() != data:
            files[other].write_bytes(data)
            changed.append((other, way))
    return changed


# ---- what must be true ----

AFTERWARDS = anyhow("init", "have", "start_restart", f"get:%T/rank_%r:{SIZE}", "complete_restart:1") + \
    [written("next"), "finalize"]


def member_lost(name, id_):
    """The rank whose share of that dataset in the cache is not to be trusted any more; None. A control file costs nothing."""
    found = re.match(rf"n([0-9]+)/cache/{id_}/", name)
    return int(found[1]) - 1 if found else None


def is_forgotten(changed):
    """Whether nothing tells that the index is an earlier one: the flush file does, while it is whole."""
    ways = dict(changed)
    return ways.get("prefix/.scr/index.scr") in OLD and "prefix/.scr/flush.scr" in ways


def is_safe(story, changed, gone, id_):
    """Whether a restart can have that dataset although these files are hurt, and the nodes of these members are gone."""
    names = [name for name, _ in changed]
    lost = {member_lost(name, id_) for name in names} - {None} | gone
    in_cache = story.nodes and covers(story.scheme, sets_of([1] * RANKS, 8), lost)
    flushed = (id_ == 1 or "finalize" in story.runs[1]) and not is_forgotten(changed)
    return in_cache or flushed and not any(name.startswith(f"prefix/{NAMES[id_]}/") for name in names)


def what_is_told(story, name, way):
    """A pattern, for what a run reads and cannot believe; None. What is only older is no damage that a record
    could tell of itself, and a record that is gone may never have been there."""
    file = re.escape(name.rsplit("/", 1)[1])
    if name.startswith("prefix/c2/"):
        believed = way == "remove" or way in OLD and name.endswith("summary.scr")
        in_it = r"|c2/rank_[0-3] |/ctr\.[0-9]\.scr, " if "ctr." in name or way in OLD else ""  # an earlier map is of other bytes
        believed |= "ctr." in name and way in ("extend", "double")  # what is behind a container's end is nobody's
        return file + in_it if not story.nodes and not believed else None
    if re.search("/cache/2/", name):
        # one file tells what its rank has lost; what turns up while others are given back is counted
        rank = int(name[1]) - 1
        return rf"{file}|rank {rank}: (read |open )?\S*(c2/rank_|_of_4)|dataset 2 .*(rank {rank}: |on [0-9]+ ranks).*CACHE_FILES_LOST|of 2 of 4 ranks"
    record = re.search(r"(filemap(_0)?|prefix).scriinfo$|(index|halt|flush).scr$|transfer_[0-9]+.scrinfo$", name)
    untold = way in OLD + ["remove"]
    return file if record and not untold else None


def check_told(story, run, changed):
    patterns = {name: what_is_told(story, name, way) for name, way in changed}
    fetched = [name for name in patterns if name.startswith("prefix/c2/")]
    for name in fetched if len(fetched) > 1 else ():  # a fetch ends with the first of them
        patterns[name] = patterns[name] and patterns[name] + "|c2.* \\[(FETCH_CHECKPOINT_DAMAGED|FETCH_FAILED|INDEX_CORRECTED)"
    for pattern in patterns.values():
        if pattern:
            run.said(pattern)


def check_end(job, changed):
    hurt = {name.split("/")[1] for name, _ in changed if name.startswith("prefix/c")}
    if is_forgotten(changed):
        hurt |= set(NAMES.values())
    if any(name == "prefix/.scr/index.scr" for name, _ in changed):
        for path in (job.prefix / ".scr").glob("index.scr.damaged.*"):  # set aside, and told of
            path.unlink()
    check_prefix(job, ["next"], hurt=hurt, size=SIZE)
    check_nodes(job)
    check_processes()


def judge(job, story, changed, gone=frozenset(), told=True):
    run = job.run(AFTERWARDS, **{**story.next, "SCR_FLUSH": 1, "SCR_CACHE_KEEP": 0})
    agreed(run)
    must = next((NAMES[id_] for id_ in (2, 1) if is_safe(story, changed, gone, id_)), "")
    have = run.first("have")
    got = have["text"][0] if have["flag"][0] == 1 else ""
    assert got >= must, f"{got or 'nothing'} was offered, and not {must}\n{run}"
    for op in ("start_restart", "get:", "complete_restart") if got else ():
        assert set(run.first(op)["code"]) == {0}, f"{op} failed\n{run}"
    try:
        if told:
            check_told(story, run, changed)
        check_end(job, changed)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run}") from None


# ---- points ----

def one(story, *damages):
    """damages: a file's name and a way, in turn."""
    job = stage(begin, story)
    pairs = list(zip(damages[::2], damages[1::2]))
    changed = [(name, way) for name, way in pairs if hurt(job, name, way)]
    judge(job, STORIES[story], changed)
    return bool(changed)


def wrong(story, name, way, gone):
    """gone: the node that is lost, too; "none"."""
    job = stage(begin, story)
    changed = put_wrong(job, STORIES[story], name, way)
    if changed and gone != "none":
        job.lose(gone)
    members = {int(gone[1:]) - 1} if gone != "none" else set()
    judge(job, STORIES[story], [(other, way) for other, way in changed if not other.startswith(gone)], members, told=False)
    return bool(changed)


def pairs_of(names):
    for number, (a, b) in enumerate(itertools.combinations(names, 2)):
        for turn in range(3):
            count = len(IN_PAIRS)
            yield a, IN_PAIRS[(number + 2 * turn) % count], b, IN_PAIRS[(number // count + turn) % count]


def main():
    sweep = Sweep(options(__doc__, sample=30))
    for name, story in STORIES.items():
        names = list(names_of_files(story))
        for file in names:
            sweep.add(f"{name}: {file}", one, [(name, file, way) for way in [*WAYS, *OLD]])
        for gone in ("none", "n1", "n2") if story.nodes else ("none",):
            sweep.add(f"{name}: wrong records, lost {gone}", wrong,
                      [(*point, gone) for point in wrong_points(name)])
        sweep.add(f"{name}: pairs", one, [(name, *pair) for pair in pairs_of(names)])
    sweep.run()


if __name__ == "__main__":
    main()
