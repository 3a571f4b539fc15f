#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fault sweep: the n-th thing that one rank, or one background process, does to a file fails, for
every n and each way in which it can fail. All ranks get the same from SCR, the job goes on to its end, and
nothing that was said to be complete is missing."""
from sweep import (AFTERWARDS, CODES, DAEMON, LOCAL, METHODS, PARAMETERS, PROBE, RANKS, STORIES, STORY, Job, Sweep, agreed, anyhow,
                   calls_of, check_prefix, completed, fault, has_struck, judge, options)

STATE, FLUSH = CODES.index("STATE"), CODES.index("FLUSH")

# how a call fails; a full disk and a used up quota stay so
HOW = {"EIO": {}, "ENOSPC": {"stays": 1}, "EDQUOT": {"stays": 1}, "EINTR": {}, "EMFILE": {}, "short": {}}


def play(job, program, rank, at, script, method, how, reading):
    """A run with the fault. What was completed in it."""
    run = job.run(anyhow(script), faults=fault(job, program, rank, at=at, how=how, reading=reading, **HOW[how]),
                  **METHODS[method])
    agreed(run)
    done = completed(run)
    codes = {code for op in run.ops if not op["op"].startswith(LOCAL) for code in op["code"]}
    if how in ("short", "EINTR"):
        assert codes <= {0, STATE}, f"an error though nothing failed\n{run}"  # no restart was offered
    if run.ops[-1]["code"] == [0] * RANKS and FLUSH not in codes:
        try:
            check_prefix(job, [name for name in done if name[0] == "o"] + done[-1:])
        except AssertionError as error:
            raise AssertionError(f"reported as a success: {error}\n{run}") from None
    return done


def in_story(program, rank, at, method, how, reading, story="plain"):
    with Job(RANKS, 1, **PARAMETERS) as job:
        done = play(job, program, rank, at, STORIES[story][0], method, how, reading)
        judge(job, done, story=story, **METHODS[method])
        return has_struck(job)


def prepare(job, **parameters):
    """Two checkpoints in the cache, one of them on the prefix directory; a node is lost."""
    job.run(STORY[:-1], **parameters)
    job.lose("n3")


def prepare_alone(job):
    """The same, and none is on the prefix directory."""
    prepare(job, SCR_FLUSH=0)


def in_restart(rank, at, how, reading):
    with Job(RANKS, 1, **PARAMETERS) as job:
        prepare(job)
        done = play(job, PROBE, rank, at, AFTERWARDS, "sync", how, reading)
        judge(job, ["c4", "o1"] + done)
        return has_struck(job)


def in_restart_alone(rank, at, how, reading):
    """What cannot be read while a node is rebuilt is more than the scheme makes up for: then it is not offered, but it stays."""
    with Job(RANKS, 1, **PARAMETERS) as job:
        prepare_alone(job)
        play(job, PROBE, rank, at, AFTERWARDS[:5], "sync", how, reading)
        judge(job, ["c4"])
        return has_struck(job)


def prepare_parts(job):
    """Files that ranks wrote together are in the cache and on the prefix directory; a node is lost."""
    job.run(STORIES["parts"][0][:-1])
    job.lose("n3")


def prepare_shared(job):
    """They are on the prefix directory alone."""
    job.run(STORIES["parts"][0])
    job.lose(*job.nodes())


PREPARE = {"parts": prepare_parts, "shared": prepare_shared}


def in_restart_of_parts(rank, at, how, reading, prepared):
    with Job(RANKS, 1, **PARAMETERS) as job:
        PREPARE[prepared](job)
        done = play(job, PROBE, rank, at, STORIES["parts"][1], "sync", how, reading)
        judge(job, ["d3"] + done, story="parts")
        return has_struck(job)


def add_parts(sweep, how, reading):
    script, afterwards = STORIES["parts"]
    calls = sweep.ask(calls_of, script, PROBE, how=how, reading=reading)
    points = [(PROBE, rank, at, "sync", how, reading, "parts") for rank in range(RANKS) for at in range(1, len(calls[rank]) + 1)]
    sweep.add(f"{how}, parts", in_story, points)
    for name, before in PREPARE.items():
        calls = sweep.ask(calls_of, afterwards, PROBE, before, how, reading)
        points = [(rank, at, how, reading, name) for rank in range(RANKS) for at in range(1, len(calls[rank]) + 1)]
        sweep.add(f"{how}, restart of {name}", in_restart_of_parts, points)


def main():
    sweep = Sweep(options(__doc__, sample=24))
    for how in HOW:
        reading = 1 if how in ("EIO", "EMFILE", "short") else None
        for method, parameters in METHODS.items():
            calls = sweep.ask(calls_of, STORY, PROBE, how=how, reading=reading, **parameters)
            for rank in range(RANKS):
                points = [(PROBE, rank, at, method, how, reading) for at in range(1, len(calls[rank]) + 1)]
                sweep.add(f"{how}, {method}, rank {rank}", in_story, points)
        calls = max(map(len, sweep.ask(calls_of, STORY, DAEMON, how=how, reading=reading, **METHODS["daemon"])))
        points = [(DAEMON, rank, at, "daemon", how, reading) for rank in range(RANKS) for at in range(1, calls + 1)]
        sweep.add(f"{how}, {DAEMON}", in_story, points)
        for name, before, play_it in (("restart", prepare, in_restart), ("restart alone", prepare_alone, in_restart_alone)):
            calls = sweep.ask(calls_of, AFTERWARDS if name == "restart" else AFTERWARDS[:5], PROBE, before, how, reading)
            points = [(rank, at, how, reading) for rank in range(RANKS) for at in range(1, len(calls[rank]) + 1)]
            sweep.add(f"{how}, {name}", play_it, points)
        add_parts(sweep, how, reading)
    sweep.run()


if __name__ == "__main__":
    main()
