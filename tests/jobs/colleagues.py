#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records that colleagues write into a shared prefix directory, or move there, reach only
files that everyone who can write there can change."""
import contextlib
import ctypes
import grp
import json
import os
import shutil
import signal
import struct
import subprocess
import time

from group import ALICE, BOB, CAROL, OTHER, SHARED, Shared, SCATTERED, by_bob, change_index, fetch, found_below, rename_file
from job import Skip, checkpoint, descendants, main, messages
from scavenged import TOOLS, command, saved, scavenge
import tree


def keep(job):
    """Makes a directory of Alice's own, with a file that Bob could change according to
    the umask of the group."""
    (job.prefix / "own").mkdir()
    (job.prefix / "own/work").write_text("work")
    for path, mode in ((job.prefix / "own/work", 0o660), (job.prefix / "own", 0o2750)):
        os.chown(path, ALICE.pw_uid, SHARED)
        path.chmod(mode)
    return job.prefix / "own/work"


def test_deleted_by_name():
    """Bob records a file of Alice's, which he may not change, as part of a dataset; Alice
    deletes the dataset."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", SCATTERED, "finalize")
        work = keep(job)
        rename_file(job.prefix / "a/.scr/rank2file.0.0.scr", "beside/g_0", "own/work")
        job.run("init", "delete:a => ANY", "finalize").says("DATASET_NOT_REMOVED", "own/work is in a directory that others may not change")
        assert work.read_text() == "work" and not (job.prefix / "beside/g_1").exists()


def end_sharing(job):
    """Alice's directories are hers alone from now on. Bob's objects in them stay his."""
    for path in (job.prefix, *job.prefix.rglob("*")):
        if path.is_dir():
            path.chmod(0o2750)


def test_deleted_by_an_older_record():
    """Bob changed a map or an index of Alice's while he could change her directories, or
    can still write to it."""
    def mark(datasets):
        for folders in datasets.values():
            if "a" in folders["DIR"]:
                entry = folders["DIR"].pop("a")
                entry.update(DELETING={"1": {}}, COMPLETE={"0": {}})
                folders["DIR"]["own"] = {**entry, "DSET": {**entry["DSET"], "NAME": {"own": {}}}}

    for owner, mode in ((BOB, 0o640), (ALICE, 0o660)):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", SCATTERED, "finalize")
            work = keep(job)
            record = job.prefix / "a/.scr/rank2file.0.0.scr"
            rename_file(record, "beside/g_0", "own/work")
            os.chown(record, owner.pw_uid, SHARED)
            record.chmod(mode)
            end_sharing(job)
            run = job.run("init", "delete:a => ANY", "finalize")
            run.says("DATASET_NOT_REMOVED", "is in a directory that others may not change")
            assert work.read_text() == "work", run
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", SCATTERED, "finalize")
        work = keep(job)
        shutil.copytree(job.prefix / "a/.scr", job.prefix / "own/.scr")
        for path in (job.prefix / "own/.scr").rglob("*"):
            os.chown(path, ALICE.pw_uid, ALICE.pw_gid)
        rename_file(job.prefix / "own/.scr/rank2file.0.0.scr", "beside/g_0", "own/work")
        os.chown(job.prefix / "own/.scr/rank2file.0.0.scr", ALICE.pw_uid, SHARED)
        (job.prefix / "own/.scr/rank2file.0.0.scr").chmod(0o640)
        change_index(job, mark)
        end_sharing(job)
        job.run("init", "have => ANY", "finalize").says("PREFIX_DATASET_NOT_DELETED", "own is in a directory that others may not change")
        assert work.read_text() == "work"


