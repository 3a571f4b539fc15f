#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A cleanup removes a program's data on the nodes while it runs: the program continues to
write checkpoints, and only checkpoints that existed nowhere else are lost."""
import concurrent.futures
import os
import shutil

from job import Job, checkpoint, main, restart, wait_until

CACHE = "CACHE_DIRECTORY_RECREATED"
CONTROL = "CONTROL_DIRECTORY_RECREATED"


def run_beside(job, first, *steps, **how):
    """Runs the operations first; for each step (do, operations), calls do and then
    continues with its operations."""
    files = [(job.root / f"begun{number}", job.root / f"go{number}") for number in range(len(steps))]
    rest = [[f"touch@0:{begun}", f"await:{go}", operations] for (begun, go), (_, operations) in zip(files, steps)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        run = pool.submit(job.run, first, rest, **how)
        for (begun, go), (do, _) in zip(files, steps):
            try:
                wait_until(lambda: begun.exists() or run.done())
                do()
            finally:
                go.touch()
        result = run.result()
    for pair in files:
        for path in pair:
            path.unlink()
    return result


def places(job, node):
    """The objects that may be removed, and the expected reports."""
    cache, control = job.cache(node), job.control(node)
    return [((cache,), [CACHE]), ((control,), [CONTROL]), ((cache, control), [CACHE, CONTROL]), ((job.node(node),), [CACHE, CONTROL])]


def remove(folders):
    for folder in folders:
        shutil.rmtree(folder)


def tidy(job, names, folder):
    """Removes, on all nodes, files of these names in the control directory or, without
    names, a directory of the node."""
    for node in job.nodes():
        for name in names:
            (job.control(node) / name).unlink()
        if not names:
            shutil.rmtree(folder(node))


def test_one_node():
    """The next checkpoint is as good as any; before it, redundancy restores the lost
    files."""
    for which in range(4):
        for complete in (True, False):
            with Job(3, 2, SCR_FLUSH=0, SCR_CACHE_SIZE=2) as job:
                folders, lines = places(job, "n2")[which]
                goes_on = checkpoint("c2", 2000) if complete else ["start:c2:c", "put:c2/rank_%r:2000"]
                run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), [goes_on, "kill@0"]), dies=True)
                for line in (CACHE, CONTROL):
                    run.says(line, "node n2", times=int(line in lines))
                run.not_said("SCR: error")
                if complete:
                    job.lose("n3")
                job.run("init", restart("c2", 2000) if complete else restart("c1"), "finalize")


def test_all_nodes():
    """Only data that existed nowhere else is lost, and nothing later."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        run = run_beside(job, ["init", checkpoint("c1")],
                         (lambda: remove(job.root.glob("nodes/n*")), [checkpoint("c2"), checkpoint("c3"), restart("c3"), "finalize"]))
        for line in (CACHE, CONTROL):
            run.says(line, "node n.", times=3)
        job.run("init", restart("c3"), "finalize")


def test_again_and_again():
    with Job(2, 1, SCR_FLUSH=0) as job:
        gone = lambda: remove([job.cache("n1")])
        run = run_beside(job, ["init", checkpoint("c1")], *[(gone, checkpoint(name)) for name in ("c2", "c3", "c4")])
        run.says(CACHE, "node n1", "on this node", times=3)
        job.lose("n2")
        job.run("init", restart("c4"), "finalize")


def test_cannot_be_made_again():
    """The problem is reported with each checkpoint until it is repaired."""
    with Job(2, 1, SCR_FLUSH=0) as job:
        def block():
            shutil.rmtree(job.node("n1"))
            job.node("n1").write_bytes(b"")

        run = run_beside(job, ["init", checkpoint("c1")], (block, ["have => ANY", "start:c2:c => CACHE", "start:c3:c => CACHE"]),
                         (job.node("n1").unlink, [checkpoint("c4"), restart("c4")]))
        run.says("CACHE_NOT_RECREATED", "node n1.*Not a directory", times=1)
        run.says("OUTPUT_NO_CACHE", "node n1.*Not a directory", times=2)
        run.says(CACHE, "node n1", "on this node", times=1)
        job.run("init", restart("c4"), "finalize")


def test_same_run():
    """Redundancy restores the files at once, for a restart and for a flush."""
    for which in range(4):
        with Job(3, 2, SCR_FLUSH=0, SCR_CACHE_SIZE=2) as job:
            folders, lines = places(job, "n2")[which]
            run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), [restart("c1"), "kill@0"]), dies=True)
            run.says("REBUILD_COMPLETE", "c1.", "2 of 6 ranks", times=int(CACHE in lines))
            job.lose("n3")
            job.run("init", restart("c1"))
        with Job(3, 2, SCR_FLUSH=2) as job:
            folders, lines = places(job, "n2")[which]
            run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), ["finalize"])).says("FLUSH_COMPLETE", "c1.", times=1)
            job.lose(*filter(lambda node: job.node(node).exists(), job.nodes()))
            job.run("init", restart("c1"))


def test_nothing_is_left():
    """The dataset is then not reported as being in the cache."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(job.root.glob("nodes/n*")), ["have => 0 =", "finalize"]))
        run.says("REBUILD_IMPOSSIBLE", "c1.", times=1)
        run.not_said("CACHE_KEPT")


def test_files_stay_young():
    """Files that are written once stay young: otherwise a cleanup by age would remove
    them first."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        files = [job.control(node) / name for node in job.nodes() for name in ("run.lock", "prefix.scriinfo")]

        def age():
            for path in files:
                os.utime(path, (1000, 1000))

        run_beside(job, ["init", checkpoint("c1")], (age, [checkpoint("c2"), "kill@0"]), dies=True)
        assert all(path.stat().st_mtime > 1000000 for path in files)


