#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Restart with another number of ranks: from the cache, with lost nodes, and from the prefix directory."""
import os
import shutil

import damage
import tree
from job import JOB, MPI, USER, Job, Skip, checkpoint, main, messages, restart

ANY = {"SCR_RESTART_RANKS": "any"}


def take(name, ranks, size=1000):
    """The checkpoint of that number of ranks is offered, and every byte of it is read by
    some rank."""
    return [f"have => 1 {name}", f"start_restart => {name}", f"take:{size} => {ranks}", "complete_restart:1"]


def nodes(*counts):
    """Returns n1, n2, ... with these numbers of ranks."""
    return [(f"n{i + 1}", count) for i, count in enumerate(counts) if count]


def test_default():
    """Without SCR_RESTART_RANKS the checkpoint is offered neither from the cache nor from
    the prefix directory."""
    with Job(2, 2) as job:
        job.run("init", checkpoint("a"), SCR_FLUSH=0)
        run = job.run("init", "have => 0", layout=nodes(1, 2), SCR_FLUSH=0)
        run.says("CACHE_OTHER_RANKS", "a", "4 ranks", times=1)
        job.run("init", "have => 1 a", "finalize")
        run = job.run("init", "have => 0", layout=nodes(1, 2))
        run.says("RESTART_OTHER_RANKS", "a", "4 ranks", times=1)
        job.run("init", take("a", 4), layout=nodes(1, 2), **ANY)
        job.run("init => CONFIG", SCR_RESTART_RANKS="some")


