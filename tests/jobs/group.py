#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Colleagues who share a prefix directory: setgid, writable by their group, and a umask
that keeps it so. Otherwise no other user reads or changes SCR's records there."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import struct
import subprocess

from job import Job, checkpoint, main, restart
from accounts import two_accounts
from scavenged import command, saved, scavenge
import tree

SHARED, OTHER = 59999, 59998  # groups
CAROL = 59997  # without an account
SCATTERED = ["start:a:c", "put:a/f_%r:100", "put:beside/g_%r:100", "complete:1"]


ALICE, BOB = two_accounts()


class Shared(Job):
    """A job in the prefix directory of Alice, with a rank on each node."""

    def __init__(self, mode, umask, nodes=2):
        super().__init__(nodes, 1, SCR_FLUSH=1)
        self.umask = umask
        self.root.chmod(0o1777)
        os.chown(self.prefix, ALICE.pw_uid, SHARED)
        self.prefix.chmod(mode)
        for node in self.nodes():
            for base in ("cntl", "cache"):
                (self.node(node) / base).mkdir(parents=True)
                (self.node(node) / base).chmod(0o1777)

    def cached_by(self, user):
        """Ids of that user's cached datasets."""
        return [int(path.name.split(".")[-1]) for path in self.node("n1").glob(f"cache/{user.pw_name}/*/scr.dataset.*")]

    def by(self, user):
        """Makes the next runs and commands those of that user."""
        self.identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [SHARED], "umask": self.umask}
        self.parameters["SCR_USER_NAME"] = user.pw_name
        self.parameters["SCR_JOB_ID"] = f"{user.pw_uid}"
        return self


def modes(job):
    """The modes of all files and directories below the prefix directory."""
    return {str(path.relative_to(job.prefix)): stat.S_IMODE(path.lstat().st_mode) for path in job.prefix.rglob("*")}


def test_runs():
    """Two users take turns to continue each other's runs; either of them deletes old
    datasets."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_PREFIX_SIZE"] = 2
        job.by(ALICE).run("init", checkpoint("a"), checkpoint("b"), "finalize")
        job.by(BOB).run("init", restart("b"), checkpoint("c"), "finalize")
        assert not (job.prefix / "a").exists()
        job.by(ALICE).run("init", restart("c"), "delete:c", checkpoint("d"), "finalize")
        job.by(BOB).run("init", restart("d"), checkpoint("d"), "finalize").not_said("error|warning")
        found = modes(job)
        assert not [name for name, mode in found.items() if mode & 0o007], found
        assert not [name for name, mode in found.items() if mode & 0o060 != 0o060], found


def test_in_the_background():
    """A flush begun by one user's run does not obstruct the other user's run."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH_ASYNC"] = 1
        job.by(ALICE).run("init", checkpoint("a"), "finalize")
        job.by(BOB).run("init", restart("a"), checkpoint("b"), "kill@0", dies=True)
        job.by(ALICE).run("init => ANY", "have => ANY", checkpoint("c"), "finalize").not_said("SCR: error")
        job.by(BOB).run("init", restart("c"), "finalize")


def test_commands():
    """Each user changes records of the other one."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("a"), checkpoint("b"), "finalize")
        job.by(BOB)
        assert "b" in command(job, "scr_index", "--list").out
        command(job, "scr_index", "--current", "a")
        command(job, "scr_halt", "-c", 1, job.prefix)
        command(job.by(ALICE), "scr_halt", "--remove", job.prefix)
        job.run("init", "have => 1 a", "start_restart => a", "complete_restart:1", "finalize")
        command(job.by(BOB), "scr_index", "--drop", "b")
        command(job.by(ALICE), "scr_index", "--add", "b")
        command(job, "scr_index", "--current", "b")
        command(job.by(BOB), "scr_index", "--verify")
        job.run("init", restart("b"), "finalize")


def test_scavenge():
    """Datasets that one user saved from the caches are read by the other one."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(ALICE).run("init", checkpoint("a"))
        scavenge(job, 1)
        command(job.by(BOB), "scr_index", "--add", "a")
        job.run("init", restart("a"), "finalize")


