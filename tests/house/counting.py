#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line that ./run-tests ends with counts each of Meson's results where it belongs, in several builds together; before it stands
what failed tests said."""
import json
import os
import pathlib
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


if __name__ == "__main__":
    complaints = [complaint for results, *wanted in CASES for complaint in check([results], *wanted)]
    complaints += [complaint for case in TOGETHER for complaint in check(*case)]
    if count(SAID) != (TOLD, 1):
        complaints.append(f"of failed tests it told {count(SAID)}")
    finish(complaints)
