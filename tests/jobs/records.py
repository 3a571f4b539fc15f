#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Wrong records: each is a good file, but of another node, of an earlier run, or of
another dataset. The header of a redundancy file beside the data is right and prevails
over a record that contradicts it. A restart deletes nothing that may belong to a
restorable checkpoint."""
import shutil

from job import Job, checkpoint, main, restart
from nodes import small_caches

FOUR = {"nodes": 4, "per_node": 1, "SCR_FLUSH": 0, "SCR_CACHE_SIZE": 2}
CONTROL = ["filemap_0.scriinfo", "filemap.scriinfo", "prefix.scriinfo", "run.lock"]


def data_of(job):
    """Returns {path: bytes} of all application files in the caches."""
    return {path: path.read_bytes() for node in job.nodes() for path in job.cache(node).rglob("rank_*")}


def exchange(a, b):
    first = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(first)


def nothing_is_lost(job, change, newest="c2", **parameters):
    """After the change a restart has the newest checkpoint, and after the restart all
    previous files are unchanged."""
    before = data_of(job)
    change()
    run = job.run("init", restart(newest), **parameters)
    run.not_said("REBUILD_IMPOSSIBLE|CACHE_INCOMPLETE_REMOVED")
    after = data_of(job)
    changed = [str(path) for path, data in before.items() if after.get(path) != data]
    assert not changed, f"changed or gone: {changed}\n{run}"
    # repaired records stay right: any node may be lost now, and the older checkpoint is
    # complete, too
    job.run("init", "have => 1 c2", "start_restart", "complete_restart:0 => INVALID", restart("c1"))


# ---- on the nodes ----

def test_control_files():
    """Control files of another node: copied, and exchanged."""
    for name in CONTROL:
        for a, b in (("n1", "n2"), ("n4", "n1")):
            with Job(**FOUR) as job:
                job.run("init", checkpoint("c1"), checkpoint("c2"))
                nothing_is_lost(job, lambda: shutil.copy(job.control(a) / name, job.control(b) / name))
        with Job(**FOUR) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"))
            nothing_is_lost(job, lambda: exchange(job.control("n1") / name, job.control("n3") / name))


def test_control_files_of_all_nodes():
    """One node's control files everywhere; all in a circle; and all of an earlier moment,
    or of an earlier life with the same names and ids."""
    def everywhere(job, name):
        for node in ("n2", "n3", "n4"):
            shutil.copy(job.control("n1") / name, job.control(node) / name)

    def circle(job, name):
        for a, b in (("n1", "n2"), ("n2", "n3"), ("n3", "n4")):
            exchange(job.control(a) / name, job.control(b) / name)

    def put_back(job, name):
        for node in job.nodes():
            shutil.copy(job.root / "kept" / node / name, job.control(node) / name)

    def keep(job):
        for node in job.nodes():
            shutil.copytree(job.control(node), job.root / "kept" / node)

    for name in CONTROL:
        for change in (everywhere, circle):
            with Job(**FOUR) as job:
                job.run("init", checkpoint("c1"), checkpoint("c2"))
                nothing_is_lost(job, lambda: change(job, name))
        with Job(**FOUR) as job:
            job.run("init", checkpoint("c1"))
            keep(job)
            job.run("init", checkpoint("c2"))
            nothing_is_lost(job, lambda: put_back(job, name))
        with Job(**FOUR) as job:
            job.run("init", checkpoint("c1", 500), checkpoint("c2", 700))
            keep(job)
            job.lose(*job.nodes())
            shutil.rmtree(job.prefix / ".scr")
            job.run("init", checkpoint("c1"), checkpoint("c2"))
            nothing_is_lost(job, lambda: put_back(job, name))


def test_filemap_of_another_number_of_ranks():
    """The filemap is from a node with two ranks; the other nodes have one."""
    with Job(layout=[("n1", 2), ("n2", 1), ("n3", 1)], SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        nothing_is_lost(job, lambda: shutil.copy(job.control("n1") / "filemap_1.scriinfo",
                                                 job.control("n2") / "filemap_0.scriinfo"))


def redundancy_file(job, node, dataset=2):
    return next(job.cache(node).glob(f"scr.dataset.{dataset}/*_of_*"))


def test_redundancy_files():
    """Redundancy files of another node or of another dataset: the filemap knows the
    files, which are as they were written."""
    for scheme in ("XOR", "PARTNER", "RS"):
        for change in (lambda job: shutil.copy(redundancy_file(job, "n1"), redundancy_file(job, "n2")),
                       lambda job: exchange(redundancy_file(job, "n1"), redundancy_file(job, "n2")),
                       lambda job: shutil.copy(redundancy_file(job, "n2", 1), redundancy_file(job, "n2", 2)),
                       lambda job: exchange(redundancy_file(job, "n3", 1), redundancy_file(job, "n3", 2))):
            with Job(**FOUR, SCR_COPY_TYPE=scheme) as job:
                job.run("init", checkpoint("c1"), checkpoint("c2"))
                nothing_is_lost(job, lambda: change(job))


# ---- on the prefix directory ----

def test_prefix_records():
    """Records of an earlier moment: the cache knows newer datasets."""
    for name in ("index.scr", "flush.scr", "nodes.scr"):
        with Job(**FOUR | {"SCR_FLUSH": 1}) as job:
            job.run("init", checkpoint("c1"))
            shutil.copytree(job.prefix / ".scr", job.root / "kept")
            job.run("init", checkpoint("c2"))
            nothing_is_lost(job, lambda: shutil.copy(job.root / "kept" / name, job.prefix / ".scr" / name))


def test_index_of_another_job():
    """An index with the same names and ids: the summaries beside the data are right."""
    with Job(**FOUR | {"SCR_FLUSH": 1}) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        shutil.copy(job.prefix / ".scr/index.scr", job.root / "kept")
        job.lose(*job.nodes())
        shutil.rmtree(job.prefix)
        job.prefix.mkdir()
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        job.lose(*[node for node in job.nodes() if job.node(node).exists()])
        shutil.copy(job.root / "kept", job.prefix / ".scr/index.scr")
        run = job.run("init", restart("c2"), checkpoint("c3"))
        run.says("INDEX_CORRECTED", "dataset 2 as c2", "created at another time", times=1)
        job.run("init", restart("c3"))


def test_flush_file_of_more():
    """The flush file wrongly records a checkpoint as flushed: it is flushed in the
    end."""
    for first in ("c", "co"):
        with Job(**FOUR) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2", flags="co"))
            shutil.copy(job.prefix / ".scr/flush.scr", job.root / "kept")
            job.lose(*job.nodes())
            shutil.rmtree(job.prefix)
            job.prefix.mkdir()
            job.run("init", checkpoint("c1", flags=first), checkpoint("c2"))
            shutil.copy(job.root / "kept", job.prefix / ".scr/flush.scr")
            job.run("init", restart("c2"), "finalize", SCR_FLUSH=10)
            job.lose(*[node for node in job.nodes() if job.node(node).exists()])
            job.run("init", restart("c2"), "finalize")


def test_records_of_datasets():
    """The directory of a dataset has records of another one: the other checkpoint is
    complete, and nothing of either is removed. The top of a map is the same for all
    datasets of one shape."""
    for name, offered in (("summary.scr", "c1"), ("rank2file.scr", "c2"), ("rank2file.0.0.scr", "c1")):
        with Job(**FOUR | {"SCR_FLUSH": 1}) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
            files = {path: path.read_bytes() for path in job.prefix.rglob("rank_*")}
            shutil.copy(job.prefix / "c1/.scr" / name, job.prefix / "c2/.scr" / name)
            run = job.run("init", restart(offered))
            run.says("FETCH_CHECKPOINT_DAMAGED", "c2", times=int(offered == "c1"))
            assert files == {path: path.read_bytes() for path in job.prefix.rglob("rank_*")}


def test_containers_of_another_dataset():
    """Containers are exchanged with their map: names, sizes and checksums agree, and only
    the map identifies the dataset."""
    for names, offered in ((["c1", "c2"], "have => 0"), (["c2", "c3"], restart("c1"))):
        with Job(**FOUR | {"SCR_FLUSH": 1}, SCR_USE_CONTAINERS=1) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), checkpoint("c3") if "c3" in names else [], "finalize")
            for path in sorted((job.prefix / names[0] / ".scr").iterdir()):
                if path.name != "summary.scr":
                    exchange(path, job.prefix / names[1] / ".scr" / path.name)
            run = job.run("init", offered)
            run.says("FETCH_CHECKPOINT_DAMAGED", "it is of dataset [0-9]+\\.[0-9]+, not of", times=2)
            (job.prefix / ".scr/index.scr").unlink()  # the search for datasets refuses them as well
            job.run("init", offered).says("INDEX_REBUILT", "2 are not usable", times=1)


# ---- what cannot be used is set aside ----

def test_lost_and_found():
    """Two nodes are away, too many for the scheme; when they return the checkpoint is
    complete."""
    for flush in (0, 1):
        with Job(**FOUR | {"SCR_FLUSH": 0}) as job:
            job.run("init", checkpoint("c1"), SCR_FLUSH=flush)
            job.run("init", checkpoint("c2"))
            for node in ("n1", "n2"):
                job.node(node).rename(job.root / node)
            before = job.layout
            for node in ("n1", "n2"):
                job.replace(node, f"s{node}")
            run = job.run("init", restart("c1") if flush else "have => 0 =")
            run.says("REBUILD_IMPOSSIBLE", "dataset 2 .c2.", times=1)
            run.says("CACHE_REMAINS_REMOVED", times=0)
            for node in ("n1", "n2"):
                (job.root / node).rename(job.node(node))
            job.layout = before
            job.run("init", restart("c2")).not_said("_LOST|REBUILD_(COMPLETE|IMPOSSIBLE|FAILED)")


def test_newer_one_is_complete():
    """When a newer checkpoint is complete, nothing that was set aside is left."""
    with Job(**FOUR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        job.lose("n1", "n2")
        run = job.run("init", "have => 0 =", checkpoint("c3", valid="0@0", code="ANY"), "have => 0 =", "kill@0", dies=True)
        run.says("REBUILD_IMPOSSIBLE", times=2)
        assert job.cached("n3") == [1, 2], job.cached("n3")
        job.run("init", "have => 0 =", checkpoint("c4"), "kill@0", dies=True)
        assert {len(job.cached(node)) for node in job.nodes()} == {1}
        job.run("init", restart("c4"))


def test_no_room_beside_it():
    """Data that was set aside is removed if a new checkpoint would not fit otherwise."""
    for size, remains in (("1200k", True), ("320k", False)):
        with Job(**FOUR) as job, small_caches(job, size):
            job.run("init", checkpoint("c1", 100000))
            for node in ("n1", "n2"):
                shutil.rmtree(job.cache(node))
            run = job.run("init", "have => 0 =", "start:c2:c", "put:c2/rank_%r:100000", "kill@0", dies=True)
            run.says("CACHE_REMAINS_REMOVED", times=int(not remains))
            assert job.cached("n3") == ([1, 2] if remains else [2]), job.cached("n3")


def test_refused_by_the_application():
    """A refused dataset stays, and is skipped from then on unless it is chosen."""
    with Job(**FOUR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        job.run("init", "have => 1 c2", "start_restart", "complete_restart:0 => INVALID", restart("c1"))
        assert job.cached() == [1, 2], job.cached()
        run = job.run("init", restart("c1"))
        run.says("RESTART_SKIPPED", r"dataset 2 \(c2\)", times=1)
        job.run("init", restart("c2"), SCR_CURRENT="c2").says("RESTART_SKIPPED", times=0)
        job.run("init", restart("c2"), checkpoint("c3"))
        assert job.cached() == [2, 3], job.cached()


if __name__ == "__main__":
    main(globals())
