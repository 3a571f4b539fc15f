#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Flushes that outlive their run: scr_transfer continues to copy when the application has
died. The next run completes what it can, copies nothing twice, and removes the rest."""
import concurrent.futures
import os
import shutil

from flush import LARGE, SLOW, lose_all, places, stages, with_scr_transfer
from job import Job, checkpoint, end_all, main, restart, wait_until
import damage
import tree

DAEMON = {"SCR_FLUSH": 1, "SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON"}
PAIR = {"nodes": 2, "per_node": 1, **DAEMON}
THREADS = {"SCR_FLUSH_TYPE": "PTHREAD", "SCR_FLUSH_ASYNC_BW": "100KB"}
OLD = 12345


# ---- what is there ----

def states(job):
    return sorted((path for node in (job.root / "nodes").iterdir()
                   for path in node.glob("cntl/**/transfer_*.scrinfo")), key=lambda path: path.name)


def temporaries(job):
    """Returns the files that flushes have copied."""
    return sorted(path for stage in stages(job) for path in stage.rglob("*") if path.is_file() and path.name != "stage.scr")


def is_done(state):
    return "DONE" in tree.read(state).get("FLAG", {})


def let_finish(job, count):
    """Waits until scr_transfer has copied all files of that number of ranks."""
    wait_until(lambda: len(states(job)) == count and all(is_done(path) for path in states(job)))


def make_old(job):
    """Sets a time of the temporary files that stays only if they are not copied again."""
    for path in temporaries(job):
        os.utime(path, (OLD, OLD))


def kept(job, name):
    """Returns the ranks whose files have that time."""
    return sorted(int(path.name.removeprefix("rank_")) for path in (job.prefix / name).glob("rank_*")
                  if path.stat().st_mtime == OLD)


def expect_clean(job):
    assert not stages(job), stages(job)
    assert not states(job), states(job)


def die(job, name="c1", size=LARGE, before=(), script=None, copies=None, **how):
    """A run is killed when the flush of its checkpoint, or of that of the script, has
    begun; if that is slow, on all ranks, with that number of copies (by default one
    each)."""
    go = job.root / "go"
    copies = copies or sum(count for _, count in job.layout)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        run = pool.submit(job.run, "init", list(before), script or checkpoint(name, size), f"await@0:{go}", "kill@0", dies=True,
                          **how)
        if "SCR_FLUSH_ASYNC_BW" in how:
            wait_until(lambda: run.done() or len(temporaries(job)) == copies)
        go.touch()
        run.result()
    go.unlink()


# ---- records are lost ----

def test_flush_file_lost():
    """Without the flush file, files copied by threads are removed, and the dataset is
    flushed again; files copied by scr_transfer are resumed."""
    for method in (THREADS, SLOW):
        for hurt in (damage.flip, damage.empty, damage.remove):
            with Job(**PAIR) as job:
                die(job, **method)
                end_all()
                assert len(temporaries(job)) == 2
                hurt(job.prefix / ".scr/flush.scr")
                run = job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
                run.says("FLUSH_FILE_LOST", "flush.scr", times=hurt != damage.remove)
                assert "PFS" in places(job, 1)
                expect_clean(job)


def test_flush_file_and_index_lost():
    """The dataset is neither in the cache nor in the index: its directory is removed,
    too."""
    with Job(**PAIR) as job:
        die(job, "run/c1", **THREADS)
        for name in ("flush.scr", "index.scr"):
            damage.garbage(job.prefix / ".scr" / name)
        lose_all(job)
        (job.prefix / "run/mine").write_text("")
        job.run("init", "have => 0")
        assert [path.name for path in (job.prefix / "run").iterdir()] == ["mine"]


def scattered(name, folder):
    """A checkpoint with its files elsewhere."""
    return [f"start:{name}:c", f"put:{folder}/rank_%r/{name.replace('/', '.')}:{LARGE}", "complete:1"]


def test_flush_file_lost_scattered():
    """Wherever its files belong, the stage is in the directory of the dataset."""
    for name, folder in (("run/c1", "run/out"), ("c1", "out")):
        with Job(**PAIR) as job:
            die(job, script=scattered(name, folder), **THREADS)
            mine = job.prefix / folder / ".0123456789abcdef-0-0.tmp"
            mine.write_text("of nobody's flush")
            assert stages(job) == [job.prefix / name / ".scr/stage"], stages(job)
            damage.remove(job.prefix / ".scr/flush.scr")
            job.run("init", "finalize", SCR_FLUSH=0)
            assert mine.read_text() == "of nobody's flush"
            expect_clean(job)


def test_flush_file_lost_beside_a_complete_one():
    """The earlier dataset of that name stays as it is."""
    for script in (checkpoint("c1", LARGE), scattered("c1", "out")):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"), "finalize")
            die(job, script=script, **THREADS)
            assert len(temporaries(job)) == 2
            damage.flip(job.prefix / ".scr/flush.scr")
            lose_all(job)
            run = job.run("init", restart("c1"))
            run.says("FLUSH_FILE_LOST", "flush.scr", times=1)
            expect_clean(job)


def test_cache_lost_scattered():
    """The index shows the stage; if the index is lost, too, a search finds it."""
    for lost in ([], ["index.scr"], ["index.scr", "flush.scr"]):
        with Job(**PAIR) as job:
            die(job, script=scattered("c1", "out"), **THREADS)
            assert len(temporaries(job)) == 2
            lose_all(job)
            for name in lost:
                damage.garbage(job.prefix / ".scr" / name)
            run = job.run("init", "have => 0")
            run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
            expect_clean(job)


def test_record_damaged():
    """The flush is unknown: it is removed, and begins anew in its turn."""
    for hurt in (damage.flip, damage.empty, damage.remove):
        with Job(**PAIR) as job:
            die(job)
            let_finish(job, 2)
            hurt(next(stages(job)[0].glob("*/stage.scr")))
            run = job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
            run.says("FLUSH_ABANDONED", "2", times=1)
            assert "PFS" in places(job, 1)
            expect_clean(job)
            lose_all(job)
            job.run("init", restart("c1", LARGE))


def test_state_damaged():
    """The damage is reported, and the files are copied again."""
    with Job(**PAIR) as job:
        die(job, **SLOW)
        end_all()
        for path in states(job):
            damage.flip(path)
        run = job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
        run.says("CONTROL_FILE_LOST", "node n[12]", "transfer_[01].scrinfo", times=2)
        assert "PFS" in places(job, 1)
        expect_clean(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


# ---- it is finished ----

def test_state_and_record_damaged():
    """The flush is not resumed; both files are reported."""
    with Job(**PAIR) as job:
        die(job, **SLOW)
        end_all()
        damage.flip(states(job)[0])
        damage.flip(job.prefix / ".scr/flush.scr")
        run = job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
        run.says("FLUSH_FILE_LOST", "flush.scr", times=1)
        run.says("CONTROL_FILE_LOST", "node n1", "transfer_0.scrinfo", times=1)
        expect_clean(job)


def test_goes_on():
    """The process still copies: the run continues meanwhile, and monitors it."""
    with Job(**PAIR) as job:
        die(job, **SLOW)
        assert len(states(job)) == 2 and len(temporaries(job)) == 2
        run = job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
        run.says("FLUSH_RESUMED", "dataset 1", times=1)
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        assert "PFS" in places(job, 1) and "FLUSHING" not in places(job, 1)
        expect_clean(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_done_when_the_run_begins():
    """Everything was copied: it is read, and nothing is copied again. Also without
    SCR_FLUSH_ASYNC."""
    with Job(**PAIR) as job:
        die(job)
        let_finish(job, 2)
        make_old(job)
        run = job.run("init", "finalize", SCR_FLUSH_ASYNC=0, SCR_FLUSH_TYPE="SYNC", SCR_FLUSH=0, SCR_CACHE_KEEP=1)
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        assert kept(job, "c1") == [0, 1], kept(job, "c1")
        assert "PFS" in places(job, 1)
        expect_clean(job)


def test_refused_when_it_goes_on():
    """A checkpoint that the program refuses is not completed on the prefix directory,
    where it would be offered again."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        die(job, "c2", **{**SLOW, "SCR_FLUSH_ASYNC_BW": "20KB"})
        run = job.run("init", "have => 1 c2", "start_restart => c2", "complete_restart:0 => INVALID", restart("c1"), "finalize")
        run.says("FLUSH_RESUMED", "dataset 2", times=1)
        run.not_said("FLUSH_RESUMED_COMPLETE")
        job.run("init", restart("c1"), "finalize")
        expect_clean(job)


