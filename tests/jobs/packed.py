#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Containers of nodes (SCR_FLUSH_FORM=containers) and the rest of SCR: commands read,
verify, save and add them, background flushes write them, a window deletes them, and runs
with other numbers of ranks read them, also in place."""
import json
import os
import re

from containers import FORM, SIX, containers, expect_containers
from elastic import ANY, nodes, take
from flush import LARGE, stages, with_scr_transfer
from job import Job, checkpoint, main, restart
from parts import read, whole, write
from resume import DAEMON, die, expect_clean, let_finish
from scavenged import cached, command, lose_all, next_run_reads
from window import kept, series
import damage

KB = 1024
TWO = {**FORM, "SCR_CONTAINER_NODES": 2}


def extract(job, *arguments, code=0):
    """scr_extract is a command of libfilo."""
    folder = next(folder for folder in os.environ["JOB_PATH"].split(":") if os.access(f"{folder}/scr_extract", os.X_OK))
    return command(job, f"{folder}/scr_extract", *arguments, code=code)


def verified(job, name, code=0):
    """Returns the row of a dataset from scr_index --verify."""
    return json.loads(command(job, "scr_index", "--verify", "--json", name, code=code).out)


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mode & 0o777) for path in folder.glob("rank_*")}


def postrun(job):
    """Runs scr_postrun on the job's original nodes."""
    return command(job, "scr_postrun", SCR_SIMULATE=job.root / "nodes", SCR_NODELIST=",".join(job.nodes()))


# ---- commands ----

