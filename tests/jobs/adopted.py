#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Names that Bob chose, in records that SCR makes Alice's own: a conversion from SCR 3,
scr_index --import, saved files that she adds, and an index that she rewrites. Such names
reach only files that Bob himself can change, even when he can change nothing any more."""
import os
import shutil

from colleagues import end_sharing, files_below, keep
from group import ALICE, BOB, SHARED, Shared, SCATTERED, by_bob, change_index, fetch, rename_file
from job import checkpoint, main, messages
from scavenged import command, saved, scavenge
from scr3 import leaf, put_rank2file
import tree

EVERYBODY = 2**63 - 1


def give(path, mode, owner=ALICE):
    os.chown(path, owner.pw_uid, SHARED)
    path.chmod(mode)
    return path


def put(job, name, text, mode, owner=ALICE):
    """Makes a file; None: a directory."""
    path = job.prefix / name
    path.mkdir() if text is None else path.write_text(text)
    return give(path, mode, owner)


def plant(job, sets):
    """Bob's records of SCR 3: {id: (name, {rank: {file: size}})}."""
    records = job.prefix / ".scr"
    names, datasets = {}, {}
    for number, (name, ranks) in sets.items():
        sizes = [size for files in ranks.values() for size in files.values()]
        about = {"ID": number, "NAME": name, "CREATED": 1500000000000000 + number, "USER": "bob", "JOBNAME": "j", "JOBID": "1", "CLUSTER": "c",
                 "CKPT": number, "FILES": len(sizes), "SIZE": sum(sizes), "COMPLETE": 1, "FLAG_CKPT": 1, "FLAG_OUTPUT": 0}
        names[name] = {"DSET": {str(number): {}}}
        datasets[str(number)] = {"COMPLETE": {"1": {}}, "DSET": {key: {str(value): {}} for key, value in about.items()}}
        put_rank2file(records / f"scr.dataset.{number}", {rank: {file: {} for file in files} for rank, files in ranks.items()}, False)
        give_records(job, number)
    (records / "index.scr").unlink(missing_ok=True)
    tree.write(records / "index.scr", {"VERSION": {"2": {}}, "NAME": names, "DSET": datasets})
    give(records / "index.scr", 0o640, BOB)


def give_records(job, number):
    folder = job.prefix / f".scr/scr.dataset.{number}"
    for path in (folder, *folder.iterdir()):
        give(path, 0o2770 if path.is_dir() else 0o660, BOB)


def names_in(job):
    return sorted(tree.read(job.prefix / ".scr/index.scr").get("DIR", {}))


def others_in(record):
    """Returns OTHERS of each file in a map."""
    ranks = tree.read(record)["RANK2FILE"]["RANK"].values()
    return {name: int(next(iter(file.get("OTHERS", {"0": {}})))) for entry in ranks for name, file in entry["FILE"].items()}


def begin(umask=0o007):
    """Makes a private file of Alice's, and a file of Bob's."""
    job = Shared(0o2770, umask)
    job.by(ALICE).run("init", checkpoint("x"), "finalize")
    work = keep(job)
    give(job.prefix / "own", 0o700)
    give(work, 0o600)
    put(job, "file", "." * 10, 0o660, BOB)
    return job, work


def test_private_file():
    """Bob's map of SCR 3 names Alice's file while they share the directory, with any
    umask of hers, and afterwards. It is not converted."""
    for umask, ended in ((0o007, False), (0o022, False), (0o007, True)):
        job, work = begin(umask)
        with job:
            if umask == 0o022:
                assert by_bob(job, "mv .scr old; mkdir .scr; cp old/*.scr .scr") == 0
            plant(job, {5: ("a", {0: {"own/work": 4}, 1: {"file": 10}})})
            if ended:
                end_sharing(job)
            run = job.by(ALICE).run("init", "have => ANY", checkpoint("y"), checkpoint("z"), "finalize", SCR_PREFIX_SIZE=1)
            run.says("PREFIX_CONVERTED_IN_PART", "is in a directory that others may not change", times=1)
            assert work.read_text() == "work" and "a" not in names_in(job) and not (job.prefix / "a").exists(), run


