#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The module together with mpi4py: with_mpi4py.py RANKS [TEST]... Which test can run depends on the MPI that mpi4py was
built with; the other test is skipped. See ranks.py and names31.py.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.environ["TEST_JOBS"])
from job import MPI, Skip, main  # noqa: E402

RANKS = int(sys.argv.pop(1))
HERE = pathlib.Path(__file__).parent
STORIES = (("work", "ranks.py", "two"), ("work", "ranks.py", "refuse"), ("states", "ranks.py", "states"),
           ("names", "names31.py", "0"), ("names", "names31.py", "1"), ("names", "names31.py", "2"))
LIMIT = 100  # seconds per run
THEIRS = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(" ".join(MPI.Get_library_version().split()[:3]))
"""
OURS = "from scr import _library as l; print(' '.join(l.mpi_version(l.load()).split()[:3]))"


def printed(python, program):
    """Returns the output of a command, or None if it fails."""
    done = subprocess.run([python, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=LIMIT)
    return done.stdout.strip() if done.returncode == 0 else None


def pythons(same):
    """Returns a Python whose mpi4py has the same MPI as libscr, or another one, and the version texts of both."""
    seen = []
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        theirs, ours = printed(python, THEIRS), printed(python, OURS)
        if theirs and (theirs == ours) == same:
            return python, theirs, ours
        seen.append(f"{python}: mpi4py uses {theirs}, libscr {ours}" if theirs else f"{python} has no mpi4py")
    raise Skip("; ".join(seen))


def start(python, folder, story, launch):
    at = os.path.join(folder, story[0])
    os.makedirs(at, exist_ok=True)
    env = {**os.environ, "TEST_MPI4PY": "1", "SCR_CACHE_BASE": at, "SCR_CNTL_BASE": at, "SCR_FLUSH": "1",
           **MPI.places(folder)}
    return subprocess.run([*launch, python, HERE / story[1], story[2]], cwd=at, env=env, capture_output=True, text=True,
                          timeout=LIMIT)


def test_same_mpi():
    """A program passes a communicator to SCR."""
    python = pythons(same=True)[0]
    with tempfile.TemporaryDirectory(prefix="scr-test-", dir="/dev/shm") as folder:
        for story in STORIES:
            done = start(python, folder, story, [MPI.mpiexec, "-n", str(RANKS)])
            assert done.returncode == 0, f"{story}\n{done.stdout}{done.stderr}"


def test_other_mpi():
    """The program ends with a message that names both MPIs."""
    python, theirs, ours = pythons(same=False)
    with tempfile.TemporaryDirectory(prefix="scr-test-", dir="/dev/shm") as folder:
        done = start(python, folder, STORIES[0], [])
        assert done.returncode == 1 and "LibraryError: mpi4py uses " in done.stderr, done
        for name in (theirs, ours):
            assert name.split()[0] in done.stderr, f"{name} is missing in\n{done.stderr}"


if __name__ == "__main__":
    main(globals())
