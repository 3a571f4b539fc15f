#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files that ranks write together: as parts in the cache, as one file on the prefix
directory."""
import os

import heat
from elastic import heat as run_heat, nodes
from flush import lose_all
from job import Job, checkpoint, main

SIX = {"nodes": 3, "per_node": 2}
UNIT, ROUNDS = 70000, 2
ROUND = 6 * UNIT + 15  # bytes of the probe's file per round
SIZE = ROUNDS * ROUND


def write(name, unit=UNIT, rounds=ROUNDS):
    """Writes a file of all ranks in parts, and a file of each rank."""
    return [f"start:{name}:c", f"put_parts:{name}/sub/all:{unit}:{rounds}", f"put:{name}/rank_%r:1000", "complete:1"]


def read(name, unit=UNIT, rounds=ROUNDS):
    return [f"have => 1 {name}", f"start_restart => {name}", f"get_parts:{name}/sub/all:{unit}:{rounds}", f"get:{name}/rank_%r:1000",
            "complete_restart:1"]


def whole(job, name):
    """Returns the shared file on the prefix directory, which has no other trace of it."""
    path = job.prefix / name / "sub/all"
    assert [other.name for other in path.parent.iterdir()] == ["all"], list(path.parent.iterdir())
    assert path.stat().st_size == SIZE, path.stat()
    return path.read_bytes()


def test_cache():
    """Restart from the cache, also with a lost node; parts are rebuilt."""
    for scheme in "XOR", "PARTNER", "RS":
        with Job(**SIX, SCR_FLUSH=0, SCR_COPY_TYPE=scheme) as job:
            run = job.run("init", write("a"), read("a"))
            run.says("OUTPUT_COMPLETE", "18 files", times=1)
            job.run("init", read("a"))
            job.lose("n2")
            run = job.run("init", read("a"), layout=[("n1", 2), ("n4", 2), ("n3", 2)])
            run.says("REBUILD_COMPLETE", times=1)


def test_prefix():
    """A flush joins the parts into one file, and a fetch splits it; in place, any rank
    reads any bytes."""
    for containers in 0, 1:
        with Job(**SIX, SCR_FLUSH=1, SCR_USE_CONTAINERS=containers) as job:
            job.run("init", write("a"))
            content = whole(job, "a")
            job.lose("n1", "n2", "n3")
            job.run("init", read("a"), write("b"))
            assert whole(job, "b") != content
            job.run("init", "delete:b", read("a"), "delete:a", "have => 0")
            assert not (job.prefix / "a").exists() and not (job.prefix / "b").exists()


def test_in_place():
    """SCR_FETCH_BYPASS: the file is not copied, and the written parts do not matter."""
    with Job(**SIX, SCR_FLUSH=1) as job:
        job.run("init", write("a"))
        job.lose("n1", "n2", "n3")
        run = job.run("init", "have => 1 a", "start_restart => a", f"get_parts:a/sub/all:{UNIT}:{ROUNDS}",
                      f"get_range:a/sub/all:0:{SIZE}", f"part:all:{UNIT - 5}:10 => {job.prefix}/a/sub/all:{UNIT - 5}", f"get_range:a/sub/all:{UNIT - 5}:10", f"get_range:a/sub/all:{SIZE - 1}:2 => ARGUMENT",
                      f"get_range:a/sub/all:{SIZE - 1}:1", "complete_restart:1", SCR_FETCH_BYPASS=1)
        run.says("FETCH_DIRECT", "a", times=1)
        run.says("ROUTE_REFUSED", "SCR_Route_file_part", f'"a/sub/all" has {SIZE} bytes, not {SIZE + 1}')


def test_bypass():
    """The file is written directly to the prefix directory, where parts have the offsets
    of the file."""
    with Job(**SIX, SCR_CACHE_BYPASS=1) as job:
        run = job.run("init", write("a"), "start:b:c", "part@1:b/x:7:5", "put_range@1:b/x:7:5", "complete:1")
        assert run.first("part@1")["text"][1] == f"{job.prefix}/b/x:7", run
        run.says("OUTPUT_COMPLETE", "7 files", times=1)
        whole(job, "a")
        job.run("init", "have => 1 b", "start_restart => b", "get_range:b/x:7:5", "get_range:b/x:7:6 => ARGUMENT", "complete_restart:0 => INVALID",
                read("a"))


def test_other_bytes():
    """From the cache: bytes within a part, and bytes that this rank does not have."""
    with Job(**SIX, SCR_FLUSH=0) as job:
        job.run("init", write("a"), "have => 1 a", "start_restart => a", f"get_range@0:a/sub/all:5:{UNIT - 5}", f"get_range@0:a/sub/all:{UNIT - 1}:1",
                f"get_range@0:a/sub/all:{UNIT - 1}:2 => ARGUMENT", "get_range@1:a/sub/all:0:1 => ARGUMENT", "get_range@1:none:0:1 => ARGUMENT",
                f"get_parts@0,1:a/sub/all:{UNIT}:{ROUNDS}", "complete_restart:1")


def take(name):
    """Reads all bytes, in equal shares and by every rank, and ranges that begin and end
    within parts, whoever wrote them."""
    return [f"have => 1 {name}", f"start_restart => {name}", f"fetch_share:{name}/sub/all:0:{SIZE}",
            f"fetch_share:{name}/sub/all:12345:{SIZE - 54321}", f"fetch_range:{name}/sub/all:{UNIT - 5}:10",
            f"fetch_range:{name}/sub/all:0:{SIZE}", f"get_range:{name}/sub/all:77:{SIZE - 99}", "complete_restart:1"]


def test_other_ranks():
    """Another number of ranks reads the bytes that it needs: in the cache, with lost
    nodes, and on the prefix directory."""
    with Job(**SIX, SCR_FLUSH=0, SCR_RESTART_RANKS="any") as job:
        job.run("init", write("a"), take("a"))
        for layout in ([("n1", 1), ("n2", 1), ("n3", 1)], [("n1", 3), ("n2", 2), ("n3", 4)]):
            job.run("init", take("a"), layout=layout)
        job.lose("n2")
        job.run("init", take("a"), "finalize", layout=[("n1", 2), ("n3", 2)], SCR_FLUSH=1)
        assert not any(job.root.glob("nodes/**/scr.brought"))
        whole(job, "a")
        job.lose("n1", "n3")
        for ranks in (1, 2), (2, 5):
            job.run("init", take("a"), layout=[(f"n{i + 1}", n) for i, n in enumerate(ranks)])


def test_fetch_refused():
    """Bytes beyond the end, and a file that no rank wrote, are refused; holes are
    zero."""
    with Job(**SIX, SCR_FLUSH=0) as job:
        hole = "put_range@1:a/holes:100000:10"
        run = job.run("init", "start:a:c", "put_parts:a/all:100:1", hole, "complete:1", "have => 1 a", "start_restart => a",
                      "fetch_range:a/all:0:615", "fetch_range:a/all:0:616 => ARGUMENT", "fetch_range:a/none:0:1 => ARGUMENT",
                      [f"fetch_parts:{kind} => ARGUMENT" for kind in ("-", "n", "o", "l", "nol")], "fetch_parts:", "fetch_range:%N:0:1 => ARGUMENT",
                      "fetch_range::0:1 => ARGUMENT", f"fetch_range:a/all:{2**63 - 1}:1 => ARGUMENT", f"fetch_range:a/all:1:{2**64 - 1} => ARGUMENT",
                      "fetch_range:/x:0:1 => ARGUMENT", "fetch_range:a/all:9:0", "fetch_range:a/holes:100000:10",
                      "fetch_hole:a/holes:5:7", "fetch_hole:a/holes:0:100000", "fetch_range:a/all:0:615", "complete_restart:1")
        run.says("FETCH_FILES_FAILED", "SCR_Fetch_file_parts", '"a/all" has 615 bytes, not 616', times=1)
        run.says("FETCH_FILES_FAILED", 'no rank wrote a part of "a/none"', times=1)
        run.says("FETCH_FILES_FAILED", "a list is missing", times=4)
        run.says("FETCH_FILES_FAILED", "-1 names", times=1)
        run.says("FETCH_FILES_FAILED", "name 0 is missing", times=2)
        run.says("FETCH_FILES_FAILED", '"a/all" would end after 2.63 - 1 bytes', times=2)


def test_nothing():
    """A rank with nothing to write has no file, and none to read."""
    with Job(**SIX, SCR_FLUSH=1) as job:
        job.run("init", "start:a:c", "part:a/all:3:0 => /dev/null:0", "put_range:a/all:3:0", "put_range@2:a/all:0:9", "complete:1",
                "have => 1 a", "start_restart => a", "get_range:a/all:100:0", "get_range@2:a/all:0:9", "complete_restart:1")
        job.run("init", "start:b:c", "put_range:b/all:3:0", "complete:1 => INVALID")


def refused(code, text, *operations, **how):
    with Job(**SIX, SCR_FLUSH=1, **how) as job:
        run = job.run("init", checkpoint("good"), "start:a:c", "put:a/rank_%r:10", operations, f"complete:1 => {code}", "have => 1 good")
        run.says("OUTPUT_FAILED", text, times=1)


def test_refused():
    """Parts that overlap, that have another length than announced, or that have the name
    of another file, are refused."""
    refused("INVALID", r'ranks 1 and 4 both have byte 9 of file "a/all" \[', "put_range@1:a/all:0:10", "put_range@4:a/all:9:10")
    refused("INVALID", "SCR_Route_file_part was called for 11", "put_range@1:a/all:0:10", "part@1:a/all:0:11")
    refused("INVALID", "was not written", "part@1:a/all:0:11")
    refused("INVALID", 'file name "a/rank_3" is listed', "put_range@1:a/rank_3:0:10")


def test_refused_in_bypass():
    """The same on the prefix directory, as far as it can be detected there."""
    def bypassed(text, *operations):
        refused("INVALID", text, *operations, SCR_CACHE_BYPASS=1)

    bypassed('ranks 1 and 4 both have byte 9 of file "a/all"', "put_range@1:a/all:0:10", "put_range@4:a/all:9:10")
    bypassed('ranks 2 and 2 both have byte 9 of file "a/all"', "put_range@2:a/all:0:10", "put_range@2:a/all:9:10")
    bypassed('ranks 0 and 5 both have byte 70 of file "a/sub/x"', "put_range@0,5:a/sub/x:70:1", "put_range@3:a/sub/x:0:1")
    bypassed('"a/all" has 13 bytes, but SCR_Route_file_part was called for 4 from byte 10 on', "put_range@1:a/all:10:3", "part@1:a/all:10:4")
    bypassed("a/all is missing", "part@1:a/all:0:11")


def test_accepted_in_bypass():
    """Accepted: parts of several files, a corrected length, a rank that writes the file
    as a whole, a longer file of an earlier dataset, and names as long as a file system
    allows."""
    with Job(**SIX, SCR_CACHE_BYPASS=1) as job:
        longest = "a/" + 250 * "x"
        job.run("init", "start:a:c", "put_parts:a/all:100:3", "put_range@1:latest:0:1000", "put_range@2:a/x:5:7", "part@3:a/x:0:9", "put_range@3:a/x:0:5",
                "put_range:a/y:3:0", "route@4:a/all", "put_range@5:%s:0:9" % longest, "complete:1",
                "start:b:c", "put_range@1:latest:0:10", "put:b/rank_%r:9", "complete:1",
                "have => 1 b", "start_restart", "get_range:latest:0:10", "complete_restart:1", "finalize")


def test_any_name_in_bypass():
    """A file in the prefix directory itself, with a name that looks like one of SCR's for parts."""
    with Job(nodes=1, per_node=1, SCR_CACHE_BYPASS=1) as job:
        job.run("init", "start:a:c", "put_range:part.0.0:0:5", "complete:1", "have => 1 a", "start_restart", "get_range:part.0.0:0:5",
                "complete_restart:1")


