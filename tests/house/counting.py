#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line that ./run-tests ends with counts each of Meson's results where it belongs."""
import json
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


def check(results, line, code):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "testlog.json"
        if results is not None:
            log.write_text("".join(json.dumps({"name": "x", "result": r}) + "\n" for r in results))
        done = subprocess.run([ROOT / ".ci/count-tests", log], capture_output=True, text=True)
    if (done.stdout, done.returncode) != (line + "\n", code):
        yield f"{results}: printed {done.stdout!r} and ended with {done.returncode}"


if __name__ == "__main__":
    finish([complaint for case in CASES for complaint in check(*case)])
