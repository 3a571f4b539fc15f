#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The log of a job: all its events are there, in order, in text and in JSON; and a log
that cannot be written costs the job only one warning."""
import datetime
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

from job import JOB, USER, Job, checkpoint, main, restart
import tree

LOGGED = {"SCR_LOG_ENABLE": 1, "SCR_LOG_SYSLOG_ENABLE": 0, "SCR_LOG_JSON_ENABLE": 1}
ESCAPE = re.compile(rb'\\(n|x[0-9a-f]{2}|.)')
LINE = re.compile(rb'(\S+Z) ([A-Z_]+)((?: [a-z]+=(?:"(?:[^"\\]|\\.)*"|[-0-9.]+))*)')


def unquoted(text):
    """Returns the bytes that a value of the text form represents; for a number, the
    number."""
    if not text.startswith(b'"'):
        return json.loads(text)
    plain = ESCAPE.sub(lambda found: {b"n": b"\n"}.get(found[1]) or
                       (bytes([int(found[1][1:], 16)]) if found[1][:1] == b"x" else found[1]), text[1:-1])
    return plain.decode()


def text_events(job):
    """Returns the events of the text file in the form of the JSON file."""
    events = []
    for line in (job.prefix / ".scr/log").read_bytes().splitlines():
        if not line:
            continue  # two ranks at once, see docs/formats/log.md
        found = LINE.fullmatch(line)
        assert found, line
        event = {"time": found[1].decode(), "event": found[2].decode()}
        for name, value in re.findall(rb' ([a-z]+)=("(?:[^"\\]|\\.)*"|[-0-9.]+)', found[3]):
            event[name.decode()] = unquoted(value)
        events.append(event)
    return events


def json_events(job):
    return [json.loads(line) for line in (job.prefix / ".scr/log.jsonl").read_text().splitlines() if line]


def both(job, writers=1):
    """Returns the events of both files. Events of several ranks may have another order in
    one of them."""
    text, lines = text_events(job), json_events(job)
    if writers > 1:
        for events in (text, lines):
            events.sort(key=lambda event: (event["time"], event["host"]))
    assert text == lines, f"{text}\n{lines}"
    return text


def short(events):
    """Names of the events, with those of their datasets."""
    return [" ".join(filter(None, (event["event"], event.get("name")))) for event in events]


def expect(events, *wanted):
    assert short(events) == list(wanted), "\n".join(short(events))


def moment(event):
    """Seconds since 1970."""
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def of_kind(events, kind):
    return [event for event in events if event["event"] == kind]


# ---- a job ----

def test_a_job():
    """Checkpoints, a killed rank, a lost node and a rebuild, a flush, and a fetch on new nodes."""
    with Job(nodes=4, per_node=2, SCR_FLUSH=2, SCR_JOB_NAME="heat", SCR_CLUSTER_NAME="atlas",
             **LOGGED) as job:
        # "comms" includes all ranks: rank 5 does not die before rank 0 has finished
        # "start"
        job.run("init", checkpoint("c 1"), checkpoint("c2"), "start:c3:c", "comms", "kill@5", dies=True)
        job.lose("n2")
        job.replace("n2", "n5")
        job.run("init", restart("c2"), checkpoint("c4", flags="co"), "complete:1 => STATE", "finalize")
        job.lose("n1", "n3", "n4", "n5")
        job.run("init", restart("c4"), "finalize")
        events = both(job)

    # the second run logs the end of the first, which could not log it
    killed, = of_kind(events, "RUN_INTERRUPTED")
    events.remove(killed)
    runs = list(dict.fromkeys(event["run"] for event in events))
    first, second, third = ([event for event in events if event["run"] == run] for run in runs)
    assert killed["run"] == runs[0] and killed["jobid"] == JOB and first[-1]["time"] < killed["time"] <= second[0]["time"], killed
    assert abs(killed["secs"] - (moment(first[-1]) - moment(first[0]))) < 1e-5, killed
    expect(first, "RUN_START", "RUN_READY", "OUTPUT_START c 1", "OUTPUT_COMPLETE c 1", "OUTPUT_START c2",
           "OUTPUT_COMPLETE c2", "FLUSH_START c2", "FLUSH_COMPLETE c2", "OUTPUT_START c3")
    expect(second, "RUN_START", "REBUILD_START c2", "REBUILD_COMPLETE c2", "RUN_READY", "RESTART_OFFERED c2", "RESTART_START c2",
           "RESTART_COMPLETE c2", "OUTPUT_START c4", "OUTPUT_COMPLETE c4", "FLUSH_START c4",
           "FLUSH_COMPLETE c4", "RUN_END")
    expect(third, "RUN_START", "RUN_READY", "FETCH_START c4", "FETCH_COMPLETE c4", "RESTART_OFFERED c4",
           "RESTART_START c4", "RESTART_COMPLETE c4", "RUN_END")
    assert first + second + third == events
    check_fields(job, first, second, third)


def check_fields(job, first, second, third):
    for event in first + second + third:
        assert (event["user"], event["jobid"], event["host"]) == (USER, JOB, "n1"), event
    times = [event["time"] for event in first + second + third]
    assert times == sorted(times)
    size = sum(1000 + 13 * rank for rank in range(8))
    start = first[0]
    assert (start["jobname"], start["cluster"], start["prefix"], start["ranks"], start["nodes"]) == \
        ("heat", "atlas", str(job.prefix), 8, 4), start
    complete = first[3]
    assert (complete["dset"], complete["type"], complete["files"], complete["bytes"]) == \
        (1, "checkpoint", 8, size), complete
    assert complete["secs"] > 0 and complete["bw"] > 0
    flushed = first[7]
    assert (flushed["from"], flushed["to"], flushed["method"], flushed["files"], flushed["bytes"]) == \
        (str(job.cache("n1")), str(job.prefix), "sync", 8, size), flushed
    rebuilt = second[2]
    assert (rebuilt["rebuilt"], rebuilt["files"], rebuilt["bytes"]) == \
        (2, 2, sum(1000 + 13 * rank for rank in (2, 3))), rebuilt
    assert second[7]["type"] == "checkpoint,output" and second[7]["compute"] > 0, second[7]
    assert second[-1]["code"] == 0 and second[-1]["note"].endswith("success [RUN_FINALIZED]"), second[-1]
    fetched = of_kind(third, "FETCH_COMPLETE")[0]
    assert (fetched["from"], fetched["to"], fetched["files"], fetched["bytes"]) == \
        (str(job.prefix), str(job.cache("n1")), 8, size), fetched


def test_moved_ranks():
    """Two nodes are exchanged: files follow their ranks."""
    with Job(nodes=3, per_node=2, SCR_FLUSH=0, **LOGGED) as job:
        job.run("init", checkpoint("c1"))
        job.layout[0], job.layout[1] = job.layout[1], job.layout[0]
        job.run("init", restart("c1"))
        events = both(job)
        moved, = of_kind(events, "DISTRIBUTE_COMPLETE")
        assert (moved["files"], moved["bytes"]) == (4, sum(1000 + 13 * rank for rank in range(4))), moved
        rebuilt, = of_kind(events, "REBUILD_COMPLETE")
        assert (rebuilt["rebuilt"], rebuilt["files"]) == (0, 0), rebuilt


# ---- failures ----

def test_failures():
    """SCR's text about a failure is in the log, word for word, with its code."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=1, **LOGGED) as job:
        run = job.run("init", checkpoint("bad", valid="0", code="INVALID"), checkpoint("c2"), "have => 1 c2",
                      "start_restart => c2", "complete_restart:0 => INVALID", "current:nothing => NO_DATASET",
                      "finalize")
        events = both(job)
        for kind, code in (("OUTPUT_FAILED", 7), ("RESTART_FAILED", 7), ("ERROR", 10)):
            event, = of_kind(events, kind)
            assert event["code"] == code, event
            run.said("SCR: error: " + re.escape(event["note"]), times=1)


