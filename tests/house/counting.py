#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line that ./run-tests ends with counts each of Meson's results where it belongs, in several builds together; before it stands
what failed tests said. Of tests that are repeated the second results count."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from house import ROOT, finish

CASES = [
    (["OK", "EXPECTEDFAIL", "SKIP"], "2 passed, 0 failed, 1 skipped", 0),
    (["OK", "FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"], "1 passed, 5 failed, 0 skipped", 1),
    (["OK", "NEVER HEARD OF"], "1 passed, 1 failed, 0 skipped", 1),
    (["SKIP"], "0 passed, 0 failed, 1 skipped", 1),
    ([], "0 passed, 0 failed, 0 skipped", 1),
    (None, "0 passed, 1 failed, 0 skipped", 1),
]
TOGETHER = [
    ([["OK", "SKIP"], ["OK", "OK"]], "3 passed, 0 failed, 1 skipped", 0),
    ([["OK", "FAIL"], ["OK", "OK"]], "3 passed, 1 failed, 0 skipped", 1),
    ([["OK"], ["TIMEOUT", "OK"]], "2 passed, 1 failed, 0 skipped", 1),
    ([["OK"], ["SKIP"]], "1 passed, 0 failed, 1 skipped", 1),
    ([["OK"], None], "1 passed, 1 failed, 0 skipped", 1),
    ([None, ["OK"]], "1 passed, 1 failed, 0 skipped", 1),
]

SAID = [
    {"name": "a", "result": "OK", "stdout": "nothing to see\n"},
    {"name": "b", "result": "FAIL", "stdout": "".join(f"line {n}\n" for n in range(100)), "stderr": "\u20ac is odd\n"},
    {"name": "c", "result": "TIMEOUT", "stdout": None},
]
TOLD = ["==== 0: b: FAIL", "(20 lines of stdout left out)", *(f"  line {n}" for n in range(20, 100)), "  ? is odd",
        "==== 0: c: TIMEOUT", "1 passed, 2 failed, 0 skipped"]


# Results, those of the second attempt, all of them in the end, and the exit code; a stand-in for Meson writes what it is told.
REPEATED = [
    ({"a": "OK", "b": "FAIL", "c": "TIMEOUT"}, {"b": "OK", "c": "OK"}, {"a": "OK", "b": "OK", "c": "OK"}, 0),
    ({"a": "OK", "b": "FAIL"}, {"b": "FAIL"}, {"a": "OK", "b": "FAIL"}, 1),
    ({"a": "OK", "b": "FAIL"}, {}, {"a": "OK", "b": "FAIL"}, 1),
    ({"a": "OK"}, {"a": "FAIL"}, {"a": "OK"}, 0),
    ({name: "FAIL" for name in "abcdef"}, {name: "OK" for name in "abcdef"}, {name: "FAIL" for name in "abcdef"}, 1),
    ({}, {}, {}, 1),
]
MESON = """#!/bin/sh
[ "$1 $2 $4 $5 $6" = "test -C --no-rebuild --logbase again" ] || exit 9
cp "$3/second" "$3/meson-logs/again.json"
"""


def count(*builds):
    """What is printed, and the exit code, for the tests of build directories that are named by their numbers; None: without a log."""
    with tempfile.TemporaryDirectory() as scratch:
        for number, tests in enumerate(builds):
            log = pathlib.Path(scratch) / str(number) / "meson-logs/testlog.json"
            log.parent.mkdir(parents=True)
            if tests is not None:
                log.write_text("".join(json.dumps(test) + "\n" for test in tests))
        done = subprocess.run([ROOT / ".ci/count-tests", *map(str, range(len(builds)))], cwd=scratch, capture_output=True,
                              text=True, encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    return done.stdout.splitlines(), done.returncode


def named(results):
    return results and [{"name": "x", "result": result} for result in results]


def check(cases, line, code):
    lines, ended = count(*map(named, cases))
    if lines[-1:] != [line] or ended != code or sum("passed" in told for told in lines) != 1:
        yield f"{cases}: printed {lines} and ended with {ended}"


def repeat(first, second):
    """The results after .ci/again, by name, and its exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        build, meson = pathlib.Path(scratch) / "build", pathlib.Path(scratch) / "meson"
        log = build / "meson-logs/testlog.json"
        log.parent.mkdir(parents=True)
        for path, results in ((log, first), (build / "second", second)):
            path.write_text("".join(json.dumps({"name": f"scr:x / {name}", "result": result}) + "\n" for name, result in results.items()))
        meson.write_text(MESON)
        meson.chmod(0o755)
        done = subprocess.run([ROOT / ".ci/again", build], capture_output=True, check=False,
                              env={**os.environ, "PATH": f"{scratch}:{os.environ['PATH']}"})
        tests = map(json.loads, log.read_text().splitlines())
        return {test["name"].removeprefix("scr:x / "): test["result"] for test in tests}, done.returncode


def without_python():
    """The last line of ./run-tests where packages are missing, Python among them, and its exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        where = pathlib.Path(scratch)
        (where / ".ci").mkdir()
        (where / "bin").mkdir()
        (where / "bin/dirname").symlink_to(shutil.which("dirname"))
        shutil.copy(ROOT / "run-tests", where)
        (where / ".ci/test").write_text("#!/bin/sh\nexit 1\n")
        (where / ".ci/test").chmod(0o755)
        done = subprocess.run([where / "run-tests"], capture_output=True, text=True, check=False, env={"PATH": str(where / "bin")})
        return done.stdout.splitlines()[-1:], done.returncode


if __name__ == "__main__":
    complaints = [complaint for results, *wanted in CASES for complaint in check([results], *wanted)]
    complaints += [complaint for case in TOGETHER for complaint in check(*case)]
    if count(SAID) != (TOLD, 1):
        complaints.append(f"of failed tests it told {count(SAID)}")
    if without_python() != (["0 passed, 1 failed, 0 skipped"], 1):
        complaints.append(f"without Python: {without_python()}")
    for first, second, *wanted in REPEATED:
        found = repeat(first, second)
        if found != tuple(wanted):
            complaints.append(f"{first}, repeated with {second}: {found}")
    finish(complaints)
