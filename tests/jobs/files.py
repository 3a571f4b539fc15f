#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The files of a dataset: their number, sizes and places, and what happens to missing
files."""
import random
import threading

from flush import with_scr_transfer
from job import Job, checkpoint, main, restart
import tree

EVERY = ["a/one_%r:1000", "a/deep/er/and/deeper/two_%r:70000", "a/%r/same:30", "a/empty_%r:0"]
SOME = ["@0,3:a/only:12345", "@2:a/x y 'z\" ä:5"]


def put(files=EVERY + SOME):
    return ["put" + (name if name[0] == "@" else ":" + name) for name in files]


def get(files=EVERY + SOME):
    return ["get" + (name if name[0] == "@" else ":" + name) for name in files]


def restart_all(name="a"):
    return [f"have => 1 {name}", f"start_restart => {name}", get(), "complete_restart:1"]


def test_many_kinds():
    """From the cache, rebuilt, and from the prefix directory."""
    some = [SOME[1], "@0:a/only:12345", "@3:a/other/only:77"]
    with Job(4, 1) as job:
        files = EVERY + some
        again = ["have => 1 a", "start_restart", get(files), "complete_restart:1"]
        job.run("init", "start:a:c", put(files), "complete:1", again, "finalize")
        assert (job.prefix / "a" / "2" / "same").stat().st_size == 30 + 13 * 2
        assert (job.prefix / "a" / "empty_3").stat().st_size == 0
        for node in job.nodes():
            job.lose(node)
            job.run("init", again)
        job.lose(*job.nodes())
        run = job.run("init", again)
        run.says("FETCH_COMPLETE", times=1)


def test_nothing_on_some_ranks():
    with Job(4, 1) as job:
        files = ["@1:a/one:5000", "@1:a/two:0"]
        again = ["have => 1 a", "start_restart", get(files), "complete_restart:1"]
        job.run("init", "start:a:c", put(files), "complete:1", "finalize")
        job.lose("n2")
        job.run("init", again)
        job.lose("n3")
        job.run("init", again)
        job.lose(*job.nodes())
        job.run("init", again)


def test_ways_to_name_a_file():
    """Names may be absolute, relative to the current directory, lead through a link in
    SCR_PREFIX, or be bare."""
    with Job(2, 1) as job:
        (job.prefix / "sub").mkdir()
        link = job.root / "link"
        link.symlink_to(job.prefix)
        job.parameters["SCR_PREFIX"] = link
        run = job.run("init", "start:a:c", f"put:{job.prefix}/a/absolute_%r:10",
                      f"put:{link}/a/linked_%r:20", "chdir:sub", "put:../a/relative_%r:30",
                      "put:../a/./b/../simple_%r:40", "complete:1", "have => 1 a", "start_restart => a",
                      f"get:{job.prefix}/a/absolute_%r:10", f"get:{link}/a/linked_%r:20",
                      "get:../a/relative_%r:30", "get:../a/./b/../simple_%r:40",
                      "route:../a/absolute_%r", "route:absolute_%r", "route:a/absolute_%r",
                      "complete_restart:1", "finalize")
        texts = [op["text"] for op in run.ops if op["op"].startswith("route")]
        assert texts[0] == texts[1] == texts[2], run
        names = sorted(path.name for path in (job.prefix / "a").iterdir())
        assert names == [".scr"] + [f"{name}_{rank}" for name in
                                    ("absolute", "linked", "relative", "simple") for rank in (0, 1)], names


def test_through_links():
    """Links in names do not matter, as with the $PWD of a shell when SCR_PREFIX is not
    set and SCR knows the current directory by its name without links."""
    with Job(2, 1) as job:
        (job.prefix / "a/b").mkdir(parents=True)
        for name, to in (("link", job.prefix), ("up", job.root), ("deep", job.prefix / "a/b"), ("out", "/"), ("loop", "loop")):
            (job.root / name).symlink_to(to)
        files = [f"{job.root}/{name}_%r:{size}" for name, size in (("link/a/b/c/x", 10), ("up/prefix/a/b/y", 20),
                                                                  ("up/up/link/a/z", 30), ("deep/v", 40))]
        run = job.run("init", "start:a:c", f"route@1:{job.root}/out/x => ARGUMENT", f"route@1:{job.root}/loop/x => ARGUMENT",
                      f"route@1:{job.root}/up/x => ARGUMENT", [f"put:{file}" for file in files], "complete:1",
                      "start_restart => ANY", "have => 1 a", "start_restart", [f"get:{file}" for file in files],
                      "route:a/b/c/x_%r", f"route:{job.prefix}/a/b/v_%r", f"route@1:{job.root}/loop/x => ARGUMENT",
                      "complete_restart:1", "finalize", SCR_PREFIX=None)
        run.says("ROUTE_REFUSED", "rank 1: .*is not below the prefix directory", times=3)
        assert sorted(str(path.relative_to(job.prefix / "a")) for path in job.prefix.glob("a/**/*_1")) == \
            ["b/c/x_1", "b/v_1", "b/y_1", "z_1"]


def test_relative_prefix():
    """SCR_PREFIX is relative to the program's initial directory, and may not exist
    yet."""
    with Job(2, 1, SCR_PREFIX="new/folder") as job:
        (job.prefix / "new").mkdir()
        job.run("init", "start:a:c", "route:a/%r => ARGUMENT", "put:new/folder/a/%r:10", "complete:1",
                "finalize")
        assert (job.prefix / "new/folder/a/1").stat().st_size == 23


def test_no_place():
    """A file for which SCR has no place is missing, whatever the application reports."""
    for bypass, code in ((0, "CACHE"), (1, "PREFIX")):
        with Job(2, 2, SCR_FLUSH=0, SCR_CACHE_BYPASS=bypass) as job:
            run = job.run("init", checkpoint("a"), "start:b:c", "no_room@1:deep", f"route@1:b/deep/rank_1 => {code}", "no_room@1:",
                          "complete:1 => INVALID", restart("a"), checkpoint("b"), restart("b"))
            run.says("ROUTE_REFUSED", "rank 1: make directory .*deep: No space", times=1)
            run.says("OUTPUT_FAILED", "dataset 2 .b.", "rank 1", "SCR_Route_file failed", times=1)


def test_outside_the_prefix_folder():
    """Such names are refused; names below the prefix directory take their place."""
    with Job(2, 1) as job:
        run = job.run("init", "start:a:c", "route@1:/tmp/x => ARGUMENT", "route@1:../x => ARGUMENT",
                      f"route@1:{job.root}/prefix2/x => ARGUMENT", "put:a/rank_%r:1000", "put@1:a/x:10", "put@1:a/y:10",
                      "complete:1", restart("a"), "finalize")
        run.says("ROUTE_REFUSED", "rank 1: .*is not below the prefix directory", times=3)


def test_control_characters():
    """Control characters in a name do not reach the terminal or imitate a line of SCR."""
    with Job(2, 1) as job:
        run = job.run("init", checkpoint("a"), "start_restart => ANY", "have", "start_restart",
                      "route@1:x\nSCR: error: y => ARGUMENT", "complete_restart:1", "finalize")
        run.says("ROUTE_REFUSED", "SCR_Route_file: rank 1: dataset a has no file .x.SCR: error: y. of this rank", times=1)


def test_link_in_the_prefix_folder():
    """Links below the prefix directory are not followed; the reason says so."""
    with Job(2, 1, SCR_FLUSH=1) as job:
        (job.root / "elsewhere").mkdir()
        (job.prefix / "ckpts").symlink_to(job.root / "elsewhere")
        run = job.run("init", checkpoint("ckpts/1", code="FLUSH"), "finalize => FLUSH")
        run.says("FLUSH_FAILED", "make directory ckpts: a symbolic link, which is not followed", times=2)
        (job.prefix / "ckpts").unlink()
        job.run("init", restart("ckpts/1"), "finalize")


class Swapper:
    """A user who may write to the prefix directory repeatedly replaces directories of
    datasets by links to a private directory."""

    def __init__(self, job, names):
        self.private, self.prefix, self.names, self.swaps = job.root / "private", job.prefix, names, 0
        self.files = ["rank_0", "rank_1", ".scr/summary.scr", ".scr/rank2file.scr"]
        (self.private / ".scr").mkdir(parents=True)
        for name in self.files:
            (self.private / name).write_text("secret")
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.swap)

    def swap(self):
        random.seed(1)
        while not self.stop.wait(random.uniform(0, 0.004)):
            folder = self.prefix / random.choice(self.names)
            away = folder.with_name(f"{folder.name}.away")
            try:
                folder.rename(away)
                folder.symlink_to(self.private)
                self.swaps += 1
                self.stop.wait(random.uniform(0, 0.004))
                folder.unlink()
                away.rename(folder)
            except OSError:
                pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        found = {str(path.relative_to(self.private)): path.read_bytes()[:20] for path in self.private.rglob("*") if path.is_file()}
        assert found == {name: b"secret" for name in self.files}, found


def test_links_come_and_go():
    """Links appear while a flush writes. The flush may fail; the checkpoint stays in the
    cache."""
    names = ["c1", "c2", "c3", "c4"]
    with_scr_transfer()
    for more in ({}, {"SCR_FLUSH_TYPE": "PTHREAD"}, {"SCR_FLUSH_ASYNC": 1}, {"SCR_FLUSH_ASYNC": 1, "SCR_FLUSH_TYPE": "DAEMON"}):
        with Job(2, 1, SCR_FLUSH=1, **more) as job:
            with Swapper(job, names) as swapper:
                run = job.run("init", *(checkpoint(name, 100_000, code="ANY") for name in names))
            assert swapper.swaps > 0, run
            assert swapper.private.stat().st_mode & 0o777 == 0o755
            job.run("init", restart("c4", 100_000))


def test_one_file_of_two_ranks():
    """A file belongs to one rank, on one node or on two."""
    for layout in ([("n1", 2)], [("n1", 1), ("n2", 1)]):
        with Job(2, 1) as job:
            run = job.run("init", checkpoint("a"), "start:b:c", "put:b/shared:100",
                          "complete:1 => INVALID", restart("a"), "finalize", layout=layout)
            run.says("OUTPUT_FAILED", "dataset 2", "b/shared", "ranks 0 and 1", "set SCR_CACHE_BYPASS=1", times=1)
            job.run("init", "start:b:c", "put:b/shared:100", "complete:1", "finalize", layout=layout, SCR_CACHE_BYPASS=1)


def test_many_files():
    """The number of names is large enough for collisions of their hashes."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init", "start:a:c", [f"put:a/{i}_%r:10" for i in range(150)], "complete:1")


