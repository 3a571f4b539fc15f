#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Datasets that are saved from the caches of a job whose program has ended: copied,
rebuilt, entered into the index by commands, and read by the next run, byte for byte."""
import json

from job import JOB, Job, checkpoint, main, messages, restart
from scavenged import cached, command, copy, entry, is_committed, lose_all, next_run_reads, saved, scavenge
import tree


def ranges(numbers):
    """Returns 1-3,5 for [1, 2, 3, 5]."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in parts)


def test_all_nodes():
    """Nothing is lost: no redundancy file is needed."""
    with Job(nodes=2, per_node=2) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        copy(job, 2, "--files")
        assert not list(saved(job, "b", 2).glob(".scr/*.xor"))
        assert not (job.prefix / "b/rank_0").exists()
        done = command(job, "scr_index", "--add", "b")
        assert done.out == "b: added; the next run begins with it\n", done
        is_committed(job, "b", 2)
        before = sorted(job.prefix.rglob("*"))
        done = command(job, "scr_index", "--add", "b")
        assert done.out == "b: is in the index already\n" and sorted(job.prefix.rglob("*")) == before
        assert command(job, "scr_index", "--verify").code == 0
        assert command(job, "scr_flush_file", "--needflush", 2, code=1)
        next_run_reads(job, "b")


def test_script_of_scr_3():
    """After a job, its poststage script copies and enters one dataset after the other
    with scr_flush_file and scr_index."""
    with Job(nodes=2, per_node=2) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        command(job, "scr_flush_file", "--list-output", code=1)
        assert command(job, "scr_flush_file", "--list-ckpt").out == "2 1\n"
        assert command(job, "scr_flush_file", "--name", 2).out == "b\n"
        command(job, "scr_flush_file", "--need-flush", 2)
        done = command(job, "scr_flush_file", "--resume", "--name", 2, SCR_NODELIST=",".join(job.nodes()), SCR_SIMULATE=job.root / "nodes")
        assert done.out.startswith("b\n") and saved(job, "b", 2).is_dir(), done
        done = command(job, "scr_flush_file", "-s", 2, "-S")
        assert done.out.startswith("b\nb: added"), done
        assert command(job, "scr_index", "--add=b").out == "b: is in the index already\n"
        command(job, "scr_flush_file", "--need-flush", 2, code=1)
        command(job, "scr_index", "--current=b")
        assert command(job, "scr_index", "--build", 1, code=1).out == ""
        command(job, "scr_scavenge", "-v", "--id", 1, "--from", job.root, "--to", job.prefix, "--up", ",".join(job.nodes()),
                SCR_SIMULATE=job.root / "nodes")
        assert command(job, "scr_index", "--build", 1).out == "a: added\n"
        is_committed(job, "b", 2)
        next_run_reads(job, "b")


def test_names():
    """Any characters in the name of a dataset: those that a line quotes, those that a shell knows, and spaces at its ends."""
    for name in " b", "b  b ", "b\\x41\\b", "b\\\\", "it's $(b) `b` \"*\"", "-b", "Pr\u00fcfung\u200b":
        with Job(nodes=3, per_node=1, SCR_FLUSH=0) as job:
            job.run("init", checkpoint(name))
            job.lose("n2")
            done = scavenge(job, 1)
            assert "round 2, 2 of 2: " in done.out and "the files of 1 of 3 ranks are missing\n" in done.out, (name, done)
            command(job, "scr_index", "--add", name)
            is_committed(job, name, 1)
            rows = [json.loads(line) for line in command(job, "scr_inspect", "--json", "--up", "n1,n3",
                                                         SCR_SIMULATE=job.root / "nodes").out.splitlines()]
            assert [row["name"] for row in rows] == [name], rows
            assert command(job, "scr_index", "--verify").code == 0


