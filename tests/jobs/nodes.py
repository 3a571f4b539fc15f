#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Damage on the nodes: records, cached files, redundancy files, and directories of other
users. A restart gets the right bytes, or an answer that there is no checkpoint."""
import contextlib
import os
import shutil
import subprocess

from job import Job, checkpoint, main, restart, Skip
import damage
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 0}


def protected(job, node):
    """Files that a restart restored can be rebuilt again."""
    job.lose(node)
    job.run("init", restart("a"))


# ---- records ----

def test_filemap():
    """A damaged filemap counts as lost; redundancy restores the files."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for hurt in damage.EVERY:
            hurt(job.control("n2") / "filemap_1.scriinfo")
            run = job.run("init", restart("a"))
            run.says("CONTROL_FILE_LOST", "node n2", times=hurt != damage.remove)
        protected(job, "n1")


def test_all_filemaps_of_a_node():
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for hurt in (damage.garbage, damage.remove):
            for path in job.control("n1").iterdir():
                hurt(path)
            job.run("init", restart("a"))
        protected(job, "n2")


def test_all_filemaps():
    """Redundancy files show the content of the cache: nothing is lost or fetched."""
    for nodes, ranks in ((2, 1), (2, 3), (4, 1)):
        for hurt in (damage.garbage, damage.remove):
            with Job(nodes, ranks, SCR_FLUSH=0) as job:
                job.run("init", checkpoint("a"), checkpoint("b"))
                for node in job.nodes():
                    for path in job.control(node).glob("*.scriinfo"):
                        hurt(path)
                run = job.run("init", restart("b"))
                run.not_said("REBUILD_COMPLETE|CACHE_INCOMPLETE_REMOVED|FETCH_COMPLETE")
                run = job.run("init", "have => 1 b", "start_restart", "complete_restart:0 => INVALID", restart("a"))
                run.says("CONTROL_FILE_LOST", times=0)
                protected(job, "n2")


def test_records_and_redundancy_lost():
    """Without these, the content of a directory is unknown. The directory is set aside,
    and the dataset is fetched."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"), SCR_FLUSH=1)
        for node in job.nodes():
            for path in job.control(node).glob("*.scriinfo"):
                damage.garbage(path)
            damage.garbage(next(job.cache(node).glob("scr.dataset.1/*.xor")))
        run = job.run("init", restart("a"))
        run.says("REBUILD_IMPOSSIBLE", "dataset 1", times=1)
        run.says("FETCH_COMPLETE", "a", times=1)


def test_not_readable_now():
    """An unreadable file does not count as lost: the run does not begin, and the next one
    has everything."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for node in job.nodes():
            (job.control(node) / "filemap_0.scriinfo").unlink()
        for name in ("2_of_2_in_0.xor", "scr.dataset.1"):
            run = job.run(f"unreadable@1:{name}", "init => CACHE")
            run.says("CACHE_NOT_READ", f"node n2: .*{name}.*Input/output error", times=1)
        run = job.run("init", restart("a"))
        run.says("REBUILD_COMPLETE", times=0)
        protected(job, "n1")


def test_another_node_comes_back():
    """A node returns with an older dataset of the same id and the same names, whose
    filemap is lost."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        kept = job.root / "kept"
        shutil.copytree(job.cache("n2"), kept)
        job.lose("n1", "n2")
        shutil.rmtree(job.prefix / ".scr")
        job.run("init", checkpoint("a", 5000))
        shutil.rmtree(job.cache("n2") / "scr.dataset.1")
        shutil.copytree(kept / "scr.dataset.1", job.cache("n2") / "scr.dataset.1")
        (job.control("n2") / "filemap_0.scriinfo").unlink()
        run = job.run("init", restart("a", 5000))
        run.says("REBUILD_COMPLETE", "1 of 2 ranks", times=1)


def test_whose_the_folders_are():
    """A damaged record of the owner of directories is reported and rewritten: the cache
    remains ours."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for hurt in damage.CONTENTS:
            hurt(job.control("n2") / "prefix.scriinfo")
            run = job.run("init", restart("a"))
            run.says("CONTROL_FILE_LOST", "node n2", "prefix.scriinfo", times=1)
        job.run("init", restart("a")).not_said("warning: (?!SCR_Finalize)")


