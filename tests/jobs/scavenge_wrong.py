#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Failures while a dataset is saved from the caches: killed commands, full disks, hanging
nodes, continuing runs and flushes, and hostile data."""
import os
import shutil
import signal
import subprocess

from flush import stages, with_scr_transfer
from job import Job, checkpoint, main, messages, nothing_is_left, restart, wait_until
from resume import DAEMON, expect_clean, let_finish, temporaries
from scavenged import (TOOLS, begin, cached, command, copy, entry, index, is_committed, lose_all, next_run_reads, saved, scavenge)
import damage
import tree


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def files_of(job, name="b"):
    """Returns the files that the ranks wrote, from the caches."""
    return {path.name: path.read_bytes() for path in job.root.glob(f"nodes/*/cache/*/*/scr.dataset.*/{name}/*")}


# ---- killed ----

def strikes(job, run, how):
    """Kills a command, or injects an error, at its 1st, 2nd, ... change of the prefix
    directory, always from the same state; yields each number, and ends when there was no
    such change. Of later changes, only a sample is used."""
    job.save()
    struck = job.root / "struck"
    for number in range(1, 1000):
        if number > 8 and number % 7 and "JOB_THOROUGH" not in os.environ:
            continue
        struck.unlink(missing_ok=True)
        done = run(faults={"FAULTS_BELOW": job.prefix, "FAULTS_AT": number, "FAULTS_HOW": how, "FAULTS_MARK": struck})
        if not struck.exists():
            assert number > 20 and done.code == 0, (number, str(done))
            return
        assert done.code or how != "kill", (number, str(done))
        yield number
        job.go_back()


def is_good(job, files):
    is_committed(job, "b", 3)
    assert contents(job.prefix / "b") == files
    assert command(job, "scr_index", "--verify").code == 0


def test_copy_is_killed():
    """A killed copy is repeated: only complete files ever have their names."""
    with cached("XOR") as job:
        files = files_of(job)
        for _ in strikes(job, lambda faults: copy(job, 3, nodes=["n2"], code=None, faults=faults), "kill"):
            for path in saved(job, "b", 3).glob("b/rank_*"):
                assert path.read_bytes() == files[path.name]
            copy(job, 3)
            command(job, "scr_index", "--add", "b")
            is_good(job, files)


def test_add_is_killed():
    """The command is killed while it rebuilds a node, and while files get their names; a
    second call completes the work."""
    with cached("XOR") as job:
        files = files_of(job)
        job.lose("n2")
        copy(job, 3, nodes=["n1", "n3", "n4"])
        add = ["scr_index", "--add", "b", "--width", "1"]
        for _ in strikes(job, lambda faults: command(job, *add, code=None, faults=faults), "kill"):
            state = index(job)["DSET"].get("3", {"DIR": {"b": None}})["DIR"]["b"]
            assert state or not contents(job.prefix / "b"), "files have their names, and the index does not know"
            assert not state or tree.only(state["COMPLETE"]) == "0" or contents(job.prefix / "b") == files
            command(job, *add)
            is_good(job, files)
            assert not list((job.prefix / "b").rglob(".*.tmp"))


def test_packing_is_killed():
    """The same while files are packed; the second call has another configuration."""
    with cached("XOR") as job:
        copy(job, 3)
        pack = {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": "12KB"}
        for _ in strikes(job, lambda faults: command(job, "scr_index", "--add", "b", code=None, faults=faults, **pack), "kill"):
            begun = (saved(job, "b", 3) / ".scr/whole").exists()
            moved = list((job.prefix / "b/.scr").glob("ctr.*"))
            command(job, "scr_index", "--add", "b", SCR_USE_CONTAINERS=0)
            assert command(job, "scr_index", "--verify").code == 0 and not saved(job, "b", 3).exists()
            packed = not (job.prefix / "b/rank_0").exists()
            assert packed or not (begun or moved), "what was begun with containers goes on with them"
        lose_all(job)
        job.run("init", restart("b", size=5000))


def test_add_meets_errors():
    """Nothing is reported as complete, and nothing is lost."""
    for how in ("ENOSPC", "EIO"):
        with cached("XOR") as job:
            files = files_of(job)
            job.lose("n2")
            copy(job, 3, nodes=["n1", "n3", "n4"])
            add = ["scr_index", "--add", "b", "--width", "1"]
            for _ in strikes(job, lambda faults: command(job, *add, code=None, faults=faults), how):
                command(job, *add)
                is_good(job, files)


def test_full_disk():
    """Files that a node could not copy are reported, and copied when there is room
    again."""
    with cached("XOR") as job:
        files = files_of(job)
        for _ in strikes(job, lambda faults: copy(job, 3, nodes=["n2"], code=None, faults=faults), "ENOSPC"):
            scavenge(job, 3)
            command(job, "scr_index", "--add", "b")
            is_good(job, files)


def test_index_is_lost():
    """Saved files wait for an index."""
    for spoil in (damage.flip, damage.remove):
        with cached("XOR") as job:
            files = files_of(job)
            spoil(job.prefix / ".scr/index.scr")
            scavenge(job, 3)
            done = command(job, "scr_index", "--add", "b", code=1)
            assert messages(done.err, "INDEX_(MISSING|UNREADABLE)", "--rebuild") and not (job.prefix / "b/rank_0").exists(), done
            command(job, "scr_index", "--rebuild")
            command(job, "scr_index", "--add", "b")
            is_good(job, files)


# ---- nodes ----

def test_node_hangs():
    """A node neither dies nor answers: after the timeout it counts as lost."""
    with cached("XOR") as job:
        files = files_of(job)
        (job.node("n2") / "hung").touch()
        done = scavenge(job, 3, "--timeout", 20)
        assert messages(done.err, "NODE_REPORT", "node n2: ") and "2 of 8 ranks are missing" in done.out, done
        command(job, "scr_index", "--add", "b")
        is_good(job, files)


def test_node_comes_back():
    """An incomplete dataset can be completed later, when more of it is saved."""
    with cached("SINGLE") as job:
        files = files_of(job)
        job.node("n2").rename(job.root / "away")
        scavenge(job, 3, code=1)
        done = command(job, "scr_index", "--add", "b", code=1)
        assert messages(done.err, "DATASET_INCOMPLETE", " 2 of 8 ranks ", " rank 2: "), done
        assert "REASON" in entry(job, "b", 3) and tree.only(index(job)["CURRENT"]) == "a"
        (job.root / "away").rename(job.node("n2"))
        scavenge(job, 3)
        done = command(job, "scr_index", "--add", "b")
        assert done.out == "b: added; the next run begins with it\n", done
        is_good(job, files)


def test_damage_in_a_cache():
    """A file with another checksum is not accepted, and is rebuilt."""
    with cached("XOR") as job:
        files = files_of(job)
        damage.flip(next(job.cache("n3").glob("scr.dataset.3/b/rank_4")))
        done = scavenge(job, 3)
        assert messages(done.err, "NODE_REPORT", "node n3: ", "b/rank_4: altered: CRC32"), done
        done = command(job, "scr_index", "--add", "b")
        assert "set 0: files of 1 rank were rebuilt: rank 4" in done.out and "set 1" not in done.out, done
        is_good(job, files)


def test_damaged_filemaps():
    """Nothing is known of a node whose filemaps are lost."""
    with cached("XOR") as job:
        files = files_of(job)
        for path in job.control("n1").glob("filemap*"):
            damage.flip(path)
        done = copy(job, 3, nodes=["n1"], code=3)
        assert messages(done.err, "CACHE_FILEMAP_REFUSED", "2 "), done
        scavenge(job, 3)
        command(job, "scr_index", "--add", "b")
        is_good(job, files)


def test_set_cannot_be_rebuilt():
    """A node is lost, and saved files of another member of its set are damaged: nothing
    is reported as complete."""
    with cached("XOR") as job:
        job.lose("n2")
        copy(job, 3, nodes=["n1", "n3", "n4"])
        for path in saved(job, "b", 3).rglob("3_of_4_in_0.xor"):
            damage.flip(path)
        done = command(job, "scr_index", "--add", "b", code=1)
        assert messages(done.err, "SCAVENGE_REBUILD_FAILED", "b: set 0: "), done
        assert messages(done.err, "DATASET_INCOMPLETE", "b"), done
        assert tree.only(entry(job, "b", 3)["COMPLETE"]) == "0"


def test_older_cache():
    """A node has returned with a cache of another calculation, with the same job and
    ids."""
    with cached("XOR") as job:
        shutil.copytree(job.node("n2"), job.root / "old")
        shutil.rmtree(job.root / "nodes")
        shutil.rmtree(job.prefix)
        job.prefix.mkdir()
        job.run("init", checkpoint("x"), checkpoint("a"), checkpoint("b", size=5000))
        files = files_of(job)
        job.lose("n2")
        shutil.copytree(job.root / "old", job.node("n2"))
        # its files have the same names and sizes
        done = scavenge(job, 3)
        assert "2 of 8 ranks are missing" in done.out, done
        copy(job, 3, nodes=["n2"])  # without the time it cannot tell, but it goes elsewhere
        assert len(list((job.prefix / "b/.scr").glob("scavenge.3.*"))) == 2
        command(job, "scr_index", "--add", "b")
        is_good(job, files)


def test_other_prefix_folder():
    """Nothing is taken from a calculation with another prefix directory in the same
    job."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"))
        other = job.root / "other"
        other.mkdir()
        done = command(job, "scr_copy", "--id", 1, "--prefix", other, node="n1", code=1)
        assert messages(done.err, "CACHE_UNUSABLE", f" {job.prefix}"), done
        assert not list(other.rglob("*"))


