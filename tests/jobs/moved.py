#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Colleagues move directories of a user to the places of SCR's records, stages and saved
files: only files that SCR made are removed."""
import json
import os
import shutil

from colleagues import keep_nested, check_nested, put_list, OWN, NAMED, GROUP, MOST, EVERYBODY
from group import ALICE, BOB, CAROL, OTHER, SHARED, Shared, SCATTERED, by_bob, change_index, change_record, rename_file
from job import checkpoint, main, messages, restart, wait_until
from scavenged import command, saved, scavenge


def test_taken_by_name():
    """Bob saves a dataset from caches into a directory of Alice's, and records a private
    file of hers in it as one of its files."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(BOB).run("init", SCATTERED)
        scavenge(job, 1)
        keep_nested(job)
        folder = saved(job, "a", 1)
        rename_file(folder / ".scr/0.scrfilemap", "beside/g_0", "own/work")
        (job.prefix / "shared/own/work").write_bytes((folder / "beside/g_0").read_bytes())
        assert by_bob(job, f"mv {folder}/* {folder}/.scr shared; rmdir {folder}; mv shared {folder}") == 0
        done = command(job.by(ALICE), "scr_index", "--add", "a", code=1)
        assert messages(done.err, "SCAVENGE_COMMIT_FAILED", "own/work") and (folder / "own/work").exists(), done


def test_moved_into_a_stage():
    """Bob moves a directory of Alice's to the place of an interrupted flush, which her
    next run removes."""
    for place in ("stage", "stage/1"):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
            keep_nested(job)
            assert by_bob(job, f"rm -rf a/.scr/*; mkdir -p $(dirname a/.scr/{place}); mv shared a/.scr/{place}") == 0
            change_index(job, lambda datasets: [folders["DIR"]["a"].update(COMPLETE={"0": {}})
                                                for folders in datasets.values() if "a" in folders["DIR"]])
            check_nested(job, job.by(ALICE).run("init", "have => ANY", "finalize"))


def test_moved_folder_with_a_list():
    """The same with a directory whose mode looks group-writable because of Carol in its
    access control list; Bob has no access."""
    for place in ("stage", "stage/1"):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
            keep_nested(job)
            put_list(job.prefix / "shared/own", {OWN: 7, NAMED: 7, GROUP: 0, MOST: 7, EVERYBODY: 0})
            assert (job.prefix / "shared/own").stat().st_mode & 0o070 == 0o070 and by_bob(job, "ls shared/own") != 0
            assert by_bob(job, f"rm -rf a/.scr/*; mkdir -p $(dirname a/.scr/{place}); mv shared a/.scr/{place}") == 0
            change_index(job, lambda datasets: [folders["DIR"]["a"].update(COMPLETE={"0": {}})
                                                for folders in datasets.values() if "a" in folders["DIR"]])
            check_nested(job, job.by(ALICE).run("init", "have => ANY", "finalize"))


def test_list_of_all():
    """Colleagues share a directory by an access control list that everything in it
    inherits: leftovers of runs are removed."""
    with Shared(0o2770, 0o007) as job:
        put_list(job.prefix, {OWN: 7, NAMED: 7, GROUP: 7, MOST: 7, EVERYBODY: 0}, ("access", "default"))
        job.parameters["SCR_PREFIX_SIZE"] = 1
        job.by(ALICE).run("init", checkpoint("a"), checkpoint("b"), "finalize")
        assert (job.prefix / "b").stat().st_mode & 0o070 == 0o070
        (job.prefix / "b/.scr/stage/0123456789abcdef/0").mkdir(parents=True)
        change_index(job, lambda datasets: [folders["DIR"]["b"].update(COMPLETE={"0": {}})
                                            for folders in datasets.values() if "b" in folders["DIR"]])
        job.by(BOB).run("init", "have => ANY", checkpoint("c"), "finalize").not_said("error|denied|not permitted")
        assert not (job.prefix / "a").exists() and not (job.prefix / "b/.scr/stage").exists()


def test_moved_folder_of_a_third():
    """Bob moves a third user's directory there; it contains a directory that Alice may
    empty through another group, but Bob may not."""
    for place in ("stage", "stage/1"):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
            keep_nested(job)
            for path, group, mode in (("shared", SHARED, 0o2770), ("shared/own", OTHER, 0o2770), ("shared/own/work", OTHER, 0o660)):
                os.chown(job.prefix / path, CAROL, group)
                (job.prefix / path).chmod(mode)
            assert by_bob(job, f"rm -rf a/.scr/*; mkdir -p $(dirname a/.scr/{place}); mv shared a/.scr/{place}") == 0
            change_index(job, lambda datasets: [folders["DIR"]["a"].update(COMPLETE={"0": {}})
                                                for folders in datasets.values() if "a" in folders["DIR"]])
            job.by(ALICE).identity["extra_groups"].append(OTHER)
            check_nested(job, job.run("init", "have => ANY", "finalize"))