def test_failed_fetch():
    with Job(nodes=2, per_node=1, SCR_FLUSH=1, **LOGGED) as job:
        job.run("init", checkpoint("c1"), "finalize")
        job.lose("n1", "n2")
        (job.prefix / "c1/rank_1").write_text("damaged")
        run = job.run("init", "have => 0")
        event, = of_kind(both(job), "FETCH_FAILED")
        assert event["name"] == "c1" and event["to"] == str(job.cache("n1")), event
        run.said(re.escape(event["note"]), times=1)


def test_lost_in_the_cache():
    with Job(nodes=3, per_node=1, SCR_FLUSH=0, **LOGGED) as job:
        job.run("init", checkpoint("c1"))
        job.lose("n1", "n2")
        job.run("init", "have => 0")
        event, = of_kind(both(job), "REBUILD_FAILED")
        assert event["name"] == "c1" and event["note"].endswith("[REBUILD_IMPOSSIBLE]"), event


def test_halt_once():
    with Job(nodes=2, per_node=1, SCR_FLUSH=0, **LOGGED) as job:
        job.run("init", ["exit => 0"] * 3, checkpoint("c1"), "finalize")
        tree.write(job.prefix / ".scr/halt.scr", {"ExitReason": {"enough": {}}})
        job.run("init", ["exit => 1"] * 3, "need => 1")
        event, = of_kind(both(job), "HALT")
        assert event["note"] == "enough", event


def test_failures_of_one_rank():
    """Only rank 3 detects an invalid name; it logs that, at most ten times."""
    with Job(nodes=2, per_node=2, SCR_FLUSH=0, **LOGGED) as job:
        job.run("init", "start:c1:c", ["route@3:/elsewhere/file => ANY"] * 15, "put:c1/f_%r:10", "complete:1")
        events = both(job, writers=2)
        errors = of_kind(events, "ERROR")
        assert len(errors) == 10, events
        for event in errors:
            assert event["host"] == "n2" and event["note"].startswith("SCR_Route_file: rank 3: ") and event["code"] == 4, event
        assert len({event["run"] for event in events}) == 1