def by_bob(job, line):
    return subprocess.run(["sh", "-ec", line], cwd=job.prefix, user=BOB.pw_uid, group=BOB.pw_gid, extra_groups=[SHARED], umask=0o007,
                          stderr=subprocess.DEVNULL).returncode


def test_files_of_others_stay():
    """Files outside of the directory of an unnamed checkpoint are the program's: files
    that Bob, or Alice manually, has put under their names since are not removed with the
    checkpoint. Files of the checkpoint are removed, also when Bob deletes it."""
    for how in ({"SCR_PREFIX_SIZE": 1}, {"SCR_PREFIX_PURGE": 1}, {}):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", "start_checkpoint", "put:out1/rank_%r:1000", "put:out1/more_%r:1000", "put:out1/last_%r:1000",
                              "complete_checkpoint:1", "finalize")
            assert by_bob(job, "rm out1/rank_0; echo 'a file of Bob' > out1/rank_0; chmod 600 out1/rank_0") == 0
            notes, link = job.prefix / "out1/rank_1", job.prefix / "out1/last_0"
            notes.write_text("n" * notes.stat().st_size)
            link.unlink()
            link.symlink_to("more_0")
            rest = [] if how else ["delete:scr.dataset.1"]
            run = job.by(BOB).run("init", "have => ANY", "start_checkpoint", "put:out2/rank_%r:1000", "complete_checkpoint:1", rest,
                                  "finalize", **how)
            run.says("PREFIX_FILES_REPLACED", r"dataset 1 .scr\.dataset\.1.", 'out1/(rank|last)_.. (has|was|is not)', times=1)
            left = sorted(path.name for path in (job.prefix / "out1").iterdir())
            assert left == ["last_0", "rank_0", "rank_1"], (left, run)
            assert (job.prefix / "out1/rank_0").read_text() == "a file of Bob\n" and set(notes.read_text()) == {"n"}
            assert not (job.prefix / "scr.dataset.1").exists(), run
            job.by(ALICE).run("init", "have => 1 scr.dataset.2", "finalize").not_said("PREFIX_|scr.dataset.1")


def change_index(job, change):
    """Bob changes his datasets in the index, {id: {"DIR": {name: entry}}}."""
    path = job.prefix / ".scr/index.scr"
    told = tree.read(path)
    change(told["DSET"])
    path.unlink()
    tree.write(path, told)
    os.chown(path, BOB.pw_uid, SHARED)
    path.chmod(0o660)


def rename_file(record, old, new):
    """Renames a file in a record, which becomes Bob's."""
    text = json.dumps(tree.read(record))
    assert old in text, text
    record.unlink()
    tree.write(record, json.loads(text.replace(old, new)))
    os.chown(record, BOB.pw_uid, SHARED)
    record.chmod(0o660)


def test_private():
    """With a umask of 077, another user sees nothing, and gets an error; nothing is
    harmed."""
    with Shared(0o755, 0o077) as job:
        job.by(ALICE).run("init", checkpoint("a"), "finalize")
        assert not [name for name, mode in modes(job).items() if mode & 0o077], modes(job)
        done = command(job.by(BOB), "scr_index", "--list", code=1)
        assert "Permission denied" in done.err, done
        job.run("init => PREFIX").says("PREFIX_NOT_OPENED", "Permission denied")
        job.by(ALICE).run("init", restart("a"), "finalize").not_said("warning|error")


def lock_as_bob(job):
    """Holds the locks that a reader can have, as long as the process runs; returns
    whether he can open the lock of the records."""
    for path in (job.prefix / ".scr").glob("*.scr"):
        file = os.open(path, os.O_RDONLY)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    try:
        os.close(os.open(job.prefix / ".scr/lock", os.O_RDONLY))
        return b"opened"
    except PermissionError:
        return b"locked"


def lock_as_owner(job):
    """Locks the records through a file of Bob's."""
    file = os.open(job.prefix / ".scr/lock", os.O_RDWR)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return b"locked"