def test_deleted_by_name_of_no_member():
    """Bob has access only through an access control list. He makes the directory of a
    dataset, which gets the group of which he is not a member."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", SCATTERED, "finalize")
        work = keep(job)
        rename_file(job.prefix / "a/.scr/rank2file.0.0.scr", "beside/g_0", "own/work")
        group = next(entry.gr_gid for entry in grp.getgrall() if entry.gr_gid not in os.getgrouplist(BOB.pw_name, BOB.pw_gid))
        for path in (job.prefix, *job.prefix.rglob("*")):
            os.chown(path, BOB.pw_uid if path.is_relative_to(job.prefix / "a") else ALICE.pw_uid, group)
            path.chmod(0o2770 if path.is_dir() else 0o660)
        put_list(job.prefix, {OWN: 7, (2, BOB.pw_uid): 7, GROUP: 7, MOST: 7, EVERYBODY: 0})
        job.identity["extra_groups"] = [group]
        assert by_bob(job, "ls own") != 0
        run = job.run("init", "delete:a => ANY", "finalize")
        run.says("DATASET_NOT_REMOVED", "is in a directory that others may not change")
        assert work.read_text() == "work", run


def test_replaced_by_name():
    """Bob saves a dataset from caches; one of its files takes the name of Alice's file
    when she adds it."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(BOB).run("init", SCATTERED)
        scavenge(job, 1)
        work, folder = keep(job), saved(job, "a", 1)
        rename_file(folder / ".scr/0.scrfilemap", "beside/g_0", "own/work")
        (folder / "own").mkdir()
        (folder / "beside/g_0").rename(folder / "own/work")
        os.chown(folder / "own", BOB.pw_uid, SHARED)
        done = command(job.by(ALICE), "scr_index", "--add", "a", code=1)
        assert "own/work is in a directory that others may not change" in done.err and work.read_text() == "work", done


def test_fetched_by_name():
    """Bob's map names a file in a directory to which he gives the name of a private one
    of Alice's after she has fetched it: her next run does not write there."""
    for packed in (0, 1):
        with Shared(0o2770, 0o007) as job:
            job.by(BOB).run("init", SCATTERED, "finalize", SCR_USE_CONTAINERS=packed)
            keep_nested(job)
            assert by_bob(job, "mkdir own") == 0
            rename_file(job.prefix / "a/.scr/rank2file.0.0.scr", "beside/g_0", "own/work")
            if not packed:
                assert by_bob(job, "mv beside/g_0 own/work") == 0
            job.by(ALICE)
            process = job.start(os.environ["JOB_PROBE"], "init", "have", "start_restart", "complete_restart:1", "kill@0")
            assert "FETCH_COMPLETE" in process.communicate()[1]
            assert by_bob(job, "rm -rf a own beside; mv shared a; cp -r a/own b") != 0
            change_index(job, lambda datasets: datasets.clear())
            run = job.by(ALICE).run("init => ANY", "finalize").says("FLUSH_BORROWED", "dataset 1 .a. is not flushed")
            assert (job.prefix / "a/own/work").read_text() == "work" and not list(job.prefix.glob("own/*")), run


def test_folder_by_name():
    """The same for a new directory in one of Alice's: Bob may write to the new directory,
    but not to its parent."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(BOB).run("init", SCATTERED)
        scavenge(job, 1)
        work, folder = keep(job), saved(job, "a", 1)
        rename_file(folder / ".scr/0.scrfilemap", "beside/g_0", "own/new/file")
        (folder / "own/new").mkdir(parents=True)
        (folder / "beside/g_0").rename(folder / "own/new/file")
        for path in (folder / "own", folder / "own/new"):
            os.chown(path, BOB.pw_uid, SHARED)
            path.chmod(0o2770)
        done = command(job.by(ALICE), "scr_index", "--add", "a", code=1)
        assert messages(done.err, "SCAVENGE_COMMIT_FAILED", "own/new/file") and os.listdir(work.parent) == ["work"], done


def files_below(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_deleted_by_index():
    """Bob marks a dataset in a directory of Alice's own as being deleted, and also that
    directory, which is a prefix directory, too."""
    def mark(datasets):
        for folders in datasets.values():
            for entry in [folders["DIR"][name] for name in ("own/ckpt",) if name in folders["DIR"]]:
                entry.update(DELETING={"1": {}}, COMPLETE={"0": {}})
                folders["DIR"]["own"] = {**entry, "DSET": {**entry["DSET"], "NAME": {"own": {}}}}

    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("x"), "finalize")
        keep(job)
        job.umask = 0o027
        job.by(ALICE).run("init", "have => ANY", checkpoint("own/ckpt"), "finalize")
        job.run("init", "have => ANY", "finalize", prefix=job.prefix / "own", SCR_JOB_ID="other")
        before = files_below(job.prefix / "own")
        assert {"index.scr", "rank_0", "work"} <= {os.path.basename(path) for path in before}, before
        change_index(job, mark)
        job.umask = 0o007
        run = job.by(ALICE).run("init", "have => ANY", "finalize")
        run.says("PREFIX_DATASET_NOT_DELETED", "own/ckpt is in a directory that others may not change")
        run.says("PREFIX_DATASET_NOT_DELETED", "own is a prefix directory")
        assert files_below(job.prefix / "own") == before, run


def test_deleted_by_flag():
    """Bob marks Alice's dataset as scattered in the index, and places a map where such a
    dataset has it."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("x"), "finalize")
        work = keep(job)
        job.umask = 0o027
        job.by(ALICE).run("init", "have => ANY", "start:a:c", "put:a/f_%r:100", "complete:1", "finalize")
        told = tree.read(job.prefix / "a/.scr/rank2file.0.0.scr")
        text = json.dumps(told)
        assert '"f_0"' in text, text
        tree.write(job.prefix / ".scr/rank2file.0.0.scr", json.loads(text.replace('"f_0"', '"own/work"')))
        os.chown(job.prefix / ".scr/rank2file.0.0.scr", BOB.pw_uid, SHARED)
        (job.prefix / ".scr/rank2file.0.0.scr").chmod(0o644)
        change_index(job, lambda datasets: [folders["DIR"]["a"]["DSET"].update(SCATTERED={"1": {}})
                                            for folders in datasets.values() if "a" in folders["DIR"]])
        run = job.by(ALICE).run("init", "have => ANY", "delete:a => ANY", "finalize")
        assert work.read_text() == "work", run


