#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The records that the Python module reads, compared with commands, and with damage at every byte."""
import ast
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time
import zlib

from command import BUILD_PATH, COMMAND, image, packed, run, run_tests
from prefix import HALT, INDEX, Prefix, put, put_tree, value, without_scr_variables

import scr

without_scr_variables()
os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
time.tzset()
SOURCE = pathlib.Path(scr.__file__).parent
TREE = {"RANK": {"0": {"FILES": {"2": {}}}, "1": {}}, "": {"\u00e4 x": {}}}


def command(name):
    return next(path for folder in BUILD_PATH.split(":") if (path := pathlib.Path(folder, name)).is_file())


def refusal(call, *arguments, kind=scr.FormatError):
    """Returns the text of the exception, which must be exactly of that kind."""
    try:
        call(*arguments)
    except scr.FormatError as error:
        assert type(error) is kind, (error, kind)
        return str(error)
    raise AssertionError(f"{arguments} is accepted")


def is_good(path):
    try:
        scr.read_tree(path)
    except scr.FormatError:
        return False
    return True


# ---- trees ----

def test_trees():
    for crc in (True, False):
        put("tree", image(TREE, crc))
        assert scr.read_tree("tree") == TREE and list(scr.read_tree("tree")) == list(TREE)
    put("tree", image({}))
    assert scr.read_tree("tree") == {}
    data = struct.pack(">I", 1) + b"\xff\0" + packed({})
    put("tree", struct.pack(">IHHQI", 0x951fc3f5, 1, 1, 20 + len(data), 0) + data)
    assert [os.fsencode(key) for key in scr.read_tree("tree")] == [b"\xff"]


def damaged():
    """Yields a tree file cut off after each byte, with each bit flipped, and with more bytes."""
    for crc in (True, False):
        data = image(TREE, crc)
        for size in range(len(data)):
            yield f"{crc}-cut-{size}", data[:size]
        for bit in range(8 * len(data)):
            yield f"{crc}-flip-{bit}", data[:bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1:]
        yield f"{crc}-more", data + b"x"


def test_damage():
    """The module refuses the same files as kvtree_print, and reads the same tree from the others."""
    good = bad = 0
    for name, data in damaged():
        put(name, data)
        if name.startswith("True"):  # the checksum finds everything
            assert not is_good(name), name
            bad += 1
            continue
        done = run("--json", name, command=command("kvtree_print"))
        assert is_good(name) == (done.returncode == 0), (name, done)
        good, bad = good + is_good(name), bad + (not is_good(name))
        if is_good(name):
            shown = run("--tree", name, command=command("kvtree_print")).stdout.decode()
            assert shown.count("\n") == elements(scr.read_tree(name)), (name, shown)
    assert good > 20 and bad > 200, (good, bad)


def elements(tree):
    return sum(1 + elements(below) for below in tree.values())


def test_other_versions():
    for at, size in ((4, ">H"), (6, ">H"), (16, ">I")):
        data = bytearray(image(TREE)[:-4])
        struct.pack_into(size, data, at, 3)
        put("other", bytes(data) + struct.pack(">I", zlib.crc32(data)))
        assert "other: " in refusal(scr.read_tree, "other", kind=scr.VersionError)


def test_bounds():
    """Hostile files take neither memory nor time."""
    head = struct.pack(">IHHQI", 0x951fc3f5, 1, 1, 1 << 40, 0)
    with open("sparse", "wb") as file:
        file.write(head)
        file.truncate(1 << 40)
    assert "too large" in refusal(scr.read_tree, "sparse")
    for data, told in ((struct.pack(">I", 0x7fffffff), "can hold"), (struct.pack(">I", 1) + b"key", "can hold"),
                       (struct.pack(">I", 2) + 2 * (b"k\0" + packed({})), "second time"),
                       (b"\0\0\0\1x\0" * 5000 + b"\0\0\0\0", "levels")):
        put("bomb", struct.pack(">IHHQI", 0x951fc3f5, 1, 1, 20 + len(data), 0) + data)
        assert told in refusal(scr.read_tree, "bomb"), told
    os.mkfifo("pipe")
    for path in ("pipe", "/dev/null", "."):
        assert "not a regular file" in refusal(scr.read_tree, path)
    try:
        scr.read_tree("none")
    except FileNotFoundError:
        return
    raise AssertionError("a missing file")


# ---- the index ----

