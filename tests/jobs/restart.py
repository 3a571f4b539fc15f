#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Restart after failures: with various lost nodes, new places of ranks, and numbers of
ranks."""
import concurrent.futures
import shutil

import damage
import tree
from job import Job, checkpoint, main, restart, wait_until

FOUR = ["n1", "n2", "n3", "n4"]


def placed(nodes):
    """Returns a layout from the node of each rank."""
    return [(node, 1) for node in nodes]


def test_nothing_lost():
    with Job() as job:
        job.run("init", checkpoint("a"), checkpoint("b"), SCR_FLUSH=0)
        run = job.run("init", restart("b"), "finalize", SCR_FLUSH=0)
        run.says("REBUILD_NOT_NEEDED", r"dataset 2 \(b\)", times=1)
        run.says("REBUILD_COMPLETE", times=0)
        assert not (job.prefix / "b").exists()


def test_each_node_lost():
    """The nodes are lost one after the other, with a spare in place of each, and work in
    between."""
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c0"))
        for number, node in enumerate(FOUR):
            job.lose(node)
            job.replace(node, f"spare{number}")
            run = job.run("init", restart(f"c{number}"), checkpoint(f"c{number + 1}"))
            run.says("REBUILD_COMPLETE", f"c{number}", "2 of 8 ranks", times=1)
        job.run("init", restart("c4"))
        assert not list(job.prefix.glob("c*"))


def test_ranks_move():
    """The nodes have another order, and ranks are distributed in another way."""
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a", size=3000))
        for layout in ([("n3", 2), ("n1", 2), ("n4", 2), ("n2", 2)], placed(2 * FOUR),
                       [("n4", 1), ("n1", 5), ("n2", 1), ("n3", 1)]):
            run = job.run("init", restart("a", size=3000), layout=layout)
            run.says("REBUILD_COMPLETE", times=0)
            for node, count in layout:
                files = list(job.cache(node).glob("scr.dataset.1/a/rank_*"))
                wanted = sum(ranks for other, ranks in layout if other == node)
                assert len(files) == wanted, (node, files)


def test_new_node_first():
    """Rank 0 has no file of a dataset of other ranks: the dataset remains recorded as
    only in the cache, as scr_postrun requires."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.run("init", layout=placed(["n3", "n1", "n2"]))
        assert "CACHE" in tree.read(job.prefix / ".scr/flush.scr")["DSET"]["1"]["LOCATION"]


def test_ranks_move_and_a_node_is_lost():
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        job.lose("n1")
        run = job.run("init", restart("b"), layout=placed(["n3", "n4", "n5", "n2"] * 2))
        run.says("REBUILD_COMPLETE", times=2)


def test_large_files():
    """Files move in several pieces, and are rebuilt in several blocks."""
    size = 3 * 1024 * 1024 + 5
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a", size))
        job.lose("n4")
        job.run("init", restart("a", size), layout=placed(["n3", "n5", "n1", "n2"]))


def test_more_nodes():
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        layout = placed(FOUR + ["n5", "n6", "n7", "n8"])
        run = job.run("init", restart("a"), checkpoint("b"), layout=layout)
        run.says("REBUILD_COMPLETE", times=0)
        job.lose("n6")
        job.run("init", restart("b"), layout=layout)


