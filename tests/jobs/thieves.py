#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Root saves data from a node's caches for a user's prefix directory, but never data from
another user's private cache."""
import os
import pathlib
import shutil

from job import Job, checkpoint, main
from accounts import two_accounts
from scavenged import command, saved
import tree

THIEF, VICTIM = two_accounts()
NODE = "n1"


class Owned(Job):
    """A job of a user with one node, whose cache has a checkpoint "a"."""

    def __init__(self, user):
        super().__init__(1, 1, SCR_FLUSH=0, SCR_USER_NAME=user.pw_name)
        self.user = user
        self.root.chmod(0o1777)
        os.chown(self.prefix, user.pw_uid, user.pw_gid)
        for base in ("cntl", "cache"):
            (self.node(NODE) / base).mkdir(parents=True)
            (self.node(NODE) / base).chmod(0o1777)
        self.identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.run("init", checkpoint("a"))
        self.identity = {}  # commands are root's

    def folder(self, base):
        """Of this job below a base."""
        return next((self.node(NODE) / base / self.user.pw_name).glob("scr.*"))

    def control(self):
        return self.folder("cntl") / NODE

    def dataset(self):
        return next(self.folder("cache").glob("scr.dataset.*"))

    def filemap(self):
        return next(self.control().glob("filemap_*.scriinfo"))

    def steal(self, code=1, control=None):
        """Returns the data that root's command saves for this job."""
        return command(self, "scr_copy", "--id", 1, "-p", self.prefix, "-c", control or self.control(), code=code)

    def give(self, path):
        os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)


def bytes_below(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def unharmed(thief, secret):
    """Nothing of the victim's is in the thief's prefix directory."""
    assert secret not in bytes_below(thief.prefix), list(thief.prefix.rglob("*"))


def pair():
    thief, victim = Owned(THIEF), Owned(VICTIM)
    path = next(victim.dataset().glob("**/rank_0"))
    path.write_bytes(bytes(reversed(path.read_bytes())))  # what nobody else has
    return thief, victim, path.read_bytes()


def test_what_is_ones_own():
    with Owned(THIEF) as job:
        job.steal(code=0)
        assert (saved(job, "a", 1) / "a/rank_0").stat().st_uid == THIEF.pw_uid


def test_control_folder_of_another():
    """The victim's control directory is named on the command line, or a link leads to it
    or to the filemap in it."""
    thief, victim, secret = pair()
    with thief, victim:
        done = thief.steal(control=victim.control())
        assert "Permission denied" in done.err, done
        unharmed(thief, secret)
        mine = thief.control()
        shutil.rmtree(mine)
        mine.symlink_to(victim.control())
        thief.give(mine)
        assert str(mine) in thief.steal().err
        unharmed(thief, secret)
        mine.unlink()
        mine.mkdir()
        thief.give(mine)
        for path in victim.control().glob("filemap*"):
            (mine / path.name).symlink_to(path)
        assert "filemap" in thief.steal(code=None).err
        unharmed(thief, secret)


def test_files_of_another():
    """The thief's filemap leads to the victim's files: by its path, or by a link anywhere
    on the way."""
    thief, victim, secret = pair()
    with thief, victim:
        mine, theirs = thief.dataset(), victim.dataset()
        for part in (mine, mine.parent, mine.parent.parent):
            away = pathlib.Path(f"{part}.away")
            part.rename(away)
            part.symlink_to(theirs if part == mine else victim.folder("cache") if part == mine.parent else victim.folder("cache").parent)
            thief.give(part)
            done = thief.steal()
            assert "rank 0" in done.err, done
            unharmed(thief, secret)
            part.unlink()
            away.rename(part)
        for path in mine.glob("**/rank_0"):
            path.unlink()
            path.symlink_to(next(theirs.glob("**/rank_0")))
            thief.give(path)
        thief.steal()
        unharmed(thief, secret)
        told = tree.read(thief.filemap())
        files = told["RANK"]["0"]["DSET"]["1"]["FILE"]
        for path in list(files):
            files[path.replace(str(mine), str(theirs))] = files.pop(path)
        tree.write(thief.filemap(), told)
        assert "which is not in" in thief.steal(code=3).err
        unharmed(thief, secret)


def test_place_of_another():
    """The target directory of the saved files is a link to a directory of the
    victim's."""
    thief, victim, _ = pair()
    with thief, victim:
        kept = victim.prefix / "kept"
        kept.mkdir()
        victim.give(kept)
        (thief.prefix / "a").symlink_to(kept)
        thief.give(thief.prefix / "a")
        thief.steal()
        assert not list(kept.iterdir())


def test_prefix_of_root():
    """Root's own job does not use data in a user's cache."""
    with Owned(THIEF) as job:
        os.chown(job.prefix, 0, 0)
        for path in job.prefix.rglob("*"):
            os.chown(path, 0, 0)
        done = job.steal()
        assert f"belongs to user {THIEF.pw_uid}" in done.err, done
        assert not (job.prefix / "a").exists()


if __name__ == "__main__":
    main(globals())
