#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names that SCR_Route_file refuses: the dataset without these files is incomplete, and
no checkpoint is harmed."""
from job import Job, checkpoint, main, restart
import tree

PAIR = {"nodes": 2, "per_node": 1}


def flushed(job):
    return set(tree.read(job.prefix / ".scr/index.scr")["DIR"])


def test_all_names_refused():
    """Relative names with the prefix directory elsewhere, in a program that ignores the
    codes: real checkpoints stay."""
    for bypass in (0, 1):
        with Job(**PAIR, SCR_FLUSH=1, SCR_PREFIX_SIZE=2, SCR_CACHE_BYPASS=bypass) as job:
            empty = [[f"start:{name}:c", f"route:{name}/rank_%r => ARGUMENT", "complete:1 => INVALID"] for name in "cde"]
            run = job.run("init", checkpoint("a"), checkpoint("b"), f"chdir:{job.root}", empty, "have => 1 b", "finalize")
            run.says("ROUTE_REFUSED", 'rank 1: "c/rank_1"', f"current directory {job.root}; the prefix directory is {job.prefix}", times=1)
            run.says("OUTPUT_FAILED", r'dataset 3 \(c\)', 'on 2 ranks, first rank 0: SCR_Route_file refused "c/rank_0"', times=1)
            assert flushed(job) == {"a", "b"}, flushed(job)
            job.lose("n1", "n2") if not bypass else None
            job.run("init", restart("b"), "delete:b", restart("a"), "finalize")


def test_one_rank():
    """A refused name on one rank suffices."""
    with Job(**PAIR) as job:
        run = job.run("init", checkpoint("a"), "start:b:c", "put:b/rank_%r:1000", "route@1:/tmp/x => ARGUMENT",
                      "complete:1 => INVALID", restart("a"), "finalize")
        run.says("OUTPUT_FAILED", r'dataset 2 \(b\)', 'rank 1: SCR_Route_file refused "/tmp/x"', times=1)


def test_another_name_in_its_place():
    """Each refused name is followed by another one in its place; repeating a name counts
    as one refusal."""
    with Job(**PAIR) as job:
        job.run("init", "start:a:c", "route:/tmp/x => ARGUMENT", "route:/tmp/x => ARGUMENT", "put:a/rank_%r:1000", "complete:1",
                restart("a"), "start:b:c", "route:/tmp/x => ARGUMENT", "route:../y => ARGUMENT", "put:b/rank_%r:1000",
                "complete:1 => INVALID", "start:b:c", "route:/tmp/x => ARGUMENT", "route:../y => ARGUMENT",
                "put:b/y_%r:10", "put:b/rank_%r:1000", "complete:1", restart("b"), "finalize")


def test_routed_before():
    """A file that existed already does not take the place of a refused one."""
    with Job(**PAIR) as job:
        job.run("init", "start:a:c", "put:a/rank_%r:1000", "route:/tmp/x => ARGUMENT", "route:a/rank_%r",
                "complete:1 => INVALID", "have => 0", "finalize")


def test_names_that_are_none():
    """No name, an empty or too long one, or no buffer for the answer."""
    with Job(**PAIR) as job:
        for bad in ("route@1:%N => ARGUMENT", "route@1: => ARGUMENT", "route@1:%L2000 => ARGUMENT", "route_nowhere@1:a/x => ARGUMENT"):
            job.run("init", "start:a:c", "put:a/rank_%r:10", bad, "complete:1 => INVALID", "have => 0", "finalize")


def test_no_file():
    """A dataset without a file on any rank does not exist; older datasets stay."""
    for parameters in ({}, {"SCR_CACHE_BYPASS": 1}):
        for flags in ("c", "o", "co"):
            with Job(**PAIR, SCR_FLUSH=1, SCR_PREFIX_SIZE=2, **parameters) as job:
                run = job.run("init", checkpoint("a"), checkpoint("b"), [[f"start:{name}:{flags}", "complete:1 => INVALID"]
                                                                         for name in "cde"], restart("b"), "finalize")
                run.says("OUTPUT_FAILED", r"dataset 3 \(c\)", "no rank routed a file", times=1)
                assert flushed(job) == {"a", "b"}, flushed(job)


# ---- restart ----

def test_refused_at_a_restart():
    """The error is the caller's: the checkpoint is not marked. An older one is next in
    this run, and the next run tries it again."""
    for parameters in ({"SCR_FLUSH": 0}, {"SCR_FLUSH": 1}, {"SCR_CACHE_BYPASS": 1}):
        with Job(**PAIR, **parameters) as job:
            job.run("init", checkpoint("a"), checkpoint("b"))
            for _ in range(4):
                run = job.run("init", "have => 1 b", "start_restart => b", "route@1:b/no => ARGUMENT", "complete_restart:!1 => INVALID",
                              "have => 1 a", "start_restart => a", "route:%N => ARGUMENT", "complete_restart:0 => INVALID", "have => 0")
                run.says("RESTART_NOT_READ", r'dataset 2 \(b\): rank 1: the name "b/no" was refused', times=1)
                run.not_said("RESTART_FAILED|FETCH_CHECKPOINT_DAMAGED")
            job.run("init", restart("b"), "finalize")


def test_refused_but_read():
    """If another name replaced the refused one, the refusal is no excuse: the checkpoint
    is at fault."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        run = job.run("init", "have => 1 b", "start_restart => b", "route:b/no => ARGUMENT", "get:b/rank_%r:1000",
                      "complete_restart:!1 => INVALID", restart("a"))
        run.says("RESTART_FAILED", r"dataset 2 \(b\)", times=1)
        job.run("init", restart("a"), "finalize")


