#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each test that starts programs of MPI is in the suite mpi, by which CI runs it with a second implementation: it is started by mpiexec, or
has the variables that mpiexec needs."""
import json
import pathlib
import sys

from house import SKIP, finish

BUILD = pathlib.Path(sys.argv[1])
LAUNCH = BUILD / "tests/support/launch.json"


def check(test, launch):
    variables = launch["environment"].keys()
    has_them = len(variables) > 0 and variables <= test["env"].keys()
    if (has_them or launch["mpiexec"] in test["cmd"]) and "mpi" not in [suite.rpartition(":")[2] for suite in test["suite"]]:
        yield f"{test['name']} is not in the suite mpi"


if __name__ == "__main__":
    if not LAUNCH.exists():
        print("a build without MPI")
        sys.exit(SKIP)
    known, of_build = (json.loads(path.read_text()) for path in (BUILD / "meson-info/intro-tests.json", LAUNCH))
    finish([complaint for test in known for complaint in check(test, of_build)])