def keep_nested(job):
    """Makes a private directory of Alice's in one of hers that the group may change: Bob
    can move it, but not empty it."""
    shared = job.prefix / "shared"
    (shared / "own").mkdir(parents=True)
    (shared / "own/work").write_text("work")
    for path, mode in ((shared / "own/work", 0o600), (shared / "own", 0o2700), (shared, 0o2770)):
        os.chown(path, ALICE.pw_uid, SHARED)
        path.chmod(mode)
    assert by_bob(job, "rm -rf shared") != 0


def check_nested(job, run):
    assert [path.read_text() for path in job.prefix.rglob("own/work")] == ["work"], run


def put_list(path, entries, kinds=("access",)):
    """Sets an access control list; entries: {(tag, id): rights}."""
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who) for (tag, who), bits in entries.items())
    try:
        for kind in kinds:
            os.setxattr(path, f"system.posix_acl_{kind}", packed)
    except OSError as error:
        raise Skip(f"no access control lists here: {error}") from error


NOBODY = 0xffffffff
OWN, NAMED, GROUP, MOST, EVERYBODY = (1, NOBODY), (2, CAROL), (4, NOBODY), (16, NOBODY), (32, NOBODY)


def test_copied_without_its_list():
    """The access control list of a file grants it to Carol, but not to its group: a
    container and a fetched file grant it to neither."""
    def hide(path):
        path.chmod(0o600)
        put_list(path, {OWN: 6, NAMED: 4, GROUP: 0, MOST: 4, EVERYBODY: 0})
        assert path.stat().st_mode & 0o777 == 0o640

    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(ALICE).run("init", "start:a:c", "put:a/f_%r:100", "complete:1")
        scavenge(job, 1)
        hide(saved(job, "a", 1) / "a/f_0")
        command(job, "scr_index", "--add", "a", SCR_USE_CONTAINERS=1)
        assert found_below(job, "a", "ctr.*.scr") == ({0o600}, SHARED)
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", "start:a:c", "put:a/f_%r:100", "complete:1", "finalize")
        hide(job.prefix / "a/f_0")
        fetch(job)
        assert [path.stat().st_mode & 0o777 for path in job.root.glob("nodes/n1/cache/**/f_0")] == [0o600]


def keep_of_a_third(job, owner, group):
    """Makes a directory that Alice may change as a member of the other group, or as its
    owner, but Bob may not."""
    (job.prefix / "third").mkdir()
    (job.prefix / "third/work").write_text("work")
    for path, mode in ((job.prefix / "third/work", 0o660), (job.prefix / "third", 0o2770)):
        os.chown(path, owner, group)
        path.chmod(mode)
    return job.prefix / "third/work"


def test_deleted_by_name_for_a_third():
    """In a directory that Bob's map names, Alice has rights of another group or of the
    owner, and Bob has none."""
    for owner in (CAROL, ALICE.pw_uid):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", SCATTERED, "finalize")
            work = keep_of_a_third(job, owner, OTHER)
            assert by_bob(job, "touch third/x") != 0
            rename_file(job.prefix / "a/.scr/rank2file.0.0.scr", "beside/g_0", "third/work")
            job.by(ALICE).identity["extra_groups"].append(OTHER)
            run = job.run("init", "delete:a => ANY", "finalize")
            run.says("DATASET_NOT_REMOVED", "third/work is in a directory that others may not change")
            assert work.read_text() == "work" and not (job.prefix / "beside/g_1").exists()


