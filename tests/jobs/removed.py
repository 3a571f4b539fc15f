#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Somebody tidies up while a program runs, and removes what it has on the nodes: the program goes on writing
checkpoints, and no checkpoint is lost but those that were there alone."""
import concurrent.futures
import shutil

from job import Job, checkpoint, main, restart, wait_until

SAID = "warning: node {}: somebody has removed {} of this run, which .* made again"


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
    """What may be removed, and how it is called then."""
    cache, control = job.cache(node), job.control(node)
    return [((cache,), "the cache"), ((control,), "the control folder"), ((cache, control), "control folder and cache"),
            ((job.node(node),), "control folder and cache")]


def remove(folders):
    for folder in folders:
        shutil.rmtree(folder)


def test_one_node():
    """The next checkpoint is as good as any; before that, what others have makes up for what was lost."""
    for which in range(4):
        for complete in (True, False):
            with Job(3, 2, SCR_FLUSH=0, SCR_CACHE_SIZE=2) as job:
                folders, called = places(job, "n2")[which]
                goes_on = checkpoint("c2", 2000) if complete else ["start:c2:c", "put:c2/rank_%r:2000"]
                run = run_beside(job, ["init", checkpoint("c1")], (lambda: remove(folders), [goes_on, "kill@0"]), dies=True)
                run.said(SAID.format("n2", called), times=1)
                run.not_said("error")
                if complete:
                    job.lose("n3")
                job.run("init", restart("c2", 2000) if complete else restart("c1"), "finalize")


def test_all_nodes():
    """Whatever was there alone is lost, and nothing after that."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        run = run_beside(job, ["init", checkpoint("c1")],
                         (lambda: remove(job.root.glob("nodes/n*")), [checkpoint("c2"), checkpoint("c3"), restart("c3"), "finalize"]))
        run.said(SAID.format("n.", "control folder and cache"), times=3)
        job.run("init", restart("c3"), "finalize")


def test_again_and_again():
    with Job(2, 1, SCR_FLUSH=0) as job:
        gone = lambda: remove([job.cache("n1")])
        run = run_beside(job, ["init", checkpoint("c1")], *[(gone, checkpoint(name)) for name in ("c2", "c3", "c4")])
        run.said(SAID.format("n1", "the cache"), times=3)
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
        run.said(SAID.format("n1", "control folder and cache"), times=1)
        job.run("init", restart("c4"), "finalize")


def test_the_other_calculation():
    """In the meantime the folders became those of another calculation: they are not touched."""
    with Job(2, 1, SCR_FLUSH=0) as job:
        other = job.root / "other"
        other.mkdir()

        def take():
            remove(job.root.glob("nodes/n*"))
            job.run("init", checkpoint("theirs"), prefix=other)

        run = run_beside(job, ["init", checkpoint("c1")], (take, ["start:c2:c => CACHE", "finalize => ANY"]))
        run.said("error: SCR_Start_output: .* belongs to another prefix folder now", times=1)
        job.run("init", restart("theirs"), "finalize", prefix=other)


if __name__ == "__main__":
    main(globals())