def test_moved_into_records():
    """The same in place of the records of a dataset, or of their directory of saved
    files; Alice deletes the dataset, or adds it."""
    for line in ("mv a/.scr/* shared; rmdir a/.scr; mv shared a/.scr", "mv a/* shared; rm -r a; mv shared a; mv a/own a/.scr"):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
            keep_nested(job)
            assert by_bob(job, line) == 0
            run = job.by(ALICE).run("init", "have => ANY", "delete:a => ANY", "finalize")
            assert [path.read_text() for path in job.prefix.rglob("work")] == ["work"], run
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(ALICE).run("init", checkpoint("a"))
        scavenge(job, 1)
        keep_nested(job)
        assert by_bob(job, "mv a/.scr/* shared; mv shared/own shared/scavenge.1.1; rmdir a/.scr; mv shared a/.scr") == 0
        command(job.by(ALICE), "scr_index", "--add", "a", code=1)
        assert (job.prefix / "a/.scr/scavenge.1.1/work").read_text() == "work"


def test_moved_into_a_list():
    """The same in place of the file list of a restart with another number of ranks: left
    by an earlier run, or during one; and records of a dataset there."""
    for records in False, True:
        with Shared(0o2770, 0o007) as job:
            job.parameters.update(SCR_RESTART_RANKS="any", SCR_FLUSH=0)
            job.by(ALICE).run("init", checkpoint("a"))
            keep_nested(job)
            place = f".scr/restart.{ALICE.pw_name}+scr.{ALICE.pw_uid}"
            work = job.prefix / "shared/own/work"
            if records:
                work.rename(job.prefix / "shared/rank2file.scr")
            assert by_bob(job, f"mv shared {place}") == 0
            for _ in range(2):
                run = job.run("init", "have => 1 a", "start_restart", "dataset_file:0:0 => a/rank_0:1000", "complete_restart:1")
                run.says("RESTART_LIST_KEPT", "scr/restart.*: (own|rank2file.scr) in it is another user's, or not SCR's", times=2)
                left = {path.name for path in job.prefix.glob(f"{place}/**/*")}
                assert left == ({"own", "rank2file.scr"} if records else {"own", "work"}), (left, run)


def test_given_to_a_flush():
    """Bob renames Alice's directory to the records, or to a stage, of her next
    checkpoint: only files that SCR wrote there are removed."""
    for line in ("mv shared/own shared/.scr; mv shared ckpt.1",
                 "mv ckpt.0/.scr/* shared/; mv shared/own shared/stage; rmdir ckpt.0/.scr; mv shared ckpt.0/.scr"):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("ckpt.0"), "finalize")
            keep_nested(job)
            (job.prefix / "shared/own/0123456789abcdef").mkdir(0o700)
            (job.prefix / "shared/own/0123456789abcdef/work").write_text("work")
            for path in (job.prefix / "shared/own").rglob("*"):
                os.chown(path, ALICE.pw_uid, SHARED)
            assert by_bob(job, line) == 0
            run = job.run("init", "have => ANY", checkpoint("ckpt.1"), checkpoint("ckpt.2"), checkpoint("ckpt.3"), "finalize => ANY", SCR_PREFIX_SIZE=1)
            assert [path.read_text() for path in job.prefix.rglob("work")] == ["work"] * 2, run


def test_given_to_a_failed_output():
    """Without the cache: Bob renames a private directory to the one to which Alice's
    program writes, before the program reports its files as invalid. A file in it that has
    the name of one of these stays."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_CACHE_BYPASS"] = 1
        job.by(ALICE).run("init", checkpoint("x"), "finalize")
        keep_nested(job)
        written, moved = job.root / "written", job.root / "moved"
        process = job.start(os.environ["JOB_PROBE"], "init", "have", "start:run/out:c", "put:run/out/work:100", f"touch@0:{written}", f"await:{moved}",
                            "complete:0", "finalize")
        wait_until(written.exists)
        assert by_bob(job, "mv shared/own shared/out; mv run gone; mv shared run") == 0
        moved.touch()
        _, err = process.communicate(timeout=60)
        assert (job.prefix / "run/out/work").read_text() == "work", err
        assert messages(err, "OUTPUT_FILES_KEPT", "run/out/work", "stays: its directory is not the one"), err


def test_given_to_an_interrupted_flush():
    """The same in place of the files of an interrupted flush that the next run
    resumes."""
    with Shared(0o2770, 0o007) as job:
        job.parameters.update(SCR_FLUSH=1, SCR_FLUSH_ASYNC=1, SCR_FLUSH_TYPE="PTHREAD", SCR_FLUSH_ASYNC_BW="100KB")
        keep_nested(job)
        job.by(ALICE).run("init", checkpoint("a", 300000), "kill@0", dies=True)
        key = next((job.prefix / "a/.scr/stage").iterdir()).name
        assert by_bob(job, f"mv shared/own shared/{key}; mv a/.scr/stage gone; mv shared a/.scr/stage") == 0
        run = job.run("init", "have => ANY", "finalize => ANY", SCR_FLUSH_ASYNC=0)
        run.says("FLUSH_COMPLETE", "dataset 1 .a.", times=1)
        run.says("FLUSH_STAGE_KEPT", "has files that are of no flush")
        assert [path.read_text() for path in job.prefix.rglob("work")] == ["work"], run


def test_given_to_saved_files():
    """The same in place of a directory of saved files, between two attempts to save
    them."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(ALICE).run("init", checkpoint("a"))
        keep_nested(job)
        command(job, "scr_scavenge", "--id", 1, "--up", "n1", code=None, SCR_SIMULATE=job.root / "nodes")
        name = saved(job, "a", 1).name
        assert by_bob(job, f"mkdir bob; mv shared/own shared/{name}; mv shared bob/.scr; mv a gone; mv bob a") == 0
        scavenge(job.by(ALICE), 1)
        done = command(job, "scr_index", "--add", "a", code=1)
        assert "work in it is another user's, or not SCR's, and stays" in done.err, done
        assert sorted(path.name for path in job.prefix.glob(f"a/.scr/{name}/*")) == ["work"]
        job.run("init", restart("a"), "finalize")