def test_output():
    """An output whose flush failed is saved, though a newer checkpoint is: that does not stand for it."""
    for flush, operations in ((2, []), (0, []), (1, ["finalize => FLUSH"])):
        with Job(nodes=2, per_node=1, SCR_FLUSH=flush, SCR_CACHE_SIZE=4) as job:
            (job.prefix / "out").write_bytes(b"in its way")
            job.run("init", checkpoint("out", flags="o", code="FLUSH"), checkpoint("a"), checkpoint("b"), *operations)
            (job.prefix / "out").unlink()
            done = command(job, "scr_postrun", SCR_NODELIST=",".join(job.nodes()), SCR_SIMULATE=job.root / "nodes")
            assert "out: added\n" in done.out, (flush, done)
            assert tree.only(entry(job, "b", 3)["COMPLETE"]) == "1" and not saved(job, "a", 2).exists()
            is_committed(job, "out", 1)
            assert command(job, "scr_index", "--verify").code == 0


# ---- losses ----

def lost_and_saved(scheme, lost, rebuilt):
    """These nodes are lost; rebuilt: whether the dataset is restored."""
    with cached(scheme) as job:
        job.lose(*lost)
        up = len(job.nodes()) - len(lost)
        done = scavenge(job, 3, code=1 if scheme == "SINGLE" else 0)
        assert f"the files of {2 * len(lost)} of 8 ranks are missing\n" in done.out, done
        assert done.out.count("round 1, ") == up and done.out.count("round 2, ") <= up, done
        names = f"n[{ranges(sorted(int(node[1:]) for node in lost))}]" if len(lost) > 1 else ""
        told = f"{len(lost)} nodes, {names}: Host is down" if names else f"node {lost[0]}: {lost[0]}: Host is down"
        assert not lost or done.err.count(f"{told} [NODE_REPORT]\n") == 1, done
        done = command(job, "scr_index", "--add", "b", code=0 if rebuilt else 1)
        if rebuilt:
            assert f"set 0: files of {len(lost)} rank" in done.out and "b: added; the next run" in done.out, done
            is_committed(job, "b", 3)
            assert command(job, "scr_index", "--verify").code == 0
            next_run_reads(job, "b", size=5000)
            return
        assert messages(done.err, "DATASET_INCOMPLETE", " b: "), done
        e = entry(job, "b", 3)
        assert tree.only(e["COMPLETE"]) == "0" and "REASON" in e, e
        assert "not complete because" in command(job, "scr_index", "--inspect", "b").out
        assert len(list(saved(job, "b", 3).glob(".scr/*.scrfilemap"))) == 2 * up
        lose_all(job)
        job.run("init", restart("a"), "finalize")


def test_copy_fails_once():
    """The copy fails on one node: it is tried once more, and no redundancy is needed."""
    with cached() as job:
        faults = {"FAULTS_PROGRAM": "scr_copy", "FAULTS_BELOW": job.prefix, "FAULTS_AT": 3, "FAULTS_HOW": "EIO",
                  "FAULTS_ONCE": job.root / "once"}
        done = scavenge(job, 3, faults=faults)
        assert done.out.count("round 1, ") == 3 and done.out.count("round 1 again, 1 of 1: ") == 1, done
        assert "round 2" not in done.out and "the files of all 8 ranks are saved\n" in done.out, done
        assert done.err.count("Input/output error") == 1, done
        command(job, "scr_index", "--add", "b")
        next_run_reads(job, "b", size=5000)


def test_prepared_again():
    """The preparation of another job in the same allocation keeps the records of datasets
    that are only in caches."""
    with cached() as job:
        flush = tree.read(job.prefix / ".scr/flush.scr")
        assert tree.only(flush["OWNER"]).endswith(f"/scr.{JOB}") and "3" in flush["DSET"], flush
        command(job, "scr_prerun")
        assert tree.read(job.prefix / ".scr/flush.scr") == flush
        scavenge(job, 3)
        command(job, "scr_prerun", SCR_JOB_ID="another")
        assert not tree.read(job.prefix / ".scr/flush.scr").get("DSET")


def test_single():
    lost_and_saved("SINGLE", ["n2"], False)


def test_partner():
    lost_and_saved("PARTNER", ["n2", "n4"], True)


def test_partners_lost_with_theirs():
    lost_and_saved("PARTNER", ["n2", "n3"], False)


def test_xor():
    lost_and_saved("XOR", ["n3"], True)


def test_two_lost_with_xor():
    lost_and_saved("XOR", ["n1", "n3"], False)