def test_names():
    """Invalid parts are refused; a valid part replaces a refused one."""
    with Job(**SIX, SCR_FLUSH=1) as job:
        far = 2**63 - 1
        run = job.run("init", "start:a:c", f"part:a/all:{far}:1 => ARGUMENT a/all:{far}", "put_range@0:a/all:0:3", f"part@0:a/all:{far - 1}:0",
                "part@1:/etc/x:5:3 => ARGUMENT", "put_range@1:a/all:5:3", "put:a/b_%r:5",
                "route@2:a/all.scr-part.7 => ARGUMENT", "put@2:a/c:5", "put:a/all.scr-part.x:5".replace(":a", "@3:a", 1), "complete:1")
        run.says("ROUTE_REFUSED", '"a/all" would end after 2.63 - 1 bytes')


def test_long_names():
    """In the cache the name of a part has its offset, too: what a file system does not allow is refused, and not found when it is opened."""
    with Job(**SIX, SCR_FLUSH=1) as job:
        longest, longer = "a/" + 244 * "x", "a/" + 245 * "x"
        run = job.run("init", "start:a:c", f"put_range@0:{longest}:0:3", f"part@1:{longest}:10:3 => ARGUMENT", f"part@1:{longer}:3:3 => ARGUMENT",
                      f"put_range@1:{longest}:3:3", "put_range@1:a/y:0:1", "complete:1", f"part@2:{longer}:0:3", "finalize")
        run.says("ROUTE_REFUSED", '"a/x+" is too long: the name of a file in the cache consists of it, ".scr-part." and the offset', times=2)
        assert (job.prefix / longest).stat().st_size == 6