SHARED = ["start:a:c", "put@0:a/root:5000", "put@1:a/deep/own_1:100", "complete:1"]
IN_PREFIX = ({"SCR_CACHE_BYPASS": 1}, {"SCR_FLUSH": 1, "SCR_FETCH_BYPASS": 1}, {"SCR_FLUSH": 1, "SCR_GLOBAL_RESTART": 1},
             {"SCR_FLUSH": 1})


def test_file_of_another_rank():
    """A file that one rank wrote and all read: by its path, by its original name, and by
    its bare name; if it is on the prefix directory."""
    read = ["route:root", "route:a/root", "route:deep/own_1", "route:a/deep/own_1", "complete_restart:1"]
    for parameters in IN_PREFIX:
        with Job(**PAIR, **parameters) as job:
            wrong = ["route:b/root => ARGUMENT b/root", "route:root2 => ARGUMENT root2"]
            begin = ["have => 1 a", "start_restart => a"]
            for steps in (["init", SHARED, begin, read], ["init", begin, f"route:{job.prefix}/a/root", read],
                          [f"chdir:{job.root}", "init", begin, wrong, read]):
                for op in job.run(*steps).ops:
                    if op["op"].startswith("route") and op["code"] == [0, 0]:
                        name = "a/deep/own_1" if "own" in op["op"] else "a/root"
                        other = 0 if "own" in op["op"] else 1
                        assert op["text"][other] == str(job.prefix / name), op
                        assert open(op["text"][0], "rb").read() == open(op["text"][1], "rb").read(), op


def test_file_of_another_rank_in_the_cache_only():
    with Job(**PAIR, SCR_FLUSH=0) as job:
        run = job.run("init", SHARED, "have => 1 a", "start_restart => a", "get@0:a/root:5000", "route@1:a/root => ARGUMENT",
                      "complete_restart:!1 => INVALID", "have => 0")
        run.says("ROUTE_REFUSED", 'rank 1: dataset a has no file "a/root" of this rank', times=1)
        job.run("init", "have => 1 a")


def test_damaged_file_of_another_rank():
    """Flushed files have not been read since: such a file is read before its path is
    returned."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", SHARED)
        data = bytearray((job.prefix / "a/root").read_bytes())
        data[3000] ^= 1
        (job.prefix / "a/root").write_bytes(data)
        run = job.run("init", "have => 1 a", "start_restart => a", "get@0:a/root:5000", "route@1:a/root => FAILURE")
        run.says("ROUTE_REFUSED", 'rank 1: .*"root": altered', times=1)


def test_names_as_at_output():
    """Names work with any current directory at the restart, from the cache and from the
    prefix directory."""
    names = ["../a/rank_%r:1000", "deep/%r:10"]
    for parameters in ({"SCR_FLUSH": 0}, {"SCR_FLUSH": 1}, {"SCR_CACHE_BYPASS": 1}):
        for cwd in ("..", ".", "sub"):
            with Job(**PAIR, **parameters) as job:
                (job.prefix / "sub").mkdir()
                gets = [[f"get:{name}" for name in names], "complete_restart:1"]
                job.run("chdir:sub", "init", "start:a:c", [f"put:{name}" for name in names], "complete:1")
                job.run(f"chdir:{cwd}", "init", "have => 1 a", "start_restart => a", gets)
                if parameters != {"SCR_FLUSH": 0}:
                    job.lose("n1", "n2") if "SCR_FLUSH" in parameters else None
                    job.run(f"chdir:{cwd}", "init", "have => 1 a", "start_restart => a", gets)


def test_ambiguous_names():
    """A common ending of the names of two files is not a name."""
    with Job(**PAIR) as job:
        run = job.run("init", "start:a:c", "put:a/x/f_%r:10", "put:a/y/f_%r:10", "complete:1", "have => 1 a", "start_restart => a",
                      "route:f_%r => ARGUMENT", "route:x/f_%r", "get:a/y/f_%r:10", "complete_restart:1")
        run.says("ROUTE_REFUSED", 'rank 0: "f_0" may be any of 2 files of dataset a', times=1)


if __name__ == "__main__":
    main(globals())
