#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prefix directories that SCR 3 wrote (docs/formats/scr3.md), and files that SCR did not
write."""
import shutil

from job import Job, checkpoint, main, messages, restart
from scavenged import command
import tree

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 1}
SCATTERED = ["start:c2:c", "put:out/rank_%r.c2:700", "complete:1"]
GET_SCATTERED = ["have => 1 c2", "start_restart => c2", "get:out/rank_%r.c2:700", "complete_restart:1"]


def leaf(ranks):
    return {"LEVEL": {"0": {}}, "RANKS": {str(len(ranks)): {}}, "RANK": {str(rank): {"FILE": files} for rank, files in ranks.items()}}


def put_rank2file(folder, ranks, spread):
    """The root names one file with all ranks, or one of level 1 and two trees in one
    file."""
    def pointer(offset, name):
        return {"OFFSET": {str(offset): {}}, "FILE": {name: {}}}

    def root(level, pointers):
        return {"LEVEL": {str(level): {}}, "RANKS": {str(len(ranks)): {}}, "RANK": pointers}

    folder.mkdir(parents=True)
    if not spread:
        tree.write(folder / "rank2file.0.0", leaf(ranks))
        tree.write(folder / "rank2file", root(1, {"0": pointer(0, ".0.0")}))
        return
    tree.write(folder / "first", leaf({0: ranks[0]}))
    tree.write(folder / "second", leaf({1: ranks[1]}))
    first, second = ((folder / name).read_bytes() for name in ("first", "second"))
    (folder / "rank2file.0.0").write_bytes(first + second)
    (folder / "first").unlink()
    (folder / "second").unlink()
    tree.write(folder / "rank2file.1.0", root(1, {"0": pointer(0, ".0.0"), "1": pointer(len(first), ".0.0")}))
    tree.write(folder / "rank2file", root(2, {"0": pointer(0, ".1.0")}))


def files_of(record, before):
    ranks = tree.read(record)["RANK2FILE"]["RANK"]
    return {int(rank): {before + name: {} for name in entry["FILE"]} for rank, entry in ranks.items()}


def become_scr3(job, spread=False, **marks):
    """Rewrites a prefix directory as SCR 3 would have written it."""
    records = job.prefix / ".scr"
    index, names, sets = tree.read(records / "index.scr"), {}, {}
    for number, folders in index["DSET"].items():
        name = tree.only(folders["DIR"])
        entry = folders["DIR"][name]
        about = {key: value for key, value in entry["DSET"].items() if key not in ("NAMED", "RANKS", "SCATTERED")}
        about.update(FLAG_CKPT={"1": {}}, FLAG_OUTPUT={"0": {}})
        names[name] = {"DSET": {number: {}}}
        sets[number] = {"COMPLETE": entry["COMPLETE"], "FLUSHED": {"2020-05-09T11:59:50": {}}, "DSET": about, **marks.get(name, {})}
        scattered = "SCATTERED" in entry["DSET"]
        ranks = files_of(job.prefix / name / ".scr/rank2file.0.0.scr", "" if scattered else f"{name}/")
        put_rank2file(records / f"scr.dataset.{number}", ranks, spread)
        tree.write(records / f"scr.dataset.{number}/summary.scr", {"VERSION": {"6": {}}, "COMPLETE": {"1": {}}, "DSET": about})
        shutil.rmtree(job.prefix / name / ".scr")
    tree.write(records / "index.scr", {"VERSION": {"2": {}}, "CURRENT": index["CURRENT"], "NAME": names, "DSET": sets})
    tree.write(records / "flush.scr", {"DATASET": {number: {"NAME": {tree.only(folders["DIR"]): {}}, "LOCATION": {"CACHE": {}, "PFS": {}}}
                                                   for number, folders in index["DSET"].items()}})
    tree.write(records / "halt.scr", {"ExitReason": {"SCR_FINALIZE_CALLED": {}}})
    tree.write(records / "nodes.scr", {"NODES": {"2": {}}})
    for path in job.root.glob("nodes/*/c*/*"):
        shutil.rmtree(path)
    return (records / "index.scr").read_bytes()


def names_in(job):
    return sorted(tree.read(job.prefix / ".scr/index.scr").get("DIR", {}))


def test_goes_on():
    """A job continues from the current checkpoint of SCR 3, beside new ones; the files of
    SCR 3 stay."""
    for spread in (False, True):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"), SCATTERED, "finalize")
            old = become_scr3(job, spread)
            run = job.run("init", GET_SCATTERED, checkpoint("c3"), "finalize")
            run.says("PREFIX_CONVERTED", "has 2 datasets now; it was kept as .scr/index.scr.3", times=1)
            assert (job.prefix / ".scr/index.scr.3").read_bytes() == old and (job.prefix / ".scr/scr.dataset.1/rank2file").exists()
            assert names_in(job) == ["c1", "c2", "c3"]
            entry = tree.read(job.prefix / ".scr/index.scr")["DSET"]["1"]["DIR"]["c1"]
            assert "2020-05-09T11:59:50" in entry["FLUSHED"], entry
            job.lose("n1", "n2")
            run = job.run("init", restart("c3"), "current:c1", "finalize").not_said("PREFIX_CONVERTED")
            job.lose("n1", "n2")
            job.run("init", restart("c1"), "delete:c2", "finalize")
            assert names_in(job) == ["c1", "c3"] and not list(job.prefix.glob("out/*"))


def test_marks():
    """Datasets that SCR 3 marked as failed, or did not complete, are not used."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), checkpoint("c3"), "finalize")
        become_scr3(job, c3={"FAILED": {"2020-05-09T12:00:00": {}}}, c2={"COMPLETE": {"0": {}}})
        job.run("init", restart("c1"), "finalize").says("PREFIX_CONVERTED", times=1)
        assert names_in(job) == ["c1", "c3"]


