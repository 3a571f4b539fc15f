#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line that ./run-tests ends with counts each of Meson's results where it belongs; before it stands what failed tests said."""
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


SAID = [
    {"name": "a", "result": "OK", "stdout": "nothing to see\n"},
    {"name": "b", "result": "FAIL", "stdout": "".join(f"line {n}\n" for n in range(100)), "stderr": "\u20ac is odd\n"},
    {"name": "c", "result": "TIMEOUT", "stdout": None},
]
TOLD = ["==== b: FAIL", "(20 lines of stdout left out)", *(f"  line {n}" for n in range(20, 100)), "  ? is odd",
        "==== c: TIMEOUT", "1 passed, 2 failed, 0 skipped"]


def count(tests):
    """What is printed, and the exit code; tests: None for no log."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "testlog.json"
        if tests is not None:
            log.write_text("".join(json.dumps(test) + "\n" for test in tests))
        done = subprocess.run([ROOT / ".ci/count-tests", log], capture_output=True, text=True, encoding="utf-8",
                              env={**os.environ, "PYTHONIOENCODING": "ascii"})
    return done.stdout.splitlines(), done.returncode


def check(results, line, code):
    lines, ended = count(None if results is None else [{"name": "x", "result": result} for result in results])
    if lines[-1:] != [line] or ended != code:
        yield f"{results}: printed {lines} and ended with {ended}"


if __name__ == "__main__":
    complaints = [complaint for case in CASES for complaint in check(*case)]
    if count(SAID) != (TOLD, 1):
        complaints.append(f"of failed tests it told {count(SAID)}")
    finish(complaints)
