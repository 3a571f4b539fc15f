#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_transfer is stopped, or hangs in a file system: nothing waits for it longer than
SCR_NODE_TIMEOUT, the flush fails with a reason, the checkpoint stays in the cache, and
both this run and the next continue."""
import concurrent.futures
import fcntl
import os
import pathlib
import signal
import time

from flush import LARGE, SLOW as SLOW_FLUSH, lose_all, places, temporaries, with_scr_transfer
from job import Job, checkpoint, descendants, main, restart, wait_until
from resume import DAEMON, die, expect_clean, states

SLOW = {**SLOW_FLUSH, "SCR_FLUSH_ASYNC_BW": "20KB"}  # ten seconds, in which processes are found and stopped
PAIR = {"nodes": 2, "per_node": 1, "SCR_NODE_TIMEOUT": 6, **DAEMON}
SYNC = {"SCR_FLUSH_ASYNC": 0}
ENDED = r"scr_transfer \(process \d+\).* for 6 seconds.*; it was killed"


def transfers():
    """All copying processes: {process: its state}."""
    found = {}
    for pid in descendants():
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if "(scr_transfer)" in text:
            found[pid] = text.rsplit(")", 1)[1].split()[0]
    return {pid: state for pid, state in found.items() if state != "Z"}


def stop_all(count, most=None):
    """Stops the copying processes when there are that many."""
    wait_until(lambda: len(transfers()) == count)
    for pid in sorted(transfers())[:most]:
        os.kill(pid, signal.SIGSTOP)


def stop_for_a_moment():
    stop_all(2)
    time.sleep(2)
    for pid in transfers():
        os.kill(pid, signal.SIGCONT)


def run_meanwhile(job, action, *script, **parameters):
    """A slow flush of c1 begins, then action is called, then the script continues."""
    go = job.root / "go"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        run = pool.submit(job.run, "init", checkpoint("c1", LARGE), f"await@0:{go}", *script, **SLOW, **parameters)
        try:
            action()
        finally:
            go.touch()
        result = run.result()
    go.unlink()
    return result


def faults(job, **more):
    return {"FAULTS_BELOW": job.root, "FAULTS_PROGRAM": "scr_transfer", "FAULTS_ONCE": job.root / "struck",
            "FAULTS_MARK": job.root / "mark", **more}


def struck(job):
    (job.root / "struck").unlink(missing_ok=True)
    there = (job.root / "mark").exists()
    (job.root / "mark").unlink(missing_ok=True)
    return there


# ---- within a run ----

def test_from_the_first_call_to_the_last():
    """scr_transfer is stopped before each of its calls on a file: in the foreground, with
    its locks, between files, at its end."""
    at = 1
    while True:
        with Job(**PAIR) as job:
            begin = time.monotonic()
            run = job.run("init", checkpoint("c1", code="ANY"), checkpoint("c2"), "finalize", **SYNC,
                          faults=faults(job, FAULTS_HOW="stop", FAULTS_AT=at))
            assert time.monotonic() - begin < 40
            if not struck(job):
                break
            if "[FLUSH_FAILED]" in run.err:
                run.says("FLUSH_FAILED", "dataset 1", "scr_transfer", times=1)
            lose_all(job)
            job.run("init", restart("c2"), "finalize", **SYNC)
        at += 1 if at < 4 else 7
    assert at > 8, at


def expect_nothing_left(job):
    assert not transfers() and not temporaries(job) and not states(job), (transfers(), temporaries(job), states(job))


def test_in_the_background():
    """The next checkpoint waits for the flush, which fails then; the one after it is
    flushed."""
    with Job(**PAIR) as job:
        run = run_meanwhile(job, lambda: stop_all(2), checkpoint("c2", code="FLUSH"), checkpoint("c3"), "finalize")
        run.says("FLUSH_FAILED", "dataset 1", ENDED, times=1)
        expect_nothing_left(job)
        lose_all(job)
        job.run("init", restart("c3"))


def test_at_the_end():
    """SCR_Finalize repeats the flush."""
    for stopped in (2, 1):
        with Job(**PAIR) as job:
            run = run_meanwhile(job, lambda: stop_all(2, stopped), "finalize")
            run.says("FLUSH_FAILED", "dataset 1", ENDED, times=1)
            expect_clean(job)
            lose_all(job)
            job.run("init", restart("c1", LARGE))


def test_stays_in_the_cache():
    """A run dies after the flush has failed: the next one has the checkpoint."""
    with Job(**PAIR) as job:
        run_meanwhile(job, lambda: stop_all(2), checkpoint("c2", LARGE, code="FLUSH"), "kill@0", dies=True)
        job.run("init", "current:c1", restart("c1", LARGE), "finalize")
        expect_nothing_left(job)


def test_deleted():
    """The flush is abandoned with its dataset, and no process is left that could
    write."""
    with Job(**PAIR) as job:
        run = run_meanwhile(job, lambda: stop_all(2), "delete:c1", checkpoint("c2"), "finalize")
        assert not transfers() and not (job.prefix / "c1").exists()
        expect_clean(job)


def test_continued_later():
    """Stopped for less than the limit: nothing happens."""
    with Job(**{**PAIR, "SCR_NODE_TIMEOUT": 20}) as job:
        run_meanwhile(job, stop_for_a_moment, "finalize").not_said("SCR: error")
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_slow_is_not_stuck():
    """With a limited bandwidth, a file takes longer than the timeout."""
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("c1", 60_000), "finalize", SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW="10KB")
        run.not_said("SCR: error")
        lose_all(job)
        job.run("init", restart("c1", 60_000))


def test_hangs_in_a_file_system():
    """The process lives, and one of its writes never returns."""
    with Job(**{**PAIR, "SCR_NODE_TIMEOUT": 1}) as job:
        run = job.run("init", checkpoint("c1", code="FLUSH"), checkpoint("c2"), "finalize", **SYNC,
                      faults=faults(job, FAULTS_BELOW=job.prefix, FAULTS_HOW="hang", FAULTS_AT=2))
        assert struck(job)
        run.says("FLUSH_FAILED", "dataset 1", r"scr_transfer \(process \d+\) has copied nothing for 10 seconds.*; it was killed", times=1)
        expect_nothing_left(job)
        lose_all(job)
        job.run("init", restart("c2"))


def lock_states(job, files):
    wait_until(lambda: len(transfers()) == 2 and len(states(job)) == 2)
    for path in states(job):
        files.append(open(path, "r+b"))
        fcntl.lockf(files[-1], fcntl.LOCK_EX)


def test_lock_of_the_state_file():
    """The lock is held permanently: neither the run nor the process waits for it."""
    files = []
    with Job(**PAIR) as job:
        run_meanwhile(job, lambda: lock_states(job, files), "delete:c1", checkpoint("c2"), "finalize")
        for file in files:
            file.close()
        lose_all(job)
        job.run("init", restart("c2"))


# ---- the next run ----

def stop_and_die(job):
    die(job, **SLOW)
    stop_all(2)


def test_next_run():
    """The next run ends the stopped process, and another process resumes its work."""
    with Job(**PAIR) as job:
        stop_and_die(job)
        run = job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
        run.says("FLUSH_RESUMED", "dataset 1", times=1)
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        assert "PFS" in places(job, 1) and not transfers()
        expect_clean(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_next_run_without_the_cache():
    """The flush is not resumed."""
    with Job(**PAIR) as job:
        stop_and_die(job)
        for node in job.nodes():
            for path in job.cache(node).rglob("rank_*"):
                path.unlink()
        run = job.run("init", "have => 0", checkpoint("c2"), "finalize")
        run.says("FLUSH_ABANDONED", "2", times=1)
        assert not transfers() and not temporaries(job)
        lose_all(job)
        job.run("init", restart("c2"))


if __name__ == "__main__":
    with_scr_transfer()
    main(globals())