# ---- what goes on meanwhile ----

def test_run_goes_on():
    """A run that continues may remove or rewrite the files: nothing is taken from it."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
        gone = job.root / "go"
        process = job.start(os.environ["JOB_PROBE"], "init", *checkpoint("c1"), f"touch:{job.root}/ready_%r",
                            f"await:{gone}", "finalize")
        wait_until(lambda: all((job.root / f"ready_{rank}").exists() for rank in (0, 1)))
        done = copy(job, 1, "--wait", 0, nodes=["n1"], code=1)
        assert messages(done.err, "CACHE_IN_USE", r"process \d+") and not (job.prefix / "c1").exists(), done
        assert command(job, "scr_inspect", "--brief", node="n1").out.split()[5] == "1"
        gone.touch()
        process.communicate(timeout=120)
        assert process.returncode == 0


def test_transfer_goes_on():
    """scr_transfer still copies when the program has died; both copies get the right
    files."""
    with_scr_transfer()
    slow = {"SCR_FLUSH": 1, "SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON", "SCR_FLUSH_ASYNC_BW": "30KB"}
    with Job(nodes=4, per_node=2, SCR_SET_SIZE=4, **slow) as job:
        job.run("init", checkpoint("b", size=100000), "kill@0", dies=True)
        files = files_of(job)
        assert temporaries(job) and tree.only(entry(job, "b", 1)["COMPLETE"]) == "0"
        scavenge(job, 1)
        command(job, "scr_index", "--add", "b")
        assert {name: data for name, data in contents(job.prefix / "b").items() if name[0] != "."} == files
        assert command(job, "scr_index", "--verify").code == 0
        job.run("init", restart("b", size=100000), "finalize")
        assert not stages(job), stages(job)
        is_committed(job, "b", 1)
        assert contents(job.prefix / "b") == files


def cut_off(**how):
    """A job that died during a flush of "b"; scr_transfer has copied everything to the
    stage, and no process continues the flush."""
    with_scr_transfer()
    job = Job(nodes=3, per_node=1, **DAEMON, **how)
    job.run("init", "start:b:c", "put:b/rank_%r:5000", "put:else/where_%r:1000", "complete:1", "kill@0", dies=True)
    let_finish(job, 3)
    wait_until(lambda: not list(job.root.glob("nodes/*/cntl/**/transfer_*.lock")))
    assert len(temporaries(job)) == 6, temporaries(job)
    return job


def test_what_a_flush_left():
    """The stage of the dataset is removed when the dataset is complete, but not that of
    another dataset there."""
    with cut_off() as job:
        other = stages(job)[0] / "0123456789abcdef/stage.scr"
        other.parent.mkdir()
        tree.write(other, {"IDENTITY": {"7 1 0000000000000000 tester/scr.18": {}}, "CONTAINER": {"0": {}}})
        scavenge(job, 1)
        assert len(temporaries(job)) == 6
        command(job, "scr_index", "--add", "b")
        assert [*stages(job)[0].iterdir()] == [other.parent], temporaries(job)
        assert command(job, "scr_index", "--verify").code == 0
        shutil.rmtree(stages(job)[0])
        job.run("init", "finalize")
        expect_clean(job)


def test_flush_goes_on_for_long():
    """The files that scr_transfer still writes are useless: its stage is removed, and the
    next run ends it."""
    with_scr_transfer()
    with Job(nodes=2, per_node=1, **DAEMON, SCR_FLUSH_ASYNC_BW="1KB") as job:
        job.run("init", checkpoint("b", size=100000), "kill@0", dies=True)
        wait_until(lambda: len(temporaries(job)) == 2)
        files = files_of(job)
        scavenge(job, 1)
        command(job, "scr_index", "--add", "b")
        assert not stages(job), temporaries(job)
        assert command(job, "scr_index", "--verify").code == 0
        job.run("init", restart("b", size=100000), "finalize")
        expect_clean(job)
        assert {name: data for name, data in contents(job.prefix / "b").items() if name[0] != "."} == files


def test_flush_is_stopped():
    """At the end of a job its flush is not completed: scr_transfer ends when its files
    are saved, and its copies are removed."""
    with_scr_transfer()
    with Job(nodes=2, per_node=2, **DAEMON, SCR_FLUSH_ASYNC_BW="1KB") as job:
        job.run("init", checkpoint("b", size=100000), "kill@0", dies=True)
        wait_until(lambda: len(temporaries(job)) == 4)
        command(job, "scr_postrun", SCR_SIMULATE=job.root / "nodes", SCR_NODELIST="n[1-2]")
        assert not stages(job), temporaries(job)
        assert not list(job.root.glob("nodes/*/cntl/**/transfer_*")), list(job.root.glob("nodes/*/cntl/**/transfer_*"))
        assert command(job, "scr_index", "--verify").code == 0
        job.lose("n1", "n2")
        job.run("init", restart("b", size=100000), "finalize")
        expect_clean(job)


def test_postrun_is_interrupted():
    """Ctrl-C while a node copies: everything ends, nothing incomplete looks complete, and
    the next call saves it."""
    for number, at in ((signal.SIGINT, 3), (signal.SIGTERM, 9)):
        with cached("XOR") as job:
            files, struck = files_of(job), job.root / "struck"
            env = {**job.environment({"SCR_SIMULATE": job.root / "nodes", "SCR_NODELIST": "n[1-4]"}),
                   "LD_PRELOAD": os.environ["JOB_FAULTS"], "FAULTS_PROGRAM": "scr_copy", "FAULTS_BELOW": str(job.prefix),
                   "FAULTS_AT": str(at), "FAULTS_HOW": "stop", "FAULTS_ONCE": str(job.root / "once"), "FAULTS_MARK": str(struck)}
            process = subprocess.Popen([TOOLS / "scr_postrun"], cwd=job.prefix, env=env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            wait_until(struck.exists)
            process.send_signal(number)
            out, _ = process.communicate(timeout=120)
            assert process.returncode == -number, (process.returncode, out)
            assert messages(out, "DATASET_UNSAVED", f" signal {int(number)}: ", r"dataset 3 \(b\)"), out
            assert nothing_is_left(), out
            assert "b" not in index(job)["DSET"].get("3", {}).get("DIR", {}), out
            command(job, "scr_postrun", SCR_SIMULATE=job.root / "nodes", SCR_NODELIST="n[1-4]")
            is_good(job, files)
            next_run_reads(job, "b", size=5000)


def test_two_at_once():
    """The same dataset is added twice at once, while others enter and leave the index."""
    with cached("XOR") as job:
        files = files_of(job)
        job.lose("n2")
        copy(job, 3, nodes=["n1", "n3", "n4"])
        both = [begin(job, "scr_index", "--add", "b") for _ in range(4)]
        for _ in range(5):
            command(job, "scr_index", "--remove", "a")
            command(job, "scr_index", "--add", "a")
        for process in both:
            out, err = process.communicate(timeout=240)
            assert process.returncode == 0, out + err
        is_good(job, files)
        assert tree.only(entry(job, "a", 2)["COMPLETE"]) == "1"


# ---- what others put there ----

def test_hostile_names():
    """A rank filemap with names that lead elsewhere is refused, and nothing elsewhere is
    touched."""
    for name in ("../../../../victim", "/etc/passwd", "b/../../victim", "b/.scr/summary.scr", "b//x", "b/\x1b[2J"):
        with cached("XOR") as job:
            victim = job.root / "victim"
            victim.write_text("mine")
            copy(job, 3)
            path = saved(job, "b", 3) / ".scr/1.scrfilemap"
            other = tree.read(path)
            files = other["RANK"]["1"]["DSET"]["3"]["FILE"]
            files[name] = files.pop("b/rank_1")
            tree.write(path, other)
            done = command(job, "scr_index", "--scan", "b")
            assert messages(done.err, "SCAVENGE_FILE_REFUSED", "1 files", "1.scrfilemap") and "\x1b" not in done.err, done
            command(job, "scr_index", "--add", "b")  # the set has it
            assert victim.read_text() == "mine"
            is_committed(job, "b", 3)


def test_links():
    """Directories that are links are not followed."""
    with cached("XOR") as job:
        elsewhere = job.root / "elsewhere"
        elsewhere.mkdir()
        (job.prefix / "b").symlink_to(elsewhere)
        copy(job, 3, code=1)
        assert not list(elsewhere.rglob("*"))
        (job.prefix / "b").unlink()
        copy(job, 3)
        shutil.move(saved(job, "b", 3) / "b", elsewhere / "b")
        (saved(job, "b", 3) / "b").symlink_to(elsewhere / "b")
        command(job, "scr_index", "--add", "b", code=1)
        assert len(list((elsewhere / "b").iterdir())) == 8


if __name__ == "__main__":
    main(globals())