def test_fewer_nodes():
    """2 nodes with 4 ranks each, then 4 with 2: the set size shows that sets changed."""
    with Job(2, 4, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        four = [(node, 2) for node in FOUR]
        job.run("init", restart("a"), checkpoint("b"), layout=four)
        job.lose("n2")
        job.run("init", restart("b"), layout=four)


def test_two_nodes_lost():
    """XOR cannot rebuild them: the prefix directory has an older checkpoint."""
    with Job() as job:
        job.run("init", checkpoint("a", flags="co"), checkpoint("b"))
        job.lose("n2", "n3")
        run = job.run("init", restart("a"), checkpoint("c"), "finalize")
        run.says("REBUILD_IMPOSSIBLE", r"dataset 2 \(b\)", times=1)
        run.says("FETCH_COMPLETE", r"dataset 1 \(a\)", times=1)
        job.run("init", restart("c"), "finalize")


def test_all_nodes_lost():
    with Job(SCR_CACHE_KEEP=1) as job:
        job.run("init", checkpoint("a"), checkpoint("b"), "finalize")
        job.lose(*FOUR)
        run = job.run("init", restart("b"), "finalize")
        run.says("FETCH_COMPLETE", times=1)
        job.lose("n3")
        run = job.run("init", restart("b"), "finalize")  # what was fetched is protected
        run.says("REBUILD_COMPLETE", times=1)
        job.lose(*FOUR)
        run = job.run("init", "have => 0 =", "finalize", SCR_FETCH=0)


def test_nothing_anywhere():
    with Job(2, 1) as job:
        run = job.run("init", "have => 0 =", "start_restart => STATE (untouched)", "finalize")
        run.says("RESTART_NOT_OFFERED", times=1)
        job.run("init", checkpoint("a"))
        job.lose("n1", "n2")
        job.run("init", "have => 0 =", checkpoint("b"), "have => 1 b", "finalize")


def test_node_comes_back():
    """A node returns with old datasets, and without the new ones."""
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        away = job.root / "away"
        job.node("n2").rename(away)
        job.replace("n2", "n5")
        job.run("init", restart("b"), checkpoint("c"))
        job.lose("n5")
        away.rename(job.node("n2"))
        job.replace("n5", "n2")
        job.run("init", restart("c"))


def test_id_used_twice():
    """A node returns with a different dataset of the same id."""
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("old"))
        away = job.root / "away"
        job.node("n2").rename(away)
        job.lose("n1", "n3", "n4")
        job.run("init", "have => 0", checkpoint("new", size=500))
        job.lose("n2")
        away.rename(job.node("n2"))
        run = job.run("init", restart("new", size=500))
        run.says("REBUILD_COMPLETE", r"dataset 1 \(new\)", times=1)


def test_id_used_twice_by_other_numbers_of_ranks():
    """The data of a returning node is unusable, even for its own rank."""
    with Job(2, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("old"))
        away = job.root / "away"
        job.node("n2").rename(away)
        job.lose("n1")
        job.run("init", "have => 0", checkpoint("new"), layout=[("n1", 2), ("n3", 2)])
        away.rename(job.node("n2"))
        run = job.run("init", "have => 0 =", checkpoint("next"), restart("next"))
        run.says("CACHE_OTHER_RANKS", r"dataset 1 \(new\)", "4 ranks", "2", times=1)
        job.run("init", restart("next"))


def test_node_of_an_earlier_calculation():
    """The newest dataset of a returning node has a higher id than the dataset from which
    the job continues, and later becomes complete there: it neither replaces that dataset,
    nor is flushed."""
    with Job(layout=[("n1", 3), ("n2", 1)], SCR_FLUSH=2, SCR_CACHE_SIZE=2) as job:
        job.run("config:CKPT=0 TYPE=PARTNER", "init", checkpoint("x1"), checkpoint("x2"), checkpoint("x3"))
        away = job.root / "away"
        job.node("n1").rename(away)
        job.lose("n2")
        shutil.rmtree(job.prefix)
        job.prefix.mkdir()
        job.run("config:CKPT=0 TYPE=PARTNER", "init", checkpoint("c1"), checkpoint("c2"), checkpoint("c3"))
        job.lose("n1")
        away.rename(job.node("n1"))
        job.run("config:CKPT=0 TYPE=PARTNER", "init", restart("c2")).says("REBUILD_IMPOSSIBLE", r"dataset 3 \(c3\)", times=1)
        job.lose("n2")
        run = job.run("config:CKPT=0 TYPE=PARTNER", "init", restart("c2"))
        run.says("REBUILD_COMPLETE", r"dataset 3 \(x3\)", times=1)
        run.says("RESTART_EARLIER_CALCULATION", r"dataset 3 \(x3\)", r"2 \(c2\)", times=1)
        assert set(tree.read(job.prefix / ".scr/flush.scr")["DSET"]) == {"2"}  # commands save that one
        job.run("config:CKPT=0 TYPE=PARTNER", "init", restart("c2"), "finalize")
        assert not (job.prefix / "x3").exists()
        run = job.run("config:CKPT=0 TYPE=PARTNER", "init", restart("c2"), "start:c4:c")
        run.says("CACHE_EVICTED", "dataset 2", times=0)
        job.run("config:CKPT=0 TYPE=PARTNER", "init", restart("c2"), checkpoint("c5"), restart("c5"))


