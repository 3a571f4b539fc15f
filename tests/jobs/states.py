#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every call in every state, and with invalid arguments: the right code on every rank, a
message with a remedy, all outputs set, and never an end of the program."""
import collections

from job import MPI, Job, Skip, checkpoint, main, restart

# ---- the table: what the documentation says of every call in every state ----

# How to reach the state, the results of invalid calls there, and how to continue, which
# shows that these calls changed nothing.
STATES = {
    "before MPI_Init": (["bare"], "STATE", []),
    "uninitialised": ([], "STATE", ["init", "finalize"]),
    "failed": (["config:SCR_CACHE_SIZE=-1", "init => CONFIG"], "STATE",
               ["config:SCR_CACHE_SIZE=2", "init", checkpoint("a"), "finalize"]),
    "idle": (["init", checkpoint("a")], "STATE", [restart("a"), "finalize"]),
    "offered": (["init", checkpoint("a"), "have => 1 a"], "STATE",
                ["start_restart => a", "get:a/rank_%r:1000", "complete_restart:1", "finalize"]),
    "output": (["init", checkpoint("a"), "start:b:c"], "STATE",
               ["put:b/rank_%r:1000", "complete:1", restart("b"), "finalize"]),
    "older output": (["init", checkpoint("a"), "start_checkpoint"], "STATE",
                     ["put:rank_%r:1000", "complete_checkpoint:1", "have => 1 scr.dataset.2", "finalize"]),
    "restart": (["init", checkpoint("a"), "have => 1 a", "start_restart => a"], "STATE",
                ["get:a/rank_%r:1000", "complete_restart:1", restart("a"), "finalize"]),
    "disabled": (["init => DISABLED"], "DISABLED", []),
    "finalised": (["init", checkpoint("a"), "finalize"], "STATE", ["init", restart("a"), "finalize"]),
    "finalised, and MPI too": (["init", checkpoint("a"), "finalize", "mpi_end"], "STATE", []),
    "MPI is finalised": (["init", checkpoint("a"), "mpi_end"], "STATE", []),
    "MPI is finalised in an output": (["init", checkpoint("a"), "start:b:c", "mpi_end"], "STATE", []),
    "MPI is finalised, and SCR disabled": (["init => DISABLED", "mpi_end"], "DISABLED", []),
}
OUTSIDE = {"uninitialised", "failed", "finalised"}
IDLE = {"idle", "offered"}
OUTPUT = {"output", "older output"}

# Where a call is legal, its outputs elsewhere, and its other forms: with arguments that
# are invalid, or differ between ranks; and with NULL for an output. Where the call is
# invalid, none of these matters.
BAD_LISTS = ["-", "n", "o", "l", "nol"]
NAMES = ["", "x%r", "x||%N", "%N||x", "%L2000||x"]
CALLS = {
    "init": (OUTSIDE, "", [], []),
    "init_comm:1": (OUTSIDE, "", ["init_comm:%N"], []),
    "finalize": (IDLE | OUTPUT | {"restart"}, "", [], []),
    "need": (IDLE, "0", [], ["need:%N"]),
    "start:x:c": (IDLE, "", [f"start:{name}:c" for name in NAMES + ["%L1024", "%L2000", "../x"]] +
                  [f"start:{name}:{flags}" for name in ("x", "%N") for flags in ("8", "-1", "%r16")], []),
    "start_checkpoint": (IDLE, "", [], []),
    "complete:1": (OUTPUT, "", [], []),
    "complete_checkpoint:1": (OUTPUT, "", [], []),
    "have": (IDLE, "0 =", [], ["have:%N", "have:%F", "have:%N%F"]),
    "start_restart": ({"offered"}, "(untouched)", [], ["start_restart:%N", "start_restart:%C"]),
    "complete_restart:1": ({"restart"}, "", [], []),
    "fetch_files:": ({"restart"}, "", ["fetch_files:-", "fetch_files:%L2000"], []),
    "fetch_parts:": ({"restart"}, "", [f"fetch_parts:{kind}" for kind in BAD_LISTS], []),
    "dataset_file:0:0": ({"restart"}, "=:0", [], []),
    "exit": (IDLE, "0", [], ["exit:%N"]),
    **{f"{call}:x": (IDLE, "", [f"{call}:{name}" for name in NAMES + ["%N"]], [])
       for call in ("current", "delete", "drop")},
}
# Calls that report "not valid", on one rank or on all
NOT_VALID = ["complete:0", "complete:!0", "complete_checkpoint:!0", "complete_restart:0", "complete_restart:!0"]
# Legal everywhere: a file's name is copied unless a phase has another rule, and an
# invalid name is refused.
BAD_ROUTES = [f"route:{name} => ARGUMENT =" for name in ("%N", "", "%L1024", "%L2000")] + [
    f"route_nowhere:{name} => ARGUMENT" for name in ("", "x", "%L2000")] + [
    f"part:{name}:7:5 => ARGUMENT =:7" for name in ("%N", "", "%L1024", "%L2000")] + [
    f"part:x:{offset}:{length} => ARGUMENT x:{offset}" for offset, length in
    ((2**63, 0), (2**63 - 1, 1), (1, 2**63 - 1), (2**64 - 1, 1), (0, 2**64 - 1), (2**64 - 1, 2**64 - 1))] + [
    "part_nowhere:x:7:5 => ARGUMENT x:7", "part_nowhere:%N:7:5 => ARGUMENT =:7"]

LAYOUTS = {1: [("n1", 1)], 2: [("n1", 1), ("n2", 1)], 4: [("n1", 2), ("n2", 2)],
           8: [("n1", 2), ("n2", 2), ("n3", 2), ("n4", 2)]}


def parameters(state):
    return {"SCR_ENABLE": 0} if "disabled" in state else {}


def refused(state):
    """Every call that is invalid in the state, in all its forms, with its results
    there."""
    code = STATES[state][1]
    for call, (legal, outputs, bad, no_output) in CALLS.items():
        if state not in legal:
            yield f"{call} => {code} {outputs}"
            yield from (f"{other} => {code}" for other in bad + no_output)
    for call in NOT_VALID:
        if state not in CALLS[call.split(":")[0] + ":1"][0]:
            yield f"{call} => {code}"


def missing(state, call):
    """The call that the message must name; None if there is no message, or only one."""
    verb = call.split()[0].split(":")[0]
    if "disabled" in state or state == "failed":
        return None
    if state == "before MPI_Init" and verb.startswith("init"):
        return "MPI_Init"
    if state in OUTPUT or state == "restart":
        return "SCR_Complete_restart" if state == "restart" else "SCR_Complete_output"
    if state in IDLE:
        return {"init": "SCR_Finalize", "init_comm": "SCR_Finalize", "start_restart": "SCR_Have_restart",
                **dict.fromkeys(["complete_restart", "fetch_files", "fetch_parts", "dataset_file"], "SCR_Start_restart")}.get(verb, "SCR_Start_output")
    if state.startswith("finalised"):
        return None if verb.startswith("init") else "ended"
    return None if "MPI" in state and verb.startswith("init") else "SCR_Init"


def expect_messages(state, run, calls):
    """One message per call, on one rank."""
    for name, count in collections.Counter(missing(state, call) for call in calls).items():
        if name == "ended":
            run.says("CALL_OUT_OF_ORDER", ": SCR_Finalize has ended the run already; this call belongs before it", times=count)
        elif name:
            run.says("(CALL_OUT_OF_ORDER|RESTART_NOT_OFFERED)", f"{name} is missing", times=count)


def test_calls_that_do_not_belong():
    """Invalid calls: the right code on every rank, all outputs set, a message, and no
    other effect."""
    for state, (before, _, after) in STATES.items():
        wrong = list(refused(state))
        assert len(wrong) > 10, (state, wrong)
        for ranks in [1] if state == "before MPI_Init" else [1, 4]:
            with Job() as job:
                run = job.run(before, wrong, after, layout=LAYOUTS[ranks], **parameters(state))
                if not state.startswith("MPI is finalised"):
                    expect_messages(state, run, wrong)
                if "disabled" in state:
                    run.not_said("^SCR")  # whatever MPI says about the machine
                    assert not (job.prefix / ".scr").exists() and not (job.root / "nodes").exists()


def test_calls_that_belong():
    """Valid calls in all their forms; each is followed by a call that restores the
    state."""
    bad = [call for legal, _, others, _ in CALLS.values() if "idle" in legal for call in others]
    idle = ["need => 0", "need:%N", "exit => 0", "exit:%N", "have => 1 a", "have:%N => 1 (untouched)",
            "have:%F => a", "have:%N%F => (untouched)", "start_restart:%N", "complete_restart:1", "have",
            "start_restart => a", "complete_restart:1", restart("a"), "current:a", restart("a"),
            "start:b:c", "put:x_%r:5", "complete:1", "start_checkpoint", "put:x_%r:5", "complete_checkpoint:1", "start:b:o",
            "put:x_%r:5", "complete_checkpoint:1", "start_checkpoint", "put:x_%r:5", "complete:7", "start:d:c", "complete:0 => INVALID",
            "start:d:c", "complete_checkpoint:!0 => INVALID", "delete:b", "drop:b => NO_DATASET", "have"]
    for ranks, layout in LAYOUTS.items():
        # one rank cannot differ from others
        unusable = [f"{call} => ARGUMENT" for call in bad if ranks > 1 or not ("||" in call or "%r:c" in call or
                                                                              call.endswith("%r"))]
        with Job() as job:
            job.run("init_comm:%N => ARGUMENT", "init_comm:1", checkpoint("a"), unusable, idle, "finalize", "init", "have",
                    "start_restart", "complete_restart:!0 => INVALID", "have", "finalize", layout=layout)


def routes(state):
    """Further results of SCR_Route_file."""
    if "disabled" in state:
        return ["route:x => DISABLED x", "route:/x/y => DISABLED /x/y", "part:x:7:5 => DISABLED x:7", "part:x:7:0 => DISABLED x:7"]
    if state in OUTPUT or state.endswith("an output"):
        # six of the refused names differ: five files besides the next one take their
        # places
        return ["route:/x/y => ARGUMENT /x/y", "part:/x/y:7:5 => ARGUMENT /x/y:7", "part:/x/y:7:0 => /dev/null:0", [f"put:b/instead_{i}_%r:1" for i in range(5) if state in OUTPUT]]
    if state == "restart":
        return ["route:x => ARGUMENT x", "part:x:7:5 => ARGUMENT x:7", "part:x:7:0 => /dev/null:0"]
    return ["part:x:7:5 => x:7", "part:x:7:0 => x:7", "route:x => x", "route:/x/../y => /x/../y", "route:.scr => .scr"]


def test_route():
    """SCR_Route_file is legal in every state, with and without MPI."""
    for state, (before, _, after) in STATES.items():
        layout = LAYOUTS[1 if state == "before MPI_Init" else 4]
        with Job() as job:
            job.run(before, BAD_ROUTES, routes(state), after, layout=layout, **parameters(state))


def test_config_and_texts():
    """Queries and texts in every state; parameters can be set only outside of runs, and a
    mistake sets nothing."""
    for state, (before, _, after) in STATES.items():
        legal = state in OUTSIDE | {"before MPI_Init", "finalised, and MPI too"}
        layout = LAYOUTS[1 if state == "before MPI_Init" else 2]
        with Job() as job:
            run = job.run(before, "config:SCR_JOB_NAME => 0", "config:SCR_JOB_NAME=x => 0",
                          f"config:SCR_JOB_NAME => {'1 x' if legal else '0'}", "config:SCR_JOB_NAME= => 0",
                          "config:SCR_JOB_NAME => 0", "configf:SCR_JOB_NAME=y => 0",
                          f"configf:SCR_JOB_NAME => {'1 y' if legal else '0'}",
                          [f"config:{text} => 0" for text in ("%N", "", "=", "=x", "NO_SUCH", "%L2000", "CKPT=x",
                                                              "NO_SUCH=1", "SCR_JOB_NAM=x")],
                          "version => v4.0.0", "strerror:0 => success", "strerror:-1 => ANY", "strerror:99 => ANY",
                          after, layout=layout, **parameters(state))
            assert run.first("strerror:-1")["text"] == run.first("strerror:99")["text"], run


def test_failed_init():
    """After a failed SCR_Init everything is as before, and SCR_Init may be called
    again."""
    with Job(2, 1) as job:
        run = job.run("config:SCR_CACHE_SIZE=-1", "init => CONFIG", list(refused("failed")), "route:x => x",
                      "config:SCR_CACHE_SIZE=2", "init", checkpoint("a"), "finalize")
        run.says("CONFIG_MISTAKE", r'SCR_CACHE_SIZE="-1" \(SCR_Config\): must be at least 0', times=1)
        # the error of SCR_Init was seen; the failure of all other calls is reported once
        run.says("CALL_OUT_OF_ORDER", "SCR_Init is missing", times=1)


def test_again():
    """SCR_Finalize returns to the initial state, also for parameters and offers."""
    with Job(2, 1) as job:
        job.run("config:SCR_FLUSH=1", "init", checkpoint("a"), "have => 1 a", "finalize",
                "config:SCR_FLUSH => 1 =10", "init", "start_restart => STATE", "have => 1 a",
                "start_restart => a", "get:a/rank_%r:1000", "complete_restart:1", "finalize")


def test_finalize_in_an_output():
    """SCR_Finalize closes the dataset as failed, and ends; the previous checkpoint is
    saved."""
    for bypass in (0, 1):
        with Job(2, 1, SCR_CACHE_BYPASS=bypass) as job:
            run = job.run("init", checkpoint("a"), "start:b:c", "put:b/rank_%r:1000", "finalize => STATE", "finalize => STATE")
            run.says("CALL_OUT_OF_ORDER", "SCR_Finalize: an output is open; SCR_Complete_output is missing", times=1)
            run.says("OUTPUT_FAILED", r"dataset 2 \(b\)", times=1)
            run.says("CALL_OUT_OF_ORDER", "SCR_Finalize: SCR_Finalize has ended the run already", times=1)
            job.run("init", restart("a"), "finalize")


def test_finalize_in_a_restart():
    """The checkpoint is never marked for that, and datasets that are only in the cache
    are saved."""
    with Job(2, 1) as job:
        job.run("init", checkpoint("a"))
        for _ in range(4):
            run = job.run("init", "have => 1 a", "start_restart => a", "finalize => STATE", "init", "finalize")
            run.says("CALL_OUT_OF_ORDER", "SCR_Finalize: a restart is open; SCR_Complete_restart is missing", times=1)
        job.run("init", restart("a"), "finalize")


def test_communicator():
    """SCR_Init_comm keeps a copy; ranks are those of the given communicator."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        job.run("init_comm:1", checkpoint("a"), "finalize")
        job.run("init_comm:2 => ARGUMENT").says("CALL_ARGUMENT_INVALID", "SCR_Init_comm: the communicator: an intercommunicator", times=1)
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
        run.says("CONFIG_MISTAKE", 'unknown parameter "SCR_CACHE_SIZ"; did you mean SCR_CACHE_SIZE', times=1)