def fill():
    prefix = Prefix()
    files = [{"rank_0": b"zero", "a/b": b""}, {"rank_1": b"one"}]
    for name, number, state, more in (
            ("ckpt.6", 6, None, {}), ("run/ckpt.12", 12, {"FETCHED": {"2026-07-22T19:00:00": {}, "2026-07-22T20:00:00": {}}}, {}),
            ("out", 13, {"ATTEMPTS": value(2)}, {"CKPT": 0, "OUTPUT": 1, "CREATED": 9 * 10 ** 18}),
            ("ckpt.18", 18, {"FAILED": value("x")}, {"CLUSTER": "c", "JOBNAME": "j", "BYPASS": 1}),
            ("ckpt.19", 19, {"DELETING": value(1)}, {"SCATTERED": 1}),
            ("ckpt.20", 20, {"COMPLETE": value(0), "REASON": value("why not")}, {}),
            ("ckpt.21", 21, None, {"FILES": 5 * 10 ** 9})):
        prefix.enter(name, number, files, state, **more)
    for number, (field, text) in enumerate((
            ("ID", "x"), ("ID", "77"), ("SIZE", "-1"), ("SIZE", "+1"), ("RANKS", 0), ("RANKS", 2 ** 31), ("CREATED", 2 ** 63),
            ("CREATED", -1), ("NAME", "../x"), ("NAME", "other"), ("USER", "x" * 128), ("OUTPUT", 2), ("CKPT", " 1"),
            ("COMPLETE", ""), ("FILES", "0x1"), ("SIZE", "9" * 60)), 30):
        prefix.enter(f"bad.{number}", number, files, **{field: text})
    for name in (".scr/x", "a//b", "/a", "a/.", "x\x01"):
        prefix.enter(name, 60 + len(name), files)
    prefix.index["DSET"]["07"] = {"DIR": {"ckpt.7": {"DSET": prefix.describe("ckpt.7", 7, files), "COMPLETE": value(1)}}}
    prefix.put_index("run/ckpt.12")
    return prefix


def as_listed(dataset):
    """A dataset as scr_index --json prints it, except the time of creation, which it prints in seconds."""
    names = {"dset": "id"}
    keys = ("dset", "valid", "flushed", "current", "name", "checkpoint", "output", "complete", "deleting", "attempts", "fetched",
            "failed", "reason", "ranks", "files", "size", "bypass", "scattered", "user", "job_id", "job_name", "cluster")
    return {key: getattr(dataset, names.get(key, key)) for key in keys}


def listed():
    rows = [json.loads(line) for line in run("--list", "--json").stdout.splitlines()]
    for row in rows:
        row.pop("created")
        row.update({key: row[key] or "" for key in ("user", "job_id", "job_name", "cluster")})
    return rows


def test_index():
    fill()
    found = [as_listed(dataset) for dataset in scr.index()]
    assert found == listed(), (found, listed())
    assert [dataset["dset"] for dataset in found] == [21, 20, 19, 18, 13, 12, 6], found
    assert found[0]["flushed"][19:] == "+01:00" and found[5]["fetched"] == "2026-07-22T20:00:00+02:00", found
    first, out = scr.index(os.getcwd())[-1], scr.index(".")[4]
    assert first.created.isoformat() == "2026-11-21T10:33:10.731827+00:00" and out.created is None
    put_tree(INDEX, {})
    shutil.rmtree("none", ignore_errors=True)
    for prefix in (".", "none"):
        try:
            scr.index(prefix)
        except FileNotFoundError:
            continue
        raise AssertionError(prefix)


def test_index_damage():
    """An index that is cut off or has a flipped bit is never read as another list."""
    fill()
    data = pathlib.Path(INDEX).read_bytes()
    for at in range(0, len(data), 7):
        for wrong in (data[:at], data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]):
            put(INDEX, wrong)
            refusal(scr.index)
    put_tree(INDEX, {"VERSION": value(2), "DSET": {}})
    assert "version 2" in refusal(scr.index, kind=scr.VersionError)
    for tree in ({"DSET": {}}, {"VERSION": {"1": {}, "2": {}}}, {"VERSION": value("x")}):
        put_tree(INDEX, tree)
        assert "no version" in refusal(scr.index)


# ---- halt file and log ----

