#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Crash sweep: one rank, or one background process, is killed at the n-th thing that it does to a
file, for every n; and the run that follows is killed likewise."""
from sweep import (AFTERWARDS, Job, DAEMON, METHODS, PARAMETERS, PROBE, RANKS, STORIES, STORY, Sweep, anyhow, calls_of,
                   completed, fault, has_struck, judge, options)


def play(job, program, rank, at, script, parameters, how="kill"):
    """What was completed before the fault."""
    run = job.run(anyhow(script), dies=None, faults=fault(job, program, rank, at=at, how=how), **parameters)
    return completed(run)


def crash(program, rank, at, method, how, story="plain"):
    with Job(RANKS, 1, **PARAMETERS) as job:
        done = play(job, program, rank, at, STORIES[story][0], METHODS[method], how)
        judge(job, done, story=story, **METHODS[method])
        return has_struck(job)


def lose_caches(job):
    """The prefix directory alone has files that ranks wrote together."""
    job.run(STORIES["parts"][0])
    job.lose(*job.nodes())


def crash_in_fetch(rank, at):
    with Job(RANKS, 1, **PARAMETERS) as job:
        lose_caches(job)
        done = play(job, PROBE, rank, at, STORIES["parts"][1], {}, "torn")
        judge(job, ["d3"] + done, story="parts")
        return has_struck(job)


def crash_again(rank, at, again_rank, again_at, method):
    """The run after the crash is killed, too."""
    with Job(RANKS, 1, **PARAMETERS) as job:
        done = play(job, PROBE, rank, at, STORY, METHODS[method])
        done += play(job, PROBE, again_rank, again_at, AFTERWARDS, METHODS[method])
        judge(job, done, **METHODS[method])
        return has_struck(job)


def once(sweep):
    for method, parameters in METHODS.items():
        for rank, calls in enumerate(sweep.ask(calls_of, STORY, PROBE, **parameters)):
            points = [(PROBE, rank, at, method, "torn") for at in range(1, len(calls) + 1)]
            sweep.add(f"{method}, rank {rank}", crash, points)
    calls = max(map(len, sweep.ask(calls_of, STORY, DAEMON, **METHODS["daemon"])))
    for rank in range(RANKS):
        points = [(DAEMON, rank, at, "daemon", "torn") for at in range(1, calls + 1)]
        sweep.add(f"{DAEMON}, rank {rank}", crash, points)


def parts(sweep):
    """Files that ranks write together."""
    script, afterwards = STORIES["parts"]
    for method in ("sync", "daemon"):
        for rank, calls in enumerate(sweep.ask(calls_of, script, PROBE, **METHODS[method])):
            points = [(PROBE, rank, at, method, "torn", "parts") for at in range(1, len(calls) + 1)]
            sweep.add(f"parts, {method}, rank {rank}", crash, points)
    calls = max(map(len, sweep.ask(calls_of, script, DAEMON, **METHODS["daemon"])))
    points = [(DAEMON, rank, at, "daemon", "torn", "parts") for rank in range(RANKS) for at in range(1, calls + 1)]
    sweep.add(f"parts, {DAEMON}", crash, points)
    calls = sweep.ask(calls_of, afterwards, PROBE, lose_caches)
    points = [(rank, at) for rank in range(RANKS) for at in range(1, len(calls[rank]) + 1)]
    sweep.add("parts, restart", crash_in_fetch, points)


class Crashed:
    """What a job has gone through when the run that follows begins."""

    def __init__(self, rank, at, method):
        self.rank, self.at, self.method = rank, at, method

    def __call__(self, job):
        play(job, PROBE, self.rank, self.at, STORY, METHODS[self.method])


def twice(sweep):
    """All calls of the run that follows, after crashes in the midst of a checkpoint, of a flush and of
    the end; and some call of it after every other crash."""
    for method, parameters in METHODS.items():
        first = len(sweep.ask(calls_of, STORY, PROBE, **parameters)[0])
        for part in (0.3, 0.6, 0.9):
            at = int(first * part)
            before = Crashed(0, at, method)
            calls = sweep.ask(calls_of, AFTERWARDS, PROBE, before=before, **parameters)
            points = [(0, at, rank, again, method) for rank in range(RANKS)
                      for again in range(1, len(calls[rank]) + 1)]
            sweep.add(f"{method}, restart after call {at}", crash_again, points)
        most = max(map(len, calls))
        points = [(at % RANKS, at, at // RANKS % RANKS, 1 + at * 37 % most, method) for at in range(1, first + 1)]
        sweep.add(f"{method}, restart after any call", crash_again, points)


def main():
    sweep = Sweep(options(__doc__, sample=24))
    once(sweep)
    twice(sweep)
    parts(sweep)
    sweep.run()


if __name__ == "__main__":
    main()