@contextlib.contextmanager
def reader(job, lock=lock_as_bob):
    """Starts a process of Bob that holds locks."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([SHARED])
            os.setgid(BOB.pw_gid)
            os.setuid(BOB.pw_uid)
            os.write(into, lock(job))
            signal.pause()
        finally:
            os._exit(1)
    os.close(into)
    try:
        assert os.read(out, 6) == b"locked"
        yield
    finally:
        os.close(out)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_reader():
    """Bob lists and checks Alice's datasets as her umask allows; he can neither write nor
    obstruct her."""
    with Shared(0o755, 0o022) as job:
        job.by(ALICE).run("init", checkpoint("a"), "finalize")
        found = {name: mode for name, mode in modes(job).items() if name.endswith(".scr")}
        assert len(found) > 4 and set(found.values()) <= {0o644, 0o755}, found
        job.by(BOB)
        assert " a\n" in command(job, "scr_index", "--list").out
        command(job, "scr_index", "--verify", "a")
        command(job, "scr_index", "--drop", "a", code=1)
        command(job, "scr_halt", code=1)
        job.run("init => PREFIX").says("PREFIX_RECORDS_UNREADABLE", "Permission denied")
        with reader(job):
            job.by(ALICE).run("init", restart("a"), checkpoint("b"), "finalize").not_said("LOCK_WAIT|warning|error")
            command(job, "scr_index", "--drop", "a")


def test_former_colleague():
    """Bob puts his own lock in place. It stays while he shares the directory, and does
    not obstruct afterwards: a lock that he holds, and a lock that only he can open."""
    for mode, holder in ((0o660, reader), (0o600, contextlib.nullcontext)):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("a"), "finalize")
            lock = job.prefix / ".scr/lock"
            run_by_bob(job, f"rm {lock}; touch {lock}; chmod 660 {lock}")
            job.run("init", restart("a"), "finalize")
            assert lock.stat().st_uid == BOB.pw_uid
            with holder(job, lock_as_owner) if holder is reader else holder():
                lock.chmod(mode)
                subprocess.run(["chmod", "g-w", job.prefix, lock.parent], check=True)
                job.run("init", restart("a"), checkpoint("b"), "finalize").not_said("LOCK_WAIT|warning|error")
                command(job, "scr_index", "--drop", "a")
            assert lock.stat().st_uid == ALICE.pw_uid


def test_other_umask_of_a_lock():
    """A user who makes the lock with a umask of 022 does not exclude colleagues."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("a"), "finalize")
        (job.prefix / ".scr/lock").unlink()
        job.umask = 0o022
        command(job.by(ALICE), "scr_halt", "-c", 100, job.prefix)
        assert modes(job)[".scr/lock"] == 0o660
        job.umask = 0o007
        command(job.by(BOB), "scr_halt", "--remove", job.prefix)
        job.run("init", restart("a"), "finalize")


def test_logs():
    """Logs have the permissions of records."""
    for folder, umask, mode in ((0o755, 0o022, 0o644), (0o755, 0o077, 0o600), (0o2770, 0o007, 0o660)):
        with Shared(folder, umask) as job:
            job.parameters.update(SCR_LOG_ENABLE=1, SCR_LOG_JSON_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0)
            job.by(ALICE).run("init", checkpoint("a"), "finalize")
            command(job, "scr_run", "--simulate", "1x1", "true", code=None)
            found = {name: modes(job)[f".scr/{name}"] for name in ("log", "log.jsonl", "runs.log")}
            assert set(found.values()) == {mode}, found


def run_by_bob(job, line, mask=0):
    done = subprocess.run(["sh", "-ec", line], cwd=job.prefix, user=BOB.pw_uid, group=BOB.pw_gid, extra_groups=[SHARED], umask=mask,
                          capture_output=True, text=True)
    assert done.returncode == 0, done


def found_below(job, folder, name):
    """Returns the modes of files with such names below a directory, if all are in one
    group; and that group."""
    found = [path.stat() for path in (job.prefix / folder).rglob(name)]
    assert found and len({st.st_gid for st in found}) == 1, found
    return {stat.S_IMODE(st.st_mode) for st in found}, found[0].st_gid


