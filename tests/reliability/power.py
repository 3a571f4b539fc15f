#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Power cuts: at the n-th sync or rename of one rank, of one background process, or of the commands that save a dataset
after the job, disks lose their power, for every n. What was not synced is gone when they are back, and a run follows.

The disks are images with ext4 in memory, in a mount namespace of this program, so that nothing stays behind whatever
ends it. Neither the timer of the journal nor ext4's care for those who forget to sync (auto_da_alloc) writes anything.
Root and loop devices are needed."""
import collections
import ctypes
import fcntl
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from sweep import (DAEMON, METHODS, PARAMETERS, PROBE, RANKS, STORY, Sweep, anyhow, calls_of, check_prefix, completed,
                   fault, has_struck, judge, options)
from job import SKIP, Job, checkpoint, end_all, messages  # sweep.py knows where that is
import scavenged

CLONE_NEWNS = 0x20000
OPTIONS = "loop,noatime,noauto_da_alloc,commit=1000"
SHUTDOWN = 0x8004587d  # EXT4_IOC_SHUTDOWN, as in tests/support/faults.c
FLAGS = {"journal": 1, "power": 2}

# what lies on disks of its own, of which all lose their power; whether what else is on the nodes is lost as well, and
# what is promised: all that was complete, or only what was flushed
Place = collections.namedtuple("Place", "disks memory promise")
PLACES = {
    "caches in memory": Place(["prefix"], "lost", "flushed"),  # everything loses its power
    "caches on disks": Place(["prefix", "nodes"], "kept", "flushed"),  # the same
    "a node": Place(["nodes/n2"], "kept", "complete"),  # and its disk is there again when it is back
    "prefix": Place(["prefix"], "kept", "complete"),  # the nodes have power
}


# ---- disks ----

def command(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{words[0]}: {done.stderr.strip()}")


def unmount(path):
    """A process that was killed may take a moment to let go of it."""
    for _ in range(600):
        try:
            return command("umount", path)
        except OSError as error:
            problem = error
        time.sleep(0.1)
    raise problem


class DiskJob(Job):
    """A job with ext4 in some of its directories."""

    template = None  # a new file system

    def __init__(self, folders):
        super().__init__(RANKS, 1, **PARAMETERS)
        self.disks = {self.root / folder: self.root / (folder.replace("/", "-") + ".img") for folder in folders}
        self.mounted = []
        for path, image in self.disks.items():
            path.mkdir(parents=True, exist_ok=True)
            command("cp", "--sparse=always", self.template, image)
        self.mount()

    def mount(self):
        for path, image in self.disks.items():
            command("mount", "-o", OPTIONS, image, path)
            self.mounted.append(path)

    def cut(self, how):
        for path in self.disks:
            fd = os.open(path, os.O_RDONLY)
            fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", FLAGS[how]))
            os.close(fd)

    def restore(self):
        """The power is back."""
        end_all()
        self.unmount()
        self.mount()

    def unmount(self):
        while self.mounted:
            unmount(self.mounted.pop())

    def __exit__(self, *exception):
        end_all()
        self.unmount()
        super().__exit__(*exception)


def make_template():
    image = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm")) / "template"
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    command("mkfs.ext4", "-q", "-F", "-N", "2048", "-J", "size=4", "-m", "0", image)
    mounted = image.parent / "mounted"
    mounted.mkdir()
    command("mount", "-o", OPTIONS, image, mounted)
    (mounted / "lost+found").rmdir()
    unmount(mounted)
    return image


def begin():
    """Everything that this program mounts, and /dev/shm, is its own and goes with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        raise OSError("a mount namespace of its own takes root")
    command("mount", "--make-rprivate", "/")
    command("mount", "-t", "tmpfs", "-o", "mode=1777", "scr-power", "/dev/shm")
    DiskJob.template = make_template()
    with DiskJob(["prefix"]) as job:
        job.cut("power")
        job.restore()


# ---- a point ----

def flushed(run):
    """Names of the datasets that SCR said to be on the prefix directory."""
    return [re.search(r"dataset \d+ \((\w+)\)", line)[1] for line in messages(run.err, "FLUSH_COMPLETE")]


