#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""When to checkpoint and when to stop: the optimum interval, the end of the allocation, signals, and
SCR_HALT_EXIT."""
import re
import time

from job import MPI, Job, Skip, checkpoint, main, messages, restart
import tree

SMALL = {"nodes": 2, "per_node": 2}
LOGGED = {"SCR_LOG_ENABLE": 1, "SCR_LOG_SYSLOG_ENABLE": 0}


def wish(job, **conditions):
    """Conditions that scripts and people write into the halt file."""
    (job.prefix / ".scr").mkdir(exist_ok=True)
    tree.write(job.prefix / ".scr/halt.scr", {key: {str(value): {}} for key, value in conditions.items()})


def reason(job):
    return tree.only(tree.read(job.prefix / ".scr/halt.scr").get("ExitReason", {"": {}}))


def log_of(job):
    return (job.prefix / ".scr/log").read_text()


# ---- signals ----

def test_signal():
    """Any rank gets the signal, all ranks stop, and the signal and its place are printed,
    logged and recorded."""
    for rank, name, node in ((0, "TERM", "n1"), (1, "USR1", "n1"), (3, "TERM", "n2")):
        with Job(**SMALL, **LOGGED) as job:
            text = f"SCR_SIGNAL: SIG{name} came to rank {rank} on node {node}"
            run = job.run("init", "need => 0", "exit => 0", f"raise@{rank}:{name}", "need => 1", checkpoint("c1"),
                          "exit => 1")
            run.says("HALT_REQUESTED", f"{text}")
            assert reason(job) == text
            assert log_of(job).count(f'HALT run="') == 1 and text in log_of(job), log_of(job)
            job.run("init", "exit => 0", restart("c1"), "finalize")
            assert reason(job) == "SCR_FINALIZE_CALLED"


def test_signal_and_finalize():
    """The reason remains recorded, for scripts and for people."""
    with Job(**SMALL) as job:
        job.run("init", "exit => 0", "raise@2:USR1", "exit => 1", checkpoint("c1"), "finalize")
        assert reason(job).startswith("SCR_SIGNAL: SIGUSR1 came to rank 2"), reason(job)
        job.run("init", "exit => 0", "need => 0")


def test_second_signal():
    """The second signal ends the process, as the first one does without SCR."""
    with Job(**SMALL) as job:
        job.run("init", "exit => 0", checkpoint("c1"), "raise@1:TERM", "exit => 1", "raise@1:TERM", "finalize", dies=True)
        job.run("init", restart("c1"), "raise@1:TERM", "finalize", SCR_HALT_SIGNALS="NONE", dies=True)
        job.run("raise@1:TERM", dies=True)
        job.run("init", restart("c1"), "finalize", "raise@1:TERM", dies=True)


def test_nobody_asks():
    """An application that never asks whether it should end is ended by the first
    signal."""
    with Job(**SMALL) as job:
        job.run("init", checkpoint("c1"), "raise@1:TERM", checkpoint("c2"), "finalize", dies=True)
        job.run("init", restart("c1"), "finalize")


def test_signal_before_asking():
    """A signal that does not end the process is not lost. This is one that MPI
    handles."""
    if MPI.launcher != "hydra":
        raise Skip(f"{MPI.mpi} has no handler for SIGUSR1")
    with Job(**SMALL) as job:
        job.run("init", "raise@1:USR1", checkpoint("c1"), "exit => 1", "finalize")


def test_wrong_signals():
    with Job(**SMALL) as job:
        run = job.run("init => CONFIG", SCR_HALT_SIGNALS="TERM,KILL")
        run.says("CONFIG_MISTAKE", 'SCR_HALT_SIGNALS="TERM,KILL" .*: not NONE or a list of TERM', times=1)


# ---- reasons ----

def test_reason_stays():
    """A person's reason to end the job stays after the job has ended."""
    with Job(**SMALL) as job:
        job.run("init", "finalize")
        assert reason(job) == "SCR_FINALIZE_CALLED"
        job.run("init")
        assert reason(job) == ""
        wish(job, ExitReason="disk quota is reached")
        job.run("init", "exit => 1", checkpoint("c1"), "finalize")
        assert reason(job) == "disk quota is reached"
        job.run("init", "exit => 1", "need => 1")


def conditions(job):
    return {key: tree.only(value) for key, value in tree.read(job.prefix / ".scr/halt.scr").items()}