def test_dataset_names():
    bad = ["", "..", "a/../b", "/a", "a/", "a//b", "./a", ".scr", ".scr/a", "a/.scr", "%L1024",
           "%L2000", "a%r", "line\nfeed"]
    with Job(2, 1) as job:
        run = job.run("init", [f"start:{name}:c => ARGUMENT" for name in bad],
                      [f"start:a:{flags} => ARGUMENT" for flags in ("8", "-1", "0x100", "%r")],
                      checkpoint("a/b/c"), checkpoint(".a"), checkpoint("a b'\"ä"), "finalize", SCR_CACHE_KEEP=1)
        run.says("CALL_ARGUMENT_INVALID", "SCR_Start_output", times=len(bad) + 4)
        assert job.cached() == [2, 3], job.cached()


def test_one_name_missing():
    """One rank gives a name, the other none."""
    with Job(2, 1) as job:
        run = job.run("init", "start:a:c||%N:c => ARGUMENT", "start:%N:c||a:c => ARGUMENT",
                      "delete:a||%N => ARGUMENT", "delete:%N||a => ARGUMENT", "finalize")
        run.says("CALL_ARGUMENT_INVALID", "SCR_Start_output: rank 1: rank 0 gave", times=2)
        run.says("CALL_ARGUMENT_INVALID", "SCR_Delete: rank 1: no name given", times=1)
        run.says("CALL_ARGUMENT_INVALID", "SCR_Delete: .*first rank 0: no name given", times=1)


