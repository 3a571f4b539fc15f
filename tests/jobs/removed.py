#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Somebody tidies up while a program runs, and removes what it has on the nodes: the program goes on writing
checkpoints, and no checkpoint is lost but those that were there alone."""
import concurrent.futures
import shutil

from job import Job, checkpoint, main, restart, wait_until

CACHE = "warning: node {}: somebody has removed .*/cache/.* of this run, which is made again; the datasets in it are lost on this node"
CONTROL = "warning: node {}: somebody has removed .*/cntl/.* of this run, or files in it, which are made again"


def run_beside(job, first, *steps, **how):
    """A run of the operations first, and of those of each step (do, operations) after that was done beside it."""
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
    """What may be removed, and what is said of that."""
    cache, control = job.cache(node), job.control(node)
    return [((cache,), [CACHE]), ((control,), [CONTROL]), ((cache, control), [CACHE, CONTROL]), ((job.node(node),), [CACHE, CONTROL])]


def remove(folders):
    for folder in folders:
        shutil.rmtree(folder)


def remove_files(paths):
    for path in paths:
        path.unlink()


def test_one_node():
    """The next checkpoint is as good as any; before that, what others have makes up for what was lost."""
    for which in range(4):
        for complete in (True, False):
            with Job(3, 2, SCR_FLUSH=0, SCR_CACHE_SIZE=2) as job:
                folders, lines = places(job, "n2")[which]
                goes_on = checkpoint("c2", 2000) if complete else ["start:c2:c", "put:c2/rank_%r:2000"]
                run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), [goes_on, "kill@0"]), dies=True)
                for line in (CACHE, CONTROL):
                    run.said(line.format("n2"), times=int(line in lines))
                run.not_said("error")
                if complete:
                    job.lose("n3")
                job.run("init", restart("c2", 2000) if complete else restart("c1"), "finalize")


def test_all_nodes():
    """Whatever was there alone is lost, and nothing after that."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        run = run_beside(job, ["init", checkpoint("c1")],
                         (lambda: remove(job.root.glob("nodes/n*")), [checkpoint("c2"), checkpoint("c3"), restart("c3"), "finalize"]))
        for line in (CACHE, CONTROL):
            run.said(line.format("n."), times=3)
        job.run("init", restart("c3"), "finalize")


def test_again_and_again():
    with Job(2, 1, SCR_FLUSH=0) as job:
        gone = lambda: remove([job.cache("n1")])
        run = run_beside(job, ["init", checkpoint("c1")], *[(gone, checkpoint(name)) for name in ("c2", "c3", "c4")])
        run.said(CACHE.format("n1"), times=3)
        job.lose("n2")
        job.run("init", restart("c4"), "finalize")


def test_cannot_be_made_again():
    """Told with each checkpoint, until somebody mends that."""
    with Job(2, 1, SCR_FLUSH=0) as job:
        def block():
            shutil.rmtree(job.node("n1"))
            job.node("n1").write_bytes(b"")

        run = run_beside(job, ["init", checkpoint("c1")], (block, ["start:c2:c => CACHE", "start:c3:c => CACHE"]),
                         (job.node("n1").unlink, [checkpoint("c4"), restart("c4")]))
        run.said("error: SCR_Start_output: .*node n1.*Not a directory", times=2)
        run.said(CACHE.format("n1"), times=1)
        job.run("init", restart("c4"), "finalize")


def test_same_run():
    """What others have makes up for it at once, for a restart and for a flush."""
    for which in range(4):
        with Job(3, 2, SCR_FLUSH=0, SCR_CACHE_SIZE=2) as job:
            folders, lines = places(job, "n2")[which]
            run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), [restart("c1"), "kill@0"]), dies=True)
            run.said("c1. is complete again: files of 2 of 6 ranks were rebuilt", times=int(CACHE in lines))
            job.lose("n3")
            job.run("init", restart("c1"))
        with Job(3, 2, SCR_FLUSH=2) as job:
            folders, lines = places(job, "n2")[which]
            run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), ["finalize"])).said("c1. is flushed", times=1)
            job.lose(*filter(lambda node: job.node(node).exists(), job.nodes()))
            job.run("init", restart("c1"))


def test_nothing_is_left():
    """Which is not said to be in the cache."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(job.root.glob("nodes/n*")), ["have => 0 =", "finalize"]))
        run.said("c1. is lost from the cache and removed", times=1)
        run.not_said("is in the cache only")


def contents(job):
    return {path: path.read_bytes() for path in job.root.glob("nodes/**/*") if path.is_file()}


def test_the_other_calculation():
    """In the meantime the folders became those of another calculation: they are not touched."""
    for per_node in (1, 2):
        with Job(2, per_node, SCR_FLUSH=0) as job:
            other, theirs = job.root / "other", {}
            other.mkdir()

            def take():
                remove(job.root.glob("nodes/n*"))
                job.run("init", checkpoint("theirs"), "kill@0", dies=True, prefix=other)
                theirs.update(contents(job))

            run = run_beside(job, ["init", checkpoint("c1")], (take, ["start:c2:c => CACHE", "have => ANY", "finalize => ANY"]))
            run.said("error: SCR_Start_output: .* belongs to another prefix folder now", times=1)
            assert contents(job) == theirs
            job.run("init", restart("theirs"), "finalize", prefix=other)


def test_a_second_run():
    """Of the same calculation has them now: it is not touched either."""
    with Job(2, 2, SCR_FLUSH=0) as job, concurrent.futures.ThreadPoolExecutor() as pool:
        begun, go, second, theirs = job.root / "second", job.root / "on", [], {}

        def take():
            remove(job.root.glob("nodes/n*"))
            second.append(pool.submit(job.run, "init", checkpoint("theirs"), f"touch@0:{begun}", f"await:{go}", "kill@0", dies=True))
            wait_until(begun.exists)
            theirs.update(contents(job))

        try:
            run = run_beside(job, ["init", checkpoint("c1")], (take, ["start:c2:c => CACHE", "kill@0"]), dies=True)
            run.said("error: SCR_Start_output: .*another run, process .*, uses", times=1)
            assert contents(job) == theirs
        finally:
            go.touch()
        second[0].result()
        job.run("init", restart("theirs"), "finalize")


def test_files_that_keep_others_away():
    """They are written once, so a cleanup by age takes them first. Also where the cache is not used."""
    for how in ({}, {"SCR_CACHE_BYPASS": 1}):
        for names in (["run.lock", "prefix.scriinfo"], ["run.lock"], ["prefix.scriinfo"], None):
            with Job(2, 2, SCR_FLUSH=0, **how) as job:
                other = job.root / "other"
                other.mkdir()

                def tidy():
                    for node in job.nodes():
                        if names:
                            remove_files([job.control(node) / name for name in names])
                        else:
                            remove([job.control(node)])

                def another():
                    job.run("init", "have => 0 =", checkpoint("d1"), "finalize", prefix=other)
                    if names == ["run.lock"]:
                        job.run("init => CACHE").said("another run, process .*, uses")

                run = run_beside(job, ["init", checkpoint("c1")], (tidy, [checkpoint("c2")]), (another, [checkpoint("c3"), "finalize"]))
                run.said(CONTROL.format("n."), times=2)
                job.run("init", restart("c3"), "finalize")


if __name__ == "__main__":
    main(globals())