def test_folder_of_another_group():
    """Bob makes the directory of Alice's next dataset, which gives his group to her
    files. Her umask lets her own group read her files."""
    for mode, planted in ((0o1777, False), (0o1777, True), (0o770, True)):
        for containers in (0, 1):
            with Shared(mode, 0o027) as job:
                if planted:
                    run_by_bob(job, "mkdir a; chmod 2777 a")
                job.by(ALICE).run("init", checkpoint("a"), "finalize", SCR_USE_CONTAINERS=containers)
                found = found_below(job, "a", "ctr.*.scr" if containers else "rank_*")
                assert found == (({0o600}, BOB.pw_gid) if planted else ({0o640}, ALICE.pw_gid)), (mode, planted, containers, found)
    # the same for files that are saved from caches
    with Shared(0o1777, 0o027) as job:
        run_by_bob(job, "mkdir -p a/.scr; chmod 2777 a a/.scr")
        job.by(ALICE).run("init", checkpoint("a"), SCR_FLUSH=0)
        scavenge(job, 1)
        assert found_below(job, "a", "rank_*") == ({0o600}, BOB.pw_gid)


def fetch(job):
    """A run begins with dataset "a" and is killed."""
    process = job.start(os.environ["JOB_PROBE"], "init", "have", "start_restart", "complete_restart:1", "kill@0")
    text = process.communicate()
    assert "FETCH_COMPLETE" in text[1] and any(job.root.glob("nodes/*/cache/**/scr.dataset.*")), text


def test_group_of_the_project():
    """Permissions that Alice's umask gives to a group apply to the group of a setgid
    prefix directory."""
    for containers in (0, 1):
        with Shared(0o2770, 0o027) as job:
            job.parameters["SCR_USE_CONTAINERS"] = containers
            job.by(ALICE).run("init", checkpoint("a"), "finalize")
            assert found_below(job, "a", "ctr.*.scr" if containers else "rank_*") == ({0o640}, SHARED)


def change_tree(node, change):
    for value in list(node.values()):
        if isinstance(value, dict):
            change(value)
            change_tree(value, change)


def change_record(record, change):
    """Changes a record, which becomes Bob's."""
    found = tree.read(record)
    change_tree(found, change)
    tree.write(record, found)
    os.chown(record, BOB.pw_uid, SHARED)


def test_packed_group_file():
    """Bob adds a file of Alice's, which her own group may read, to a dataset that he
    saved from caches. She packs that dataset."""
    with Shared(0o2770, 0o007) as job:
        job.parameters["SCR_FLUSH"] = 0
        job.by(BOB).run("init", "start:a:c", "put:a/f_%r:100", "complete:1")
        scavenge(job, 1)
        folder, notes = saved(job, "a", 1), job.prefix / "notes"
        notes.write_bytes(b"." * 100)
        os.chown(notes, ALICE.pw_uid, ALICE.pw_gid)
        notes.chmod(0o640)
        run_by_bob(job, f"mv -f notes {folder}/a/f_0")
        change_record(folder / ".scr/0.scrfilemap", lambda node: node.pop("CRC", None))
        command(job.by(ALICE), "scr_index", "--add", "a", SCR_USE_CONTAINERS=1)
        assert found_below(job, "a", "ctr.*.scr") == ({0o600}, SHARED)


def fetch_and_drop(job, drop):
    """Alice fetches dataset "a" from a directory that Bob can change; he drops it. Her
    next run does not flush it from her caches."""
    fetch(job.by(ALICE))
    command(job.by(BOB), "scr_index", "--drop", "a")
    run_by_bob(job, drop)
    job.by(ALICE).run("init => ANY", "finalize").says("FLUSH_BORROWED", "dataset 1 .a. is not flushed")
    assert not list(job.prefix.rglob("rank2file.*"))


def test_fetched_where_nobody_else_writes():
    """A checkpoint that Alice fetched from her own directory is flushed again after it
    was dropped there."""
    with Shared(0o2750, 0o027) as job:
        job.by(ALICE).run("init", checkpoint("a"), "finalize")
        for path in job.root.glob("nodes/*/c*/*"):
            shutil.rmtree(path)
        fetch(job)
        command(job, "scr_index", "--drop", "a")
        shutil.rmtree(job.prefix / "a")
        job.run("init => ANY", "finalize").not_said("FLUSH_BORROWED")
        assert found_below(job, "a", "rank_*") == ({0o640}, SHARED)