def test_events():
    with Job(SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0, **PAIR) as job:
        die(job)
        job.run("init", "finalize")
        log = "".join(path.read_text() for path in (job.prefix / ".scr").glob("log*"))
        assert log.count("FLUSH_COMPLETE") >= 1, log


def test_scattered():
    """Files beside the directory of their dataset."""
    with Job(**PAIR) as job:
        job.run("init", "start:c1:c", "put:else/where_%r:1000", "complete:1", "kill@0", dies=True)
        let_finish(job, 2)
        assert len(temporaries(job)) == 2 and not list((job.prefix / "else").iterdir())
        run = job.run("init", "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        expect_clean(job)
        assert len(list((job.prefix / "else").glob("where_*"))) == 2


def test_an_older_one_does_not_take_the_place_of_a_newer():
    """While the earlier flush continues, the run flushes a newer checkpoint after it."""
    with Job(**PAIR) as job:
        die(job, **SLOW)
        run = job.run("init", restart("c1", LARGE), checkpoint("c2"), "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        lose_all(job)
        job.run("init", restart("c2"))


def test_newer_one_of_the_same_name():
    """Another job has rewritten that dataset, which the earlier flush would replace."""
    with Job(**PAIR) as job:
        die(job)
        job.run("init", checkpoint("c1", 700), "finalize", SCR_JOB_ID=18)
        run = job.run("init", restart("c1", 700), "finalize")
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)


def test_waves():
    """Not all ranks copy at the same time: waiting ranks get their turn after the program
    died."""
    with Job(nodes=2, per_node=3, SCR_FLUSH_WIDTH=2, **DAEMON) as job:
        die(job)
        let_finish(job, 6)
        make_old(job)
        run = job.run("init", restart("c1", LARGE), "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        assert kept(job, "c1") == [0, 1, 2, 3, 4, 5], kept(job, "c1")
        expect_clean(job)


def test_waves_on_a_node():
    """SCR_FLUSH_WIDTH is divided among nodes: one of the three transfers of a node has
    begun, and the others have not."""
    with Job(nodes=2, per_node=3, SCR_FLUSH_WIDTH=3, **DAEMON) as job:
        die(job, **SLOW)
        wait_until(lambda: all(list(job.control(node).glob("transfer_turn.0.lock")) for node in job.nodes()))
        assert not any(list(job.control(node).glob("transfer_turn.1.lock")) for node in job.nodes())
        run = job.run("init", restart("c1", LARGE), "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        expect_clean(job)


def test_containers():
    packed = {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": 150_000}
    with Job(nodes=2, per_node=2, **DAEMON) as job:
        die(job, **packed)
        let_finish(job, 4)
        run = job.run("init", "finalize")  # files are not packed now, but those are
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        expect_clean(job)
        sizes = [path.stat().st_size for path in (job.prefix / "c1/.scr").glob("ctr.*.scr")]
        assert max(sizes) == 150_000, sizes
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_countless_containers():
    """Colleagues may be able to change the record of a stage: its size would make a file
    of every few bytes."""
    packed = {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": 150_000}
    with Job(nodes=2, per_node=1, **DAEMON) as job:
        die(job, **packed)
        let_finish(job, 2)
        (record,) = [path for stage in stages(job) for path in stage.rglob("stage.scr")]
        tree.write(record, {**tree.read(record), "CONTAINER": {"5": {}}})
        run = job.run("init", restart("c1", LARGE), "finalize")
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)


# ---- compared ----

def blank(path):
    """The data is lost, but not the size: a power failure."""
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


def test_altered_in_between():
    """Copied data is lost or altered, by a file server or by a user. It is read before it
    counts, and only the differing files are copied again."""
    for hurt in (damage.flip_first, damage.flip_last, damage.cut, damage.remove, blank):
        with Job(**PAIR, SCR_CRC_ON_FLUSH=int(hurt != blank)) as job:
            die(job)
            let_finish(job, 2)
            make_old(job)
            hurt(temporaries(job)[0])
            run = job.run("init", "finalize")
            run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
            assert kept(job, "c1") == [1], f"{hurt.__name__}: {kept(job, 'c1')}"
            expect_clean(job)
            lose_all(job)
            job.run("init", restart("c1", LARGE))


def test_altered_container():
    packed = {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": 150_000}
    with Job(nodes=2, per_node=2, **DAEMON) as job:
        die(job, **packed)
        let_finish(job, 4)
        for path in temporaries(job):
            blank(path)
        run = job.run("init", "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        expect_clean(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_altered_under_threads():
    """The work of a program's threads that died is not used."""
    with Job(**{**PAIR, "SCR_FLUSH_TYPE": "PTHREAD"}) as job:
        die(job, **SLOW)
        for path in temporaries(job):
            blank(path)
        job.run("init", restart("c1", LARGE), "finalize", SCR_CACHE_KEEP=1)
        assert "PFS" in places(job, 1)
        expect_clean(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


# ---- nodes ----

def test_node_lost_in_between():
    """Its ranks copy their rebuilt files; the others do not copy again."""
    with Job(nodes=3, per_node=2, **DAEMON) as job:
        die(job)
        let_finish(job, 6)
        make_old(job)
        job.lose("n2")
        job.replace("n2", "n4")
        run = job.run("init", restart("c1", LARGE), "finalize")
        run.says("REBUILD_COMPLETE", "2 of 6 ranks", times=1)
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        assert kept(job, "c1") == [0, 1, 4, 5], kept(job, "c1")
        expect_clean(job)


def test_ranks_go_elsewhere():
    """Fewer processes per node: a process that finds its state file continues with it,
    and transfers of others are ended."""
    with Job(nodes=2, per_node=2, **DAEMON) as job:
        die(job)
        let_finish(job, 4)
        make_old(job)
        job.layout = [("n1", 1), ("n2", 1), ("n3", 2)]
        run = job.run("init", restart("c1", LARGE), "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        run.says("FLUSH_ABANDONED", "3", times=1)  # of ranks 1, 2 and 3
        assert kept(job, "c1") == [0], kept(job, "c1")
        expect_clean(job)


def test_containers_elsewhere():
    """Processes are distributed in another way, and so would the containers be. The flush
    begins anew in its turn."""
    with Job(nodes=2, per_node=2, SCR_USE_CONTAINERS=1, **DAEMON) as job:
        die(job)
        let_finish(job, 4)
        job.layout = [("n1", 1), ("n2", 1), ("n3", 2)]
        run = job.run("init", restart("c1", LARGE))
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)
        job.run("init", "finalize")
        lose_all(job)
        job.run("init", restart("c1", LARGE))


# ---- it is not ----

def test_cache_lost():
    """The files are unknown: transfers are stopped, also running ones, and nothing is
    left."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        die(job, "c2", **SLOW)
        assert len(temporaries(job)) == 2
        for node in job.nodes():
            shutil.rmtree(job.cache(node))
        run = job.run("init", restart("c1"))
        run.says("FLUSH_ABANDONED", "2", times=1)
        run.says("FLUSH_NOT_RESUMED", "dataset 2", times=1)
        expect_clean(job)


def test_transfer_cannot_be_ended():
    """Its file cannot be read now: that is reported, and the next run ends it."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        die(job, "c2", **SLOW)
        for node in job.nodes():
            shutil.rmtree(job.cache(node))
        run = job.run(f"unreadable@0:{states(job)[0].name}", "init", restart("c1"))
        run.says("FLUSH_NOT_ABANDONED", "node n1", "rank 0", "Input/output error", times=1)
        run.says("FLUSH_ABANDONED", "1", times=1)
        job.run("init", restart("c1")).says("FLUSH_ABANDONED", "1", times=1)
        expect_clean(job)


def test_damaged_in_the_cache():
    """The damage is detected when the files are read, after the flush was chosen: nothing
    is copied any more, and nothing is left."""
    with Job(**PAIR) as job:
        die(job, **SLOW)
        assert len(temporaries(job)) == 2
        for node, rank in (("n1", 0), ("n2", 1)):
            path = next(job.cache(node).rglob(f"c1/rank_{rank}"))
            path.write_bytes(bytes(path.stat().st_size))
        run = job.run("init", "have => 0", checkpoint("c2"), "finalize")
        run.says("REBUILD_IMPOSSIBLE", "dataset 1", times=1)
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)


def test_earlier_index():
    """The index does not know the dataset, so its directory has no owner."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c0"), "finalize")
        index = (job.prefix / ".scr/index.scr").read_bytes()
        die(job, "c1", **THREADS)
        assert (job.prefix / "c1").exists()
        (job.prefix / ".scr/index.scr").write_bytes(index)
        run = job.run("init", restart("c1", LARGE), SCR_FLUSH=0)
        run.says("FLUSH_NOT_RESUMED", "dataset 2", times=1)
        expect_clean(job)
        assert not (job.prefix / "c1").exists()


def test_all_nodes_lost():
    """Even the state files are lost; the record of the flush remains."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        die(job, "c2")
        let_finish(job, 2)
        lose_all(job)
        run = job.run("init", restart("c1"))
        run.says("FLUSH_NOT_RESUMED", "dataset 2", times=1)
        expect_clean(job)


def test_other_number_of_ranks():
    with Job(nodes=3, per_node=1, **DAEMON) as job:
        die(job, **SLOW)
        job.run("init", "have => 0", checkpoint("c2"), layout=[("n1", 1), ("n2", 1)])
        assert not [path for path in temporaries(job) if job.prefix / "c1" in path.parents], temporaries(job)


def test_other_number_of_ranks_that_reads_it():
    """The stage belongs to another number of processes: it is removed, and the flush
    begins anew in its turn."""
    with Job(nodes=3, per_node=1, SCR_RESTART_RANKS="any", **DAEMON) as job:
        die(job)
        let_finish(job, 3)
        four = [("n1", 2), ("n2", 1), ("n3", 1)]
        run = job.run("init", "have => 1 c1", layout=four)
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)
        job.run("init", "finalize", layout=four)
        expect_clean(job)
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_purged():
    with Job(**PAIR) as job:
        die(job, **SLOW)
        run = job.run("init", "have => 0", "finalize", SCR_CACHE_PURGE=1)
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)


def test_threads():
    """The threads died with the program: their files are removed, and the flush begins
    anew at the end."""
    with Job(**{**PAIR, "SCR_FLUSH_TYPE": "PTHREAD"}) as job:
        die(job, **SLOW)
        assert len(temporaries(job)) == 2
        run = job.run("init", restart("c1", LARGE), "kill@0", dies=True)
        run.says("FLUSH_NOT_RESUMED", "dataset 1", times=1)
        expect_clean(job)
        job.run("init", "finalize")
        lose_all(job)
        job.run("init", restart("c1", LARGE))


def test_of_another_job():
    """Its transfers may be running; other jobs do not touch its files."""
    with Job(**PAIR) as job:
        die(job, **SLOW)
        before = temporaries(job), states(job)
        assert len(before[0]) == len(before[1]) == 2
        run = job.run("init", "have => 0", checkpoint("other"), "finalize", SCR_JOB_ID="18")
        run.not_said("FLUSH_(NOT_)?RESUMED")
        assert before[0] == temporaries(job)
        run = job.run("init", "finalize")
        run.says("FLUSH_RESUMED_COMPLETE", "dataset 1", times=1)
        expect_clean(job)


def test_fails_when_it_goes_on():
    """The run reports the failure once, nothing is left, and the cache still has the
    checkpoint."""
    with Job(**PAIR) as job:
        die(job)
        let_finish(job, 2)
        (job.prefix / "c1/rank_1").mkdir()
        run = job.run("init", restart("c1", LARGE), checkpoint("c2", code="FLUSH"), "finalize")
        run.says("FLUSH_FAILED", "dataset 1", times=1)
        expect_clean(job)


# ---- killed again ----

def test_killed_within():
    """Wherever a run that completes an earlier flush is killed, the next run completes
    it."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c0"), "finalize")
        die(job)
        let_finish(job, 2)
        job.save()
        dead = 0
        for change in range(1, 60, 5):
            job.go_back()
            run = job.run(f"crash@0:{change}", "init", "finalize", dies=None)
            dead += run.code != 0
            job.run("init", restart("c1", LARGE), "finalize")
            expect_clean(job)
            job.layout, layout = [("n8", 1), ("n9", 1)], job.layout
            job.run("init", restart("c1", LARGE))
            job.layout = layout
        assert dead >= 5, dead


if __name__ == "__main__":
    with_scr_transfer()
    main(globals())