def test_rs():
    lost_and_saved("RS", ["n1", "n3"], True)


def test_log():
    """The log shows the start and the end, including failures."""
    for scheme, lost, event in (("XOR", ["n2"], "SCAVENGE_COMPLETE"), ("SINGLE", ["n2", "n3"], "SCAVENGE_FAILED")):
        with cached(scheme) as job:
            job.lose(*lost)
            scavenge(job, 3, code=None, SCR_LOG_ENABLE=1, SCR_LOG_JSON_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0)
            lines = [json.loads(line) for line in (job.prefix / ".scr/log.jsonl").read_text().splitlines()]
            begun, ended = [line for line in lines if line["event"].startswith("SCAVENGE_")]
            assert begun["event"] == "SCAVENGE_START" and begun["nodes"] == 4, begun
            assert ended["event"] == event and ended["note"] == f"the files of {2 * len(lost)} of 8 ranks are missing", ended
            for line in (begun, ended):
                assert (line["dset"], line["name"], line["to"]) == (3, "b", str(job.prefix)), line
            assert ended["secs"] > 0 and "secs" not in begun


def test_three_lost_with_rs():
    lost_and_saved("RS", ["n1", "n2", "n3"], False)


def test_after_the_last_run():
    """scr_postrun does everything, with the nodes that it finds to be down."""
    with cached("XOR") as job:
        job.lose("n3")
        done = command(job, "scr_postrun", SCR_SIMULATE=job.root / "nodes", SCR_NODELIST="n[1-4]")
        assert "b: added; the next run begins with it" in done.out, done
        is_committed(job, "b", 3)
        done = command(job, "scr_postrun", SCR_SIMULATE=job.root / "nodes", SCR_NODELIST="n[1-4]")
        assert "dataset 3 is on the parallel file system" in done.out, done
        next_run_reads(job, "b", size=5000)


# ---- where files lie ----

def layout(*operations, name, get, scattered=False, **how):
    """A dataset with this layout of files; a node is lost, the others are saved, and the
    next run reads the dataset."""
    with Job(nodes=4, per_node=1, SCR_SET_SIZE=4, SCR_FLUSH=0, **how) as job:
        job.run("init", *operations)
        job.lose("n2")
        scavenge(job, 1)
        done = command(job, "scr_index", "--add", name)
        assert "set 0: files of 1 rank were rebuilt" in done.out, done
        told = command(job, "scr_index", "--inspect", name).out
        assert ("files outside of its directory  yes" in told) == scattered, told
        assert command(job, "scr_index", "--verify").code == 0
        lose_all(job)
        job.run("init", f"have => 1 {name}", "start_restart", f"tag:{name}", get, "complete_restart:1", "finalize")
        return sorted(str(path.relative_to(job.prefix)) for path in job.prefix.rglob("*") if path.is_file())


def test_user_folders():
    """Directories of the application, private and shared."""
    there = layout("start:run/c1:c", "put:run/c1/of_%r/deep/f:3000", "put:run/c1/flat_%r:10", "put:run/c1/none_%r:0",
                   "complete:1", name="run/c1", get=["get:run/c1/of_%r/deep/f:3000", "get:run/c1/flat_%r:10"])
    assert [name for name in there if "/of_" in name] == [f"run/c1/of_{rank}/deep/f" for rank in range(4)], there


def test_scattered():
    """Files are outside of the directory of their dataset."""
    there = layout("start:c1:c", "put:c1/f_%r:100", "put:elsewhere/g_%r:1000", "complete:1", name="c1", scattered=True,
                   get=["get:elsewhere/g_%r:1000", "get:c1/f_%r:100"])
    assert "elsewhere/g_1" in there, there


def test_without_a_name():
    there = layout("start:%N:c", "tag:scr.dataset.1", "put:a/f_%r:100", "complete:1", name="scr.dataset.1", scattered=True,
                   get=["get:a/f_%r:100"])
    assert "a/f_1" in there, there


