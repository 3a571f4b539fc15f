#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records of another version of SCR, or of another program, are not damage: they are
refused with an error and a remedy, and nothing is changed."""
import shutil
import struct
import zlib

from job import Job, checkpoint, main, restart
from scavenged import command
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}
REFUSED = "{}.* version {}.* knows version {}.*: use the (SCR|program) that wrote it"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lose_all(job):
    job.lose(*job.nodes())


def other_file_version(path, version=2):
    """The same tree in a later format of tree files, with a correct checksum."""
    data = bytearray(path.read_bytes()[:-4])
    struct.pack_into(">H", data, 6, version)
    path.write_bytes(data + struct.pack(">I", zlib.crc32(data)))


def other_version(path, version):
    """The same record with another VERSION."""
    tree.write(path, {**tree.read(path), "VERSION": {str(version): {}}})


def folder_of_another_scr(prefix):
    """A prefix directory with an index that has the version of SCR 3 but another form."""
    described = {"ID": {"6": {}}, "NAME": {"ckpt.6": {}}, "CREATED": {"1795257190731827": {}}, "USER": {"tester": {}}, "CKPT": {"6": {}},
                 "FILES": {"2": {}}, "SIZE": {"2000": {}}, "COMPLETE": {"1": {}}}
    hidden = prefix / ".scr"
    (hidden / "scr.dataset.6").mkdir(parents=True)
    tree.write(hidden / "index.scr", {
        "VERSION": {"2": {}}, "CURRENT": {"ckpt.6": {}}, "DIR": {"ckpt.6": {"DSET": {"6": {}}}},
        "DSET": {"6": {"NAME": {"ckpt.6": {"DATASET": described, "COMPLETE": {"1": {}}, "FLUSHED": {"2026-11-22T18:30:00": {}}}}}}})
    tree.write(hidden / "flush.scr", {"DATASET": {"6": {"NAME": {"ckpt.6": {}}, "LOCATION": {"CACHE": {}, "PFS": {}}}}})
    tree.write(hidden / "halt.scr", {"ExitReason": {"SCR_FINALIZE_CALLED": {}}})
    tree.write(hidden / "nodes.scr", {"NODES": {"2": {}}})
    tree.write(hidden / "scr.dataset.6/summary.scr", {"VERSION": {"6": {}}, "COMPLETE": {"1": {}}, "DATASET": described})
    (prefix / "ckpt.6").mkdir()
    for rank in range(2):
        (prefix / f"ckpt.6/rank_{rank}").write_bytes(bytes(1000))


CHANGES = (["scr_index", "--rebuild"], ["scr_index", "--add", "ckpt.6"], ["scr_index", "--drop", "ckpt.6"],
           ["scr_index", "--current", "ckpt.6"], ["scr_halt", "--checkpoints", "3"], ["scr_prerun"], ["scr_postrun"],
           ["scr_scavenge", "--id", "6"])
PRINTS = (["scr_index"], ["scr_index", "--verify"], ["scr_inspect"])


def test_folder_of_another_scr():
    """SCR_Init fails on all ranks, with one error, and so does every command."""
    with Job(**PAIR) as job:
        folder_of_another_scr(job.prefix)
        before = contents(job.prefix)
        run = job.run("init => PREFIX", "have => ANY")
        run.says("PREFIX_RECORDS_UNREADABLE", REFUSED.format("index.scr", 2, 1), times=1)
        assert contents(job.prefix) == before
        for words in CHANGES + PRINTS:
            done = command(job, *words, code=1)
            assert "version 2" in done.err and "use the SCR that wrote it" in done.err, str(done)
            assert contents(job.prefix) == before, words
        done = command(job, "scr_run", "true", code=None)
        assert done.code and "version 2" in done.err and contents(job.prefix) == before, str(done)


def test_index_of_a_later_version():
    """A later version of our own index. The cache is not changed either."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        index = job.prefix / ".scr/index.scr"
        whole = index.read_bytes()
        other_version(index, 99)
        before, cached = contents(job.prefix), contents(job.cache("n1"))
        run = job.run("init => PREFIX")
        run.says("PREFIX_RECORDS_UNREADABLE", REFUSED.format("index.scr", 99, 1), times=1)
        assert contents(job.prefix) == before and contents(job.cache("n1")) == cached
        index.write_bytes(whole)
        job.run("init", restart("c2"))