def test_halt():
    assert scr.halt() == scr.Halt(None, None, None, None, None, False)
    tool = command("scr_halt")
    done = run("-c", "7", "--after", "4102444800", "--before", "4102448400", "--seconds", "20min", "-T", "enough", command=tool)
    assert done.returncode == 0, done
    assert scr.halt() == scr.Halt("enough", 7, 4102444800, 4102448400, 1200, False)
    put_tree(HALT, {"CheckpointsLeft": value("x"), "ExitAfter": {"1": {}, "2": {}}, "HaltSeconds": value(2 ** 64),
                    "ExitNow": value(1)})
    assert scr.halt() == scr.Halt(None, None, None, None, None, True)
    put(HALT, image({})[:-1])
    refusal(scr.halt)


def test_log():
    """The text file and the JSON lines have the same events, without any loss."""
    os.mkdir(".scr")
    os.environ.update(SCR_LOG_ENABLE="1", SCR_LOG_SYSLOG_ENABLE="0", SCR_LOG_JSON_ENABLE="1", SCR_USER_NAME="tester",
                      SCR_JOB_ID="17")
    note = b'a "quote", a \\, a\nline, \x01 \xff\xc3\xa4 = x'
    for arguments in (["-T", "NODE_LOST", "-N", note, "node=n3"], ["-T", "FLUSH_COMPLETE", "bytes=5", "secs=1.5", "name=a b"]):
        done = run(*arguments, command=command("scr_log_event"))
        assert done.returncode == 0, done
    events = list(scr.log())
    assert events == list(scr.log(path=".scr/log.jsonl")), (events, list(scr.log(path=".scr/log.jsonl")))
    assert [event.name for event in events] == ["NODE_LOST", "FLUSH_COMPLETE"] and events[0].time.tzinfo
    assert os.fsencode(events[0].fields["note"]) == note and events[0].fields["node"] == "n3", events
    assert (events[1].fields["bytes"], events[1].fields["secs"]) == (5, 1.5), events
    for name in ("log", "log.jsonl"):
        check_put_aside(name, events)
    check_bad_lines(events)


def check_put_aside(name, events):
    """The file that was put aside comes first; without the current file, it is the log."""
    aside = pathlib.Path("aside")
    aside.mkdir(exist_ok=True)
    os.makedirs("aside/.scr", exist_ok=True)
    lines = pathlib.Path(".scr", name).read_bytes().splitlines(keepends=True)
    put(f"aside/.scr/{name}.1", lines[0])
    assert list(scr.log("aside")) == events[:1]
    put(f"aside/.scr/{name}", lines[1])
    assert list(scr.log("aside")) == events
    shutil.rmtree("aside")


def check_bad_lines(events):
    for name in ("log", "log.jsonl"):
        lines = pathlib.Path(".scr", name).read_bytes().splitlines(keepends=True)
        bad = [lines[0][:at] + b"\n" for at in range(40, 60)] + [b"\n", b"{}\n", b"[" * 100000 + b"\n", b"x" * 600000 + b"\n",
                                                              b'{"time": 1, "event": NaN}\n']
        put("bad", b"".join([lines[0], *bad, lines[1][:-1]]))
        found = list(scr.log(path="bad"))
        assert found[0] == events[0] and found[-1] == events[1], found
        assert all(event.time == events[0].time for event in found[:-1]), found
    try:
        next(scr.log("none"))
    except FileNotFoundError:
        return
    raise AssertionError("a missing log")


# ---- the package ----

def test_without_libscr():
    """Reading records needs neither libscr nor MPI."""
    done = subprocess.run([sys.executable, "-c", "import scr; scr.halt()\ntry: scr.index()\nexcept FileNotFoundError: print('none')"],
                          env={**os.environ, "SCR_LIBRARY": "/none"}, capture_output=True)
    assert done.stdout == b"none\n", done


def test_python_39():
    for path in SOURCE.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_types():
    assert (SOURCE / "py.typed").is_file()
    mypy = shutil.which("mypy")
    if not mypy:
        print("no mypy here")
        return
    done = subprocess.run([mypy, "--strict", "--python-version", "3.9", "--cache-dir", os.getcwd(), SOURCE], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": ""})
    assert done.returncode == 0, done.stdout


def test_documented():
    page = (SOURCE.parents[2] / "docs/python.md").read_text()
    for name in scr.__all__:
        thing = getattr(scr, name)
        assert name == "Tree" or not callable(thing) or thing.__doc__, name
        assert f"`{name}" in page or f"scr.{name}" in page, f"docs/python.md does not name {name}"


assert COMMAND.name == "scr_index"
run_tests(globals())
