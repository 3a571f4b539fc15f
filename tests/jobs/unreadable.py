#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A prefix directory or a cache is unreadable for a while. Its content does not count as
damaged, incomplete or lost: once it is readable again, a run restarts from it."""
from job import Job, checkpoint, main, messages, restart
from scavenged import command
import json
import re
import tree

NAMES = ["a", "b"]


def flushed():
    """Two checkpoints on the prefix directory, and nothing elsewhere."""
    job = Job(2, 1, SCR_FLUSH=1)
    job.run("init", checkpoint("a"), checkpoint("b"), "finalize")
    job.save()
    return job


def strikes(job, how):
    """Injects faults into the 1st, 2nd, ... call that reads or changes the prefix
    directory, always from the same state, until there is no such call. Of later calls,
    only a sample is used."""
    struck = job.root / "struck"
    for number in range(1, 1000):
        if number > 80 and number % 7:
            continue
        job.go_back()
        struck.unlink(missing_ok=True)
        yield {"FAULTS_BELOW": job.prefix, "FAULTS_AT": number, "FAULTS_HOW": how, "FAULTS_MARK": struck, "FAULTS_READING": 1}
        if not struck.exists():
            assert number > 20, number
            return


def complete(job):
    """Returns {name: whether it is complete} according to the index."""
    path = job.prefix / ".scr/index.scr"
    sets = tree.read(path).get("DSET", {}) if path.exists() else {}
    return {name: tree.only(entry["COMPLETE"]) == "1" for folders in sets.values() for name, entry in folders["DIR"].items()}


def offers_nothing(run):
    """SCR_Have_restart succeeds, and no rank has a checkpoint: the program begins anew."""
    calls = [json.loads(line) for line in run.out.splitlines() if line.startswith("{")]
    return any(call["op"] == "have" and not any(call["code"]) and not any(call["flag"]) for call in calls)


def test_verify():
    """Unreadable files are not reported as damaged."""
    with flushed() as job:
        results, identifiers = set(), set()
        for how in ("EIO", "EMFILE"):
            for faults in strikes(job, how):
                done = command(job, "scr_index", "--verify", "--json", code=None, faults=faults)
                found = [json.loads(line)["result"] for line in done.out.splitlines()]
                assert set(found) <= {"good", "unreadable"} and done.code == ("unreadable" in found or not found), str(done)
                assert done.code == 0 or done.err, str(done)
                results.update(found)
                identifiers.update(re.findall(r" \[(\w+)\]$", done.err, flags=re.MULTILINE))
        assert results == {"good", "unreadable"}
        assert {"INDEX_UNREADABLE", "SCAN_FAILED", "DATASET_REFUSED", "DATASET_MAP_UNUSABLE", "DATASET_FILE_BAD"} <= identifiers, identifiers


def test_index_is_made_again():
    """By the command: unreadable datasets are reported, and added by the next call."""
    with flushed() as job:
        for faults in strikes(job, "EIO"):
            (job.prefix / ".scr/index.scr").unlink()
            done = command(job, "scr_index", "--rebuild", code=None, faults=faults)
            found = complete(job)
            assert all(found.values()), (found, str(done))
            assert sorted(found) == NAMES or done.err, (found, str(done))
            command(job, "scr_index", "--rebuild")
            assert complete(job) == {"a": True, "b": True}, (complete(job), str(done))


def test_run_makes_the_index_again():
    """By a run: it always offers a dataset, and the next run restarts from the newest,
    whatever this one could not read."""
    with flushed() as job:
        said = 0
        for faults in strikes(job, "EIO"):
            (job.prefix / ".scr/index.scr").unlink()
            run = job.run("init => ANY", "have => ANY", dies=None, faults={"FAULTS_RANK": 0, **faults})
            found = complete(job)
            assert all(found.values()), (found, str(run))
            assert not offers_nothing(run), str(run)
            said += bool(messages(run.err, "INDEX_REBUILT", "the first is"))
            job.run("init", restart("b"))
        assert said


def test_cache():
    """A node is lost, and the disk of another one fails during the rebuild, which exceeds
    the scheme. The next best dataset is offered, or nothing and an error; unreadable
    files stay."""
    told = []
    for offered, names, at in ((restart("a"), "ab", 1), (["have => CACHE"], "b", 1), (["have => CACHE"], "b", 5),
                               (["have => CACHE"], "b", 9)):
        with Job(4, 1, SCR_SET_SIZE=4) as job:
            job.run("init", map(checkpoint, names))
            job.lose("n3")
            folder, = job.node("n2").glob("cache/*/*/scr.dataset.*/b")
            disk = {"FAULTS_BELOW": folder, "FAULTS_AT": at, "FAULTS_STAYS": 1, "FAULTS_HOW": "EIO", "FAULTS_READING": 1}
            run = job.run("init", offered, faults=disk)
            run.says("REBUILD_FAILED", r"dataset \d \(b\)", "Input/output error")
            told.append("lost members 1 (rank 1), 2 (rank 2)" in run.err)
            job.run("init", restart("b"))
    assert any(told)


def test_filemaps():
    """All redundancy files of the newest checkpoint are lost, so that only filemaps show
    the content of the cache, and a disk fails while its files are checked: they are
    there, and the next run restarts from them."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"), checkpoint("b"))
        for node in job.nodes():
            for path in job.cache(node).glob("scr.dataset.2/*"):
                if path.is_file():
                    path.unlink()
        job.save()
        struck = job.root / "struck"
        for how in ("EIO", "EACCES"):
            for number in range(1, 40):
                job.go_back()
                struck.unlink(missing_ok=True)
                disk = {"FAULTS_BELOW": job.cache("n2") / "scr.dataset.2/b", "FAULTS_AT": number, "FAULTS_STAYS": 1, "FAULTS_HOW": how,
                        "FAULTS_READING": 1, "FAULTS_MARK": struck}
                run = job.run("init => ANY", "have => ANY", dies=None, faults=disk)
                if not struck.exists():
                    assert number > 1, how
                    break
                assert not offers_nothing(run), (number, str(run))
                job.run("init", restart("b"))


if __name__ == "__main__":
    main(globals())