def test_why_is_said():
    """SCR_Init prints all conditions in the halt file once at the default level, with a
    remedy."""
    now = int(time.time())
    for wanted, why in (({"ExitReason": "disk quota is reached"}, "disk quota is reached"),
                        ({"CheckpointsLeft": 0}, "the requested number of checkpoints is done"),
                        ({"ExitAfter": now - 5}, "the time ExitAfter has come"),
                        ({"ExitBefore": now + 50, "HaltSeconds": 100}, "seconds are left until ExitBefore")):
        with Job(**SMALL, SCR_DEBUG=0) as job:
            wish(job, **wanted)
            run = job.run("init", "need => 1", "exit => 1", checkpoint("c1"), "exit => 1", "finalize")
            run.says("HALT_REQUESTED", f"{why}.*scr_halt --remove {job.prefix}", times=1)
            assert run.err.splitlines()[0].endswith("[HALT_REQUESTED]"), run


def test_why_is_said_when_it_comes():
    with Job(**SMALL, SCR_DEBUG=0) as job:
        wish(job, CheckpointsLeft=1)
        run = job.run("init", "exit => 0", checkpoint("c1"), "exit => 1", "exit => 1", "finalize")
        run.says("HALT_REQUESTED", "the requested number of checkpoints .*scr_halt --remove ", times=1)
    with Job(**SMALL, SCR_DEBUG=0, SCR_HALT_SECONDS="1h", SCR_END_TIME=int(time.time()) + 1800) as job:
        run = job.run("init", "exit => 1", "need => 1")
        run.says("HALT_REQUESTED", "until the allocation ends", times=1)
        run.says("HALT_REQUESTED", "scr_halt --remove", times=0)  # it is no condition of the halt file
        job.run("init", "exit => 0", "raise@1:TERM", "exit => 1", SCR_HALT_SECONDS=0).says("HALT_REQUESTED", "SCR_SIGNAL", times=1)


def test_halt_seconds_of_an_earlier_run():
    """A run that does not set it, or sets 0, does not inherit it; a person's value
    stays."""
    now = int(time.time())
    for later in ({}, {"SCR_HALT_SECONDS": 0}):
        with Job(**SMALL, SCR_END_TIME=now + 1800) as job:
            job.run("init", "exit => 1", SCR_HALT_SECONDS="1h")
            assert conditions(job)["HaltSeconds"] == "3600"
            job.run("init", "exit => 0", **later)
            assert "HaltSeconds" not in conditions(job), conditions(job)
    with Job(**SMALL, SCR_END_TIME=now + 1800) as job:
        wish(job, HaltSeconds=3600)
        job.run("init", "exit => 1").says("HALT_REQUESTED", "scr_halt --remove", times=1)
        job.run("init", "exit => 1", SCR_HALT_SECONDS=7200)
        wish(job, **{**conditions(job), "HaltSeconds": 3601})  # a person, after that run
        job.run("init", "exit => 1")
        assert conditions(job) == {"HaltSeconds": "3601"}, conditions(job)


# ---- the end of the allocation ----

def test_end_of_allocation():
    now = int(time.time())
    for name in ("SCR_END_TIME", "SLURM_JOB_END_TIME"):
        with Job(**SMALL, SCR_HALT_SECONDS="1h") as job:
            run = job.run("init", "need => 1", "exit => 1", **{name: now + 1800})
            run.says("HALT_REQUESTED", rf"allocation ends \({name}\)")
            run = job.run("init", "need => 0", "exit => 0", "finalize", **{name: now + 36000})
            run.says("HALT_END_UNKNOWN", times=0)
            run.says("CONFIG_VARIABLE_UNKNOWN", times=0)
            # it belongs to one allocation, and nothing of it stays in the halt file
            job.run("init", "exit => 0", **{name: now + 36000})


def test_id_of_a_launch():
    """Each launch of Flux has its own id; newer versions also export that of the
    instance."""
    with Job(**SMALL, SCR_JOB_ID=None, SCR_FLUSH=0) as job:
        for variables, warnings in (({"FLUX_JOB_ID": "\u01927"}, 1), ({"FLUX_JOB_ID": "f7", "FLUX_JOB_ID_PATH": "/fA/f7"}, 0),
                                    ({"FLUX_JOB_ID": "f7", "FLUX_ENCLOSING_ID": "fA"}, 0),
                                    ({"FLUX_JOB_ID": "f7", "FLUX_JOB_ID_PATH": "/f7"}, 0),
                                    ({"FLUX_JOB_ID": "f7", "SCR_JOB_ID": "fA"}, 0)):
            # variables of the ranks: mpiexec of Open MPI crashes with them outside of
            # Flux
            run = job.run("init", "finalize", of_node={node: variables for node in job.nodes()})
            run.says("RUN_JOB_ID_OF_LAUNCH", *["job id f7 "] * warnings, times=warnings)