# ---- logs that cannot be written ----

def test_bad_logs():
    """A log is a link or a directory: one warning is printed and counted, and the job
    continues."""
    for spoil in (lambda path: path.symlink_to("/tmp/nowhere"), lambda path: path.mkdir()):
        with Job(nodes=2, per_node=1, SCR_FLUSH=1, **LOGGED) as job:
            (job.prefix / ".scr").mkdir()
            spoil(job.prefix / ".scr/log")
            run = job.run("init", checkpoint("c1"), "finalize")
            run.says("LOG_TARGET_FAILED", ".scr/log", times=1)
            run.says("LOG_EVENTS_DROPPED", "7 events", ".scr/log", times=1)
            assert len(json_events(job)) == 7
            assert not os.path.exists("/tmp/nowhere")


def test_database_that_never_answers():
    """The job waits for the database only for two seconds at its end."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0, **LOGGED) as job:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(job.root / "db"))
            server.listen()
            run = job.run("init", [checkpoint(f"c{i}", 10) for i in range(20)], "finalize", limit=50,
                          SCR_LOG_DB_ENABLE=1, SCR_LOG_DB_HOST=job.root / "db", SCR_LOG_DB_PASS="secret")
        run.says("LOG_EVENTS_DROPPED", "the database", times=1)
        run.not_said("secret")
        assert len(both(job)) == 2 + 2 * 20 + 1


def test_off():
    """Nothing is logged unless it is requested; without syslog there is at most one
    warning."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"), "finalize", SCR_LOG_JSON_ENABLE=1, SCR_LOG_DB_ENABLE=1)
        assert not (job.prefix / ".scr/log").exists() and not (job.prefix / ".scr/log.jsonl").exists()
        job.run("init", "finalize", SCR_LOG_ENABLE=1, SCR_LOG_TXT_ENABLE=0)
        assert not (job.prefix / ".scr/log").exists() and not (job.prefix / ".scr/log.jsonl").exists()


def test_size():
    """Full files are set aside; the two files of each form have the newest events."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0, SCR_LOG_SIZE=2000, **LOGGED) as job:
        job.run("init", [checkpoint(f"c{i}", 10) for i in range(20)], "finalize")
        for name in ("log", "log.jsonl"):
            old, new = ((job.prefix / ".scr" / (name + end)).read_text() for end in (".1", ""))
            assert 2000 <= len(old) < 2600 and len(new) < 2600, (old, new)
            names = re.findall(r'OUTPUT_COMPLETE.*"c(\d+)"', old + new)
            assert names == [str(i) for i in range(20 - len(names), 20)] and 3 <= len(names) < 20, names


def test_metrics():
    """After each event, the file has the figures of the report on all runs; if it cannot
    be written, there is a warning."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=2, **LOGGED) as job:
        metrics = job.root / "scr.prom"
        more = {"SCR_METRICS": metrics}
        job.run("init", checkpoint("c1"), checkpoint("c2"), "start:c3:c", "comms", "kill@1", dies=True, **more)
        first = metrics.read_text()
        assert f'scr_checkpoints{{prefix="{job.prefix}"}} 2.000000\n' in first and first.endswith("# EOF\n"), first
        assert f'scr_runs_interrupted{{prefix="{job.prefix}"}} 0.000000\n' in first, first
        run = job.run("init", restart("c2"), checkpoint("c4"), "finalize", SCR_METRICS=job.prefix)
        run.says("LOG_TARGET_FAILED", "SCR_METRICS", times=1)
        run.says("LOG_EVENTS_DROPPED", "SCR_METRICS", times=1)
        job.run("init", restart("c4"), "finalize", **more)
        done = subprocess.run([pathlib.Path(os.environ["JOB_TOOLS"], "scr_report"), "--prefix", job.prefix, "--metrics", job.root / "again.prom"], check=True)
        text = metrics.read_text()
        assert text == (job.root / "again.prom").read_text() and done.returncode == 0, text
        assert f'scr_runs_interrupted{{prefix="{job.prefix}"}} 1.000000\n' in text, text
        assert not [name for name in os.listdir(job.root) if "tmp" in name], os.listdir(job.root)
        if not shutil.which("promtool"):
            print("not checked by promtool (Debian: prometheus), which is not here")
            return
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0 and not done.stderr, done


def test_logs_are_closed():
    """All descriptors are closed, including those that the log opens."""
    with Job(nodes=2, per_node=1, SCR_FLUSH=0) as job:
        run = job.run("fds", "init", checkpoint("c1"), "finalize", "fds", "init", "finalize", "fds", **LOGGED)
        counts = [op for op in run.ops if op["op"] == "fds"]
        assert counts[1] == counts[2], counts


if __name__ == "__main__":
    main(globals())
