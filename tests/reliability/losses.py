#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loss sweep: every set of nodes is lost, with every scheme, and the ranks go on elsewhere: on empty nodes
of the same names or of others, in another order, crowded on those that are left, or on nodes that come back
with what they had earlier; and a second loss hits the restart from the first one.

What must come of it follows from the scheme alone (docs/formats/redset.md): the newest checkpoint, if no set
lost more than its scheme gives back, else the next best, or none; and SCR says which. After each restart
what it has made whole is lost again as far as its scheme allows."""
import itertools
import shutil

from sweep import (Job, Sweep, agreed, anyhow, check_nodes, check_prefix, check_processes, checkpoint, contents,
                   fault, has_struck, options, stage, start_over, PROBE, SIZE)
from schemes import covers, sets_of
from job import messages  # sweep.py knows where that is

NEWEST, OLDER = "c3", "c2"
TWIN = "twin"  # what files of an earlier life of the job were written under

# ranks of each node, and the least members of a set
SHAPES = [([1] * nodes, 8) for nodes in range(2, 7)] + \
    [([1] * 4, 2), ([1] * 6, 3), ([2] * 2, 8), ([2] * 3, 8), ([2] * 4, 4), ([2, 1, 1], 8), ([3, 1], 8)]
PLACES = ["same", "spare", "moved", "crowded", "older", TWIN]
AGAIN = anyhow("init", "have", "start_restart", "route:%T/rank_%r", "complete_restart:1")
PREFIX = {"alone": 0, "prefix": 2}  # SCR_FLUSH: nothing is there, or the second checkpoint


# ---- schemes, from first principles ----

def schemes(nodes):
    yield from ("SINGLE", "PARTNER", "XOR")
    yield from (f"RS {failures}" for failures in range(1, nodes))
    if nodes > 2:
        yield "mixed"  # the older one can lose two members of a set, the newest one


def scheme_of(scheme, name):
    return {OLDER: "RS 2", NEWEST: "XOR"}[name] if scheme == "mixed" else scheme


def descriptors(scheme):
    """Operations before SCR_Init."""
    if scheme != "mixed":
        kind, _, failures = scheme.partition(" ")
        return [f"config:CKPT=0 TYPE={kind}" + (f" SET_FAILURES={failures}" if failures else "")]
    return ["config:CKPT=0 INTERVAL=1 TYPE=XOR", "config:CKPT=1 INTERVAL=2 TYPE=RS SET_FAILURES=2"]


# ---- nodes and ranks ----

def ranks_on(layout, nodes):
    first, found = 0, set()
    for node, count in layout:
        if node in nodes:
            found |= set(range(first, first + count))
        first += count
    return found


def ranks_of(layout):
    return sum(count for _, count in layout)


def layout_after(layout, lost, place):
    if place == "spare":
        return [("s" + node if node in lost else node, count) for node, count in layout]
    if place == "moved":
        nodes = [node for node, _ in layout]
        return [(node, count) for node, (_, count) in zip(nodes[1:] + nodes[:1], layout)]
    if place == "crowded":
        left = [node for node, _ in layout if node not in lost] or [layout[0][0]]
        share, more = divmod(ranks_of(layout), len(left))
        return [(node, share + (number < more)) for number, node in enumerate(left)]
    return layout


# ---- the job before the loss ----

def keep(job, name):
    shutil.copytree(job.root / "nodes", job.root / name)


def life(scheme, tag=None):
    """Three checkpoints."""
    script = [descriptors(scheme), "init"]
    for name in ("c1", OLDER, NEWEST):
        start, put, complete = checkpoint(name)
        script += [start, f"tag:{tag or name}", put, complete]
    return script


def begin(counts, least, scheme, flush, place):
    layout = [(f"n{number + 1}", count) for number, count in enumerate(counts)]
    job = Job(layout=layout, SCR_CACHE_SIZE=2, SCR_SET_SIZE=least, SCR_FLUSH=PREFIX[flush])
    script = life(scheme)
    if place == TWIN:
        job.run(life(scheme, TWIN))
        keep(job, TWIN)
        start_over(job)
    elif place == "older":
        end = script.index(f"start:{NEWEST}:c")
        job.run(script[:end])
        keep(job, "older")
        script = descriptors(scheme) + ["init"] + script[end:]
    job.run(script)
    return job


def lose(job, lost, place):
    """Where the ranks are in the next run."""
    for node in lost:
        job.lose(node)
        if place in ("older", TWIN):
            shutil.copytree(job.root / place / node, job.node(node))
    job.layout = layout_after(job.layout, lost, place)


# ---- what must be true ----

class Expected:
    """names: what may be offered, None being nothing. missing: ranks whose files of the newest are lost."""

    def __init__(self, layout, least, scheme, flush, place, lost):
        everything = set(range(ranks_of(layout)))
        sets = sets_of([count for _, count in layout], least)
        self.missing = ranks_on(layout, lost)
        self.is_covered = covers(scheme_of(scheme, NEWEST), sets, self.missing)
        older = place == "older" or flush == "prefix" or covers(scheme_of(scheme, OLDER), sets, self.missing)
        self.names = {NEWEST} if self.is_covered else {OLDER} if older else {None}
        # what is whole of an earlier life of the job is as good as nothing: never mixed with the rest, or before it
        if place == TWIN and self.missing and self.names == {None}:
            self.names |= {(NEWEST, TWIN), (OLDER, TWIN)}
        self.is_told = self.missing != everything


def offered(job, run, ranks):
    """None; the name of what was offered and whose bytes are right; or that and the tag."""
    agreed(run)
    have = run.first("have")
    assert have["code"][0] == 0, f"SCR_Have_restart failed\n{run}"
    if have["flag"][0] != 1:
        return None
    name = have["text"][0]
    for op in ("start_restart", "route:", "complete_restart"):
        assert set(run.first(op)["code"]) == {0}, f"{op} failed\n{run}"
    bytes_of = [open(path, "rb").read() for path in run.first("route:")["text"]]
    for tag in (None, TWIN):
        if bytes_of == [contents(name, rank, tag) for rank in range(ranks)]:
            return (name, tag) if tag else name
    wrong = [rank for rank in range(ranks) if bytes_of[rank] != contents(name, rank)]
    raise AssertionError(f"{name} has other bytes on ranks {wrong}\n{run}")


def judge_first(job, run, expected):
    got = offered(job, run, ranks_of(job.layout))
    assert got in expected.names, f"{got} was offered, and not one of {expected.names}\n{run}"
    if expected.is_covered and expected.missing:
        run.says("REBUILD_COMPLETE", rf"dataset 3 \({NEWEST}\)", f"{len(expected.missing)} of {ranks_of(job.layout)} ranks", times=1)
    elif expected.is_covered:
        run.not_said("REBUILD_(COMPLETE|IMPOSSIBLE)")
    elif expected.is_told:
        run.says("REBUILD_IMPOSSIBLE", rf"dataset 3 \({NEWEST}\)", times=1)
    return got


def lose_again(job, least, scheme, name, layout):
    """As many nodes as the checkpoint that is in the cache now can spare, those first that have had it all
    the time. layout: when it got its sets."""
    sets = sets_of([count for _, count in layout], least)
    lost = []
    for node in sorted(job.nodes(), key=lambda node: (node not in dict(layout), node)):
        if covers(scheme_of(scheme, name), sets, ranks_on(job.layout, lost + [node])):
            lost.append(node)
    job.lose(*lost)
    return lost


def finish(job, scheme, got, must_be_told):
    """The last run: what the first restart had is there, one more checkpoint is written, and the job ends."""
    name, tag = got if isinstance(got, tuple) else (got, got)
    script = descriptors(scheme) + anyhow("init", "have", "start_restart", f"tag:{tag}", f"get:{name}/rank_%r:{SIZE}",
                                          "complete_restart:1") + [checkpoint("next"), "finalize"]
    run = job.run(script, SCR_FLUSH=1)
    agreed(run)
    have = run.first("have")
    assert (have["text"][0] if have["flag"][0] == 1 else None) == name, f"not {name} again\n{run}"
    for op in ("start_restart", "get:", "complete_restart") if name else ():
        assert set(run.first(op)["code"]) == {0}, f"{op} failed\n{run}"
    if must_be_told:
        run.says("REBUILD_COMPLETE", name, times=1)
    clean(job, run)


def clean(job, run):
    try:
        check_prefix(job, ["next"], ranks_of(job.layout))
        check_nodes(job)
        check_processes()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{run}") from None


# ---- points ----

def loss(counts, least, scheme, flush, place, lost):
    job = stage(begin, counts, least, scheme, flush, place if place in ("older", TWIN) else None)
    before = job.layout
    expected = Expected(before, least, scheme, flush, place, lost)
    lose(job, lost, place)
    got = judge_first(job, job.run(descriptors(scheme) + AGAIN), expected)
    again = []
    if isinstance(got, str):
        was_there = got == NEWEST or place == "older" or \
            covers(scheme_of(scheme, got), sets_of(counts, least), expected.missing)
        again = lose_again(job, least, scheme, got, before if was_there else job.layout)
    finish(job, scheme, got, again)
    return True


def interrupted(scheme, flush, first, second, rank, at):
    """The restart after the first loss is killed, and then more is lost."""
    counts, least = (1, 1, 1, 1), 8
    job = stage(begin, counts, least, scheme, flush, None)
    lose(job, first, "spare")
    run = job.run(descriptors(scheme) + AGAIN, dies=None, faults=fault(job, PROBE, rank, at=at))
    struck = has_struck(job)
    (job.root / "struck").unlink(missing_ok=True)
    was_whole = bool(messages(run.err, "(OUTPUT|REBUILD)_COMPLETE", NEWEST))
    job.lose(*[node for node in second if job.node(node).exists()])
    both = ranks_on(job.layout, second) | ranks_on([(node, 1) for node in ("n1", "n2", "n3", "n4")], first)
    sets = sets_of(counts, least)

    def is_safe(name):
        kind = scheme_of(scheme, name)
        if covers(kind, sets, both):
            return True
        return name == NEWEST and was_whole and covers(kind, sets, ranks_on(job.layout, second))

    must = NEWEST if is_safe(NEWEST) else OLDER if flush == "prefix" or is_safe(OLDER) else None
    run = job.run(descriptors(scheme) + AGAIN)
    got = offered(job, run, 4)
    assert (got or "") >= (must or ""), f"{got} was offered, and not {must}\n{run}"
    finish(job, scheme, got, False)
    return struck


def subsets(nodes, least=0, most=None):
    nodes = [f"n{number + 1}" for number in range(nodes)]
    return itertools.chain(*(itertools.combinations(nodes, count)
                             for count in range(least, (len(nodes) if most is None else most) + 1)))


def main():
    sweep = Sweep(options(__doc__, sample=24))
    for counts, least in SHAPES:
        for scheme in schemes(len(counts)):
            for flush in PREFIX:
                points = [(tuple(counts), least, scheme, flush, place, lost)
                          for place in PLACES for lost in subsets(len(counts))
                          if lost or place in ("moved", "crowded")]
                sweep.add(f"{scheme}, nodes of {' '.join(map(str, counts))} ranks, sets of {least}, {flush}", loss, points)
    for scheme in schemes(4):
        for flush in PREFIX:
            # a rank that gets files back does more than others
            points = [(scheme, flush, first, second, int(first[0][1:]) - 1 if at > 60 else at % 4, at)
                      for first in subsets(4, 1, 2)
                      for second in itertools.chain(subsets(4, 1, 2), (("s" + first[0],),))
                      for at in range(3, 118, 9)]
            sweep.add(f"{scheme}, interrupted, {flush}", interrupted, points)
    sweep.run()


if __name__ == "__main__":
    main()