def test_file_names():
    bad = ["../a", "/etc/passwd", "/", "a/../../b", ".", ".scr/a", "a/.scr/b", "1_of_2_in_0.xor",
           "a/.scr", "%L1023", "a/%L300/b"]
    with Job(2, 1) as job:
        routes = [f"route:{name} => ARGUMENT {name}" for name in bad if "%" not in name]
        routes += [f"route:{name} => ARGUMENT" for name in bad if "%" in name]
        run = job.run("init", "start:a:c", routes, "route:%N => ARGUMENT =", "route: => ARGUMENT =",
                      "route:%L1024 => ARGUMENT =", "complete:1 => INVALID", "start:a:c", "put:a/%r:10", "complete:1", "have => 1 a",
                      "start_restart => a", "route:%N => ARGUMENT =", "route:a/no => ARGUMENT a/no",
                      "route:no => ARGUMENT no", "get:a/%r:10", "complete_restart:1", "finalize")
        run.says("ROUTE_REFUSED", "rank 1: .*is not below the prefix directory", times=5)
        run.says("ROUTE_REFUSED", "rank 0: .*is a name of SCR itself", times=4)
        run.says("ROUTE_REFUSED", "rank 1: the path in the cache of .*: File name too long", times=1)


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
        run.says("DATASET_UNKNOWN", '"no"', times=3)
        for call in calls:
            run.says("CALL_ARGUMENT_INVALID", f"SCR_{call.capitalize()}: .*rank 0 gave", times=1)