def test_while_it_is_read():
    """The checkpoint is not at fault: it is restored and offered again, or read in
    place."""
    for flush in (0, 1):
        with Job(3, 1, SCR_FLUSH=flush) as job:
            job.run("init", checkpoint("c1"), "finalize")
            gone = [job.node("n2")] if not flush else list(job.root.glob("nodes/n*"))
            run = run_beside(job, ["init", "have => 1 c1", "start_restart"],
                             (lambda: remove(gone), ["route@1:c1/rank_1 => FAILURE", "complete_restart:0 => INVALID", restart("c1"),
                                                     "finalize"]), SCR_FLUSH=0)
            run.says("RESTART_FILES_REMOVED", "dataset 1 .c1.", times=1)
            job.lose(*filter(lambda node: flush and job.node(node).exists(), job.nodes()))
            job.run("init", restart("c1"), "finalize")


def test_while_it_is_flushed():
    """The background flush fails, and the end of the run repeats it."""
    with Job(3, 1, SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW="100KB") as job:
        files = [f"put:c1/{number}_%r:20000" for number in range(8)]
        run = run_beside(job, ["init", "start:c1:c", files, "complete:1"], (lambda: remove([job.node("n2")]), ["finalize"]))
        run.says("FLUSH_COMPLETE", "c1.", times=1)
        run.says("FLUSH_FAILED", "dataset 1", times=1)
        assert not list(job.root.glob("nodes/*/cache/*/*/scr.dataset.*"))


def contents(job):
    """Returns the content of the nodes: each file with its identity, and each
    directory."""
    return {path: path.is_file() and (path.stat().st_ino, path.read_bytes()) for path in job.root.glob("nodes/**/*")}


def taken(job, rest, *theirs, how, ours=checkpoint("c1"), **parameters):
    """A run continues with rest when its directories belong to another run, whose
    operations begin like its own; if only lock files were removed (how: their names), the
    directories stayed. The other run's data is not touched while it runs. Returns the
    output of our run."""
    begun, go, second = job.root / "second", job.root / "on", []
    other = job.root / "other"
    other.mkdir()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        before = {}

        def take():
            tidy(job, how, job.node)
            second.append(pool.submit(job.run, "init", theirs, f"touch@0:{begun}", f"await:{go}", "finalize",
                                      SCR_FLUSH=0, **parameters))
            wait_until(lambda: begun.exists() or second[0].done())
            before.update(contents(job))

        try:
            run = run_beside(job, ["init", ours], (take, rest))
            after = contents(job)
            assert after == before, [path for path in {*before, *after} if before.get(path) != after.get(path)]
        finally:
            go.touch()
        second[0].result()
    return run


def test_taken():
    """By another calculation, or by a second run of the same one: their data is not
    touched, whatever this run does then, and this run does not report data as saved that
    is not."""
    for flush, end in ((0, "CACHE"), (2, "CACHE"), (1, "SUCCESS")):
        for first in (["start:c2:c => CACHE", "start:c3:c => CACHE"], ["have => CACHE" if flush != 1 else "have => 1 c1"], []):
            for how, same in (([], False), (["run.lock", "prefix.scriinfo"], False), (["run.lock"], True)):
                with Job(2, 2, SCR_FLUSH=flush) as job:
                    theirs = [checkpoint("theirs", 2000)] + [checkpoint("theirs2", 2000)] * same
                    where = {} if same else {"prefix": job.root / "other"}
                    run = taken(job, first + [f"finalize => {end}"], *theirs, how=how, **where)
                    run.says("CACHE_TAKEN_OVER", "SCR_Finalize", times=int(end != "SUCCESS"))
                    run.says("CACHE_TAKEN_OVER", "SCR_Have_restart", times=int(first == ["have => CACHE"]))
                    run.said("belongs to another prefix directory now|another run, process .*, uses", times=1)
                    run.not_said("CACHE_KEPT")
                    job.run("init", restart("theirs2" if same else "theirs", 2000), "finalize", **where)


def test_taken_with_an_output():
    """An output that is being flushed is not reported as saved either."""
    with Job(2, 2, SCR_FLUSH=0, SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW="1KB") as job:
        run = taken(job, ["have => CACHE", "finalize => CACHE"], checkpoint("theirs"), how=[], prefix=job.root / "other",
                    ours=checkpoint("o1", 20000, flags="o"))
        run.says("CACHE_TAKEN_OVER", "SCR_Finalize", times=1)
        assert not list(job.prefix.glob("o1/rank*"))


def test_files_that_keep_others_away():
    """Lock files are written once, so a cleanup by age removes them first. Also if the
    cache is not used."""
    for how in ({}, {"SCR_CACHE_BYPASS": 1}):
        for names in (["run.lock", "prefix.scriinfo"], ["run.lock"], ["prefix.scriinfo"], []):
            with Job(2, 2, SCR_FLUSH=0, **how) as job:
                other = job.root / "other"
                other.mkdir()

                def another():
                    job.run("init", "have => 0 =", checkpoint("d1"), "finalize", prefix=other)
                    if names == ["run.lock"]:
                        job.run("init => CACHE").says("CACHE_NOT_LOCKED", "another run, process .*, uses")

                run = run_beside(job, ["init", checkpoint("c1")], (lambda: tidy(job, names, job.control), [checkpoint("c2")]),
                                 (another, [checkpoint("c3"), "finalize"]))
                run.says(CONTROL, "node n.", times=2)
                job.run("init", restart("c3"), "finalize")


if __name__ == "__main__":
    main(globals())
