#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files of other users in place of temporary files: a colleague who can write to the
directory of a dataset, or the maker of that directory, exchanges files that a run or
command of the user made there and opens again. No private data is written to them."""
import contextlib
import os
import stat
import subprocess
import time

from group import ALICE, BOB, SHARED, Shared, by_bob, change_index
from job import checkpoint, main
from scavenged import command, saved, scavenge
import tree

PUTS = [f"put:b/f{i}_%r:300000" for i in range(10)]

# Bob's program: for some seconds it replaces files of other users below a directory by
# files that it has open, and their directories in a stage by its own; it prints how many
# of its files have bytes then.
PLANT = r"""
import contextlib, os, sys, time
top, seconds, number, held = sys.argv[1], float(sys.argv[2]), 0, []
def plant(path, size):
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    os.truncate(fd, size)
    held.append(fd)
os.umask(0)
print("ready", flush=True)
end = time.time() + seconds
while time.time() < end:
    if top.endswith("/b"):  # a run that begins removes empty ones
        with contextlib.suppress(OSError):
            os.makedirs(f"{top}/.scr/stage", 0o2777, exist_ok=True)
    for folder, folders, files in os.walk(top):
        for name in folders if folder.endswith("/stage") else ():
            with contextlib.suppress(OSError):
                if os.stat(f"{folder}/{name}").st_uid != os.getuid():
                    number += 1
                    os.rename(f"{folder}/{name}", f"{folder}/away{number}")
                    os.makedirs(f"{folder}/{name}/0")
        for name in files:
            with contextlib.suppress(OSError):
                st = os.stat(f"{folder}/{name}")
                if st.st_uid == os.getuid() or not (name.endswith(".tmp") or "/stage/" in folder) or name == "stage.scr": continue
                plant(f"{folder}/{name}~", st.st_size)
                os.rename(f"{folder}/{name}~", f"{folder}/{name}")
print(sum(len(os.pread(fd, 1 << 22, 0).strip(b"\0")) > 1000 for fd in held))
"""


def planting(folder, seconds, groups=(SHARED,)):
    process = subprocess.Popen(["/usr/bin/python3", "-c", PLANT, folder, str(seconds)], stdout=subprocess.PIPE, text=True, user=BOB.pw_uid,
                               group=BOB.pw_gid, extra_groups=list(groups))
    assert process.stdout.readline() == "ready\n"
    return process


def check_planted(process, run):
    out, _ = process.communicate()
    assert process.returncode == 0 and out == "0\n", (out, run)


def private_files(job, *operations, **how):
    """A run of Alice's with files that only she can read."""
    process = job.by(ALICE).start(os.environ["JOB_PROBE"], "init", "have => ANY", "start:b:c", *PUTS, "sleep:300", *operations, **how)
    while process.poll() is None:
        time.sleep(0.02)
        with contextlib.suppress(FileNotFoundError):  # files and directories go meanwhile
            for path in job.root.glob("nodes/*/cache/**/f*_?"):
                path.chmod(0o600)
    return process.communicate()