def cut(program, rank, at, method, how, place):
    """The cut, and the run that follows."""
    disks, memory, promise = PLACES[place]
    with DiskJob(disks) as job:
        below = ":".join(str(path) for path in job.disks)
        strike = {**fault(job, program, rank, at=at, how=how), "FAULTS_DISKS": below}
        run = job.run(anyhow(STORY), dies=None, faults=strike, **METHODS[method])
        if not has_struck(job):
            job.cut(how)
        job.restore()
        if memory == "lost":
            shutil.rmtree(job.root / "nodes", ignore_errors=True)  # at the first call there is none
        there = flushed(run)
        done = completed(run) if promise == "complete" else there
        try:
            judge(job, done, kept=there, **METHODS[method])
        except AssertionError as error:
            raise AssertionError(f"{error}\nthe run before: {run}") from None
        return has_struck(job)


# ---- saving a dataset after the job ----

SAVED = "c3"  # the newest, which only the cache has
STORY_TO_SAVE = ["init", checkpoint("c1"), checkpoint("c2"), checkpoint(SAVED)]


def save(job, program, faults):
    """The two commands that save it, with faults in one of them. Says whether each said that all went well."""
    copied = scavenged.scavenge(job, 3, code=None, faults=faults if program == "scr_copy" else {}).code == 0
    if not copied:
        return False, False
    added = scavenged.command(job, "scr_index", "--add", SAVED, code=None, faults=faults if program == "scr_index" else {})
    return True, added.code == 0


def calls_of_saving(program):
    """So many syncs and renames one process of that program does."""
    with Job(RANKS, 1, **PARAMETERS) as job:
        job.run(STORY_TO_SAVE)
        assert save(job, program, fault(job, program, None, log=job.root / "calls", how="power")) == (True, True)
        return max(int(line.split()[0]) for line in (job.root / "calls.").read_text().splitlines())


def cut_saving(program, at, how):
    """The file server loses its power. When it is back the commands are given again, those that had said that all is well
    excepted: then the nodes may be somebody else's."""
    with DiskJob(["prefix"]) as job:
        job.run(STORY_TO_SAVE)
        strike = {**fault(job, program, None, at=at, how=how, once=job.root / "once"), "FAULTS_DISKS": job.prefix}
        copied, added = save(job, program, strike)
        if not has_struck(job):
            job.cut(how)
        job.restore()
        if not copied:
            scavenged.scavenge(job, 3)
        scavenged.lose_all(job)
        if not added:
            scavenged.command(job, "scr_index", "--add", SAVED)
        scavenged.next_run_reads(job, SAVED)
        check_prefix(job, ["c2", SAVED])
        return has_struck(job)


def check_folders(calls):
    """Where something on the prefix directory got its name, somebody synced its directory later. A cut does not show that:
    ext4 has one journal, and the name is there, too, if any other file was synced. Directories of a stage do not outlive
    their flush; what the flush file says last may be forgotten (docs/decisions/0040-what-a-flush-syncs.md)."""
    named = {}
    for _, call, path in sorted(entry for of_rank in calls for entry in of_rank):
        if call.startswith(("rename", "mkdir")) and "/prefix/" in path and "/.scr/stage/" not in path and not path.endswith("/.scr/flush.scr"):
            named.setdefault(os.path.dirname(path), set()).add(path)
        elif call == "fsync":
            named.pop(path, None)
    assert not named, f"nobody synced these directories: {named}"


def main():
    given = options(__doc__, sample=10)
    try:
        begin()
    except OSError as error:
        print(f"skipped: {error}")
        sys.exit(SKIP)
    sweep = Sweep(given)
    for method, parameters in METHODS.items():
        check_folders(sweep.ask(calls_of, STORY, PROBE, **parameters))
        calls = sweep.ask(calls_of, STORY, PROBE, how="power", **parameters)
        for place in PLACES:
            for how in FLAGS if place.startswith("caches") else ["power"]:
                # one more: the power is cut when all is done
                points = [(PROBE, rank, at, method, how, place) for rank in ([1] if place == "a node" else range(RANKS))
                          for at in range(1, len(calls[rank]) + 2)]
                sweep.add(f"{how}, {place}, {method}", cut, points)
    calls = max(map(len, sweep.ask(calls_of, STORY, DAEMON, how="power", **METHODS["daemon"])))
    for place in PLACES:
        points = [(DAEMON, rank, at, "daemon", "power", place) for rank in ([1] if place == "a node" else range(RANKS))
                  for at in range(1, calls + 1)]
        sweep.add(f"power, {place}, {DAEMON}", cut, points)
    for program in ("scr_copy", "scr_index"):
        calls = sweep.ask(calls_of_saving, program)
        for how in FLAGS:
            sweep.add(f"{how}, prefix, {program}", cut_saving, [(program, at, how) for at in range(1, calls + 2)])
    sweep.run()


if __name__ == "__main__":
    main()