def test_private_size():
    """Size and time of the file are neither written nor reported where Bob can read
    them."""
    job, work = begin()
    with job:
        work.write_text("." * 4662)
        plant(job, {5: ("a", {0: {"own/work": 0}})})
        done = command(job, "scr_index", "--rebuild")
        assert messages(done.err, "PREFIX_OF_SCR3_IN_PART", "own/work is in a directory that others may not change") and "4662" not in str(done), done
        assert not (job.prefix / "a").exists()


def test_names_stay_theirs():
    """The name reaches a file of theirs when it is converted, and a file of Alice's when
    the dataset is deleted."""
    job, work = begin()
    with job:
        put(job, "box", None, 0o2770)
        put(job, "box/work", "1234", 0o660, BOB)
        plant(job, {5: ("a", {0: {"box/work": 4}, 1: {"file": 10}})})
        job.by(ALICE).run("init", "have => ANY", "finalize").says("PREFIX_CONVERTED", "has 2 datasets", times=1)
        assert others_in(job.prefix / "a/.scr/rank2file.0.0.scr") == {"box/work": SHARED + 1, "file": SHARED + 1}
        end_sharing(job)
        job.umask = 0o022
        for path in (job.prefix / ".scr", job.prefix / "a/.scr"):
            for record in path.glob("*.scr"):
                give(record, 0o640)
        assert by_bob(job, "touch box/x || touch a/x || touch a/.scr/rank2file.scr") != 0
        shutil.rmtree(job.prefix / "box")
        (job.prefix / "own").rename(job.prefix / "box")
        run = job.run("init", "have => ANY", "delete:a => ANY", "finalize")
        run.says("DATASET_NOT_REMOVED", "box/work is in a directory that others may not change")
        assert (job.prefix / "box/work").read_text() == "work", run


def test_fetched():
    """Alice fetches a checkpoint with Bob's names when no other user can change its map.
    It is not written back."""
    job, _ = begin()
    with job:
        plant(job, {5: ("a", {0: {"file": 10}, 1: {}})})
        command(job.by(ALICE), "scr_index", "--rebuild")
        command(job, "scr_index", "--current", "a")
        end_sharing(job)
        for record in (job.prefix / "a/.scr").glob("*.scr"):
            give(record, 0o640)
        for path in job.root.glob("nodes/*/c*/*"):
            shutil.rmtree(path)
        fetch(job)
        for path in (job.prefix / "a/.scr", job.prefix / "a"):
            shutil.rmtree(path)
        command(job, "scr_index", "--drop", "a")
        job.run("init => ANY", "finalize").says("FLUSH_BORROWED", "dataset 5 .a. is not flushed")


def test_private_records():
    """Bob gives a dataset the name of a dataset in Alice's directory, of an existing one,
    of one in another prefix directory, or of records of SCR."""
    job, _ = begin()
    with job:
        job.umask = 0o027
        job.by(ALICE).run("init", "have => ANY", checkpoint("own/ckpt"), "finalize")
        put(job, "other", None, 0o2770)
        put(job, "other/.scr", None, 0o2770)
        put(job, "other/.scr/index.scr", "", 0o660)
        before = files_below(job.prefix)
        names = ("own/ckpt", "own/new/x", "x", "other", "other/x", "x/.scr/y")
        for number, name in enumerate(names, 5):
            plant(job, {number: (name, {0: {"file": 10}})})
            done = command(job, "scr_index", "--rebuild")
            assert messages(done.err, "PREFIX_OF_SCR3_IN_PART", f"dataset {number} of SCR 3: "), (name, done)
        for number, file in ((20, ".scr/index.scr"), (21, "x/.scr/summary.scr")):
            plant(job, {number: ("b", {0: {file: 10}})})
            assert messages(command(job, "scr_index", "--rebuild").err, "PREFIX_OF_SCR3_IN_PART", f"{file}.* of SCR itself")
        after = files_below(job.prefix)
        changed = [path for path in before if after.get(path) != before[path] and not path.startswith(f"{job.prefix}/.scr/")]
        assert not changed and not [path for path in after if path not in before and not path.startswith(f"{job.prefix}/.scr/")], changed