def test_files_of_a_later_version():
    """Any record in .scr is in a file of a later format."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        lose_all(job)
        for name in ("index", "flush", "halt", "nodes"):
            path = job.prefix / f".scr/{name}.scr"
            whole = path.read_bytes()
            other_file_version(path)
            before = contents(job.prefix)
            run = job.run("init => PREFIX")
            run.says("PREFIX_RECORDS_UNREADABLE", REFUSED.format(f"{name}.scr", 2, 1), times=1)
            assert contents(job.prefix) == before, name
            command(job, "scr_index", code=1)
            path.write_bytes(whole)
        job.run("init", restart("c1"))


def test_version_that_was_damaged():
    """A file whose checksum is wrong is damaged, whatever its version."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        lose_all(job)
        index = job.prefix / ".scr/index.scr"
        data = bytearray(index.read_bytes())
        data[7] ^= 2
        index.write_bytes(data)
        run = job.run("init", restart("c1"))
        run.says("INDEX_REBUILT", "is set aside as", times=1)


def test_dataset_of_a_later_version():
    """Its summary or map has a later version: an older dataset is offered, and that is
    reported; without one nothing is offered, and that is an error."""
    def summary(folder):
        other_version(folder / "summary.scr", 7)

    def file_of_summary(folder):
        other_file_version(folder / "summary.scr")

    def root(folder):
        other_file_version(folder / "rank2file.scr")

    def lower(folder):
        other_file_version(folder / "rank2file.0.0.scr")

    for change in (summary, file_of_summary, root, lower):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
            lose_all(job)
            change(job.prefix / "c2/.scr")
            before = contents(job.prefix / "c2")
            run = job.run("init", restart("c1"), "finalize")
            run.says("FETCH_FAILED", "c2", "version [72]", times=1)
            done = command(job, "scr_index", "--verify", "c2", code=1)
            assert "unreadable" in done.out and " version " in done.err, str(done)
            lose_all(job)
            job.run("init", "delete:c1", "have => PREFIX 0 =", "finalize")
            assert contents(job.prefix / "c2") == before


def test_dataset_of_a_later_version_without_an_index():
    """The index cannot be rebuilt from records that this program does not understand."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
        lose_all(job)
        (job.prefix / ".scr/index.scr").unlink()
        other_version(job.prefix / "c2/.scr/summary.scr", 7)
        before = contents(job.prefix)
        run = job.run("init => PREFIX")
        run.says("PREFIX_RECORDS_UNREADABLE", "c2: .*" + REFUSED.format("summary.scr", 7, 6), times=1)
        assert contents(job.prefix) == before
        done = command(job, "scr_index", "--rebuild", code=1)
        assert "of version 7" in done.err and contents(job.prefix) == before, str(done)
        shutil.move(job.prefix / "c2", job.root / "c2")
        job.run("init", restart("c1"))


def test_cache_of_a_later_version():
    """A filemap, or the record of the cache's owner, has a later version."""
    for name in ("filemap_0.scriinfo", "filemap.scriinfo", "prefix.scriinfo"):
        with Job(**{**PAIR, "SCR_FLUSH": 0}) as job:
            job.run("init", checkpoint("c1"))
            path = job.control("n2") / name
            whole = path.read_bytes()
            other_file_version(path)
            before, control = contents(job.cache("n2")), contents(job.control("n2"))
            run = job.run("init => CACHE")
            run.said("error.*n2.*" + REFUSED.format(name, 2, 1), times=1)
            assert contents(job.cache("n2")) == before and contents(job.control("n2")) == control, name
            path.write_bytes(whole)
            job.run("init", restart("c1"))


if __name__ == "__main__":
    main(globals())