def test_id_of_an_earlier_calculation():
    """The job continues from containers, which cannot be read beside the older dataset
    with which all nodes return: that one is removed, unless the containers are
    damaged."""
    for damaged in (False, True):
        with Job(2, 1, SCR_FLUSH=0, SCR_USE_CONTAINERS=1) as job:
            job.run("init", checkpoint("x1"))
            away = job.root / "away"
            (job.root / "nodes").rename(away)
            (job.root / "nodes").mkdir()
            job.run("init", "have => 0 =", checkpoint("c1"), "finalize", SCR_FLUSH=1)
            shutil.rmtree(job.root / "nodes")
            away.rename(job.root / "nodes")
            if damaged:
                container = job.prefix / "c1/.scr/ctr.0.scr"
                container.write_bytes(container.read_bytes()[:-1] + b"x")
            run = job.run("init", restart("x1" if damaged else "c1"))
            run.says("RESTART_EARLIER_CALCULATION", "dataset 1 of the cache is older than c1", times=int(not damaged))
            run.says("FETCH_CHECKPOINT_DAMAGED", "c1", times=int(damaged))
            job.run("init", restart("x1" if damaged else "c1"), checkpoint("c2"), restart("c2"))


def refuse(name):
    return [f"have => 1 {name}", "start_restart", "complete_restart:0 => INVALID"]


