#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SCR_FLUSH_FORM=containers: one process per node packs the files of all its ranks into a
container. Nodes are lost, flushes are killed and resumed, runs have other numbers of
ranks, and containers of the older form remain usable."""
from elastic import ANY, nodes, take
from flush import LARGE, lose_all, places, stages, with_scr_transfer
from job import Job, checkpoint, main, restart
from parts import read, whole, write
from resume import DAEMON, die, expect_clean, let_finish, states, temporaries
import damage
import tree

KB = 1024
FORM = {"SCR_FLUSH_FORM": "containers", "SCR_FLUSH_ALIGN": "4KB"}
SIX = {"nodes": 3, "per_node": 2, "SCR_FLUSH": 1}
SIZED = {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": 2500}


def containers(job, name):
    return sorted((job.prefix / name / ".scr").glob("ctr.*"))


def expect_containers(job, name, *ends):
    """Files have about 1000 bytes, two per node: the second one begins at 4 KB. ends: the
    last multiple of 4 KB in each."""
    sizes = [path.stat().st_size for path in containers(job, name)]
    assert [size // KB // 4 * 4 for size in sizes] == list(ends), sizes
    assert all(size % (4 * KB) > 900 for size in sizes), sizes
    assert not list((job.prefix / name).glob("rank_*")) and not stages(job)


# ---- there and back ----

def test_one_per_node():
    with Job(**SIX, **FORM) as job:
        job.run("init", checkpoint("c1"), "finalize")
        expect_containers(job, "c1", 4, 4, 4)
        lose_all(job)
        job.run("init", restart("c1"))


def test_nodes_per_container():
    with Job(**SIX, **FORM, SCR_CONTAINER_NODES=2) as job:
        job.run("init", checkpoint("c1"), "finalize")
        expect_containers(job, "c1", 12, 4)
        lose_all(job)
        job.run("init", restart("c1"))


def test_types():
    """In the background, by threads and by scr_transfer, one transfer per node."""
    for method in "SYNC", "PTHREAD", "DAEMON":
        with Job(**SIX, **FORM, SCR_FLUSH_ASYNC=1, SCR_FLUSH_TYPE=method) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
            for name in "c1", "c2":
                expect_containers(job, name, 4, 4, 4)
            assert not states(job), states(job)
            lose_all(job)
            job.run("init", restart("c2"))


def test_alignment():
    """The alignment may be any number of bytes."""
    with Job(nodes=1, per_node=2, SCR_FLUSH=1, SCR_FLUSH_FORM="containers", SCR_FLUSH_ALIGN=3000) as job:
        job.run("init", checkpoint("c1"), "finalize")
        (container,) = containers(job, "c1")
        content = container.read_bytes()
        assert not any(content[1100:3000]) and any(content[3000:3100]) and 4000 <= len(content) < 4100, len(content)
        lose_all(job)
        job.run("init", restart("c1"))


def test_default_alignment():
    """The default is 16 MB: holes take no space."""
    with Job(nodes=1, per_node=2, SCR_FLUSH=1, SCR_FLUSH_FORM="Containers") as job:
        job.run("init", checkpoint("c1"), "finalize")
        (container,) = containers(job, "c1")
        st = container.stat()
        assert 1000 <= st.st_size - 16 * KB * KB < 1100 and st.st_blocks * 512 < KB * KB, st
        lose_all(job)
        job.run("init", restart("c1"))


def test_form():
    """SCR_FLUSH_FORM prevails over the older parameter."""
    with Job(**SIX, **SIZED) as job:
        job.run("init", checkpoint("c1"), "finalize", SCR_FLUSH_FORM="files")
        assert not containers(job, "c1") and len(list((job.prefix / "c1").glob("rank_*"))) == 6
        job.run("init", checkpoint("c2"), "finalize", **FORM)
        expect_containers(job, "c2", 4, 4, 4)


def test_mistakes():
    with Job(nodes=1, per_node=1) as job:
        run = job.run("init => CONFIG", SCR_FLUSH_FORM="boxes", SCR_FLUSH_ALIGN="2GB", SCR_CONTAINER_NODES=0)
        for name in ("SCR_FLUSH_FORM", "SCR_FLUSH_ALIGN", "SCR_CONTAINER_NODES"):
            assert name in run.err, run.err


def test_in_place():
    """Files are extracted on request."""
    with Job(**SIX, **FORM, SCR_FETCH_BYPASS=1) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        lose_all(job)
        job.run("init", "have => 1 b", "tag:b", "get:b/rank_%r:1000", checkpoint("c"), "finalize")
        expect_containers(job, "c", 4, 4, 4)
        assert not any(job.root.glob("nodes/**/scr.brought"))


def test_deleted():
    with Job(**SIX, **FORM) as job:
        job.run("init", checkpoint("c1"), "delete:c1", "finalize")
        assert not (job.prefix / "c1").exists()


def test_older_form():
    """A run with the new form reads containers of a fixed size, and replaces them under
    the same name."""
    for bypass in 0, 1:
        with Job(**SIX, SCR_FETCH_BYPASS=bypass) as job:
            job.run("init", checkpoint("c1"), "finalize", **SIZED)
            before = containers(job, "c1")
            assert before and all(path.stat().st_size <= 2500 for path in before)
            lose_all(job)
            job.run("init", restart("c1"), checkpoint("c2"), "finalize", **FORM)
            assert containers(job, "c1") == before
            expect_containers(job, "c2", 4, 4, 4)
            lose_all(job)
            job.run("init", restart("c2"), "finalize", **SIZED)


def test_shared_files():
    """A file of all ranks keeps its name; other files are packed."""
    with Job(**SIX, **FORM) as job:
        job.run("init", write("a"), "finalize")
        whole(job, "a")
        assert len(containers(job, "a")) == 3
        lose_all(job)
        job.run("init", read("a"))


# ---- losses ----

def test_node_lost():
    """A node is lost before the flush, which includes the rebuilt files."""
    with Job(**SIX, **FORM) as job:
        job.run("init", checkpoint("c1"), SCR_FLUSH=0)
        job.lose("n2")
        job.run("init", restart("c1"), "finalize")
        expect_containers(job, "c1", 4, 4, 4)
        lose_all(job)
        job.run("init", restart("c1"))


def test_other_ranks():
    """More and fewer ranks flush and fetch datasets of other runs."""
    with Job(4, 1, **FORM, **ANY) as job:
        job.run("init", checkpoint("a"), SCR_FLUSH=0)
        job.run("init", take("a", 4), "finalize", layout=nodes(2, 1, 1, 1), SCR_FLUSH=10)
        lose_all(job)
        job.run("init", take("a", 4), SCR_RESTART_RANKS="same")
        lose_all(job)
        for layout in nodes(3), nodes(2, 3):
            job.run("init", take("a", 4), layout=layout)
            job.lose(*(node for node, _ in layout))


def test_damaged():
    with Job(**SIX, **FORM) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
        damage.flip_first(containers(job, "c2")[1])
        lose_all(job)
        run = job.run("init", restart("c1"))
        run.says("FETCH_CHECKPOINT_DAMAGED", "c2", r"c2/\.scr/ctr\.1\.scr, which has rank_2, was altered: CRC32")


# ---- interrupted ----

def test_resumed():
    """scr_transfer has copied everything for both nodes when the program dies; the next
    run has another form."""
    with Job(nodes=2, per_node=2, **DAEMON) as job:
        die(job, **FORM)
        let_finish(job, 2)
        before = {path.name: path.stat().st_ino for path in temporaries(job)}
        run = job.run("init", "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        expect_clean(job)
        assert {path.name: path.stat().st_ino for path in containers(job, "c1")} == before
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_resumed_in_the_middle():
    """Copied data stays; altered data is copied again."""
    for hurt in None, damage.flip_first:
        with Job(nodes=2, per_node=2, **DAEMON, **FORM) as job:
            die(job, copies=2, SCR_FLUSH_ASYNC_BW="150KB")
            if hurt:
                hurt(temporaries(job)[0])
            run = job.run("init", "finalize")
            run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
            expect_clean(job)
            lose_all(job)
            job.run("init", restart("c1", LARGE))


def test_other_nodes():
    """With another distribution of ranks the flush is not resumed, but repeated."""
    with Job(nodes=2, per_node=2, **DAEMON, **FORM, **ANY) as job:
        die(job)
        let_finish(job, 2)
        run = job.run("init", "finalize", layout=nodes(1, 1, 2), SCR_FLUSH_ASYNC=0)
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        assert not stages(job)


def test_hostile_record():
    """Colleagues may be able to change the record of a stage: no container gets longer
    than a parameter allows."""
    with Job(nodes=2, per_node=2, **DAEMON) as job:
        die(job, **FORM)
        let_finish(job, 2)
        (record,) = [path for stage in stages(job) for path in stage.rglob("stage.scr")]
        content = tree.read(record)
        assert tree.only(content["ALIGN"]) == "4096" and tree.only(content["NODES"]) == "1", content
        tree.write(record, {**content, "ALIGN": {str(1 << 40): {}}})
        run = job.run("init", restart("c1", LARGE), "finalize")
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)


def test_no_room():
    """One leader's disk is full: the attempt fails, and the existing data stays."""
    with Job(**SIX, **FORM) as job:
        job.run("init", checkpoint("c1"))
        full = {"FAULTS_BELOW": job.prefix / "c2/.scr/stage", "FAULTS_RANK": 2, "FAULTS_AT": 3, "FAULTS_HOW": "ENOSPC", "FAULTS_STAYS": 1}
        run = job.run("init", checkpoint("c2", code="FLUSH"), faults=full)
        run.says("FLUSH_FAILED", "c2|dataset 2", "No space", times=1)
        assert not stages(job) and not containers(job, "c2")
        lose_all(job)
        job.run("init", restart("c1"))


def test_killed():
    """A process of any kind, leader or not, dies in the flush: the next run completes or
    repeats the flush."""
    for rank in 0, 1, 2:
        for at in 1, 4, 9, 15:
            with Job(**SIX, **FORM) as job:
                job.run("init", checkpoint("c1"))
                kill = {"FAULTS_BELOW": job.prefix, "FAULTS_RANK": rank, "FAULTS_AT": at, "FAULTS_HOW": "kill"}
                job.run("init", checkpoint("c2"), "kill@1", faults=kill, dies=True)
                run = job.run("init", "have", "finalize", SCR_CACHE_KEEP=1)
                assert not stages(job), (rank, at, run)
                lose_all(job)
                job.run("init", "have => 1", "finalize")


if __name__ == "__main__":
    with_scr_transfer()
    main(globals())