def test_damaged():
    """A file is missing, truncated, or not a file; a map is damaged, or of fewer ranks:
    the other datasets are converted, and nothing is lost."""
    def cut(job):
        (job.prefix / "c2/rank_1").write_bytes(b"x")

    def replace(job):
        (job.prefix / "c2/rank_1").unlink()
        (job.prefix / "c2/rank_1").mkdir()

    def break_map(job):
        (job.prefix / ".scr/scr.dataset.2/rank2file.0.0").write_bytes(b"x" * 100)

    def forget(job):
        path = job.prefix / ".scr/scr.dataset.2/rank2file.0.0"
        found = tree.read(path)
        del found["RANK"]["1"]
        tree.write(path, found)

    def escape(job):
        path = job.prefix / ".scr/scr.dataset.2/rank2file"
        found = tree.read(path)
        found["RANK"]["0"]["FILE"] = {"/../../../x": {}}
        tree.write(path, found)

    for harm, why in ((lambda job: (job.prefix / "c2/rank_1").unlink(), "c2/rank_1 is missing"), (cut, "it has 2 files of"), (replace, "c2/rank_1"),
                      (break_map, "rank2file.0.0"), (forget, "number of ranks"), (escape, "no valid FILE or OFFSET")):
        with Job(**PAIR) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
            become_scr3(job)
            harm(job)
            run = job.run("init", restart("c1"), "finalize")
            run.says("PREFIX_CONVERTED_IN_PART", "1 datasets of SCR 3 were not converted; the first: dataset 2 of SCR 3", why, times=1)
            assert names_in(job) == ["c1"] and (job.prefix / "c2/rank_0").exists() and (job.prefix / ".scr/scr.dataset.2").exists()