def test_routed_twice():
    with Job(2, 1) as job:
        job.run("init", "start:a:c", "route:a/rank_%r", "put:a/rank_%r:1000", "route:a/rank_%r",
                "complete:1", restart("a"), "finalize")


def test_file_not_written():
    with Job(4, 1, SCR_FLUSH=0) as job:
        run = job.run("init", checkpoint("a"), "start:b:c", "put@0,1,2:b/rank_%r:1000",
                      "route@3:b/rank_3", "complete:1 => INVALID", checkpoint("c"))
        run.says("OUTPUT_FAILED", "dataset 2", "rank 3: .*b/rank_3.* was not written", "set SCR_CACHE_BYPASS=1", times=1)
        assert job.cached() == [1, 3], job.cached()
        job.run("init", restart("c"))


def test_file_gone_again():
    with Job(2, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"), "start:b:c", "put:b/rank_%r:1000", "unlink@1",
                "complete:1 => INVALID", restart("a"))
        assert job.cached() == [1], job.cached()


def test_not_a_file():
    """A directory or a link is in place of the file."""
    with Job(2, 1, SCR_FLUSH=0) as job:
        # the directory is made for the second file, below the name of the first
        job.run("init", checkpoint("a"), "start:b:c", "route@1:b/rank_1", "put@1:b/rank_1/deeper:10",
                "complete:1 => INVALID", restart("a"))


def test_not_valid():
    """One rank suffices; the dataset is removed, earlier datasets stay."""
    with Job(4, 1, SCR_FLUSH=1, SCR_CACHE_KEEP=1) as job:
        run = job.run("init", checkpoint("a"), checkpoint("b", valid="!2", code="INVALID"),
                      checkpoint("c", valid="0", code="INVALID"), restart("a"), checkpoint("d"),
                      "finalize")
        run.says("OUTPUT_FAILED", r"dataset 2 \(b\)", "rank 2: the application says", times=1)
        run.says("OUTPUT_FAILED", r"dataset 3 \(c\)", "on 4 ranks, first rank 0: the application says", times=1)
        assert job.cached() == [1, 4], job.cached()
        assert set(tree.read(job.prefix / ".scr/index.scr")["DIR"]) == {"a", "d"}
        assert not (job.prefix / "b").exists() and not (job.prefix / "c").exists()


if __name__ == "__main__":
    main(globals())
