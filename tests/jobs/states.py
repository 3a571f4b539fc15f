#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every call in every state, and with arguments that cannot be: the right code on every rank, a
message that tells what to do, all outputs set, and never an end of the program."""
from job import Job, checkpoint, main

# each collective call, and what its outputs must be when it is refused
REFUSED = {"init": "", "finalize": "", "need": "0", "start:x:c": "", "start_checkpoint": "",
           "complete:1": "", "complete_checkpoint:1": "", "have": "0 =", "start_restart": "=",
           "complete_restart:1": "", "exit": "0", "current:x": "", "delete:x": "", "drop:x": ""}
LAYOUTS = {1: [("n1", 1)], 2: [("n1", 1), ("n2", 1)], 4: [("n1", 2), ("n2", 2)],
           8: [("n1", 2), ("n2", 2), ("n3", 2), ("n4", 2)]}


def refused(code, *calls):
    return [f"{call} => {code} {REFUSED[call]}" for call in calls]


def others(*legal):
    return [call for call in REFUSED if call not in legal]


def expect_refusals(run, missing, calls):
    """One message per call, and it names what is missing."""
    run.said(f"{missing} is missing", times=len(calls))


def test_outside():
    """Before SCR_Init and after SCR_Finalize."""
    calls = others("init")
    wrong = refused("STATE", *calls) + ["route:x => x"]
    for ranks, layout in LAYOUTS.items():
        with Job() as job:
            run = job.run(wrong, "init", "finalize", wrong, layout=layout)
            expect_refusals(run, "SCR_Init", 2 * calls)


def test_idle():
    calls = ["complete:1", "complete_checkpoint:1"]
    for layout in LAYOUTS.values():
        with Job() as job:
            run = job.run("init", refused("STATE", "init", *calls, "complete_restart:1",
                                          "start_restart"),
                          "config:SCR_DEBUG=2 => 0", "route:x => x", "finalize", layout=layout)
            expect_refusals(run, "SCR_Start_output", calls)
            expect_refusals(run, "SCR_Start_restart", ["complete_restart"])
            run.said("SCR_Have_restart is missing", times=1)
            run.said("SCR_Finalize is missing", times=2)


def test_output():
    calls = others("complete:1", "complete_checkpoint:1")
    for layout in LAYOUTS.values():
        with Job() as job:
            run = job.run("init", "start:a:c", refused("STATE", *calls), "put:a/%r:10", "complete:1",
                          "have => 1 a", "finalize", layout=layout)
            expect_refusals(run, "SCR_Complete_output", calls)


def test_restart():
    calls = others("complete_restart:1")
    for layout in LAYOUTS.values():
        with Job() as job:
            run = job.run("init", "start:a:c", "put:a/%r:10", "complete:1", "have => 1 a",
                          "start_restart => a", refused("STATE", *calls), "get:a/%r:10",
                          "complete_restart:1", "have => 1 a", "finalize", layout=layout)
            expect_refusals(run, "SCR_Complete_restart", calls)


def test_disabled():
    """Nothing works, nothing is touched, and an application that does not look runs unharmed."""
    for layout in LAYOUTS.values():
        with Job() as job:
            run = job.run(refused("DISABLED", *REFUSED), "route:some/file => DISABLED some/file",
                          "config:SCR_ENABLE => 1 =0", layout=layout, SCR_ENABLE=0)
            run.not_said("^SCR")  # whatever MPI says about the machine
            assert not (job.prefix / ".scr").exists() and not (job.root / "nodes").exists()


def test_without_mpi():
    with Job() as job:
        run = job.run("bare", refused("STATE", *REFUSED), "route:x => x",
                      "config:SCR_JOB_NAME=a", "config:SCR_JOB_NAME => 1 a", layout=[("n1", 1)])
        run.said("SCR_Init: MPI is not initialised; MPI_Init is missing", times=1)


def test_failed_init():
    """After a failed SCR_Init all is as before it, and it may be called again."""
    with Job(2, 1) as job:
        run = job.run("config:SCR_CACHE_SIZE=0", "init => CONFIG",
                      refused("STATE", *others("init")), "route:x => x",
                      "config:SCR_CACHE_SIZE=2", "init", checkpoint("a"), "finalize")
        run.said(r'SCR_CACHE_SIZE="0" \(SCR_Config\): must be at least 1', times=1)
        # the error of SCR_Init was seen; that all other calls fail, too, is said once
        run.said("SCR_Init is missing or has failed", times=1)


def test_again():
    """SCR_Finalize leads back to the start, also for parameters and offers."""
    with Job(2, 1) as job:
        job.run("config:SCR_FLUSH=1", "init", checkpoint("a"), "have => 1 a", "finalize",
                "config:SCR_FLUSH => 1 =10", "init", "start_restart => STATE", "have => 1 a",
                "start_restart => a", "get:a/rank_%r:1000", "complete_restart:1", "finalize")


def test_communicator():
    """SCR_Init_comm keeps a copy; ranks are those of the communicator it was given."""
    with Job(2, 2) as job:
        job.run("init_comm:1", checkpoint("a"), "finalize")
        run = job.run("init_comm:-1", "have => 1 a", "start_restart => a", "route:a/rank_%r => ANY",
                      "complete_restart:1", "finalize")
        # rank 0 of this run is rank 3 for SCR
        assert run.first("route")["code"] == [4] * 4, run


def test_config():
    with Job(2, 1) as job:
        run = job.run("config:SCR_JOB_NAME=a=b", "config:SCR_JOB_NAME => 1 a=b",
                      "config:SCR_JOB_NAME= => 0", "config:SCR_JOB_NAME => 0",
                      "config:SCR_CACHE_SIZE => 1 =2", "config:SCR_CACHE_SIZE=3",
                      "config:SCR_CACHE_SIZE => 1 =3", "config:%N => 0", "config: => 0",
                      "config:NO_SUCH => 0", "config:SCR_CACHE_SIZ=4 => 0", "config:=4 => 0",
                      "init", "config:SCR_CACHE_SIZE => 1 =3", "start:a:c",
                      "config:SCR_CACHE_SIZE => 1 =3", "put:a/%r:10", "complete:1", "finalize",
                      "config:SCR_CACHE_SIZE => 1 =2")
        run.said('unknown parameter "SCR_CACHE_SIZ"; did you mean SCR_CACHE_SIZE', times=1)


def test_dataset_names():
    bad = ["", "..", "a/../b", "/a", "a/", "a//b", "./a", ".scr", ".scr/a", "a/.scr", "%L1024",
           "%L2000", "a%r", "line\nfeed"]
    with Job(2, 1) as job:
        run = job.run("init", [f"start:{name}:c => ARGUMENT" for name in bad],
                      [f"start:a:{flags} => ARGUMENT" for flags in ("4", "-1", "0x100", "%r")],
                      checkpoint("a/b/c"), checkpoint(".a"), checkpoint("a b'\"ä"), "finalize")
        run.said("error: SCR_Start_output", times=len(bad) + 4)
        assert job.cached() == [2, 3], job.cached()


def test_one_name_missing():
    """A name on one rank, none on the other."""
    with Job(2, 1) as job:
        run = job.run("init", "start:a:c||%N:c => ARGUMENT", "start:%N:c||a:c => ARGUMENT",
                      "delete:a||%N => ARGUMENT", "delete:%N||a => ARGUMENT", "finalize")
        run.said("SCR_Start_output: rank 1: rank 0 gave", times=2)
        run.said("SCR_Delete: rank 1: no name given", times=1)
        run.said("SCR_Delete: .*first rank 0: no name given", times=1)


def test_file_names():
    bad = ["../a", "/etc/passwd", "/", "a/../../b", ".", ".scr/a", "a/.scr/b", "1_of_2_in_0.xor",
           "a/.scr", "%L1023", "a/%L300/b"]
    with Job(2, 1) as job:
        routes = [f"route:{name} => ARGUMENT {name}" for name in bad if "%" not in name]
        routes += [f"route:{name} => ARGUMENT" for name in bad if "%" in name]
        run = job.run("init", "start:a:c", routes, "route:%N => ARGUMENT =", "route: => ARGUMENT =",
                      "route:%L1024 => ARGUMENT =", "put:a/%r:10", "complete:1", "have => 1 a",
                      "start_restart => a", "route:%N => ARGUMENT =", "route:a/no => ARGUMENT a/no",
                      "route:no => ARGUMENT no", "get:a/%r:10", "complete_restart:1", "finalize")
        run.said("rank 1: .*is not below the prefix folder", times=5)
        run.said("rank 0: .*is a name of SCR itself", times=4)
        run.said("rank 1: the path in the cache of .* is too long", times=1)


def test_names_of_no_dataset():
    calls = ["current", "delete", "drop"]
    with Job(2, 1) as job:
        run = job.run("init", checkpoint("a", flags="co"),
                      [f"{call}:no => NO_DATASET" for call in calls],
                      [f"{call}:%L2000 => NO_DATASET" for call in calls],
                      [f"{call}:%N => ARGUMENT" for call in calls],
                      [f"{call}: => ARGUMENT" for call in calls],
                      [f"{call}:../prefix => NO_DATASET" for call in calls],
                      [f"{call}:a%r => ARGUMENT" for call in calls], "have => 1 a", "finalize")
        run.said('there is no dataset "no"', times=3)
        for call in calls:
            run.said(f"SCR_{call.capitalize()}: .*rank 0 gave", times=1)


def test_no_place_for_an_answer():
    """NULL where a flag or a name would go."""
    with Job(2, 1) as job:
        job.run("init", checkpoint("a"), "need:%N => ANY", "exit:%N => ANY", "have:%N => 1 (untouched)",
                "start_restart:%N", "tag:a", "get:a/rank_%r:1000", "complete_restart:1", "finalize")


def test_texts():
    with Job() as job:
        run = job.run("bare", "version => v4.0.0", *[f"strerror:{i}" for i in range(-1, 14)],
                      layout=[("n1", 1)])
        texts = [op["text"][0] for op in run.ops if op["op"].startswith("strerror")]
        assert all(texts) and texts.count("unknown code") == 3 and len(set(texts)) == 13, run


if __name__ == "__main__":
    main(globals())