def test_no_place_for_an_answer():
    """NULL is passed for a flag or a name."""
    with Job(2, 1) as job:
        job.run("init", checkpoint("a"), "need:%N => ANY", "exit:%N => ANY", "have:%N => 1 (untouched)",
                "start_restart:%N", "tag:a", "get:a/rank_%r:1000", "complete_restart:1", "finalize")


def test_texts():
    with Job() as job:
        run = job.run("bare", "version => v4.0.0", *[f"strerror:{i}" for i in range(-1, 14)],
                      layout=[("n1", 1)])
        texts = [op["text"][0] for op in run.ops if op["op"].startswith("strerror")]
        assert all(texts) and texts.count("unknown code") == 3 and len(set(texts)) == 13, run


def test_no_communicators():
    """The program has used up the communicators of MPI, and then releases one after the
    other: SCR_Init fails with one message wherever it lacks one, and leaks none; at last
    there are enough."""
    if MPI.launcher != "hydra":
        raise Skip(f"{MPI.mpi} crashes in MPI_Gather after a few of these failures")
    with Job(2, 1, SCR_FLUSH=0, SCR_DEBUG=0) as job:
        run = job.run("hoard", ["init => ANY", "communicators => ANY", "finalize => ANY", "release"] * 16)
        codes, held = ([op[part][0] for op in run.ops if op["op"] == name] for name, part in (("init", "code"), ("communicators", "flag")))
        failed = codes.index(0)
        assert failed > 3 and not any(codes[failed:]) and held[:failed] == [held[0] - n for n in range(failed)], run
        run.said(r": error: .* \[", times=2 * failed)
        run.says("CALL_OUT_OF_ORDER", "SCR_Finalize", times=failed)
        run.says("CALL_MPI_FAILED", "SCR_Init: on 2 ranks, first rank 0: MPI: .*communicators", times=2)
        run.says("CALL_MPI_FAILED", "parameters could not be shared", times=1)
        run.says("REDUNDANCY_NOT_CREATED", "MPI: .*communicators")
        run.says("CACHE_NOT_READ", "exchange of the list of cached files: ")


if __name__ == "__main__":
    main(globals())