def test_deleted_by_index_for_a_third():
    """Bob marks a dataset of a third user as being deleted; its directory belongs to a
    group of that user and Alice."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("x"), checkpoint("c/ckpt"), "finalize")
        for path in (job.prefix / "c", *(job.prefix / "c").rglob("*")):
            os.chown(path, CAROL, OTHER)
            path.chmod(0o2770 if path.is_dir() else 0o660)
        before = files_below(job.prefix / "c")
        assert before and by_bob(job, "ls c") != 0
        change_index(job, lambda datasets: [folders["DIR"]["c/ckpt"].update(DELETING={"1": {}}, COMPLETE={"0": {}})
                                            for folders in datasets.values() if "c/ckpt" in folders["DIR"]])
        job.by(ALICE).identity["extra_groups"].append(OTHER)
        job.run("init", "have => ANY", "finalize").says("PREFIX_DATASET_NOT_DELETED", "c/ckpt is in a directory that others may not change")
        assert files_below(job.prefix / "c") == before


def exchanged(job, at, log=None):
    """Alice deletes her dataset "a"; before call number `at` of her rank 0 Bob replaces
    it by another one."""
    struck = job.root / "struck"
    faults = {"FAULTS_BELOW": job.prefix / "a", "FAULTS_RANK": 0, "FAULTS_READING": 1, "FAULTS_AT": at, "FAULTS_HOW": "stop", "FAULTS_MARK": struck,
              "FAULTS_LOG": log}
    struck.unlink(missing_ok=True)
    process = job.by(ALICE).start(os.environ["JOB_PROBE"], "init", "have", "delete:a", "finalize", faults=faults)
    while process.poll() is None:
        if struck.exists():
            for old, new in (("a", "aside"), ("evil", "a")) if (job.prefix / "a").exists() else ():
                done = subprocess.run(["mv", "-T", old, new], cwd=job.prefix, user=BOB.pw_uid, group=BOB.pw_gid, extra_groups=[SHARED])
                assert done.returncode == 0
            struck.unlink()
            for pid in descendants():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        time.sleep(0.005)
    return process.communicate()


def test_exchanged_while_it_is_deleted():
    """After the map of Alice's dataset, which only she can change, was checked, Bob
    replaces the dataset by his own, or by another one of hers in which he chose the
    names."""
    def begin(owner):
        job = Shared(0o2770, 0o007)
        job.by(ALICE).run("init", checkpoint("x"), "finalize")
        job.umask = 0o027
        job.by(ALICE).run("init", "have => ANY", SCATTERED, "finalize")
        shutil.copytree(job.prefix / "a", job.prefix / "evil")
        record = job.prefix / "evil/.scr/rank2file.0.0.scr"
        rename_file(record, "beside/g_0", "own/work")
        if owner is ALICE:
            told = tree.read(record)
            told["RANK2FILE"]["RANK"]["0"]["FILE"]["own/work"]["OTHERS"] = {str(SHARED + 1): {}}
            tree.write(record, told)
        for path in (job.prefix / "evil", *(job.prefix / "evil").rglob("*")):
            os.chown(path, owner.pw_uid, SHARED)
            path.chmod((0o2775 if path.is_dir() else 0o664) & (0o2777 if owner is BOB else 0o2755))
        return job, keep(job)

    job, _ = begin(BOB)
    with job:
        exchanged(job, 0, log=job.root / "calls")
        calls = (job.root / "calls.0").read_text().splitlines()
    opened = [number for number, line in enumerate(calls, 1) if " openat " in line and line.endswith("/a") and number > len(calls) / 2]
    assert opened, calls
    for owner, at in [(owner, at) for owner in (BOB, ALICE) for at in opened]:
        job, work = begin(owner)
        with job:
            out, err = exchanged(job, at)
            assert work.exists() and work.read_text() == "work", (at, calls[at - 1], out, err)


def test_renamed_while_it_is_added():
    """Bob's saved dataset "a" gets records of a dataset of Alice's own while Alice adds
    it and its lost files are rebuilt."""
    def begin():
        job = Shared(0o2770, 0o007)
        job.by(ALICE).run("init", checkpoint("x"), "finalize")
        keep(job)
        job.umask = 0o027
        job.run("init", "have => ANY", checkpoint("own/ckpt"), "finalize")
        job.umask = 0o007
        job.by(BOB).run("init", "have => ANY", checkpoint("a"), SCR_FLUSH=0, SCR_FETCH=0)
        number = max(job.cached_by(BOB))
        command(job, "scr_copy", "--id", number, node="n1")
        for path in (saved(job, "a", number) / ".scr").glob("*.xor"):
            path.chmod(0o664)
        return job.by(ALICE), number

    def rename(folder):
        for path in (folder / ".scr").glob("*.scrfilemap"):
            rename_file(path, '"a"', '"own/ckpt"')
        for path in (folder / ".scr").glob("*.xor"):
            path.unlink()

    def add(job, folder, at):
        struck = job.root / "struck"
        env = {**job.environment({}), "LD_PRELOAD": os.environ["JOB_FAULTS"], "FAULTS_BELOW": str(folder), "FAULTS_AT": str(at),
               "FAULTS_HOW": "stop", "FAULTS_MARK": str(struck), "FAULTS_READING": "1", "FAULTS_LOG": str(job.root / "calls")}
        process = subprocess.Popen([TOOLS / "scr_index", "--add", "a"], cwd=job.prefix, env=env, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **job.identity)
        while process.poll() is None:
            if struck.exists():
                rename(folder)
                struck.unlink()
                process.send_signal(signal.SIGCONT)
            time.sleep(0.005)
        return process.communicate()[0]

    job, number = begin()
    with job:
        add(job, saved(job, "a", number), 0)
        calls = next(job.root.glob("calls.*")).read_text().splitlines()
    rebuilt = max(at for at, line in enumerate(calls, 1) if " renameat " in line and line.endswith("filemap"))
    opened = [at for at, line in enumerate(calls, 1) if at > rebuilt and " openat " in line and line.endswith("/.scr")]
    for at in opened[:3]:
        job, number = begin()
        with job:
            before = files_below(job.prefix / "own")
            out = add(job, saved(job, "a", number), at)
            assert files_below(job.prefix / "own") == before, (at, calls[at - 1], out)


@contextlib.contextmanager
def exchanging(one, other):
    """Bob repeatedly exchanges two directories in one of his."""
    process = os.fork()
    if process == 0:
        os.setgroups([])
        os.setgid(BOB.pw_gid)
        os.setuid(BOB.pw_uid)
        here, exchange_both, libc = -100, 2, ctypes.CDLL(None)
        while True:
            libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange_both)
            time.sleep(0.0003)
    try:
        yield
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def give(folder, user, share):
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid)
        if share:
            path.chmod(0o777 if path.is_dir() else 0o666)


def rebuilding(saver, attempts, layout, *words):
    """Root rebuilds a lost file in a directory of Alice's that Bob replaces by one of
    his: no file of Alice's gets there."""
    with Shared(0o2770, 0o022, nodes=3) as job:
        os.chown(job.prefix, saver.pw_uid, saver.pw_gid)
        job.parameters.update(SCR_FLUSH=0, SCR_COPY_TYPE="XOR", SCR_SET_SIZE=3)
        job.by(saver).run("init", "start:a:c", "put:a/f_%r:1000000", "complete:1")
        job.lose("n2")
        scavenge(job, 1, code=None)
        above = job.root / "above"
        above.mkdir()
        give(above, BOB, False)
        for _ in range(attempts):
            folders = [above / "p", above / "q"]
            for folder, user in zip(folders, (ALICE, BOB)):
                layout(job, folder, user)
                give(folder, user, user is BOB)
            with exchanging(*folders):
                done = subprocess.run([*words, str(above / "p")], env=job.environment({"SCR_PREFIX": above / "p"}), capture_output=True, text=True)
            mine = [path for folder in folders if folder.stat().st_uid == BOB.pw_uid
                    for path in folder.rglob("*") if path.lstat().st_uid == ALICE.pw_uid]
            assert not mine, (mine, done)
            for folder in folders:
                shutil.rmtree(folder)


def test_exchanged_while_it_is_rebuilt():
    def layout(job, folder, user):
        shutil.copytree(saved(job, "a", 1), folder) if user is BOB else folder.mkdir()

    rebuilding(BOB, 15, layout, os.environ["JOB_BUILD"] + "/libredset/redset_rebuild", "-r", ".scr")


def test_exchanged_while_it_is_added():
    rebuilding(ALICE, 25, lambda job, folder, user: shutil.copytree(job.prefix, folder), TOOLS / "scr_index", "--add", "a", "-p")


if __name__ == "__main__":
    main(globals())