def test_refused_copy_comes_back():
    """All nodes return with a copy of a refused dataset. The copy is not offered, and a
    flush of it does not make it valid on the prefix directory."""
    with Job(2, 1, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"), checkpoint("b", flags="co"))
        nodes, away = job.root / "nodes", job.root / "away"
        shutil.copytree(nodes, away)
        job.run("init", refuse("b"), restart("a"), checkpoint("c", flags="o"), checkpoint("d", flags="o"))
        shutil.rmtree(nodes)
        shutil.copytree(away, nodes)
        job.run("init", restart("a")).says("RESTART_SKIPPED", r"dataset 2 \(b\)", times=1)
        shutil.rmtree(nodes)
        away.rename(nodes)
        (job.prefix / ".scr/flush.scr").unlink()
        job.run("init", SCR_FLUSH_ON_RESTART=1).says("FLUSH_COMPLETE", r"dataset 2 \(b\)", times=1)
        job.lose("n1", "n2")
        job.run("init", restart("a"))


def test_clock_set_back():
    """The order of datasets is independent of the clock. The first run lasts 100 hours,
    by its own clock."""
    with Job(SCR_FLUSH=0) as job:
        job.run("init", "compute:100:360000:0", checkpoint("a"), checkpoint("b"))
        job.run("init", restart("b"), checkpoint("c"), checkpoint("d"))
        job.run("init", restart("d"), checkpoint("e"))
        job.run("init", restart("e"))


def test_shared_base():
    """Simulated nodes may share one cache and one control directory."""
    with Job(SCR_FLUSH=0) as job:
        base = {"SCR_CACHE_BASE": job.root / "all", "SCR_CNTL_BASE": job.root / "all"}
        of_node = {node: base for node in FOUR}
        job.run("init", checkpoint("a"), checkpoint("b"), of_node=of_node)
        run = job.run("init", restart("b"), checkpoint("c"), of_node=of_node,
                      layout=placed(["n4", "n3", "n2", "n1"] * 2))
        run.says("REBUILD_COMPLETE", times=0)
        job.run("init", restart("c"), of_node=of_node)


def test_defaults():
    """Without a given job id and user, the next run finds its cache, but another prefix
    directory does not."""
    with Job(2, 1) as job:
        nothing = {"SCR_JOB_ID": None, "SCR_USER_NAME": None, "SCR_PREFIX": None, "SCR_FLUSH": 0}
        job.run("init", checkpoint("a"), **nothing)
        job.run("init", restart("a"), **nothing)
        other = job.root / "other"
        job.run("init", "have => 0", **{**nothing, "SCR_PREFIX": other})
        assert (other / ".scr").is_dir()


def test_one_node():
    """XOR over ranks of one node protects nothing: SCR reports that, and works."""
    with Job(1, 4) as job:
        run = job.run("init", checkpoint("a"), SCR_FLUSH=0)
        run.says("REDUNDANCY_NONE", "all ranks are in one failure group", times=1)
        job.run("init", restart("a"), SCR_FLUSH=0)
    with Job(2, 1) as job:
        run = job.run("init", checkpoint("a"), SCR_FLUSH=0, SCR_GROUP="WORLD")
        run.says("REDUNDANCY_NONE", "all ranks are in one failure group", times=1)
    with Job(layout=[("n1", 3), ("n2", 1)]) as job:
        run = job.run("init", checkpoint("a"), SCR_FLUSH=0)
        run.says("REDUNDANCY_PARTIAL", "2 of 4 ranks", times=1)


def test_two_nodes_lost_with_rs():
    """Reed-Solomon restores two nodes; three are too many."""
    with Job(SCR_COPY_TYPE="RS", SCR_SET_FAILURES=2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.lose("n2")
        job.lose("n3")
        run = job.run("init", restart("a"))
        run.says("REBUILD_COMPLETE")
        for node in ("n1", "n2", "n4"):
            job.lose(node)
        job.run("init", "have => 0")


def test_neighbours_lost_with_partner():
    """Copies are on the next node: all nodes that are not neighbors may be lost."""
    with Job(SCR_COPY_TYPE="PARTNER", SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.lose("n1")
        job.lose("n3")
        run = job.run("init", restart("a"))
        run.says("REBUILD_COMPLETE")
        job.lose("n2")
        job.lose("n3")
        job.run("init", "have => 0")


def test_single():
    """SINGLE survives the end of the program, and a loss is detected."""
    with Job(2, 1, SCR_COPY_TYPE="SINGLE", SCR_FLUSH=0) as job:
        run = job.run("init", checkpoint("a"))
        run.not_said("warning: (?!SCR_Finalize)")
        job.run("init", restart("a"))
        job.lose("n2")
        run = job.run("init", "have => 0")
        run.says("REBUILD_IMPOSSIBLE", r"dataset 1 \(a\)", times=1)


# ---- only redundancy is lost ----

def redundancy(job, node, number):
    """Returns SCR's own files in a dataset's directory."""
    return [path for path in (job.cache(node) / f"scr.dataset.{number}").iterdir() if path.is_file()]


def test_only_redundancy_lost():
    """However much redundancy is lost, the application files are right, and are protected
    again."""
    for scheme in ("XOR", "PARTNER", "RS", "SINGLE"):
        for nodes in (FOUR[:2], FOUR):
            with Job(4, 1, SCR_FLUSH=0, SCR_COPY_TYPE=scheme) as job:
                job.run("init", checkpoint("a"), checkpoint("b"))
                for node in nodes:
                    for path in redundancy(job, node, 2):
                        path.unlink()
                run = job.run("init", restart("b"))
                run.not_said("REBUILD_IMPOSSIBLE|could not")
                if scheme != "RS" or nodes == FOUR:
                    run.says("REDUNDANCY_RENEWED", "dataset 2 .b.", times=1)
                assert {len(redundancy(job, node, 2)) for node in FOUR} == {1}, scheme
                if scheme != "SINGLE":
                    job.lose("n2")
                run = job.run("init", restart("b"), "finalize", SCR_FLUSH=1)
                run.says("REBUILD_COMPLETE", "dataset 2 .b.", times=int(scheme != "SINGLE"))


def test_only_redundancy_lost_and_a_rank_without_files():
    """A rank that wrote nothing counts as having all its files."""
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", "start:a:c", [f"put@{rank}:a/rank_{rank}:1000" for rank in range(3)], "complete:1")
        for node in FOUR:
            for path in redundancy(job, node, 1):
                path.unlink()
        run = job.run("init", "have => 1 a", "start_restart => a", [f"get@{rank}:a/rank_{rank}:1000" for rank in range(3)],
                      "complete_restart:1")
        run.says("REDUNDANCY_RENEWED", "dataset 1 .a.", times=1)


def test_damaged_in_the_run_that_wrote():
    """An application that steps back without a new start gets the bytes that it wrote, or
    the next older dataset."""
    with Job(4, 1, SCR_FLUSH=0) as job, concurrent.futures.ThreadPoolExecutor() as pool:
        begun, go = job.root / "begun", job.root / "go"
        appointment = [f"touch@0:{begun}", f"await:{go}"]
        for lost, name, (said, values, times) in ((1, "b", ("REBUILD_COMPLETE", ["1 of 4 ranks"], 1)),
                                          (2, "a", ("REBUILD_IMPOSSIBLE", ["dataset 2 .b."], 1)), (0, "b", ("REBUILD_COMPLETE", [], 0))):
            run = pool.submit(job.run, "init", checkpoint("a"), checkpoint("b"), restart("b"), appointment, restart(name),
                              restart(name))
            try:
                wait_until(begun.exists)
                for node in FOUR[:lost]:
                    file = next(job.cache(node).glob("scr.dataset.2/b/rank_*"))
                    file.write_bytes(file.read_bytes()[:10])
            finally:
                go.touch()
            run.result().says(said, *values, times=times)
            begun.unlink()
            go.unlink()
            job.lose(*FOUR)


def test_redundancy_that_disagrees():
    """One redundancy file was encoded over other sets, although for this dataset."""
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        shutil.copytree(job.root / "nodes", job.root / "before")
        for path in redundancy(job, "n1", 1) + redundancy(job, "n2", 1):
            path.unlink()
        job.run("init", restart("a"), SCR_COPY_TYPE="PARTNER").says("REDUNDANCY_RENEWED", times=1)
        shutil.rmtree(job.node("n3"))
        (job.root / "before/n3").rename(job.node("n3"))
        run = job.run("init", restart("a"))
        run.says("REBUILD_IMPOSSIBLE", times=0)
        assert {len(redundancy(job, node, 1)) for node in FOUR} == {1}
        job.run("init", restart("a")).not_said("REDUNDANCY_RENEWED|REBUILD_COMPLETE")


def test_redundancy_lost_and_more():
    """An application file is altered or missing, too: it cannot be restored."""
    for hurt in (damage.flip, damage.remove):
        with Job(4, 1, SCR_FLUSH=0) as job:
            job.run("init", checkpoint("a"), checkpoint("b"))
            for node in FOUR:
                for path in redundancy(job, node, 2):
                    path.unlink()
            hurt(job.cache("n3") / "scr.dataset.2/b/rank_2")
            run = job.run("init", restart("a"))
            run.says("REBUILD_IMPOSSIBLE", "dataset 2 .b.", times=1)


# ---- another number of ranks ----

def test_fewer_ranks():
    """The dataset is detected, but neither offered nor destroyed: the right number of
    ranks finds it again."""
    half = [("n1", 2), ("n2", 2)]
    with Job(SCR_FLUSH=0) as job:
        job.run("init", checkpoint("eight"))
        run = job.run("init", "have => 0 =", checkpoint("four.1"), checkpoint("four.2"),
                      checkpoint("four.3"), layout=half)
        run.says("CACHE_OTHER_RANKS", r"dataset 1 \(eight\)", "8 ranks", "4",
                 times=1)
        assert job.cached() == [1, 3, 4], job.cached()
        run = job.run("init", restart("eight"))
        run.says("REBUILD_COMPLETE", times=0)
        run.says("CACHE_OTHER_RANKS", "4 ranks", "8", times=2)
        job.run("init", restart("four.3"), layout=half)
        job.run("init", "have => 0", layout=half, SCR_CACHE_PURGE=1)
        assert job.cached() == [], job.cached()


def test_more_ranks():
    with Job(4, 1) as job:
        job.run("init", checkpoint("a"), SCR_FLUSH=0)
        twice = [(node, 2) for node in FOUR]
        run = job.run("init", "have => 0 =", layout=twice)
        run.says("CACHE_OTHER_RANKS", "4 ranks", "8", times=1)
        job.lose("n3")  # after another run came in between
        run = job.run("init", restart("a"), SCR_FLUSH=0)
        run.says("REBUILD_COMPLETE", times=1)


def test_other_number_in_prefix():
    with Job() as job:
        job.run("init", checkpoint("a"), "finalize")
        job.lose(*FOUR)
        run = job.run("init", "have => 0 =", "finalize", layout=[("n1", 2), ("n2", 2)])
        run.says("RESTART_OTHER_RANKS", "a", "8 ranks", "4", times=1)
        job.run("init", restart("a"), "finalize")


def test_mode_of_a_rebuilt_file():
    """A rebuilt file has the permissions of the lost one, in the cache and after the
    flush; without a record of them, other users get none."""
    for scheme in ("XOR", "PARTNER", "RS"):
        with Job(nodes=3, per_node=1, SCR_FLUSH=0, SCR_COPY_TYPE=scheme) as job:
            job.identity["umask"] = 0o027
            job.run("init", checkpoint("c1"))
            job.lose("n2")
            job.run("init", restart("c1"), "finalize", SCR_FLUSH=1)
            found = {path.name: path.stat().st_mode & 0o777 for path in job.prefix.glob("c1/rank_*")}
            assert set(found.values()) == {0o640} and len(found) == 3, (scheme, found)


if __name__ == "__main__":
    main(globals())