def test_names_of_scr():
    """The file of a part cannot have a name of SCR itself, or lead elsewhere."""
    for how in {}, {"SCR_CACHE_BYPASS": 1}:
        with Job(**SIX, SCR_FLUSH=1, **how) as job:
            names = ["a/.scr", ".scr/x", "a/b/..", "a/x.scr-part.5", "1_of_2_in_3.xor"]
            job.run("init", "start:a:c", [f"part@1:{name}:0:3 => ARGUMENT" for name in names],
                    "put_range@1:a/all:0:3", [f"put_range@1:a/more{i}:0:3" for i in range(len(names) - 1)], "complete:1", "have => 1 a")


def test_name_of_directory():
    """The directory of the dataset, or one above it, cannot also be a file on the prefix
    directory; this is reported for a file or a part."""
    for how in {}, {"SCR_CACHE_BYPASS": 1}:
        with Job(**SIX, SCR_FLUSH=1, **how) as job:
            run = job.run("init", "start:a/b:c", "route@0:a/b => ARGUMENT", "part@1:a/b:0:3 => ARGUMENT", "part@2:a:7:3 => ARGUMENT", "put@0,1,2:a/b.%r:5",
                          "complete:1", "finalize")
            run.says("ROUTE_REFUSED", '"a/b" is the name of a directory, that of dataset a/b', times=2)
            lose_all(job)
            job.run("init", "have => 1 a/b", "start_restart", "get@0,1,2:a/b.%r:5", "complete_restart:1")