def test_given_names_of_flushes():
    """Directories of Alice's that look like a stage or like saved files, or are partly
    open to the group, are in the place of records."""
    def make(job, folders, open_to_all):
        for path, mode in folders:
            (job.prefix / path).mkdir(exist_ok=True)
            os.chown(job.prefix / path, ALICE.pw_uid, SHARED)
            (job.prefix / path).chmod(mode)
        work = job.prefix / folders[-1][0] / "work"
        work.write_text("work")
        os.chown(work, ALICE.pw_uid, SHARED)
        work.chmod(0o664 if open_to_all else 0o600)

    place = "mv a gone; mkdir b; mv mine b/.scr; mv b a"
    for folders, line in (([("mine", 0o2770), ("mine/P", 0o2700), ("mine/P/stage", 0o2700), ("mine/P/stage/run1", 0o2700)], "mv mine/P mine/.scr; mv a gone; mv mine a"),
                          ([("mine", 0o2770), ("mine/P", 0o2755), ("mine/P/.scr", 0o2775), ("mine/P", 0o2755)], f"touch mine/P/.scr/lock; mv mine/P mine/scavenge.5.1; {place}"),
                          ([("mine", 0o2770), ("mine/P", 0o2700)], f"mv mine/P mine/scavenge.7.1; {place}")):
        with Shared(0o2770, 0o002) as job:
            job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
            make(job, folders, False)
            assert by_bob(job, "rm -rf mine") != 0 and by_bob(job, line) == 0
            change_index(job, lambda datasets: [folder["DIR"]["a"].update(DELETING={"1": {}}, COMPLETE={"0": {}})
                                                for folder in datasets.values() if "a" in folder["DIR"]])
            run = job.by(ALICE).run("init", "have => ANY", "delete:a => ANY", "finalize")
            assert [path.read_text() for path in job.prefix.rglob("work")] == ["work"], (line, run)


def test_packed_by_name():
    """Bob's record of saved files names a file of Alice's that her group may read, in a
    directory that it may not enter: she does not pack the file."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(BOB).run("init", SCATTERED)
        scavenge(job, 1)
        keep_nested(job)
        folder, work = saved(job, "a", 1), job.prefix / "shared/own/work"
        work.write_bytes(b"secret".ljust((folder / "beside/g_0").stat().st_size))
        work.chmod(0o660)
        record = folder / ".scr/0.scrfilemap"
        rename_file(record, "beside/g_0", "own/work")
        change_record(record, lambda node: node.pop("CRC", None))
        record.chmod(0o660)
        assert by_bob(job, f"mv {folder}/* {folder}/.scr shared; rmdir {folder}; mv shared {folder}") == 0
        done = command(job.by(ALICE), "scr_index", "--add", "a", code=1, SCR_USE_CONTAINERS=1)
        assert "own/work is in a directory that others may not change" in done.err, done
        assert not [path for path in job.prefix.rglob("*") if path.is_file() and path.name != "work" and b"secret" in path.read_bytes()]


def test_another_prefix_directory():
    """Bob's index names a dataset of a private prefix directory of Alice's inside the
    shared one: her run removes nothing there."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
        stage = job.prefix / "priv/a/.scr/stage/0123456789abcdef/0"
        stage.mkdir(parents=True)
        (stage / "0.0").write_text("work")
        (job.prefix / "priv/.scr").mkdir()
        shutil.copy(job.prefix / ".scr/index.scr", job.prefix / "priv/.scr/index.scr")
        for path in (job.prefix / "priv", *(job.prefix / "priv").rglob("*")):
            os.chown(path, ALICE.pw_uid, SHARED)
            path.chmod(0o700 if path.is_dir() else 0o600)

        def name(datasets):
            for folders in datasets.values():
                if "a" in folders["DIR"]:
                    entry = json.loads(json.dumps(folders["DIR"]["a"]))
                    entry.update(COMPLETE={"0": {}})
                    entry["DSET"]["NAME"] = {"priv/a": {}}
                    folders["DIR"]["priv/a"] = entry

        change_index(job, name)
        job.by(ALICE).run("init", "have => ANY", "finalize")
        assert (stage / "0.0").read_text() == "work"


if __name__ == "__main__":
    main(globals())
