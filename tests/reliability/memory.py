#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands without memory: the n-th allocation of a command fails, for every n, also those of the C library. It says so, or
does without. What it said to have done is done; the rest is there when the command is given again."""
import os
import re
import sys

from sweep import PARAMETERS, RANKS, Sweep, check_prefix, options, stage
from job import MPI, SKIP, Job, checkpoint  # sweep.py knows where that is
from run import Runs
import scavenged

NAME, NUMBER = "c3", 3  # the newest dataset, which only the caches have
LOST = "n2"


# ---- what is there before ----

def cached():
    """A job has ended; one of its nodes is lost."""
    job = Job(RANKS, 1, **PARAMETERS)
    job.run("init", checkpoint("c1"), checkpoint("c2"), checkpoint(NAME))
    job.lose(LOST)
    return job


def copied():
    """What the other nodes have was saved."""
    job = cached()
    scavenged.scavenge(job, NUMBER)
    return job


# ---- commands ----

def call(job, name, *arguments, node=None, code=0, faults={}):
    return scavenged.command(job, name, *arguments, code=code, node=node, preload="JOB_NOMEM", faults=faults,
                             SCR_SIMULATE=None if node else job.root / "nodes", SCR_NODELIST=",".join(job.nodes()))


def copy_one(job, **how):
    return call(job, "scr_copy", "--id", NUMBER, node="n1", **how)


def copy_all(job, **how):
    return call(job, "scr_scavenge", "--id", NUMBER, "--up", ",".join(job.nodes()), **how)


def add(job, **how):
    return call(job, "scr_index", "--add", NAME, **how)


def rebuild_index(job, **how):
    return call(job, "scr_index", "--rebuild", **how)


def verify(job, **how):
    return call(job, "scr_index", "--verify", **how)


def save(job, **how):
    return call(job, "scr_postrun", **how)


# command: program, what is there before, what to do after it, in the end
COMMANDS = {
    copy_one: ("scr_copy", cached, [copy_all, add]),
    copy_all: ("scr_scavenge", cached, [add]),
    add: ("scr_index", copied, []),
    rebuild_index: ("scr_index", copied, [add]),
    verify: ("scr_index", copied, [add]),
    save: ("scr_postrun", cached, []),
}


# ---- scr_run ----

RUN = ["--simulate", "3x1", "--nodes", "2", "--runs", "2", "--fail", "node=1,after=1"]  # and again on two others
STEPS = 1000
PROGRAM = f"""#!/bin/sh
echo {STEPS} >"$SCR_PREFIX/steps"
exec "$JOB_HEAT" -n 48 -t {STEPS} -c 20 -o "$SCR_PREFIX/result"
"""  # it ends in any case, also if its node is not lost


def run_with(runs, **how):
    runs.wrapper.write_text(PROGRAM)
    runs.more = {**faults(runs.job, "scr_run", **how), "LD_PRELOAD": f"{os.environ['JOB_NOMEM']}:{MPI.preload}"}
    runs.start(*RUN)
    runs.finish(fails=None)
    runs.more = {}


def count_run():
    with Runs() as runs:
        run_with(runs, count=runs.job.root / "count")
        return int((runs.job.root / "count").read_text().splitlines()[-1])


def run_without(at):
    """The program comes to its end, if not at once then when scr_run is started again."""
    with Runs() as runs:
        run_with(runs, at=at)
        code = runs.process.returncode
        assert code >= 0, f"it ended by signal {-code}\n{runs.out}"
        # or the program was so fast that its node was lost at its very end, or not at all
        early = re.search(r"SCR_FINALIZE_CALLED \[RUN_HALTED|--fail .* did not happen", runs.out)
        assert code == 0 or early or re.search("memory", runs.out, re.I), f"exit code {code}: it does not say why it failed\n{runs.out}"
        before = runs.out
        if code:
            runs.run("--simulate", "2x1")
        try:
            runs.check_result()
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- before: {before}") from None
        return (runs.job.root / "struck").exists()


# ---- points ----

def faults(job, program, **how):
    return {"NOMEM_PROGRAM": program, "NOMEM_MARK": job.root / "struck", **{f"NOMEM_{key.upper()}": value
                                                                            for key, value in how.items()}}


def count(command):
    """Its allocations."""
    program, before, _ = COMMANDS[command]
    with before() as job:
        command(job, faults=faults(job, program, count=job.root / "count"))
        return int((job.root / "count").read_text().splitlines()[-1])


def without(command, at):
    program, before, after = COMMANDS[command]
    job = stage(before)
    struck = job.root / "struck"
    struck.unlink(missing_ok=True)
    done = command(job, code=None, faults=faults(job, program, at=at))
    assert done.code >= 0, f"it ended by signal {-done.code}\n{done}"
    assert done.code == 0 or re.search("memory", done.err, re.I), f"it does not say why it failed\n{done}"
    try:
        if done.code:
            command(job)
        if before is copied or command is not copy_one:
            scavenged.lose_all(job)  # they may be somebody else's now
        for other in after:
            other(job)
        scavenged.next_run_reads(job, NAME)
        check_prefix(job, ["c2", NAME])
    except AssertionError as error:
        raise AssertionError(f"{error}\n--- before: {done}") from None
    return struck.exists()


def main():
    given = options(__doc__, sample=24)
    if "JOB_NOMEM" not in os.environ:
        print("skipped: sanitizers have an allocator of their own")
        sys.exit(SKIP)
    sweep = Sweep(given)
    for command in COMMANDS:
        sweep.add(command.__name__, without, [(command, at) for at in range(1, sweep.ask(count, command) + 1)])
    sweep.add("run", run_without, [(at,) for at in range(1, sweep.ask(count_run) + 1)])
    sweep.run()


if __name__ == "__main__":
    main()