def test_same_between():
    """A run with its own number of ranks that begins with an older checkpoint keeps the
    newer one for a run that can use it."""
    with Job(2, 2, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"), "finalize")
        job.run("init", checkpoint("b"), "finalize", layout=nodes(1, 2))
        job.run("init", restart("a"), "finalize")
        job.run("init", take("b", 3), layout=nodes(1, 3), **ANY)
        job.run("init", "current:a", "finalize")
        job.run("init", take("a", 4), layout=nodes(1, 2), **ANY)


def test_cache():
    """Restarts with fewer and more ranks, on fewer and more nodes; the last run has the
    original number."""
    with Job(4, 2, SCR_FLUSH=0, **ANY) as job:
        job.run("init", checkpoint("a", size=70000))
        for layout in (nodes(1, 1, 1, 1), nodes(3, 3, 3, 3), [("n2", 1), ("n3", 2), ("n4", 6)], nodes(2, 2, 2, 2)):
            job.run("init", take("a", 8, 70000), layout=layout)


def test_lost():
    """A node is lost without a replacement."""
    with Job(4, 2, SCR_FLUSH=0, **ANY) as job:
        job.run("init", checkpoint("a"))
        job.lose("n2")
        three = [("n1", 2), ("n3", 2), ("n4", 2)]
        run = job.run("init", take("a", 8), checkpoint("b"), layout=three)
        run.says("REBUILD_COMPLETE", "2 of 8 ranks", times=1)
        job.lose("n4")
        run = job.run("init", take("b", 6), layout=three[:2])
        run.says("REBUILD_COMPLETE", "2 of 6 ranks", times=1)


def test_new_node_first():
    """Rank 0 has no file of a dataset: the dataset remains recorded as only in the cache,
    as scr_postrun requires."""
    for ranks in "any", "same":
        with Job(2, 2, SCR_FLUSH=0) as job:
            job.run("init", checkpoint("a"))
            job.run("init", layout=[("n3", 1), ("n1", 1), ("n2", 1)], SCR_RESTART_RANKS=ranks)
            assert "CACHE" in tree.read(job.prefix / ".scr/flush.scr")["DSET"]["1"]["LOCATION"]


def test_too_much_lost():
    """Two of four nodes are lost, with XOR: an older checkpoint on the prefix directory
    is offered, or none; the remains stay for a run that has the nodes again."""
    with Job(4, 1, SCR_FLUSH=0, **ANY) as job:
        job.run("init", checkpoint("a"))
        job.save()
        two = nodes(1, 2)
        run = job.run("init", "have => 0", layout=two)
        run.says("REBUILD_IMPOSSIBLE", "a", times=1)
        job.run("init", take("a", 4), layout=nodes(1, 1, 1, 1, 1))
        job.go_back()
        job.run("init", take("a", 4), "finalize", SCR_FLUSH=1, SCR_CACHE_KEEP=1)
        job.run("init", take("a", 4), checkpoint("b"))
        job.run("init", take("a", 4), layout=two, SCR_FLUSH=0)


def test_prefix():
    """The dataset is read in place; in containers, by extraction."""
    for containers in 0, 1:
        with Job(2, 2, SCR_FLUSH=1, SCR_USE_CONTAINERS=containers, **ANY) as job:
            job.run("init", checkpoint("a"), "finalize")
            for layout in (nodes(3), nodes(2, 3), nodes(1, 1, 1, 1, 2), nodes(2, 2)):
                job.run("init", take("a", 4), layout=layout)
                job.lose(*{node for node, _ in layout})


def test_remains():
    """Remains in the cache are not confused with the files in containers, which are read
    instead."""
    with Job(4, 1, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, **ANY) as job:
        job.run("init", checkpoint("a"))
        run = job.run("init", take("a", 4), layout=nodes(1, 1))
        run.says("REBUILD_IMPOSSIBLE", "a", times=1)


def test_no_such_file():
    """Unknown names are refused if files are brought; for data that is read in place,
    SCR_Route_file decides."""
    for containers, code in (0, "SUCCESS"), (1, "ARGUMENT"):
        with Job(2, 2, SCR_FLUSH=1, SCR_USE_CONTAINERS=containers, **ANY) as job:
            job.run("init", checkpoint("a"), "finalize")
            job.run("init", "have => 1 a", "start_restart", f"fetch_files:a/rank_9 => {code}", "route:a/rank_9 => ARGUMENT a/rank_9",
                    "complete_restart:1", layout=nodes(3))


def test_flush():
    """A dataset of another number of ranks that was not flushed is flushed by the ranks
    that have it, and is intact for its own number."""
    for containers in 0, 1:
        with Job(4, 1, SCR_USE_CONTAINERS=containers, **ANY) as job:
            job.run("init", checkpoint("a"), SCR_FLUSH=0)
            job.run("init", take("a", 4), "finalize", layout=nodes(2, 1, 1, 1), SCR_FLUSH=10)
            job.lose(*job.nodes())
            job.run("init", take("a", 4), SCR_RESTART_RANKS="same")
            job.lose(*job.nodes())
            job.run("init", take("a", 4), layout=nodes(3))


def test_one_file():
    """All ranks read the file of one rank, also from a checkpoint of the same number of
    ranks."""
    with Job(4, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"), "have => 1 a", "start_restart", "take_file:a/rank_5:5:1000",
                "take_file:a/rank_0:0:1000", "complete_restart:1")
        for node in job.nodes():
            assert not (job.cache(node) / "scr.brought").exists()


def test_unnamed():
    """Files are where the program named them, in the cache and on the prefix
    directory."""
    with Job(2, 2, SCR_CACHE_KEEP=1, **ANY) as job:
        write = ["tag:x", "start_checkpoint", "put:here/rank_%r:1000", "put:there_%r:500", "complete_checkpoint:1"]
        read = ["have => 1 scr.dataset.1", "start_restart", "tag:x", "take_file:here/rank_1:1:1000", "take_file:there_3:3:500",
                "complete_restart:1"]
        job.run("init", write, SCR_FLUSH=0)
        job.run("init", read, "finalize", layout=nodes(2, 1))
        job.lose("n1", "n2")
        job.run("init", read, layout=nodes(1, 2, 2))


def test_bypass():
    """Datasets are written directly to the prefix directory."""
    with Job(2, 2, SCR_CACHE_BYPASS=1, **ANY) as job:
        job.run("init", checkpoint("a"))
        for layout in (nodes(3), nodes(3, 3)):
            job.run("init", take("a", 4), layout=layout)


def test_many_files():
    """Some ranks have no file at all."""
    for containers in 0, 1:
        with Job(3, 2, SCR_USE_CONTAINERS=containers, SCR_CONTAINER_SIZE=3000, **ANY) as job:
            job.run("init", "start:a:c", "put_many@1,4:a:40", "put@2:a/large:300000", "complete:1", SCR_FLUSH=0)
            read = ["have => 1 a", "start_restart", "take_file:a/part_0/rank_4.39:4:100", "take_file:a/large:2:300000",
                    "dataset_file:1:0 => ANY", "dataset_file:0:0 => ARGUMENT =:0", "complete_restart:1"]
            job.run("init", read, "finalize", layout=nodes(1, 2, 1), SCR_CACHE_KEEP=1)
            job.lose(*job.nodes())
            job.run("init", read, layout=nodes(4, 5))


def test_refused():
    with Job(2, 2, SCR_FLUSH=0, **ANY) as job:
        run = job.run("init", checkpoint("a"), "fetch_files:a/rank_0 => STATE", "have => 1 a", "start_restart",
                      "fetch_files:a/rank_9 => ARGUMENT", "fetch_files:/etc/passwd => ARGUMENT", "fetch_files:", "fetch_files:- => ARGUMENT",
                      "dataset_file:1:0 => a/rank_1:1013", "dataset_file:1:1 => ARGUMENT =:0", "dataset_file:4:0 => ARGUMENT =:0",
                      "complete_restart:0 => INVALID", "have => 0")
        run.says("FETCH_FILES_FAILED", "a/rank_9", times=1)
        run.says("FETCH_FILES_FAILED", "/etc/passwd", times=1)
        run.says("RESTART_LIST_REFUSED", "no file number 1 of rank 1")
        run.says("RESTART_LIST_REFUSED", "no rank 4")
        assert not list(job.prefix.glob(".scr/restart*"))
        job.run("init", "have => 1 a", "start_restart", "dataset_file:1:0 => FAILURE =:0", "complete_restart:1",
                SCR_RESTART_RANKS="same")


# ---- what goes wrong ----

THREE = [("n2", 1), ("n3", 1), ("n1", 1)]  # no rank has what it wants on its node


def strikes(job, operations, how, rank, **more):
    """Plays the operations repeatedly from the same state; each time the next call of a
    rank that changes something on its node or in .scr goes wrong. Yields the runs. Of
    later calls, only a sample is used."""
    mark = job.root / "struck"
    job.save()
    for number in range(1, 500):
        if number > 8 and number % 5:
            continue
        run = job.run(operations, layout=THREE, dies=None, ends=True, faults={
            "FAULTS_BELOW": f"{job.root}/nodes:{job.prefix}/.scr", "FAULTS_RANK": rank, "FAULTS_AT": number, "FAULTS_HOW": how,
            "FAULTS_MARK": mark, **more})
        if not mark.exists():
            return
        mark.unlink()
        yield run
        job.go_back()
    raise AssertionError("it does not end")


def elastic_job():
    """Four ranks wrote; the node of one rank is lost, and three ranks continue."""
    job = Job(4, 1, SCR_FLUSH=0, **ANY)
    job.run("init", checkpoint("a"))
    job.lose("n4")
    return job


def test_killed():
    """A rank is killed before each of its changes: the next run finds everything, and no
    copies are left."""
    for rank in 0, 2:
        with elastic_job() as job:
            count = 0
            for _ in strikes(job, ["init", take("a", 4)], "kill", rank):
                count += 1
                job.run("init", take("a", 4), "finalize", layout=THREE, SCR_CACHE_KEEP=1)
                assert not list(job.prefix.glob(".scr/restart*"))
                assert not list(job.root.glob("nodes/*/cache/*/*/scr.brought"))
            assert count > 8, count


def test_left_copies():
    """A killed run left copies in a store that the next run opens late: they are not
    confused with files of another dataset of the same id."""
    with Job(2, 2, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, **ANY) as job:
        job.run("init", checkpoint("a"), "finalize")
        job.lose("n1", "n2")
        job.run("init", "have => 1 a", "start_restart", "take:1000 => 4", "kill@0", layout=nodes(3), dies=True, ends=True, SCR_CACHE_BYPASS=1)
        assert list(job.root.glob("nodes/n1/cache/*/*/scr.brought/1/a/rank_*"))
        shutil.rmtree(job.prefix / "a")
        shutil.rmtree(job.prefix / ".scr")
        job.run("init", "start:a:c", "tag:new", "put:a/rank_%r:1000", "complete:1", "finalize", layout=[("n3", 2), ("n4", 2)])
        job.run("init", "have => 1 a", "start_restart", "tag:new", "take:1000 => 4", "complete_restart:1", layout=nodes(3), SCR_CACHE_BYPASS=1)


def test_no_room():
    """Failing calls never cause wrong bytes, and do not mark the checkpoint."""
    for how in "ENOSPC", "EIO":
        with elastic_job() as job:
            failed = 0
            for run in strikes(job, ["init => ANY", "have => ANY", "start_restart => ANY", "take:1000 => ANY",
                                     "complete_restart:1 => ANY"], how, 1, FAULTS_STAYS=1):
                assert "differs" not in run.out and "ends within" not in run.out, run
                failed += "FETCH_FILES_FAILED" in run.err
                job.run("init", take("a", 4), layout=THREE)
            assert failed > 0, how


def test_not_brought():
    """A program that therefore cannot read its files reports that, and the next run gets
    the same checkpoint."""
    with Job(2, 1, SCR_FLUSH=0, **ANY) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        full = {"FAULTS_BELOW": job.cache("n2") / "scr.brought", "FAULTS_RANK": 1, "FAULTS_AT": 1, "FAULTS_HOW": "ENOSPC", "FAULTS_STAYS": 1}
        run = job.run("init", "have => 1 b", "start_restart", "fetch_files:b/rank_0 => FAILURE", "complete_restart:0 => INVALID",
                      "have => 1 a", faults=full)
        run.says("FETCH_FILES_FAILED", "b/rank_0", "No space")
        run.says("RESTART_NOT_READ", "b", times=1)
        job.run("init", take("b", 2))


def test_list_not_written():
    """Without a list the questions have no answers; files are still brought."""
    with Job(2, 1, SCR_FLUSH=0, **ANY) as job:
        job.run("init", checkpoint("a"))
        (job.prefix / f".scr/restart.{USER}+scr.{JOB}").write_text("in the way\n")
        run = job.run("init", "have => 1 a", "start_restart", "dataset_file:0:0 => FAILURE =:0", "take_file:a/rank_0:0:1000",
                      "complete_restart:1")
        run.says("RESTART_LIST_NOT_WRITTEN", "a", "is on the way", times=1)
        run.says("RESTART_LIST_REFUSED", "was not written")


def test_damage():
    """A damaged map on the prefix directory does not affect the cache; damaged containers
    are detected, and an older checkpoint is next."""
    with Job(3, 1, SCR_FLUSH=1, SCR_CACHE_KEEP=1, **ANY) as job:
        job.run("init", checkpoint("a"), "finalize")
        damage.flip(job.prefix / "a/.scr/rank2file.scr")
        job.run("init", take("a", 3), layout=nodes(2, 1, 1))
    for how in "flip", "cut":
        with Job(2, 2, SCR_FLUSH=1, SCR_USE_CONTAINERS=1, **ANY) as job:
            job.run("init", checkpoint("a"), checkpoint("b"), "finalize")
            container, = [path for path in (job.prefix / "b").rglob("ctr.*")]
            if how == "flip":
                damage.flip(container)
                job.run("init", "have => 1 b", "start_restart", "take:1000 => ANY", "complete_restart:0 => INVALID",
                        take("a", 4), layout=nodes(3))
            else:
                os.truncate(container, 1000)
            run = job.run("init", take("a", 4), layout=nodes(3))
            run.says("FETCH_CHECKPOINT_DAMAGED", "b", "too short", times=int(how == "cut"))


def test_damaged_with_its_time():
    """Bytes of a file on the prefix directory change but not its time: its checksum is
    compared, unless the user reads directly."""
    with Job(2, 2, SCR_FLUSH=1, **ANY) as job:
        job.run("init", checkpoint("a"), checkpoint("b"), "finalize")
        path = job.prefix / "b/rank_2"
        before = path.stat()
        damage.flip(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        run = job.run("init", take("a", 4), layout=nodes(3))
        run.says("FETCH_CHECKPOINT_DAMAGED", "b", "rank_2", times=1)
    with Job(2, 2, SCR_FLUSH=1, SCR_FETCH_BYPASS=1, **ANY) as job:
        job.run("init", checkpoint("a"), "finalize")
        path = job.prefix / "a/rank_2"
        before = path.stat()
        damage.flip(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        job.run("init", "have => 1 a", layout=nodes(3))


def heat(job, program, steps, *more, **parameters):
    """Returns the output of the example, which must have ended successfully."""
    process = job.start(os.environ[program], "-n", "60", "-t", str(steps), "-c", "10", *more, **parameters)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, f"exit code {process.returncode}\n{out}{err}"
    return out + err


def test_heat():
    """Runs with 8, 6, 12 and 3 ranks, and a lost node without a spare in between, give
    the result of heat without SCR."""
    with Job(4, 2, SCR_CACHE_KEEP=1) as job:
        wanted, found = job.root / "undisturbed", job.root / "found"
        heat(job, "JOB_HEAT", 100, "-o", str(wanted), SCR_ENABLE=0)
        heat(job, "JOB_HEAT_ELASTIC", 25, SCR_FLUSH=0)
        job.lose("n3")
        for steps, layout in ((50, [("n1", 2), ("n2", 2), ("n4", 2)]), (75, nodes(4, 4, 4)), (100, nodes(2, 1))):
            out = heat(job, "JOB_HEAT_ELASTIC", steps, "-o", str(found), layout=layout, SCR_FLUSH=0 if steps < 75 else 1)
            assert f"at step {(steps - 25) // 10 * 10}\n" in out, out
        assert found.read_bytes() == wanted.read_bytes()


def test_abandon():
    """With an open output, restart and flush: complete datasets are there for the next
    run of the process."""
    with Job(2, 2, SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, **ANY) as job:
        run = job.run("abandon => STATE", "init", checkpoint("a", size=300000), "abandon", "need => STATE 0", "abandon => STATE",
                "init", "have => 1 a", "start:b:c", "put:b/rank_%r:1000", "abandon",
                "init", take("a", 4, 300000), checkpoint("c"), "have => 1 c", "start_restart", "take:1000 => 4", "abandon",
                "init", take("c", 4), "finalize", "abandon => STATE")
        run.says("CALL_OUT_OF_ORDER", "SCR_Abandon: SCR is not initialized", times=1)
        run.says("CALL_OUT_OF_ORDER", "(SCR_Need_checkpoint|SCR_Abandon): SCR_Abandon has ended the run already; .* SCR_Init_comm", times=2)
        run.says("CALL_OUT_OF_ORDER", "SCR_Abandon: SCR_Finalize has ended the run already", times=1)
        assert (job.prefix / "c/rank_0").exists() and not (job.prefix / "b").exists()
        job.run("init => DISABLED", "abandon => DISABLED", SCR_ENABLE=0)


def test_survivor():
    """Two ranks leave, and the others continue within the same mpiexec, with and without
    spare ranks in their places."""
    for spares in 2, 0:
        layout = nodes(2, 2, 2, 2, spares)
        with Job(layout=layout, SCR_FLUSH=0) as job:
            wanted, found = job.root / "undisturbed", job.root / "found"
            heat(job, "JOB_HEAT", 80, "-o", str(wanted), SCR_ENABLE=0)
            out = heat(job, "JOB_HEAT_SURVIVOR", 80, "-o", str(found), "-l", "45", "-k", "2", "-s", str(spares))
            assert f"restarted from ckpt.40, at step 40\n" in out and f"at step 80 with {6 + spares} ranks\n" in out, out
            assert len(messages(out, "RUN_ABANDONED")) == 1 and len(messages(out, "REBUILD_COMPLETE", "2 of 8 ranks")), out
            assert found.read_bytes() == wanted.read_bytes()


def test_survivor_of_deaths():
    """The same when two ranks die and the MPI lets the others live."""
    if MPI.mpi == "MPICH":
        raise Skip("mpiexec of MPICH ends all ranks when one dies")
    with Job(4, 2, SCR_FLUSH=0) as job:
        wanted, found = job.root / "undisturbed", job.root / "found"
        heat(job, "JOB_HEAT", 80, "-o", str(wanted), SCR_ENABLE=0)
        process = job.start(os.environ["JOB_HEAT_SURVIVOR"], "-n", "60", "-t", "80", "-c", "10", "-o", str(found), "-l", "45",
                            "-k", "2", "-d", faults={"OMPI_MCA_orte_enable_recovery": "1"})
        out, err = process.communicate(timeout=60)
        assert "restarted from ckpt.40, at step 40\n" in out and "at step 80 with 6 ranks\n" in out, out + err
        assert messages(out + err, "REBUILD_COMPLETE", "2 of 8 ranks"), out + err
        assert found.read_bytes() == wanted.read_bytes()


if __name__ == "__main__":
    main(globals())