def test_planted_in_a_stage():
    """Bob replaces files that a flush of Alice's has made and opens again."""
    for more in ({}, {"SCR_USE_CONTAINERS": 1}, {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON"}):
        with Shared(0o2770, 0o007) as job:
            job.parameters.update(more)
            bob = planting(job.prefix, 3)
            check_planted(bob, private_files(job, "complete:1", "finalize"))


def test_stage_of_another_user():
    """Bob first makes the directory of the next dataset: in a shared directory, or in one
    like /tmp, where he is not a colleague."""
    for sticky in (False, True):
        with Shared(0o2770, 0o077) as job:
            if sticky:
                os.chown(job.prefix, 0, 0)
                job.prefix.chmod(0o1777)
            subprocess.run(["mkdir", "-m", "2777", "-p", "b", "b/.scr", "b/.scr/stage"], cwd=job.prefix, check=True, user=BOB.pw_uid,
                           group=BOB.pw_gid, extra_groups=[] if sticky else [SHARED])
            for path in ("b", "b/.scr", "b/.scr/stage"):
                (job.prefix / path).chmod(0o2777)
            job.parameters.update(SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW=3000000, SCR_FLUSH_TYPE="pthread")
            bob = planting(job.prefix / "b", 3.5, [] if sticky else [SHARED])
            check_planted(bob, job.by(ALICE).start(os.environ["JOB_PROBE"], "init", "start:b:c", *PUTS, "sleep:300", "complete:1 => ANY",
                                                   "finalize => ANY").communicate())


def test_planted_before_it_is_resumed():
    """Alice's run ends during a flush. Bob moves older files of hers, which he has open,
    to the place where the next run resumes it."""
    with Shared(0o2770, 0o007) as job:
        job.parameters.update(SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW=200000, SCR_FLUSH_TYPE="pthread")
        job.by(ALICE).run("init", checkpoint("old"), "finalize")
        private_files(job, "complete:1", "sleep:1000", "kill@0")
        staged = list(job.prefix.glob("b/.scr/stage/*/0/?.*"))
        assert staged and not [path for path in staged if by_bob(job, f"mv old/rank_0 {path}") == 0]
        os.replace(job.prefix / "old/rank_0", staged[0])
        with open(staged[0], "rb") as held:
            before = held.read()
            del job.parameters["SCR_FLUSH_ASYNC_BW"]
            job.by(ALICE).run("init", "have => ANY", "finalize")
            held.seek(0)
            assert held.read() == before


def test_planted_in_a_rebuild():
    """Bob replaces files that Alice's command rebuilds among saved ones."""
    with Shared(0o2770, 0o007, nodes=4) as job:
        job.parameters.update(SCR_FLUSH=0, SCR_COPY_TYPE="XOR", SCR_SET_SIZE=4)
        private_files(job, "complete:1")
        job.lose("n2")
        scavenge(job, 1, code=None)
        bob = planting(saved(job, "b", 1), 3)
        check_planted(bob, command(job, "scr_index", "--add", "b", code=None))


def test_planted_in_a_transfer():
    """A transfer file of Alice's with a temporary file in a shared directory is resumed:
    Bob's file is there by then."""
    with Shared(0o2770, 0o007) as job:
        size, number = 40 << 20, "0123456789abcdef"
        own = job.root / "own"
        own.mkdir(mode=0o700)
        (own / "secret").write_bytes(b"S" * size)
        changed = (own / "secret").stat().st_mtime_ns
        tree.write(own / "state", {"FILES": {str(own / "secret"): {
            "DESTINATION": {str(job.prefix / "out"): {}}, "SIZE": {str(size): {}}, "WRITTEN": {"1": {}},
            "MTIME": {f"{changed // 10**9}.{changed % 10**9:09}": {}}}},
            "COMMAND": {"RUN": {}}, "ID": {number: {}}, "OPTIONS": {"KEEP_MODE": {}}})
        for path in (own, own / "secret", own / "state"):
            os.chown(path, ALICE.pw_uid, ALICE.pw_gid)
        (own / "secret").chmod(0o600)
        planted = job.prefix / f".{number}-0.tmp"
        assert by_bob(job, f"umask 0; truncate -s {size} {planted.name}") == 0
        with open(planted, "rb") as held:
            done = subprocess.run([os.environ["JOB_BUILD"] + "/libaxl-lite/scr_transfer", "--leave", "-i", "0.2", own / "state"], user=ALICE.pw_uid,
                                  group=ALICE.pw_gid, extra_groups=[SHARED], umask=0o077, capture_output=True, text=True)
            assert held.read() == bytes(size), done
        assert (job.prefix / "out").read_bytes() == (own / "secret").read_bytes(), done


def test_files_of_others_without_cache():
    """Alice writes a checkpoint directly to the prefix directory; its files exist
    already, and are Bob's, or have another name."""
    for line in ("umask 0; mkdir -m 2777 b; touch b/rank_0 b/rank_1", "mkdir b; ln old/rank_0 b/rank_0; touch b/rank_1"):
        with Shared(0o2770, 0o007) as job:
            job.parameters["SCR_CACHE_BYPASS"] = 1
            job.by(ALICE).run("init", checkpoint("old"), "finalize")
            assert by_bob(job, line) == 0
            run = job.by(ALICE).run("init", "have => ANY", "start:b:c", "route:b/rank_0 => ANY", "complete:0 => ANY", "finalize => ANY")
            run.says("ROUTE_REFUSED", "b/rank_0")


def test_interrupted_by_a_colleague():
    """Only Alice removes the remains of her interrupted flush; a colleague's run ignores
    them, and cannot delete the dataset."""
    with Shared(0o2770, 0o007) as job:
        job.parameters.update(SCR_FLUSH_ASYNC=1, SCR_FLUSH_ASYNC_BW=200000, SCR_FLUSH_TYPE="pthread")
        private_files(job, "complete:1", "sleep:300", "kill@0")
        stage = next(job.prefix.glob("b/.scr/stage/*"))
        assert stat.S_IMODE(stage.stat().st_mode) & 0o777 == 0o700
        job.by(BOB).run("init", "have => ANY", "finalize").not_said("FLUSH_STAGE_KEPT")
        job.run("init", "have => ANY", "delete:b => ANY", "finalize")
        assert stage.exists()
        del job.parameters["SCR_FLUSH_ASYNC_BW"]
        job.parameters["SCR_JOB_ID"] = "another"
        job.by(ALICE).run("init", "have => ANY", "delete:b => ANY", "finalize")
        assert not stage.exists()


def test_nested_without_end():
    """Bob nests directories in a stage, deeper than the longest name: Alice's next run
    reports that they stay."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", checkpoint("x"), checkpoint("a"), "finalize")
        change_index(job, lambda datasets: [folders["DIR"]["a"].update(COMPLETE={"0": {}})
                                            for folders in datasets.values() if "a" in folders["DIR"]])
        deep = "mkdir -p a/.scr/stage/0123456789abcdef; cd a/.scr/stage/0123456789abcdef; for i in $(seq 600); do mkdir d; cd -P d; done"
        assert by_bob(job, deep) == 0
        job.by(ALICE).run("init", "have => ANY", "finalize").says("FLUSH_STAGE_KEPT", "0123456789abcdef has files that are of no flush")
        subprocess.run(["rm", "-rf", job.prefix / "a"], check=True)


if __name__ == "__main__":
    main(globals())