def test_same_name_again():
    """A file that each checkpoint rewrites, beside files of its own: it belongs to the
    newest checkpoint, whatever its parts."""
    def begin(name, unit, latest="latest/all"):
        return [f"start:{name}:c", f"put:{name}/rank_%r:100", f"put_parts:{latest}:{unit}:1", "complete:1"]

    with Job(**SIX, SCR_FLUSH=1, SCR_PREFIX_SIZE=1) as job:
        run = job.run("init", begin("a", 100), begin("b", 300))
        run.says("PREFIX_DATASET_DELETED", "a", times=1)
        path = job.prefix / "latest/all"
        assert path.stat().st_size == 6 * 300 + 15 and not (job.prefix / "a").exists()
        job.lose("n1", "n2", "n3")
        job.run("init", "have => 1 b", "start_restart", "get_parts:latest/all:300:1", "complete_restart:1", "delete:b")
        assert not path.exists()
    for latest, unit, flushed in ("latest/all", 300, 0), ("latest/all", 100, 0), ("other/all", 100, 1):
        with Job(**SIX, SCR_FLUSH=0) as job:
            job.run("init", begin("a", 100, latest), "kill@0", dies=True, SCR_JOB_ID=71)
            job.run("init", begin("b", unit), "finalize", SCR_FLUSH=1, SCR_JOB_ID=72)
            run = job.run("init", "have => 1 a", "finalize", SCR_FETCH=0, SCR_FLUSH=1, SCR_JOB_ID=71)
            run.says("FLUSH_SUPERSEDED", "dataset 1", times=1 - flushed)
            assert (job.prefix / "a").exists() == bool(flushed)


def test_joined_beside_others():
    """Bytes of several parts are joined in a file with a name that no application file
    can have."""
    with Job(**SIX, SCR_FLUSH=0) as job:
        other = "a/x.scr-joined.0.5"
        job.run("init", "start:a:c", "put_parts:a/x:1000:1", f"put@4:{other}:700", "complete:1", "have => 1 a", "start_restart => a",
                f"take_file:{other}:4:700", "fetch_range:a/x:5:2000", f"take_file:{other}:4:700", "complete_restart:1")