def test_containers():
    """Files are packed as by a flush."""
    for folder, scattered in (("c1", False), ("elsewhere", True)):
        there = layout("start:c1:c", f"put:{folder}/f_%r:3000", "put:c1/none_%r:0", "complete:1", name="c1",
                       scattered=scattered, get=[f"get:{folder}/f_%r:3000"], SCR_USE_CONTAINERS=1, SCR_CONTAINER_SIZE="5KB")
        assert [name for name in there if "ctr." in name] == [f"c1/.scr/ctr.{i}.scr" for i in range(3)], there
        assert not [name for name in there if "f_" in name], there


def test_modes_of_containers():
    """A container with bytes of a private file is private."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0, SCR_USE_CONTAINERS=1) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        for number, mode in ((1, 0o600), (2, 0o640)):
            modes = [mode, 0o644]
            for path in job.root.glob(f"nodes/*/cache/**/c{number}/rank_*"):
                path.chmod(modes.pop())
            scavenge(job, number)
            command(job, "scr_index", "--add", f"c{number}")
            container = job.prefix / f"c{number}/.scr/ctr.0.scr"
            assert container.stat().st_mode & 0o777 == mode, oct(container.stat().st_mode)


def test_size_of_containers():
    """A wrong container size in a record, which would name other containers, does not
    harm saved files."""
    for size, containers, cause in ((1, 0, "ctr.0.scr is missing"), (1, 1, "ctr.0.scr is not a file of 1 bytes"),
                                    (1 << 62, 1, "ctr.0.scr is not a file of")):
        with Job(nodes=2, per_node=1, SCR_FLUSH=0, SCR_USE_CONTAINERS=containers, SCR_CONTAINER_SIZE=600) as job:
            job.run("init", checkpoint("a"))
            scavenge(job, 1)
            folder = saved(job, "a", 1)
            (job.prefix / "a/.scr/summary.scr").mkdir()
            command(job, "scr_index", "--add", "a", code=1)
            (job.prefix / "a/.scr/summary.scr").rmdir()
            assert tree.only(tree.read(folder / ".scr/whole")["CONTAINER"]) == str(600 * containers)
            tree.write(folder / ".scr/whole", {"CONTAINER": {str(size): {}}})
            done = command(job, "scr_index", "--add", "a", code=1)
            assert messages(done.err, "SCAVENGE_COMMIT_FAILED", cause) and folder.exists(), done


def test_damaged_record_of_a_move():
    """Nothing is moved while the damaged record exists. The remedy in the message works,
    whatever was moved before."""
    for moved, how in ((False, "again"), (True, "packed"), (True, "saved"), (True, "put back")):
        with Job(nodes=2, per_node=1, SCR_FLUSH=0, SCR_USE_CONTAINERS=int(how == "packed")) as job:
            job.run("init", checkpoint("a"))
            scavenge(job, 1)
            folder = saved(job, "a", 1)
            if moved:
                (job.prefix / "a/.scr/summary.scr").mkdir()
                command(job, "scr_index", "--add", "a", code=1)
                (job.prefix / "a/.scr/summary.scr").rmdir()
            whole = folder / ".scr/whole"
            for bad in (b"", b"x" * 30, None):
                whole.write_bytes(bad) if bad is not None else tree.write(whole, {"CONTAINER": {"-1": {}}})
                before = sorted(job.prefix.rglob("rank_*"))
                done = command(job, "scr_index", "--add", "a", code=1)
                assert messages(done.err, "SCAVENGE_WHOLE_DAMAGED", str(folder), ".scr/whole"), done
                assert sorted(job.prefix.rglob("rank_*")) == before
                command(job, "scr_index", "--scan", "a")
            whole.unlink()
            if moved and how != "packed":  # the files are beside the containers until the end
                done = command(job, "scr_index", "--add", "a", code=1)
                assert messages(done.err, "DATASET_INCOMPLETE", "a"), done
                if how == "saved":
                    scavenge(job, 1)
                else:
                    lose_all(job)
                    for path in (job.prefix / "a").glob("rank_*"):
                        path.rename(folder / "a" / path.name)
            command(job, "scr_index", "--add", "a")
            assert not folder.exists() and command(job, "scr_index", "--verify").code == 0
            next_run_reads(job, "a")


def test_ranks_without_files():
    layout("start:c1:c", "put@0,1:c1/f_%r:100", "complete:1", name="c1", get=["get@0,1:c1/f_%r:100"])


def test_without_checksums():
    layout("start:c1:c", "put:c1/f_%r:100", "complete:1", name="c1", get=["get:c1/f_%r:100"], SCR_CRC_ON_COPY=0)


def test_bypass():
    """Datasets that bypassed the cache are not saved from there."""
    with Job(nodes=2, per_node=1, SCR_CACHE_BYPASS=1) as job:
        job.run("init", checkpoint("c1"))
        done = scavenge(job, 1, code=3)
        assert messages(done.err, "CACHE_EMPTY", "dataset 1"), done


# ---- what is newer, and older ----

def test_newest_by_itself():
    """Without an id, the newest dataset in the flush file is saved, which may be an
    output."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        done = command(job, "scr_scavenge", "--up", "n1,n2", SCR_SIMULATE=job.root / "nodes")
        assert "dataset 2 (c2): the files of all 2 ranks are saved" in done.out, done
        assert command(job, "scr_scavenge", "--up", "n1,n2", "--quiet", SCR_SIMULATE=job.root / "nodes").out == ""


