#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs of unusual shapes: one rank, many, uneven nodes, ranks without files, files with
the same name, very large files, and restarts on other numbers of ranks. No offered
dataset lacks a file."""
from job import Job, checkpoint, main, restart

GIB = 1 << 30


def dataset(*files):
    """A checkpoint of these files, and the operations of a restart that compare every
    byte."""
    write = ["start:a:c", [f"put{file}" for file in files], "complete:1"]
    read = ["have => 1 a", "start_restart => a", [f"get{file}" for file in files], "complete_restart:1"]
    return write, read


def everywhere(job, write, read, lost="n2"):
    """The dataset is restored from the cache, rebuilt without a node, flushed, and
    fetched."""
    job.run("init", write, read)
    job.run("init", read)
    job.lose(lost)
    run = job.run("init", read, "finalize")
    run.says("REBUILD_COMPLETE", times=1)
    run.says("FLUSH_COMPLETE", times=1)
    job.lose(*job.nodes())
    run = job.run("init", read, "finalize")
    run.says("FETCH_COMPLETE", times=1)


# ---- numbers of ranks ----

def test_one_rank():
    with Job(layout=[("n1", 1)], SCR_FLUSH=2) as job:
        run = job.run("init", checkpoint("a"), checkpoint("b"), checkpoint("c"), restart("c"))
        run.says("REDUNDANCY_NONE", "all ranks are in one failure group", times=1)
        job.run("init", restart("c"), "finalize")
        job.lose("n1")
        job.run("init", restart("c"))


def test_32_ranks():
    """There are more ranks than processors; a node of four is killed during a checkpoint
    and lost."""
    with Job(8, 4, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a", size=5000), "start:b:c", "put:b/rank_%r:5000", "kill@8,9,10,11",
                "complete:1 => ANY", dies=True)
        job.lose("n3")
        job.replace("n3", "n9")
        run = job.run("init", restart("a", size=5000), checkpoint("b", size=5000), "finalize", SCR_FLUSH=1)
        run.says("REBUILD_COMPLETE", "4 of 32 ranks", times=1)
        job.lose(*job.nodes())
        job.run("init", restart("b", size=5000))


def test_uneven_nodes():
    layout = [("n1", 1), ("n2", 3), ("n3", 2)]
    for scheme, lost in ("XOR", "n1"), ("PARTNER", "n3"), ("RS", "n3"):
        with Job(layout=layout, SCR_COPY_TYPE=scheme, SCR_SET_FAILURES=1) as job:
            everywhere(job, *dataset(":a/rank_%r:3000", "@1,5:a/more_%r:70000"), lost=lost)


# ---- files ----

def test_ranks_without_files():
    """Some ranks, or all but one, have no files; on lost nodes and on others."""
    for writers in ("0,2,5", "3", "6,7"):
        with Job(4, 2) as job:
            everywhere(job, *dataset(f"@{writers}:a/rank_%r:4000"))


def test_same_base_name():
    """Two ranks of one node, or one rank twice, have files of the same base name."""
    files = [":rank_%r/data.bin:2000", ":a/x_%r/data.bin:300", ":b/x_%r/data.bin:0", ":a/%r:20", ":b/%r:7"]
    for containers in (0, 1):
        with Job(2, 2, SCR_USE_CONTAINERS=containers) as job:
            everywhere(job, *dataset(*files))


def test_more_than_4_gib():
    """Most of the file is a hole. SINGLE reads such a file once, for its checksum."""
    with Job(2, 1, SCR_COPY_TYPE="SINGLE", SCR_FLUSH=0) as job:
        large = 4 * GIB + 5
        job.run("init", "start:a:c", "put:a/rank_%r:1000", f"stretch@1:{large}", "complete:1")
        run = job.run("init", "have => 1 a", "start_restart => a", "get@0:a/rank_0:1000", "route@1:a/rank_1",
                      "stretched@1", "complete_restart:1")
        assert run.first("stretched")["text"][1] == str(large + 1000 + 13 + 1), run


# ---- other numbers of ranks ----

def other_number(layout):
    """Neither the cache nor the prefix directory offers a part of a dataset of four
    ranks."""
    with Job(2, 2, SCR_FLUSH=2) as job:
        job.run("init", checkpoint("a"), checkpoint("b"), checkpoint("c"))
        run = job.run("init", "have => 0 =", layout=layout)
        run.says("(CACHE|RESTART)_OTHER_RANKS", "4 ranks", times=None)
        job.run("init", restart("c"))
        job.lose("n1", "n2")
        run = job.run("init", "have => 0 =", layout=layout)
        run.says("RESTART_OTHER_RANKS", "4 ranks", times=None)
        job.run("init", restart("b"))


def test_fewer_ranks():
    for layout in ([("n1", 1)], [("n1", 2)], [("n1", 2), ("n2", 1)]):
        other_number(layout)


def test_more_ranks():
    for layout in ([("n1", 3), ("n2", 2)], [("n1", 2), ("n2", 2), ("n3", 2)]):
        other_number(layout)


def test_older_one_of_another_number():
    """An older dataset from which the last run began, or which was chosen, does not hide
    newer ones of this number of ranks. The first one does not even become the current
    one."""
    few = [("n1", 2)]
    with Job(2, 2, SCR_FLUSH=1) as job:
        def begins_with(name, **how):
            job.lose(*filter(lambda node: job.node(node).exists(), job.nodes()))
            return job.run("init", restart(name), **how)
        job.run("init", checkpoint("a"), checkpoint("b"), "finalize")
        job.run("init", checkpoint("c"), checkpoint("d"), "finalize", layout=few)
        begins_with("b")
        begins_with("d", layout=few).says("RESTART_OTHER_RANKS", times=0)
        begins_with("b")
        begins_with("c", layout=few, SCR_CURRENT="c")
        begins_with("b")
        begins_with("d", layout=few, SCR_CURRENT="a")
        job.lose(*filter(lambda node: job.node(node).exists(), job.nodes()))
        job.run("init", restart("c"), "kill@0", dies=True, layout=few, SCR_CURRENT="c")
        job.run("init", restart("a"), "finalize", SCR_CURRENT="a", SCR_JOB_ID=73)
        job.run("init", restart("d"), "finalize", layout=few)  # a is older than c, too, which is in the cache


def test_other_number_and_no_files():
    """Ranks that wrote nothing count as ranks, too."""
    with Job(2, 2, SCR_FLUSH=1) as job:
        write, read = dataset("@0:a/one:100")
        job.run("init", write)
        job.run("init", "have => 0 =", layout=[("n1", 1)])
        job.run("init", read)
        job.lose("n1", "n2")
        job.run("init", "have => 0 =", layout=[("n1", 2), ("n2", 1)])
        job.run("init", read)


if __name__ == "__main__":
    main(globals())