def test_listed():
    """Each file is in the container of its node, at a multiple of the alignment."""
    for per_container in 1, 2:
        with Job(**SIX, **FORM, SCR_CONTAINER_NODES=per_container) as job:
            job.run("init", checkpoint("c1"), "finalize")
            out, share = extract(job, "--list", "c1").out, 2 * per_container
            found = re.findall(r"^ +(\d+) +\d+ 0x[0-9a-f]{8} +rank_(\d) +in \.scr/ctr\.(\d)\.scr at (\d+) \(\d+\)$", out, re.MULTILINE)
            wanted = [(rank, rank, rank // share, rank % share * 4 * KB) for rank in range(6)]
            assert [tuple(map(int, row)) for row in found] == wanted, out


def test_extracted():
    """Extracted files have the bytes and modes of a flush without containers, beside
    their containers or elsewhere."""
    with Job(**SIX) as job:
        job.run("init", checkpoint("c1"), SCR_FLUSH=0)
        job.save()
        job.run("init", "finalize", SCR_FLUSH_FORM="files")
        plain = contents(job.prefix / "c1")
        assert len(plain) == 6
        for how in FORM, TWO, {**FORM, "SCR_FLUSH_ALIGN": 1}:
            job.go_back()
            job.run("init", "finalize", **how)
            assert not contents(job.prefix / "c1")
            there = job.root / "there"
            there.mkdir(exist_ok=True)
            extract(job, "--force", "--to", there, "c1")
            assert contents(there) == plain
            assert "6 extracted, 0 there already" in extract(job, "c1").out
            assert contents(job.prefix / "c1") == plain
            assert "0 extracted, 6 there already" in extract(job, "c1").out


def test_verified():
    """Damage of a container is damage of the files in it, and of no others."""
    for how, hurt, names in ((FORM, damage.flip_first, ["rank_2"]), (FORM, damage.cut, ["rank_3"]), (FORM, damage.remove, ["rank_2", "rank_3"]),
                             (TWO, damage.remove, ["rank_4", "rank_5"])):
        with Job(**SIX, **how) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
            row = verified(job, "c2")
            assert (row["result"], row["files"]) == ("good", 6), row
            assert "6 good, 0 damaged" in extract(job, "--verify", "c2").out
            hurt(containers(job, "c2")[1])
            done = extract(job, "--verify", "c2", code=1)
            assert re.findall(r"^(rank_\d): good$", done.out, re.MULTILINE) == [f"rank_{r}" for r in range(6) if f"rank_{r}" not in names], done
            assert sorted(set(re.findall(r"\brank_\d: (?=damaged|failed)", done.err))) == [f"{name}: " for name in names], done
            assert verified(job, "c2", code=1)["result"] == "damaged"
            assert verified(job, "c1")["result"] == "good"


def test_holes_do_not_matter():
    """The bytes between two ranks belong to no file."""
    with Job(**SIX, **FORM) as job:
        job.run("init", checkpoint("c1"), "finalize")
        with open(containers(job, "c1")[0], "r+b") as container:
            container.seek(2 * KB)
            container.write(b"whatever")
        assert verified(job, "c1")["result"] == "good"
        lose_all(job)
        job.run("init", restart("c1"))


# ---- a job was killed ----

def test_saved():
    """A node is lost, and no run is left to write containers of nodes: the saved files
    are packed into containers of a fixed size."""
    for how in FORM, TWO:
        with cached(**how, SCR_CONTAINER_SIZE=9000) as job:
            assert [path.stat().st_size for path in containers(job, "a")]
            job.lose("n3")
            done = postrun(job)
            assert "b: added; the next run begins with it" in done.out, done
            sizes = [path.stat().st_size for path in containers(job, "b")]
            assert len(sizes) == 5 and max(sizes) <= 9000 and not contents(job.prefix / "b"), sizes
            for name, files in ("a", 8), ("b", 8):
                row = verified(job, name)
                assert (row["result"], row["files"]) == ("good", files), row
            next_run_reads(job, "b", size=5000)
            assert len(containers(job, "a")) == (2 if how is TWO else 4)


def test_saved_shared_files():
    """Files that ranks write together are complete; the others are packed."""
    with Job(**SIX, **FORM) as job:
        job.run("init", write("a"), "kill@2", dies=True, SCR_FLUSH=0)
        job.lose("n2")
        postrun(job)
        whole(job, "a")
        assert containers(job, "a") and not contents(job.prefix / "a")
        lose_all(job)
        job.run("init", read("a"), "finalize")


def test_killed_in_flush():
    """A container is part of a flush that no process completes: the dataset is saved from
    the caches, and the next run removes the stage, or resumes the flush if nothing was
    saved."""
    for saved in True, False:
        with Job(nodes=2, per_node=2, **DAEMON, **FORM) as job:
            die(job, copies=2, SCR_FLUSH_ASYNC_BW="150KB")
            assert len(stages(job)) == 1
            if saved:
                done = postrun(job)
                assert "c1: added; the next run begins with it" in done.out, done
                assert verified(job, "c1")["result"] == "good"
            run = job.run("init", restart("c1", LARGE), "finalize")
            run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=0 if saved else 1)
            assert verified(job, "c1")["result"] == "good"
            expect_clean(job)
            lose_all(job)
            job.run("init", restart("c1", LARGE))


def test_killed_after_flush():
    """All containers are complete in the stage, but the map is not written."""
    with Job(nodes=2, per_node=2, **DAEMON, **TWO) as job:
        die(job)
        let_finish(job, 2)
        job.lose("n2")
        done = postrun(job)
        assert "c1: added; the next run begins with it" in done.out, done
        lose_all(job)
        job.run("init", restart("c1", LARGE), "finalize")
        assert not stages(job)


# ---- in the background, and away again ----

def test_window():
    """Older checkpoints are deleted with all of their containers, whoever wrote them and
    in whatever form."""
    for how in {}, {"SCR_FLUSH_ASYNC": 1}, {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON"}:
        with Job(**SIX, SCR_PREFIX_SIZE=2, **how) as job:
            job.run("init", series(1, 2), "finalize", SCR_FLUSH_FORM="files")
            run = job.run("init", "have => ANY", series(3, 5), "finalize", **TWO)
            run.says("PREFIX_DATASET_DELETED", "SCR_PREFIX_SIZE", times=3)
            assert kept(job) == ["c4", "c5"], kept(job)
            expect_containers(job, "c4", 12, 4)
            assert sorted(path.name for path in job.prefix.iterdir()) == [".scr", "c4", "c5"]
            lose_all(job)
            job.run("init", restart("c5"), series(6, 7), "finalize", SCR_USE_CONTAINERS=1, SCR_CONTAINER_SIZE=2500)
            assert kept(job) == ["c6", "c7"], kept(job)
            assert sorted(path.name for path in job.prefix.iterdir()) == [".scr", "c6", "c7"]


def test_outside():
    """Files with names outside of their dataset's directory are in its containers, and a
    window handles them, too."""
    with Job(**SIX, **FORM, SCR_PREFIX_SIZE=1) as job:
        for name in "c1", "c2":
            job.run("init", f"start:{name}:c", "put:elsewhere/f_%r:100", f"put:{name}/g_%r:1000", "complete:1", "finalize")
        assert kept(job) == ["c2"] and not (job.prefix / "c1").exists()
        lose_all(job)
        job.run("init", "have => 1 c2", "start_restart", "tag:c2", "get:elsewhere/f_%r:100", "get:c2/g_%r:1000", "complete_restart:1")


def test_background_and_losses():
    """A background flush completes in the next run, on another node in place of a lost
    one."""
    with Job(**SIX, **FORM, SCR_FLUSH_ASYNC=1, SCR_FLUSH_TYPE="PTHREAD") as job:
        job.run("init", checkpoint("c1"))
        job.run("init", checkpoint("c2", LARGE), "kill@1", dies=True, SCR_FLUSH_ASYNC_BW="50KB")
        job.lose("n2")
        job.replace("n2", "n4")
        job.run("init", restart("c2", LARGE), "finalize")
        assert verified(job, "c2")["result"] == "good" and len(containers(job, "c2")) == 3 and not stages(job)


# ---- other runs ----

def test_other_numbers_of_ranks():
    """Fewer and more ranks read each container, fetched or in place, and write their
    own."""
    for in_place in 0, 1:
        with Job(**SIX, **TWO, **ANY, SCR_FETCH_BYPASS=in_place) as job:
            job.run("init", checkpoint("a"), "finalize")
            ranks, before = 6, "a"
            for name, layout, count in ("b", nodes(1, 1), 1), ("c", nodes(3, 3, 1, 1), 2), ("d", nodes(4), 1):
                lose_all(job)
                job.run("init", take(before, ranks), "have => ANY", checkpoint(name), "finalize", layout=layout)
                assert len(containers(job, name)) == count and verified(job, name)["result"] == "good", name
                ranks, before = sum(number for _, number in layout), name
                job.layout = layout
            assert verified(job, "a")["result"] == "good"


def test_shared_files_in_place():
    """Files of a rank are read from its container, shared files directly."""
    with Job(**SIX, **TWO, SCR_FETCH_BYPASS=1) as job:
        job.run("init", write("a"), "finalize")
        lose_all(job)
        run = job.run("init", read("a"), "finalize")
        run.says("FETCH_DIRECT", "a", times=1)
        assert not contents(job.prefix / "a")


def test_damaged_in_place():
    """A truncated or missing container is detected at once, altered bytes when the file
    is extracted: an older checkpoint is read."""
    for hurt in damage.cut, damage.remove:
        with Job(**SIX, **FORM, SCR_FETCH_BYPASS=1) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
            hurt(containers(job, "c2")[1])
            lose_all(job)
            run = job.run("init", restart("c1"))
            run.says("FETCH_CHECKPOINT_DAMAGED", "c2", "ctr.1.scr", times=1)
    with Job(**SIX, **FORM, SCR_FETCH_BYPASS=1) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
        damage.flip_first(containers(job, "c2")[1])
        lose_all(job)
        run = job.run("init", "have => 1 c2", "start_restart => c2", "get@0,1,3,4,5:c2/rank_%r:1000", "get@2:c2/rank_2:1000 => FAILURE",
                      "complete_restart:0 => INVALID", restart("c1"))
        run.says("ROUTE_REFUSED", 'file "c2/rank_2"', "altered", times=1)


if __name__ == "__main__":
    with_scr_transfer()
    main(globals())