def test_trees_without_end():
    """Conversion ends at once for trees of SCR 3 that name each other repeatedly or are
    too large together, and for one dataset under many ids."""
    def told(job):
        done = command(job.by(ALICE), "scr_index", "--rebuild", code=None)
        assert names_in(job) == ["x"] if done.code == 0 else "PREFIX_VERSION" in done.err, done
        return done.err

    def root(level, file, count):
        return {"LEVEL": {str(level): {}}, "RANKS": {"1": {}}, "RANK": {str(i): {"OFFSET": {"0": {}}, "FILE": {file: {}}} for i in range(count)}}

    for last in ({"LEVEL": {"0": {}}, "RANKS": {"0": {}}}, leaf({0: {"file": {}}})):
        job, _ = begin()
        with job:
            plant(job, {5: ("a", {0: {"file": 10}})})
            folder = job.prefix / ".scr/scr.dataset.5"
            tree.write(folder / "rank2file.0.0", last)
            for level in range(1, 15):
                tree.write(folder / (f"rank2file.{level}.0" if level < 14 else "rank2file"), root(level, f".{level - 1}.0", 50))
            give_records(job, 5)
            assert messages(told(job), "PREFIX_OF_SCR3_IN_PART", "rank2file.0.0 has no valid RANK")
    # the first tree leaves less than 256 MiB for the second one, which claims that size
    job, _ = begin()
    with job:
        plant(job, {5: ("a", {0: {"file": 10}})})
        folder = job.prefix / ".scr/scr.dataset.5"
        pointers = {str(i): {"OFFSET": {"0": {}}, "FILE": {f".0.{i}": {}}} for i in range(2)}
        tree.write(folder / "rank2file", {"LEVEL": {"1": {}}, "RANKS": {"2": {}}, "RANK": pointers})
        with open(folder / "rank2file.0.1", "wb") as file:
            file.write(tree.HEADER.pack(tree.MAGIC, tree.TYPE, tree.VERSION, 2**28, tree.HAS_CRC))
            file.truncate(2**28)
        give_records(job, 5)
        assert messages(told(job), "PREFIX_OF_SCR3_IN_PART", "rank2file.0.1: too large: 268435456 bytes, but only 2684[0-9]+")
    job, _ = begin()
    with job:
        plant(job, {5: ("a", {0: {"file": 10}})})
        index = tree.read(job.prefix / ".scr/index.scr")
        index["DSET"]["05"] = index["DSET"]["5"]
        tree.write(job.prefix / ".scr/index.scr", index)
        assert messages(told(job), "PREFIX_VERSION", "index.scr")


def test_imported():
    """Bob puts a file among the files that Alice imports; then he replaces its directory
    by one of hers."""
    with Shared(0o2770, 0o022) as job:
        job.by(ALICE).run("init", checkpoint("x"), "finalize")
        put(job, "box", None, 0o2770)
        put(job, "box/own", None, 0o2700)
        put(job, "box/own/part1", "work", 0o600)
        put(job, "data", None, 0o2770)
        put(job, "data/rank_0", "0", 0o644)
        assert by_bob(job, "mkdir -p data/sub/own; echo 1 > data/sub/own/part1; chmod -R a+rX data/sub") == 0
        command(job.by(ALICE), "scr_index", "--import", "data", "--name", "start")
        assert set(others_in(job.prefix / "start/.scr/rank2file.0.0.scr").values()) == {SHARED + 1}
        assert by_bob(job, "rm box/own/part1") != 0 and by_bob(job, "mv data/sub elsewhere; mv box data/sub") == 0
        run = job.run("init", "have => ANY", checkpoint("y"), checkpoint("z"), "finalize", SCR_PREFIX_SIZE=1)
        run.says("PREFIX_DATASET_NOT_DELETED", "data/sub/own/part1 is in a directory that others may not change")
        assert (job.prefix / "data/sub/own/part1").read_text() == "work", run
        # files that are already private in it are not imported
        put(job, "more", None, 0o2770)
        put(job, "more/own", None, 0o2700)
        put(job, "more/own/rank_0", "work", 0o600)
        done = command(job, "scr_index", "--import", "more", code=1)
        assert messages(done.err, "DATASET_NOT_IMPORTED", "more/own/rank_0 is in a directory that others may not change"), done
    # no other user can put files there: no others are recorded
    with Shared(0o755, 0o022) as job:
        put(job, "data", None, 0o755)
        put(job, "data/rank_0", "0", 0o644)
        command(job.by(ALICE), "scr_index", "--import", "data")
        assert others_in(job.prefix / "data/.scr/rank2file.0.0.scr") == {"rank_0": 0}


