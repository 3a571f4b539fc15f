#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Python programs as whole jobs on simulated nodes: jobs.py RANKS [TEST]... See tests/jobs/job.py and ranks.py."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.environ["TEST_JOBS"])
from job import MPI, Job, Skip, end_all, main  # noqa: E402

import scr  # noqa: E402

RANKS = int(sys.argv.pop(1))
PROGRAM = str(pathlib.Path(__file__).with_name("ranks.py"))
LIMIT = 100  # seconds per run


def job(**parameters):
    half = RANKS // 2
    layout = [("n1", RANKS - half), ("n2", half)] if half else [("n1", 1)]
    return Job(layout=layout, **{"SCR_FLUSH": 0, "SCR_LIBRARY": os.environ["SCR_LIBRARY"], **parameters})


def run(where, name, *arguments, fails=False, **parameters):
    process = where.start(sys.executable, PROGRAM, name, *arguments, **parameters)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        end_all()
        raise AssertionError(f"{name}: not done after {LIMIT} s: {process.communicate()}") from None
    assert (process.returncode != 0) == fails, f"{name}: exit code {process.returncode}\n{out}{err}"
    return out + err


def test_killed_and_restarted():
    with job(SCR_CHECKPOINT_INTERVAL=3) as j:
        assert "from 0\n" in run(j, "count", "100", "8", fails=True)
        if RANKS > 1:
            j.lose("n2")
        assert "from 6\n" in run(j, "count", "10", SCR_FLUSH=10)
        assert scr.index(j.prefix)[0].name == "ckpt.9" and scr.halt(j.prefix).reason == "SCR_FINALIZE_CALLED"
        assert "from 9\n" in run(j, "count", "10")


def test_example():
    example = pathlib.Path(os.environ["TEST_EXAMPLE"])
    with job() as j:
        for start in (0, 9):
            process = j.start(sys.executable, str(example), SCR_FLUSH=10)
            out, err = process.communicate(timeout=LIMIT)
            assert process.returncode == 0 and out == f"counting from {start}\n", out + err


def test_refused_by_one_rank():
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        assert [d.name for d in scr.index(j.prefix)] == ["plot.2", "ckpt.2", "ckpt.1"]
        run(j, "refuse")
        assert {d.name: d.valid for d in scr.index(j.prefix)} == {"plot.2": True, "ckpt.2": False, "ckpt.1": True}
        run(j, "refuse_all")
        assert [d.name for d in scr.index(j.prefix) if d.valid] == ["plot.2"]


def test_loop_of_attempts():
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        run(j, "loops")


def test_mistake_marks_nothing():
    """The program dies, as it should, and its checkpoints stay good."""
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        out = run(j, "mistake", fails=True)
        assert "NameError" in out, out
        found = {d.name: d for d in scr.index(j.prefix)}
        assert found["ckpt.2"].valid and found["ckpt.1"].valid and found["ckpt.2"].attempts == 1, found


def test_unwritten_by_one_rank():
    with job() as j:
        run(j, "unwritten")


def test_states():
    with job() as j:
        run(j, "states", SCR_FLUSH=10)


def test_config():
    with job() as j:
        run(j, "config", SCR_FLUSH=None)


def test_disabled():
    with job() as j:
        run(j, "disabled", SCR_ENABLE=0)
        assert not (j.prefix / ".scr").exists()


def test_flush_fails():
    with job() as j:
        (j.prefix / "ckpt.1").write_text("in the way")
        run(j, "unflushed", SCR_FLUSH=1)


def test_one_rank_ends():
    """No rank waits for one that has ended."""
    for how, told in (("raise", "RuntimeError: the end of one rank"), ("exit", "")):
        with job() as j:
            out = run(j, "ends", how, fails=True)
            assert told in out and "nobody" not in out, out


def complaint(library):
    done = subprocess.run([sys.executable, "-c", "import scr; scr.init()"], capture_output=True, text=True,
                          env={**os.environ, "SCR_LIBRARY": library})
    assert done.returncode == 1 and "LibraryError" in done.stderr, done
    return done.stderr


def test_library_is_missing():
    assert "/no/libscr.so" in complaint("/no/libscr.so") and "set SCR_LIBRARY" in complaint("/no/libscr.so")
    assert "is no libscr" in complaint("libz.so.1")


def with_mpi4py():
    """A Python that has mpi4py."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import mpi4py"], capture_output=True).returncode == 0:
            return python
    raise Skip("mpi4py is not installed")


def test_mpi4py():
    """With the MPI of libscr it runs; with another one it ends with a message."""
    python = with_mpi4py()
    versions = subprocess.run(
        [python, "-c", "import mpi4py; mpi4py.rc.initialize = False\nfrom mpi4py import MPI\n"
         "print(MPI.Get_library_version().split()[0])"], capture_output=True, text=True)
    ours = subprocess.run([python, "-c", "from scr import _library as l; print(l.mpi_version(l.load()).split()[0])"],
                          capture_output=True, text=True)
    matches = versions.stdout == ours.stdout
    with tempfile.TemporaryDirectory(prefix="scr-test-", dir="/dev/shm") as folder:
        for name in ("two", "refuse", "states"):
            at = os.path.join(folder, "states" if name == "states" else "work")
            os.makedirs(at, exist_ok=True)
            env = {**os.environ, "TEST_MPI4PY": "1", "SCR_CACHE_BASE": at, "SCR_CNTL_BASE": at, "SCR_FLUSH": "1",
                   **MPI.places(folder)}
            launch = [MPI.mpiexec, "-n", str(RANKS)] if matches else []
            done = subprocess.run([*launch, python, PROGRAM, name], cwd=at, env=env, capture_output=True, text=True,
                                  timeout=LIMIT)
            if not matches:
                assert done.returncode == 1 and "LibraryError: mpi4py uses " in done.stderr, done
                raise Skip(f"{python}: mpi4py uses {versions.stdout.strip()}, libscr {ours.stdout.strip()}")
            assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    main(globals())