def test_no_end():
    with Job(**SMALL, SCR_HALT_SECONDS=100) as job:
        run = job.run("init", "exit => 0", "need => 0")
        run.says("HALT_END_UNKNOWN", times=1)
        run = job.run("init", "exit => 0", SLURM_JOB_END_TIME="tomorrow")
        run.says("HALT_END_TIME_INVALID", 'SLURM_JOB_END_TIME="tomorrow" is not a time', times=1)
        run = job.run("init => CONFIG", SCR_END_TIME="tomorrow")
        run.says("CONFIG_MISTAKE", 'SCR_END_TIME="tomorrow" .*not a whole number', times=1)
        wish(job, ExitBefore=4000000000)
        job.run("init", "exit => 0", "finalize").not_said("warning")
    with Job(**SMALL) as job:
        job.run("init", "exit => 0", "finalize").not_said("warning")


# ---- SCR_HALT_EXIT ----

def test_exit_after_checkpoint():
    """The requested checkpoint is complete and flushed, and mpiexec returns 0."""
    with Job(**SMALL, **LOGGED, SCR_HALT_EXIT=1) as job:
        wish(job, CheckpointsLeft=2)
        run = job.run("init", checkpoint("c1"), "need => 0", checkpoint("c2"), "need => 1", "finalize", ends=True)
        assert run.code == 0 and run.ops[-1]["op"].startswith("put:c2"), run
        run.says("HALT_EXIT", "SCR_HALT_EXIT=1", "the requested number of checkpoints is done", times=1)
        assert reason(job) == "SCR_HALT_EXIT: the requested number of checkpoints is done", reason(job)
        assert log_of(job).count("RUN_END") == 1, log_of(job)
        job.lose("n1", "n2")
        wish(job)
        job.run("init", restart("c2"), "finalize")


def test_exit_at_signal():
    with Job(**SMALL, SCR_HALT_EXIT=1) as job:
        run = job.run("init", checkpoint("c1"), "raise@3:USR1", "start:o:o", "put:o/%r:10", "complete:1",
                      checkpoint("c2"), "finalize", ends=True)
        assert run.code == 0 and run.ops[-1]["op"].startswith("put:c2"), run
        assert reason(job).startswith("SCR_SIGNAL: SIGUSR1 came to rank 3"), reason(job)
        job.lose("n1", "n2")
        job.run("init", restart("c2"), "finalize")


def test_exit_at_end_of_allocation():
    """Only this run knows the end of the allocation: the recorded reason informs
    scripts."""
    with Job(**SMALL, SCR_HALT_EXIT=1, SCR_HALT_SECONDS="1h") as job:
        run = job.run("init", ends=True, SCR_END_TIME=int(time.time()) + 60)
        assert run.code == 0 and not run.ops, run
        assert re.match(r"SCR_HALT_EXIT: \d+ seconds are left until the allocation ends", reason(job)), reason(job)
        job.run("init", "exit => 0", checkpoint("c1"), "finalize", SCR_END_TIME=4000000000)


def test_exit_in_init():
    """Datasets that the last run left in the cache are flushed first. Without
    SCR_HALT_EXIT the application is informed, and continues."""
    with Job(**SMALL) as job:
        job.run("init", checkpoint("c1"))
        wish(job, ExitReason="enough")
        run = job.run("init_comm:-1", ends=True, SCR_HALT_EXIT=1, SCR_DEBUG=0)
        run.says("HALT_EXIT", "SCR_HALT_EXIT=1", "enough", times=1)
        assert run.code == 0 and not run.ops, run
        assert reason(job) == "enough"
        job.lose("n1", "n2")
        job.run("init", "exit => 1", restart("c1"), checkpoint("c2"), "finalize")


def test_no_exit_of_a_part():
    """Other processes of the program cannot be ended: the run reports that, and
    continues."""
    with Job(**SMALL, SCR_HALT_EXIT=1) as job:
        wish(job, ExitReason="enough")
        run = job.run("init_alone@0")
        run.says("HALT_EXIT_REFUSED", "SCR_Init_comm", times=1)
        run.says("HALT_EXIT", times=0)