def test_master_filemap():
    """The master filemap only names the filemaps; without it they are found by their
    names."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for hurt in damage.EVERY:
            for node in job.nodes():
                hurt(job.control(node) / "filemap.scriinfo")
            run = job.run("init", restart("a"))
            run.says("REBUILD_COMPLETE", times=0)


def hostile(change):
    """A job whose filemap of n2 was changed by an attacker who knows the format, and
    knows a file that does not belong to the job."""
    with Job(**PAIR) as job:
        victim = job.root / "victim"
        victim.write_text("do not touch")
        job.run("init", checkpoint("a"))
        path = job.control("n2") / "filemap_0.scriinfo"
        map_ = tree.read(path)
        change(map_["RANK"]["1"]["DSET"], victim, job)
        tree.write(path, map_)
        run = job.run("init", restart("a"))
        protected(job, "n1")
        assert victim.read_text() == "do not touch"
        return run


def rename_file(sets, to):
    files = sets["1"]["FILE"]
    name = next(name for name in files if name.endswith("rank_1"))
    files[to] = files.pop(name)


def test_hostile_path():
    for way in ("{victim}", "{cache}/scr.dataset.1/../../../../../../victim", "a/rank_1",
                "{cache}/scr.dataset.1/", "{cache}/scr.dataset.1/a/" + 2000 * "x",
                "{cache}/scr.dataset.2/a/rank_1"):
        def change(sets, victim, job):
            rename_file(sets, way.format(victim=victim, cache=job.cache("n2")))
        hostile(change).says("CONTROL_FILE_LOST", "node n2", times=1)


def test_hostile_numbers():
    def negative_id(sets, victim, job):
        sets["-1"] = sets.pop("1")

    def no_number(sets, victim, job):
        sets["one"] = sets.pop("1")

    def huge_size(sets, victim, job):
        for about in sets["1"]["FILE"].values():
            about["SIZE"] = {str(2 ** 63 - 1): {}}

    def no_size(sets, victim, job):
        for about in sets["1"]["FILE"].values():
            about["SIZE"] = {"much": {}}

    def many_files(sets, victim, job):
        sets["1"]["FILES"] = {"2000000000": {}}

    def other_ranks(sets, victim, job):
        sets["1"]["DATADESC"]["RANKS"] = {"2000000000": {}}

    def bad_name(sets, victim, job):
        sets["1"]["DATADESC"]["NAME"] = {"../victim": {}}

    for change in (negative_id, no_number, huge_size, no_size, many_files, other_ranks, bad_name):
        hostile(change)


def test_hostile_master():
    """It cannot make SCR read a filemap elsewhere."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        other = job.root / "filemap_0.scriinfo"
        shutil.copy(job.control("n2") / "filemap_0.scriinfo", other)
        (job.control("n2") / "filemap_0.scriinfo").unlink()
        for name in (str(other), "../" * 6 + other.name, "../" * 30 + "etc/passwd", "", "/", ".."):
            tree.write(job.control("n2") / "filemap.scriinfo", {"Filemap": {name: {}}})
            job.run("init", restart("a"))


# ---- files ----

def of_rank(job, node, pattern):
    found = sorted(job.cache(node).glob(f"scr.dataset.1/{pattern}"))
    assert len(found) == 1, found
    return found[0]


def test_data():
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for hurt in damage.EVERY:
            hurt(of_rank(job, "n2", "a/rank_2"))
            run = job.run("init", restart("a"))
            run.says("REBUILD_COMPLETE", "1 of 4 ranks", times=1)
            run.said("rank 2.*: a/rank_2 (has (checksum|[0-9]+ bytes)|is )", times=1)


def test_redundancy_file():
    """Damage before the file is needed."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for hurt in damage.EVERY:
            hurt(of_rank(job, "n2", "*.xor"))
            run = job.run("init", restart("a"))
            run.says("REBUILD_COMPLETE", "1 of 3 ranks", times=1)
            run.says("REBUILD_COMPLETE", "rank 1", "2_of_3_in_0.xor")
        job.lose("n1")
        job.run("init", restart("a"))


def test_earlier_redundancy_file():
    """A redundancy file is of another dataset with the same names and sizes: its member
    counts as lost, its set does not."""
    for nodes, scheme in ((2, "XOR"), (3, "PARTNER"), (4, "RS")):
        with Job(nodes, 1, SCR_FLUSH=0, SCR_COPY_TYPE=scheme) as job:
            job.run("init", "start:a:c", "tag:earlier", "put:a/rank_%r:1000", "complete:1")
            path = of_rank(job, "n2", f"*.{scheme.lower()}")
            earlier = path.read_bytes()
            job.lose(*job.nodes())
            job.run("init", checkpoint("a"))
            path.write_bytes(earlier)
            run = job.run("init", restart("a"))
            run.says("REBUILD_COMPLETE", f"1 of {nodes} ranks", times=1)
            protected(job, "n1")


def test_one_file_of_each():
    """All members of a set have lost a file: the set cannot be rebuilt."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a", flags="co"), checkpoint("b"))
        for node, rank in (("n1", 0), ("n2", 1)):
            damage.flip(job.cache(node) / f"scr.dataset.2/b/rank_{rank}")
        run = job.run("init", restart("a"))
        run.says("REBUILD_IMPOSSIBLE", r"dataset 2 \(b\)", times=1)