def test_added():
    """Bob's records of saved files name a file in a directory that he can change when
    Alice adds the files; later the directory is hers alone."""
    with Shared(0o2770, 0o007) as job:
        job.by(ALICE).run("init", SCATTERED, SCR_FLUSH=0)
        put(job, "mine", None, 0o2770)
        scavenge(job, 1)
        folder = saved(job, "a", 1)
        assert by_bob(job, "mkdir -p mine/results") == 0
        rename_file(folder / ".scr/0.scrfilemap", "beside/g_0", "mine/results/work")
        (folder / "mine/results").mkdir(parents=True)
        (folder / "beside/g_0").rename(folder / "mine/results/work")
        for path in (folder / "mine", folder / "mine/results"):
            give(path, 0o2770, BOB)
        command(job.by(ALICE), "scr_index", "--add", "a")
        assert set(others_in(job.prefix / "a/.scr/rank2file.0.0.scr").values()) == {SHARED + 1}
        assert by_bob(job, "rm -r mine/results") == 0
        end_sharing(job)
        put(job, "mine/results", None, 0o700)
        put(job, "mine/results/work", "work", 0o600)
        run = job.run("init", "have => ANY", "delete:a => ANY", "finalize").says("DATASET_NOT_REMOVED", "is in a directory that others may not change")
        assert (job.prefix / "mine/results/work").read_text() == "work", run


def mark(job):
    """Bob marks Alice's dataset in her own directory as being deleted."""
    change_index(job, lambda datasets: [folders["DIR"]["own/ckpt"].update(DELETING={"1": {}}, COMPLETE={"0": {}})
                                        for folders in datasets.values() if "own/ckpt" in folders["DIR"]])


def marks_in(job):
    return [name for folders in tree.read(job.prefix / ".scr/index.scr")["DSET"].values() for name, entry in folders["DIR"].items() if "DELETING" in entry]


def test_marked():
    """A run or a command rewrites the index, which then belongs to Alice; later the
    directory is hers alone."""
    for rewrite in ("run", "command"):
        with Shared(0o2770, 0o007) as job:
            job.by(ALICE).run("init", checkpoint("x"), "finalize")
            keep(job)
            job.umask = 0o027
            job.by(ALICE).run("init", "have => ANY", checkpoint("own/ckpt"), "finalize")
            for path in job.root.glob("nodes/*/c*/*"):  # or it is flushed again
                shutil.rmtree(path)
            mark(job)
            assert marks_in(job) == ["own/ckpt"]
            job.umask = 0o007
            if rewrite == "run":
                run = job.by(ALICE).run("init", "finalize", SCR_FETCH=0)  # which writes the index for nothing else
                run.says("PREFIX_DATASET_NOT_DELETED", "own/ckpt is in a directory that others may not change")
            else:
                command(job.by(ALICE), "scr_index", "--current", "x")
            assert not marks_in(job) and (job.prefix / ".scr/index.scr").stat().st_uid == ALICE.pw_uid
            end_sharing(job)
            run = job.run("init", "have => ANY", checkpoint("z"), "finalize")
            assert (job.prefix / "own/ckpt/rank_0").exists(), run


def test_below_another_prefix_directory():
    """Alice's own index names a dataset in a prefix directory one or two levels below
    hers: no deletion reaches it."""
    for name in ("priv/a", "priv/in/a"):
        with Shared(0o755, 0o022) as job:
            put(job, "priv", None, 0o755)
            job.by(ALICE).run("init", checkpoint(name), "finalize")
            shutil.copytree(job.prefix / ".scr", job.prefix / "priv/.scr")
            before = files_below(job.prefix / "priv")
            run = job.run("init", "have => ANY", f"delete:{name} => ANY", checkpoint("y"), checkpoint("z"), "finalize", SCR_PREFIX_SIZE=1)
            run.says("DATASET_NOT_REMOVED", f"{name} is a prefix directory, or in another one")
            run.says("PREFIX_DATASET_NOT_DELETED", f"{name} is a prefix directory, or in another one")
            assert files_below(job.prefix / "priv") == before


if __name__ == "__main__":
    main(globals())