def test_fetched_group_file():
    """Bob's map names a file of Alice's that another group may read, as a container or as
    a file: its bytes get into no other file."""
    def keep_third(job):
        folder = job.prefix / "third"
        folder.mkdir()
        (folder / "work").write_bytes(b"." * 100)
        for path, own, mode in ((folder / "work", group, 0o640), (folder, SHARED, 0o2770)):
            os.chown(path, ALICE.pw_uid, own)
            path.chmod(mode)

    def name_container(node):
        if "SEG" in node:
            node.pop("CRC", None)
            node["MODE"] = {"0666": {}}
            for segment in node["SEG"].values():
                segment.update(FILE={"third/work": {}}, OFFSET={"0": {}})

    def drop_checksum(node):
        if "third/work" in node:
            node["third/work"] = {key: item for key, item in node["third/work"].items() if key not in ("CRC", "MTIME")}

    for group in (OTHER, ALICE.pw_gid):
        with Shared(0o2770, 0o007) as job:
            keep_third(job)
            job.by(BOB).run("init", SCATTERED, "finalize", SCR_USE_CONTAINERS=1)
            (job.prefix / "third/work").write_bytes(b"." * 1000)
            change_record(job.prefix / "a/.scr/rank2file.0.0.scr", name_container)
            fetch_and_drop(job, "rm -rf a beside")
        with Shared(0o2770, 0o007) as job:
            keep_third(job)
            job.by(BOB).run("init", SCATTERED, "finalize")
            rename_file(job.prefix / "a/.scr/rank2file.0.0.scr", "beside/g_0", "third/work")
            change_record(job.prefix / "a/.scr/rank2file.0.0.scr", drop_checksum)
            fetch_and_drop(job, "rm -rf a beside; mv third elsewhere")
            assert not (job.prefix / "third").exists()


def test_logs_of_another_user():
    """Bob makes the logs first, to read the logs of Alice's commands and runs."""
    with Shared(0o770, 0o077) as job:
        job.parameters.update(SCR_LOG_ENABLE=1, SCR_LOG_JSON_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0)
        names = [f".scr/{name}" for name in ("log", "log.jsonl", "runs.log")]
        run_by_bob(job, f"mkdir -m 777 .scr; touch {' '.join(names)}; chmod 666 {' '.join(names)}")
        job.by(ALICE).run("init", checkpoint("a"), "finalize").says("LOG_TARGET_FAILED", f"belongs to user {BOB.pw_uid}")
        done = command(job, "scr_run", "--simulate", "1x1", "true", code=None)
        assert f"belongs to user {BOB.pw_uid}" in done.err, done
        assert not any((job.prefix / name).stat().st_size for name in names)
    # colleagues share them
    with Shared(0o2770, 0o007) as job:
        job.by(BOB).run("init", checkpoint("a"), "finalize", SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0)
        size = (job.prefix / ".scr/log").stat().st_size
        job.by(ALICE).run("init", restart("a"), "finalize", SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0).not_said("LOG_TARGET_FAILED")
        assert (job.prefix / ".scr/log").stat().st_size > size


def test_records_in_a_folder_of_another_group():
    """Bob first makes .scr, setgid and of his group, in a prefix directory that no group
    shares."""
    for mode in (0o1777, 0o770):
        with Shared(mode, 0o002) as job:
            run_by_bob(job, "mkdir .scr; chmod 2777 .scr")
            job.by(ALICE).run("init", checkpoint("a"), "finalize")
            assert found_below(job, ".scr", "*.scr") == ({0o644}, BOB.pw_gid)
            assert found_below(job, ".scr", "lock") == ({0o600}, BOB.pw_gid)


def test_shared_with_another_umask():
    """Bob cannot change Alice's private files, and his run reports the obstacle."""
    with Shared(0o2770, 0o077) as job:
        job.by(ALICE).run("init", checkpoint("a"), "finalize")
        job.by(BOB).run("init => ANY", "have => ANY").says("PREFIX_NOT_OPENED", "Permission denied")
        job.by(ALICE).run("init", restart("a"), "finalize")


if __name__ == "__main__":
    main(globals())