def test_damaged_and_lost():
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.lose("n1")
        damage.flip(of_rank(job, "n3", "a/rank_2"))
        run = job.run("init", "have => 0 =")
        run.says("REBUILD_IMPOSSIBLE", r"dataset 1 \(a\)", times=1)


def test_link_instead_of_a_file():
    """The target of a link is neither read nor written."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        path = of_rank(job, "n2", "a/rank_1")
        victim = job.root / "victim"
        shutil.copy(path, victim)
        damage.flip(victim)
        before = victim.read_bytes()
        path.unlink()
        path.symlink_to(victim)
        job.run("init", restart("a"))
        assert victim.read_bytes() == before and not path.is_symlink()


def in_the_way(job, kind):
    """Puts something in place of the directory of a dataset on a node. Returns the target
    of a link, or None."""
    folder, elsewhere = job.cache("n2") / "scr.dataset.2", job.root / "elsewhere"
    if kind == "link":
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
        return elsewhere
    shutil.rmtree(folder)
    if kind == "file":
        folder.write_text("x")
    else:
        folder.symlink_to(job.root / "nowhere" if kind == "link to nothing" else "/dev/null")
    return None


def test_no_folder_of_a_dataset():
    """If a file or a link has its name, the node counts as having lost the dataset; the
    target of a link is not touched."""
    for kind in ("file", "link", "link to nothing", "link to a device"):
        with Job(2, 2, SCR_FLUSH=0) as job:
            job.run("init", checkpoint("a"), checkpoint("b"))
            elsewhere = in_the_way(job, kind)
            before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} if elsewhere else {}
            run = job.run("init", restart("b"))
            run.says("REBUILD_COMPLETE", "dataset 2 .b.", "2 of 4 ranks", times=1)
            folder = job.cache("n2") / "scr.dataset.2"
            assert folder.is_dir() and not folder.is_symlink(), kind
            assert before == {path: path.read_bytes() for path in before} and not (job.root / "nowhere").exists(), kind
            job.run("init", restart("b")).says("REBUILD_COMPLETE", times=0)


def test_leftovers():
    """Directories without a record are removed; everything else is left alone."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for name in ("scr.dataset.9", "scr.dataset.x", "mine"):
            (job.cache("n2") / name / "deep").mkdir(parents=True)
            (job.cache("n2") / name / "deep/file").write_text("x")
        (job.cache("n2") / "scr.dataset.9/link").symlink_to(job.root)
        run = job.run("init", restart("a"))
        run.says("CACHE_INCOMPLETE_REMOVED", "dataset 9", times=1)
        assert sorted(path.name for path in job.cache("n2").iterdir()) == \
            ["mine", "scr.dataset.1", "scr.dataset.x"]


# ---- directories ----

def refused(job, path, reason=""):
    """SCR_Init fails on all ranks with the place, and does not change the other node."""
    run = job.run("init => CACHE", "have => STATE 0 =", "route:x => x")
    run.said(f"error: .*node n2: .*{path}.*{reason}", times=1)


def folders(job):
    """Directories above the cache and the control directory of n2."""
    return [job.node("n2") / which / "tester" for which in ("cache", "cntl")]


def test_folder_of_somebody_else():
    """Another user's directory within one of ours (for the other case see
    obstacles.py)."""
    if os.geteuid() != 0:
        raise Skip("only root can give directories away")
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for folder in (job.cache("n2"), job.control("n2")):
            os.chown(folder, 12345, -1)
            refused(job, folder.name, "12345")
            os.chown(folder, 0, -1)
            job.run("init", restart("a"))


def test_folder_that_others_may_write_to():
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for folder in folders(job):
            folder.chmod(0o777)
            refused(job, folder.name)
            folder.chmod(0o700)
            job.run("init", restart("a"))


def test_link_to_another_folder():
    """A link planted where SCR would make its directory."""
    for number in (0, 1):
        with Job(**PAIR) as job:
            elsewhere, folder = job.root / "elsewhere", folders(job)[number]
            elsewhere.mkdir(mode=0o700)
            folder.parent.mkdir(parents=True)
            folder.symlink_to(elsewhere)
            refused(job, folder.name)
            assert not list(elsewhere.iterdir())


def test_no_folder():
    """A base below a regular file, and a base that is not absolute."""
    with Job(**PAIR) as job:
        (job.root / "file").write_text("")
        for name in ("SCR_CACHE_BASE", "SCR_CNTL_BASE"):
            for base in (job.root / "file/base", "relative"):
                run = job.run("init => CACHE", of_node={"n2": {name: base}})
                run.said(f"error: .*node n2: .*{name}.*{base}", times=1)


