#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files that ranks write together, saved from the caches of a job that has ended, and the
output of commands about them."""
import json
import os
import shutil

from job import Job, main, messages
from parts import SIX, SIZE, UNIT, read, take, whole, write
from scavenge_wrong import strikes
from scavenged import command, copy, entry, is_committed, lose_all, saved, scavenge
import tree


def row(job, name, code=0):
    """Returns the row of a dataset from scr_index --verify."""
    return json.loads(command(job, "scr_index", "--verify", "--json", name, code=int(code)).out)


def ranks_of(folder):
    """Returns the map of a dataset without times."""
    ranks = tree.read(folder / ".scr/rank2file.0.0.scr")["RANK2FILE"]["RANK"]
    for rank in ranks.values():
        del rank["DATASET"]
        for known in rank["FILE"].values():
            known.pop("MTIME", None)
    return ranks


def contents(folder):
    """Returns the application files and containers with their modes."""
    return {path.relative_to(folder): (path.read_bytes(), oct(path.stat().st_mode)) for path in folder.rglob("*")
            if path.is_file() and (path.parent.name != ".scr" or path.name.startswith("ctr."))}


def flushed(**how):
    """Returns the result of a flush of the same data."""
    with Job(**SIX, SCR_FLUSH=1, **how) as job:
        job.run("init", write("a"))
        return contents(job.prefix / "a"), ranks_of(job.prefix / "a")


def test_as_a_flush():
    """The files, bytes, modes and the map equal those of a flush; a node is lost."""
    for how in {}, {"SCR_USE_CONTAINERS": 1, "SCR_CONTAINER_SIZE": 2500}, {"SCR_CRC_ON_FLUSH": 0, "SCR_CRC_ON_COPY": 0}:
        files, ranks = flushed(**how)
        with Job(**SIX, SCR_FLUSH=0, **how) as job:
            job.run("init", write("a"))
            job.lose("n2")
            scavenge(job, 1)
            done = command(job, "scr_index", "--add", "a")
            assert done.out.count("files of 1 rank were rebuilt") == 2 and "a: added; the next run begins with it" in done.out, done
            assert contents(job.prefix / "a") == files
            assert ranks_of(job.prefix / "a") == ranks
            whole(job, "a")
            assert not saved(job, "a", 1).exists()
            line = row(job, "a")
            assert (line["result"], line["files"]) == ("good", 18), line
            lose_all(job)
            job.run("init", read("a"), "finalize", SCR_FLUSH=1)


def test_scattered():
    """Names are outside of the directory of the dataset."""
    with Job(**SIX, SCR_FLUSH=0) as job:
        job.run("init", "start:a:c", f"put_parts:elsewhere/all:{UNIT}:2", "put:a/rank_%r:1000", "complete:1")
        scavenge(job, 1)
        command(job, "scr_index", "--add", "a")
        assert [path.name for path in (job.prefix / "elsewhere").iterdir()] == ["all"]
        assert row(job, "a")["result"] == "good"
        lose_all(job)
        job.run("init", "have => 1 a", "start_restart => a", f"get_parts:elsewhere/all:{UNIT}:2", "complete_restart:1", "finalize")


def test_holes():
    with Job(**SIX, SCR_FLUSH=0, SCR_RESTART_RANKS="any") as job:
        job.run("init", "start:a:c", "put_range@1:a/holes:100000:10", "put_range@0:a/holes:200000:10", "complete:1")
        scavenge(job, 1)
        command(job, "scr_index", "--add", "a")
        path = job.prefix / "a/holes"
        assert path.stat().st_size == 200010 and path.stat().st_blocks * 512 < 100000, path.stat()
        assert path.read_bytes()[:100000] == bytes(100000)
        shared = ranks_of(job.prefix / "a")["1"]["FILE"]["holes"]
        assert shared == {"SIZE": {"200010": {}}, "SHARED": {"1": {}}}, shared


def test_modes():
    """A user who may not read one part may not read the file, and parts keep their
    modes."""
    with Job(**SIX, SCR_FLUSH=0) as job:
        job.run("init", write("a"))
        parts = sorted(job.root.glob("nodes/*/cache/**/all.scr-part.*"))
        for path in parts:
            path.chmod(0o644)
        parts[5].chmod(0o640)
        scavenge(job, 1)
        command(job, "scr_index", "--add", "a")
        assert (job.prefix / "a/sub/all").stat().st_mode & 0o777 == 0o640
        modes = [tree.only(known["MODE"]) for rank in ranks_of(job.prefix / "a").values() for known in rank["FILE"].values() if "MODE" in known]
        assert sorted(modes) == ["0640"] + 11 * ["0644"], modes


# ---- what is on the prefix directory ----

UNCHECKED = {"SCR_CRC_ON_COPY": 0, "SCR_CRC_ON_FLUSH": 0}


def latest(name, unit=UNIT):
    """A file that all ranks rewrite with each checkpoint, beside one of each rank."""
    return [f"start:{name}:c", f"put:{name}/rank_%r:1000", f"put_parts:latest/all:{unit}:2"]


def read_latest(name, unit=UNIT):
    return [f"have => 1 {name}", f"start_restart => {name}", f"get_parts:latest/all:{unit}:2", f"get:{name}/rank_%r:1000", "complete_restart:1"]


def test_found():
    """Without an index, the dataset is found by its records."""
    with Job(**SIX, SCR_FLUSH=1) as job:
        job.run("init", write("a"), "finalize")
        lose_all(job)
        shutil.rmtree(job.prefix / ".scr")
        assert command(job, "scr_index", "--rebuild").code == 0
        shutil.rmtree(job.prefix / ".scr")
        job.run("init", read("a"), "finalize").says("INDEX_REBUILT", "1 datasets", times=1)


def test_imported():
    """A part that exists as a file belongs to no dataset."""
    with Job(**SIX, SCR_FLUSH=1) as job:
        (job.prefix / "data").mkdir()
        (job.prefix / "data/all.scr-part.0").write_bytes(b"12345")
        done = command(job, "scr_index", "--import", "data", code=1)
        assert '"data/all.scr-part.0" is a name of SCR itself' in done.err, done


def test_written_again():
    """The file is rewritten by a newer, failed dataset or by a user: with checksums parts
    are compared; without, the time decides."""
    for checked in {}, UNCHECKED:
        for bypass in 0, 1:
            with Job(**SIX, SCR_FLUSH=1, SCR_FETCH_BYPASS=bypass, **checked) as job:
                job.run("init", latest("a"), "complete:1")
                assert row(job, "a")["result"] == "good"
                lose_all(job)
                job.save()
                job.run("init", read_latest("a"), latest("b"), "kill:1", dies=True, SCR_CACHE_BYPASS=1)
                assert row(job, "a", code=1)["result"] == "damaged"
                lose_all(job)
                job.run("init", "have => 0 =").says("FETCH_CHECKPOINT_DAMAGED", "a", "latest/all", times=1)
                job.go_back()
                path = job.prefix / "latest/all"
                data = path.read_bytes()
                path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
                assert row(job, "a", code=1)["result"] == "damaged"
                run = job.run("init", "have => PREFIX 0 =" if checked else "have => 0 =")
                run.says("FETCH_FAILED" if checked else "FETCH_CHECKPOINT_DAMAGED", "a", "latest/all", times=1)


def test_copied():
    """A copy without times is valid if there are checksums."""
    for checked in {}, UNCHECKED:
        for bypass in 0, 1:
            with Job(**SIX, SCR_FLUSH=1, SCR_FETCH_BYPASS=bypass, **checked) as job:
                job.run("init", latest("a"), "complete:1", "finalize")
                lose_all(job)
                os.utime(job.prefix / "latest/all")
                assert row(job, "a", code=bool(checked))["result"] == ("damaged" if checked else "good")
                job.run("init", "have => PREFIX 0 =" if checked else read_latest("a"))


# ---- records that contradict each other ----

def rename_part(job, old, new):
    """Renames a part in the record of its rank and in the staging directory."""
    folder = saved(job, "a", 1)
    for path in folder.glob(".scr/*.scrfilemap"):
        record = tree.read(path)
        (rank,) = record["RANK"].values()
        (dset,) = rank["DSET"].values()
        if old in dset["FILE"]:
            dset["FILE"][new] = dset["FILE"].pop(old)
            tree.write(path, record)
    (folder / new).parent.mkdir(parents=True, exist_ok=True)
    (folder / old).rename(folder / new)


def refused(new, why, old="a/sub/all.scr-part.0"):
    with Job(**SIX, SCR_FLUSH=0) as job:
        job.run("init", write("a"))
        copy(job, 1)
        rename_part(job, old, new)
        done = command(job, "scr_index", "--add", "a", code=1)
        assert messages(done.err, "DATASET_INCOMPLETE", "a: ") and why in done.err, done
        assert why in tree.only(entry(job, "a", 1)["REASON"]), entry(job, "a", 1)
        assert [path.name for path in (job.prefix / "a").iterdir()] == [".scr"]
        assert not list(saved(job, "a", 1).glob("a/**/all"))


def test_overlap():
    refused("a/sub/all.scr-part.3", f"both have byte {UNIT} of file a/sub/all")
    refused("a/sub/all.scr-part.70002", "both have byte 70002 of file a/sub/all")


def test_wrong_names():
    """Names of a whole file, of another directory, and of the records; and a size that no
    file can have."""
    refused("a/rank_3.scr-part.0", "both have a file a/rank_3")
    refused("a/...scr-part.0", "a/..")
    refused("a/.scr.scr-part.0", "a/.scr")
    refused(f"a/sub/other.scr-part.{2**63 - 1}", "too many bytes of file a/sub/other")


def test_altered():
    """A part does not match its checksum."""
    with Job(**SIX, SCR_FLUSH=0, SCR_CRC_ON_COPY=1) as job:
        job.run("init", write("a"))
        copy(job, 1)
        path = saved(job, "a", 1) / f"a/sub/all.scr-part.{UNIT}"
        data = path.read_bytes()
        path.write_bytes(bytes(len(data)))
        done = command(job, "scr_index", "--add", "a", code=1)
        assert messages(done.err, "SCAVENGE_COMMIT_FAILED", f"a/sub/all.scr-part.{UNIT} is altered"), done
        assert not (job.prefix / "a/sub").exists() and not list(saved(job, "a", 1).glob("a/sub/.*"))
        path.write_bytes(data)
        command(job, "scr_index", "--add", "a")
        whole(job, "a")


# ---- interrupted ----

def test_add_is_killed():
    """The command is killed while parts are joined and at any other point: a second call
    completes the work."""
    for containers, how in (0, "kill"), (1, "kill"), (0, "ENOSPC"):
        with Job(**SIX, SCR_FLUSH=0, SCR_USE_CONTAINERS=containers, SCR_CONTAINER_SIZE=4000) as job:
            job.run("init", write("a"))
            scavenge(job, 1)
            add = ["scr_index", "--add", "a"]
            for _ in strikes(job, lambda faults: command(job, *add, code=None, faults=faults), how):
                path = job.prefix / "a/sub/all"
                if path.exists():
                    assert path.stat().st_size == SIZE
                    assert (saved(job, "a", 1) / ".scr/whole").exists() or tree.only(entry(job, "a", 1)["COMPLETE"]) == "1"
                command(job, *add)
                whole(job, "a")
                assert containers or is_committed(job, "a", 1) is None
                assert row(job, "a")["result"] == "good" and not saved(job, "a", 1).exists()
            lose_all(job)
            job.run("init", take("a"), "finalize", layout=[("n1", 2)], SCR_RESTART_RANKS="any")


def test_deleted_when_joined():
    """The command is killed after parts were joined, and then the dataset is deleted:
    nothing of it is left."""
    with Job(**SIX, SCR_FLUSH=0) as job:
        job.run("init", write("a"))
        scavenge(job, 1)
        for _ in strikes(job, lambda faults: command(job, "scr_index", "--add", "a", code=None, faults=faults), "kill"):
            if (saved(job, "a", 1) / "a/sub/all").exists():
                break
        assert (saved(job, "a", 1) / "a/sub/all").exists()
        run = job.run("init", "delete:a", "finalize", SCR_JOB_ID=18)
        assert not (job.prefix / "a").exists(), run


if __name__ == "__main__":
    main(globals())