def test_converted_twice():
    """SCR 3 rewrote its index: the datasets of both versions are there."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), "finalize")
        old = become_scr3(job)
        job.run("init", restart("c1"), checkpoint("c2"), "finalize")
        (job.prefix / ".scr/index.scr").write_bytes(old)
        run = job.run("init", "finalize", SCR_CACHE_PURGE=1)
        run.says("PREFIX_CONVERTED", "has 2 datasets now; it was kept as .scr/index.scr.3.1", times=1)
        assert names_in(job) == ["c1", "c2"]


def test_commands():
    """Commands that use the index convert it, too, and then work as usual. Other commands
    leave it alone."""
    with Job(**PAIR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"), "finalize")
        old = become_scr3(job)
        (job.prefix / "c1/rank_0").unlink()
        for name, *arguments in (("scr_halt",), ("scr_halt", "--remove"), ("scr_flush_file", "--list-output"), ("scr_nodes_file",), ("scr_prefix",)):
            assert "SCR3" not in command(job, name, *arguments, code=None).err, name
        assert (job.prefix / ".scr/index.scr").read_bytes() == old and not list(job.prefix.glob("c*/.scr"))
        done = command(job, "scr_index", "--list")
        assert messages(done.err, "PREFIX_OF_SCR3", "has 1 datasets now") and messages(done.err, "PREFIX_OF_SCR3_IN_PART", "c1/rank_0 is missing"), done
        assert "c2" in done.out and "PREFIX_OF_SCR3" not in command(job, "scr_index", "--verify").err
        command(job, "scr_index", "--drop", "c2")
        command(job, "scr_index", "--add", "c2")
        assert names_in(job) == ["c2"]


def write_plain(job):
    """Files of an application without SCR, with the bytes that the test reads."""
    job.run("init", checkpoint("from", 600), "finalize")
    plain = job.prefix / "plain"
    plain.mkdir()
    for rank in (0, 1):
        shutil.copy(job.prefix / f"from/rank_{rank}", plain / f"rank_{rank}")
    shutil.rmtree(job.prefix / "from")
    shutil.rmtree(job.prefix / ".scr")
    for path in job.root.glob("nodes/*/c*/*"):
        shutil.rmtree(path)
    return plain


def import_files(job, *arguments, code=0):
    return command(job, "scr_index", "--import", *arguments, code=code)


def test_import():
    """Files that SCR did not write become a checkpoint under their names, and a run
    restarts from it."""
    for arguments, name in ((("plain",), "plain"), (("plain/", "--name", "first"), "first"), (("plain", "--map", "x,rank_{rank}"), "plain")):
        with Job(**PAIR) as job:
            plain = write_plain(job)
            if "--map" in arguments:
                (plain / "notes").write_text("")
            done = import_files(job, *arguments)
            assert done.out == f"{name}: 2 files of 2 ranks, 1213 bytes, are dataset 1\n" or "2 files of 2 ranks" in done.out, done
            job.run("init", f"have => 1 {name}", f"start_restart => {name}", "complete_restart:1", checkpoint("c2"), "finalize")
            assert names_in(job) == sorted((name, "c2"))
            command(job, "scr_index", "--verify", name)
            done = import_files(job, *arguments, code=1)
            assert messages(done.err, "DATASET_NOT_IMPORTED", f"the index has a dataset {name} already"), done


def test_wrong_import():
    """A rank without a file; a file without a rank; a directory that is missing, empty,
    or reached by a link; a pattern without {rank}."""
    def leave_one(job, plain):
        (plain / "rank_0").unlink()

    def add_notes(job, plain):
        (plain / "notes").write_text("")

    def empty(job, plain):
        shutil.rmtree(plain)
        plain.mkdir()

    def link(job, plain):
        plain.rename(job.prefix / "away")
        plain.symlink_to("away")

    for harm, arguments, why in ((leave_one, (), "rank 0 has no files"), (add_notes, (), "plain/notes has no number for its rank"),
                                 (lambda job, plain: shutil.rmtree(plain), (), "No such file"), (empty, (), "has no files"),
                                 (link, (), "a symbolic link, which is not followed"), (lambda *_: None, ("--map", "rank_"), "has no files"),
                                 (lambda *_: None, ("--map", "rank_{rank}x"), "has no files")):
        with Job(**PAIR) as job:
            plain = write_plain(job)
            harm(job, plain)
            done = import_files(job, "plain", *arguments, code=1)
            assert messages(done.err, "DATASET_NOT_IMPORTED", why), (why, done.err)
            assert not (job.prefix / ".scr/index.scr").exists()
    with Job(**PAIR) as job:
        write_plain(job)
        import_files(job, "plain", "--name", "../x", code=2)
        command(job, "scr_index", "--list", "--name", "x", code=2)


if __name__ == "__main__":
    main(globals())
