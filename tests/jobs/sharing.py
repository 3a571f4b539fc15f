#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Several calculations in one job, each with its own prefix directory: one after the
other or at the same time, none sees, uses or removes cached data of another one; and one
calculation does not run twice at a time."""
import concurrent.futures
import fcntl
import os
import pathlib
import shutil
import signal
import time

from job import Job, checkpoint, main, restart, wait_until

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 0}
OTHER_SPARE = [("n1", 1), ("n2", 1), ("n4", 1)]


def prefixes(job, *names):
    folders = [job.root / name for name in names]
    for folder in folders:
        folder.mkdir()
    return folders


def test_one_after_the_other():
    """With the same ids, names and number of ranks, each calculation gets its own
    data."""
    with Job(**PAIR) as job:
        a, b, c = prefixes(job, "a", "b", "c")
        for number, folder in enumerate((a, b, c)):
            run = job.run("init", "have => 0 =", checkpoint("ckpt", 1000 + 100 * number), "finalize",
                          prefix=folder)
            run.says("CACHE_SHARED_JOB", times=int(number > 0))
        for number, folder in reversed(list(enumerate((a, b, c)))):
            job.run("init", restart("ckpt", 1000 + 100 * number), "finalize", prefix=folder)


def test_nodes_are_lost():
    """The nodes with the records of owners are lost; the other calculation still finds
    its own data."""
    with Job(nodes=4, per_node=1, SCR_FLUSH=0) as job:
        a, b = prefixes(job, "a", "b")
        job.run("init", checkpoint("c1"), "finalize", prefix=a)
        job.run("init", checkpoint("c2"), "finalize", prefix=b)
        job.lose("n1")
        job.run("init", restart("c2"), "finalize", prefix=b)
        job.run("init", restart("c1"), "finalize", prefix=a)


def test_new_nodes_only():
    """All nodes of the first calculation are lost: the second one continues where it
    was."""
    with Job(**PAIR) as job:
        a, b = prefixes(job, "a", "b")
        job.run("init", checkpoint("c1"), "finalize", prefix=a)
        job.run("init", checkpoint("c2"), "finalize", prefix=b)
        for node in job.nodes():
            for base in (job.control(node), job.cache(node)):
                for path in base.glob("*"):
                    path.unlink() if path.is_file() else [f.unlink() for f in path.rglob("*") if f.is_file()]
        job.run("init", restart("c2"), "finalize", prefix=b)


def test_spare_node_of_another():
    """A spare node has a cache of another prefix directory: data that is not used for
    this reason is reported, and stays."""
    with Job(nodes=3, per_node=1, SCR_FLUSH=0) as job:
        a, b = prefixes(job, "a", "b")
        job.run("init", checkpoint("c1"), prefix=a)
        job.run("init", checkpoint("c2"), prefix=b, layout=[("n4", 1), ("n5", 1)])
        job.lose("n3")
        for _ in range(2):
            run = job.run("init", "have => CACHE", "start_restart => STATE", prefix=a, layout=OTHER_SPARE)
            run.says("CACHE_ELSEWHERE_UNUSED", "2 nodes", times=1)
            run.says("RESTART_CACHE_ELSEWHERE", "1", times=1)
        for node in ("n1", "n2"):
            for folder in job.node(node).glob(f"*/*/{job.cache(node).name}.*"):
                shutil.rmtree(folder)
        run = job.run("init", restart("c1"), "finalize", prefix=a, layout=[("n1", 1), ("n2", 1), ("n6", 1)])
        run.says("CACHE_ELSEWHERE_UNUSED", times=0)


def test_spare_node_of_another_and_a_way_on():
    """A dataset newer than the skipped one is offered; without such a dataset, the user
    must abandon the skipped one explicitly."""
    with Job(nodes=3, per_node=1, SCR_FLUSH=0) as job:
        a, b = prefixes(job, "a", "b")
        job.run("init", checkpoint("c1"), prefix=a)
        job.run("init", checkpoint("other"), prefix=b, layout=[("n4", 1), ("n5", 1)])
        job.lose("n3")
        job.run("init", "have => CACHE", prefix=a, layout=OTHER_SPARE)
        job.run("init", "have => 0 =", prefix=a, layout=OTHER_SPARE, SCR_CACHE_PURGE=1)
        job.run("init", "have => CACHE", prefix=a, layout=OTHER_SPARE)
        job.run("init", "have => 0 =", checkpoint("c2"), prefix=a, layout=OTHER_SPARE, SCR_CACHE_PURGE=1)
        job.run("init", restart("c2"), prefix=a, layout=OTHER_SPARE)


def test_moved_by_a_link():
    """The prefix directory is identified by its path without links: another path to it
    does not make another calculation."""
    with Job(**PAIR) as job:
        a, = prefixes(job, "a")
        (job.root / "link").symlink_to(a)
        job.run("init", checkpoint("c1"), "finalize", prefix=a)
        run = job.run("init", restart("c1"), "finalize", prefix=job.root / "link")
        run.not_said("CACHE_SHARED_JOB|CACHE_ELSEWHERE_UNUSED")


def test_at_the_same_time():
    with Job(**PAIR) as job:
        folders = prefixes(job, "a", "b", "c")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = [pool.submit(job.run, "init", checkpoint(folder.name), "sleep:300", checkpoint(f"{folder.name}2"),
                                "sleep:300", restart(f"{folder.name}2"), "finalize", prefix=folder)
                    for folder in folders]
            for run in runs:
                run.result()
        for folder in folders:
            job.run("init", restart(f"{folder.name}2"), prefix=folder)


def process_on(node, folder):
    """Returns the process of a run in that prefix directory on a node."""
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = path.read_bytes().split(b"\0")
            program = (path.parent / "exe").resolve().name
        except OSError:
            continue  # it ended just now
        if program == "probe" and f"SCR_NODE_NAME={node}".encode() in variables and f"SCR_PREFIX={folder}".encode() in variables:
            return int(path.parent.name)
    return None


def test_begun_together():
    """Each of two runs is first on one node: neither waits for the other, and both end
    well."""
    with Job(**PAIR) as job:
        a, b = prefixes(job, "a", "b")
        for node in job.nodes():
            job.control(node).mkdir(parents=True)
        one, two = (job.control(node) / "run.lock" for node in job.nodes())
        script = ["init", "start:%s:c", "put:%s/rank_%%r:100", "complete:1", "finalize"]

        def begin(folder):
            return job.start(os.environ["JOB_PROBE"], *[operation.replace("%s", folder.name).replace("%%", "%") for operation in script],
                             prefix=folder)
        with open(one, "w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            runs = [begin(a)]
            wait_until(two.exists)
            time.sleep(0.5)  # it has that one, and waits for the first
            stopped = process_on("n1", a)
            os.kill(stopped, signal.SIGSTOP)
            runs.append(begin(b))
            wait_until(lambda: process_on("n1", b) is not None)
            time.sleep(0.5)
        time.sleep(0.5)  # the other one has it now
        os.kill(stopped, signal.SIGCONT)
        for run in runs:
            out, err = run.communicate(timeout=60)
            assert run.returncode == 0 and '"complete:1", "code": [0, 0]' in out, out + err
        for folder in a, b:
            job.run("init", restart(folder.name, 100), prefix=folder)


def test_not_begun():
    """A run that fails on one node leaves the directories on the others to the next
    run."""
    with Job(**PAIR) as job:
        a, b = prefixes(job, "a", "b")
        (job.root / "file").touch()
        job.run("init => CACHE", of_node={"n2": {"SCR_CNTL_BASE": job.root / "file"}}, prefix=a)
        job.run("init", checkpoint("c1"), "finalize", prefix=b).not_said("CACHE_SHARED_JOB")


def test_the_same_twice():
    """The second run waits for the end of the first."""
    with Job(**PAIR) as job:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            first = pool.submit(job.run, "init", checkpoint("c1"), "sleep:1500", "finalize")
            while not job.cached():
                pass
            second = pool.submit(job.run, "init", restart("c1"), "finalize")
            first.result()
            second.result()


def test_does_not_end():
    """The holder keeps the lock: the second run is refused, with a remedy, and nothing is
    touched."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        with open(job.control("n2") / "run.lock", "r+") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            run = job.run("init => CACHE")
            run.says("CACHE_NOT_LOCKED", "node n2: another run, process [0-9]+, uses", "SCR_JOB_ID", times=1)
        job.run("init", restart("c1"))


def test_damaged_record():
    """A damaged record says nothing, and is rewritten."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        record = job.control("n1") / "prefix.scriinfo"
        good = record.read_bytes()
        record.write_bytes(b"nonsense")
        job.run("init", restart("c1"), "finalize")
        assert record.read_bytes() == good


if __name__ == "__main__":
    main(globals())