def test_exit_without_flush():
    """The exit code shows that the checkpoint was not flushed."""
    with Job(**SMALL, SCR_HALT_EXIT=1) as job:
        wish(job, CheckpointsLeft=1)
        (job.prefix / "c1").write_text("in the way")
        run = job.run("init", checkpoint("c1"), "finalize", ends=True)
        assert run.code != 0 and run.ops[-1]["op"].startswith("put:c1"), run
        (job.prefix / "c1").unlink()
        wish(job)
        job.run("init", restart("c1"), "finalize")


# ---- when to checkpoint ----

CHOSEN = r"([0-9.e+-]+) s\b.* ([0-9.e+-]+) s\b.* ([0-9.e+-]+) s \((.*)\)"


def chosen(run):
    """SCR's message with interval, cost, time between failures, and their sources."""
    found = [re.search(CHOSEN, line).groups() for line in messages(run.err, "CHECKPOINT_INTERVAL_CHOSEN")]
    assert found, run
    return [(*map(float, numbers), source) for *numbers, source in found]


def optimum(cost, mtbf):
    part = cost / (2 * mtbf)
    return (2 * cost * mtbf) ** 0.5 * (1 + part ** 0.5 / 3 + part / 9) - cost


def test_interval():
    with Job(**SMALL, SCR_CHECKPOINT_INTERVAL="auto") as job:
        run = job.run("init", "need => 1", checkpoint("c1"), ["need => 0"] * 9, SCR_MTBF="1d")
        interval, cost, mtbf, source = chosen(run)[0]
        assert mtbf == 86400 and source == "SCR_MTBF", run
        assert abs(interval / optimum(cost, mtbf) - 1) < 0.02, run
        assert len(chosen(run)) == 1, run
        job.run("init", "need => 1", checkpoint("c2"), "sleep:1500", "need => 1", SCR_MTBF="1s")
        run = job.run("init => CONFIG", SCR_CHECKPOINT_INTERVAL="often")
        run.says("CONFIG_MISTAKE", 'SCR_CHECKPOINT_INTERVAL="often" .*neither a whole number nor "auto"', times=1)


def test_cost():
    """The cost is the complete waiting time of the application, including the flush."""
    with Job(**SMALL, SCR_CHECKPOINT_INTERVAL="auto", SCR_FLUSH=1) as job:
        run = job.run("init", "need => 1", checkpoint("c1", 3000000), "need => 0", "finalize")
        parts = [float(found) for found in re.findall(r"dataset 1 .* ([0-9.]+) s, [0-9.]+ MB/s", run.err)]
        assert len(parts) == 2 and chosen(run)[0][1] > sum(parts) * 0.99 - 0.001, run


def test_learned():
    """Failures and costs of earlier runs come from the log; nothing is assumed any
    more."""
    with Job(**SMALL, **LOGGED, SCR_CHECKPOINT_INTERVAL="auto") as job:
        run = job.run("init", "need => 1", checkpoint("c1"), "need => 0", "finalize")
        assert chosen(run)[0][2:] == (86400.0, "assumed: no earlier run is in .scr/log"), run
        run = job.run("init", "need => 0")
        assert chosen(run)[0][2:] == (86400.0, "0 of 1 runs in .scr/log were interrupted"), run
        for failures in (1, 2):
            run = job.run("init", "need => ANY")
            interval, cost, mtbf, source = chosen(run)[0]
            assert source == f"{failures} of {failures + 1} runs in .scr/log were interrupted", run
            assert mtbf < 10000 and abs(interval / optimum(cost, mtbf) - 1) < 0.02, run
        with open(job.prefix / ".scr/log", "ab") as log:
            log.write(b"\0\xff\n2026 nonsense run=\"\n" + b"x" * 100000)
        run = job.run("init", "need => ANY", "finalize")
        assert chosen(run)[0][3] == "3 of 4 runs in .scr/log were interrupted", run
        (job.prefix / ".scr/log").unlink()
        (job.prefix / ".scr/log").mkdir()
        run = job.run("init", "need => 1", checkpoint("c2"), "need => 0", "finalize")
        run.says("LOG_HISTORY_UNREADABLE", times=1)


if __name__ == "__main__":
    main(globals())