def test_private():
    """Other users cannot look into directories that SCR makes."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("a"))
        for folder in folders(job) + [job.cache("n2"), job.control("n2")]:
            assert folder.stat().st_mode & 0o777 == 0o700, folder
        for path in job.node("n2").rglob("*.scriinfo"):
            assert path.stat().st_mode & 0o077 == 0, path


@contextlib.contextmanager
def small_caches(job, size):
    """Mounts a small file system for the cache of each node."""
    mounted = []
    try:
        for node in job.nodes():
            base = job.node(node) / "cache"
            base.mkdir(parents=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", base]
            if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
                raise Skip("no file system could be mounted")
            mounted.append(base)
        yield
    finally:
        for base in mounted:
            subprocess.run(["umount", base], check=True)


def test_not_moved_to_one():
    """All ranks change nodes, and one cannot receive: the files of that one are rebuilt, all others are moved, and all are
    flushed once, though the sender still has the ones that it could not send."""
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.layout = job.layout[1:] + job.layout[:1]
        faults = {"FAULTS_BELOW": str(job.cache(job.nodes()[1]) / "scr.dataset.1"), "FAULTS_RANK": "1", "FAULTS_AT": "1", "FAULTS_HOW": "EIO"}
        run = job.run("init", restart("a"), "finalize", faults=faults, SCR_FLUSH=1)
        run.says("REBUILD_FILES_NOT_MOVED", "rank 1", "dataset 1", "Input/output error", times=1)
        run.says("REBUILD_FILES_NOT_MOVED", times=1)
        run.says("REBUILD_FILES_MOVED", "3 files of dataset 1", times=1)
        run.says("REBUILD_COMPLETE", "1 of 4 ranks", times=1)
        run.says("FLUSH_COMPLETE", "dataset 1 .a.", times=1)


def test_moved_with_little_room():
    """All ranks move to other nodes, whose caches have room for the files of one more
    rank."""
    with Job(2, 3, SCR_FLUSH=0, SCR_COPY_TYPE="SINGLE") as job, small_caches(job, "480k"):
        job.run("init", checkpoint("a", size=100000))
        job.layout.reverse()
        run = job.run("init", restart("a", size=100000))
        run.says("REBUILD_FILES_MOVED", "6|12", "dataset 1", times=1)
        run.says("REBUILD_FILES_NOT_MOVED", times=0)


def test_moved_permissions():
    """Files that were moved have those that the program gave them, as a flush keeps them."""
    with Job(3, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        for rank, mode in enumerate((0o640, 0o755, 0o444)):
            next(job.root.glob(f"nodes/**/rank_{rank}")).chmod(mode)
        job.layout = job.layout[1:] + job.layout[:1]
        run = job.run("init", restart("a"), "finalize", SCR_FLUSH=1)
        run.says("REBUILD_FILES_MOVED", "3 files of dataset 1", times=1)
        assert [path.stat().st_mode & 0o777 for path in sorted(job.prefix.glob("a/rank_?"))] == [0o640, 0o755, 0o444], run


def test_moved_without_room():
    """Without that room, the dataset stays where it is, for a run with ranks there."""
    with Job(2, 3, SCR_FLUSH=0, SCR_COPY_TYPE="SINGLE") as job, small_caches(job, "380k"):
        job.run("init", checkpoint("a", size=100000))
        job.layout.reverse()
        run = job.run("init", "have => CACHE 0")
        run.says("REBUILD_FILES_NOT_MOVED", "dataset 1", "No space left on device")
        run.says("RESTART_CACHE_UNUSABLE", times=1)
        run.says("REBUILD_FAILED", "dataset 1 .a.", times=1)
        job.layout.reverse()
        job.run("init", restart("a", size=100000))


def test_full_cache():
    """One node has no room for redundancy data: the dataset fails, the job continues."""
    with Job(4, 1, SCR_FLUSH=0) as job:
        base = job.node("n2") / "cache"
        base.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=300k,mode=0700", "tmpfs", base]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            raise Skip("no file system could be mounted")
        try:
            run = job.run("init", checkpoint("a", size=10000),
                          checkpoint("b", size=250000, code="REDUNDANCY"),
                          checkpoint("c", size=10000), restart("c", size=10000))
            run.says("OUTPUT_FAILED", r"dataset 2 \(b\)", "No space left on device", times=1)
            run = job.run("init", restart("c", size=10000))
        finally:
            subprocess.run(["umount", base], check=True)


if __name__ == "__main__":
    main(globals())