def test_name_is_used_again():
    """The earlier dataset of that name stays complete until the new one is."""
    for lost in (["n2"], ["n2", "n3"]):
        with Job(nodes=4, per_node=1, SCR_SET_SIZE=4, SCR_FLUSH=2) as job:
            job.run("init", checkpoint("x"), checkpoint("c", size=100), checkpoint("c", size=200))
            job.lose(*lost)
            scavenge(job, 3)
            command(job, "scr_index", "--add", "c", code=len(lost) - 1)
            assert command(job, "scr_index", "--verify", "c").code == 0
            lose_all(job)
            job.run("init", restart("c", size=200 if len(lost) == 1 else 100))


def test_older_than_what_is_there():
    """It does not replace a newer dataset with its name."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0, SCR_CACHE_SIZE=3) as job:
        job.run("init", checkpoint("c", size=100), checkpoint("d"))
        copy(job, 1)
        copy(job, 2)
        job.run("init", restart("d"), checkpoint("c", size=300), "finalize", SCR_FLUSH=1)
        before = (job.prefix / "c/rank_0").read_bytes()
        done = command(job, "scr_index", "--add", "c", code=1)
        assert "dataset 3 (c) " in done.err, done
        assert (job.prefix / "c/rank_0").read_bytes() == before
        done = command(job, "scr_index", "--add", "d")
        assert done.out == "d: added\n", done
        lose_all(job)
        job.run("init", restart("c", size=300))


def test_older_unnamed():
    """Files are where the program named them: those of a newer dataset stay, and other
    files do not keep an older one out."""
    def unnamed(number, folder):
        return [f"tag:{number}", "start_checkpoint", f"put:{folder}/f_%r:100", "complete_checkpoint:1"]

    with Job(nodes=2, per_node=1, SCR_FLUSH=0, SCR_CACHE_SIZE=3) as job:
        job.run("init", unnamed(1, "own"), unnamed(2, "same"))
        copy(job, 1)
        copy(job, 2)
        job.run("init", "have => 1 scr.dataset.2", unnamed(3, "same"), "finalize", SCR_FLUSH=1)
        before = (job.prefix / "same/f_0").read_bytes()
        done = command(job, "scr_index", "--add", "scr.dataset.2", code=1)
        assert "dataset 3 (scr.dataset.3) is newer, and has a file same/f_" in done.err, done
        assert (job.prefix / "same/f_0").read_bytes() == before
        done = command(job, "scr_index", "--add", "scr.dataset.1")
        assert done.out == "scr.dataset.1: added\n" and (job.prefix / "own/f_1").is_file(), done
        assert command(job, "scr_index", "--verify").code == 0
        lose_all(job)
        job.run("init", "have => 1 scr.dataset.3", "current:scr.dataset.1", "have => 1 scr.dataset.1", "start_restart", "tag:1",
                "get:own/f_%r:100", "complete_restart:1")


if __name__ == "__main__":
    main(globals())