def test_list():
    """Parts are not among the files for which a restart asks by name."""
    for flush in 0, 1:
        with Job(**SIX, SCR_FLUSH=flush, SCR_RESTART_RANKS="any") as job:
            job.run("init", write("a"), "finalize")
            if flush:
                job.lose("n1", "n2", "n3")
            job.run("init", "have => 1 a", "start_restart => a", "dataset_file:0:0 => a/rank_0:1000", "dataset_file:5:0 => a/rank_5:1065",
                    "dataset_file:0:1 => ARGUMENT", "complete_restart:0 => INVALID", layout=[("n1", 2), ("n2", 1)])


def test_no_scr():
    """A program that ignores codes writes to the places that it would use without SCR."""
    with Job(**SIX, SCR_ENABLE=0) as job:
        job.run("init => DISABLED", "start:a:c => DISABLED", "part:a/all:5:3 => DISABLED a/all:5")
    with Job(**SIX) as job:
        job.run("part:a/all:5:3 => a/all:5", "init", "part:a/all:5:3 => a/all:5")


# ---- the example heat_shared ----

def plates(job, name="plate"):
    """The program's checkpoints that are single files on the prefix directory, by
    step."""
    return {int(path.parent.name.removeprefix("ckpt.")): path for path in job.prefix.glob(f"ckpt.*/{name}")}


def undisturbed(job, steps):
    path = job.root / "undisturbed"
    run_heat(job, "JOB_HEAT", steps, "-o", str(path), SCR_ENABLE=0)
    return path.read_bytes()


def killed(job):
    """Step of the last checkpoint that the program reported before one of its ranks was
    killed."""
    process = job.start(os.environ["JOB_HEAT_SHARED"], "-n", "60", "-t", str(10**8), "-c", "10", SCR_FLUSH=0)
    lines = [next(process.stdout) for _ in range(3)]
    heat.kill_one_rank("heat_shared")
    lines += process.stdout.read().splitlines()
    process.communicate(timeout=heat.LIMIT)
    assert process.returncode != 0
    return [int(found[1]) for found in map(heat.DONE.match, lines) if found][-1]


def go_on(job, last, steps, layout, **parameters):
    """Restarts from step `last`, or from the checkpoint after it, and continues for that
    number of steps; returns its last checkpoint."""
    out = run_heat(job, "JOB_HEAT_SHARED", last + steps, "-o", str(job.root / "found"), layout=layout, SCR_CACHE_KEEP=1, **parameters)
    found = heat.RESTARTED.search(out)
    assert found and last <= int(found[1]) <= last + 10, out
    return max(int(found[1]), (last + steps) // 10 * 10)


def test_heat_shared():
    """Kills, a lost node, and 4, 6, 3 and 5 ranks, from the cache and then from the
    prefix directory: the result is heat's."""
    with Job(2, 2) as job:
        last = killed(job)
        last = go_on(job, last, 25, nodes(2, 2), SCR_FLUSH=0)
        job.lose("n2")
        last = go_on(job, last, 25, [("n1", 3), ("n3", 3)], SCR_FLUSH=0)
        assert not plates(job)
        last = go_on(job, last, 25, [("n1", 1), ("n3", 2)], SCR_FLUSH=1)
        assert plates(job)[last].stat().st_size == 4 + 60 * 62 * 8, plates(job)
        job.lose("n1", "n3")
        last = go_on(job, last, 25, nodes(2, 1, 2), SCR_FLUSH=1)
        job.lose("n1", "n2", "n3")
        go_on(job, last, 13, nodes(3), SCR_FETCH_BYPASS=1)
        assert (job.root / "found").read_bytes() == undisturbed(job, last + 13)


def test_heat_shared_bypass():
    """The same program without the cache."""
    with Job(2, 2, SCR_CACHE_BYPASS=1) as job:
        run_heat(job, "JOB_HEAT_SHARED", 25)
        whole_plate = plates(job)[20].read_bytes()
        last = go_on(job, 20, 25, nodes(2, 1))
        assert last == 40 and whole_plate == plates(job)[20].read_bytes() and len(whole_plate) == 4 + 60 * 62 * 8
        assert (job.root / "found").read_bytes() == undisturbed(job, 45)


if __name__ == "__main__":
    main(globals())
