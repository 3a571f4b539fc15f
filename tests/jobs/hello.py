#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The shortest programs, which docs/guide.md shows, save a file of each rank in the prefix directory."""
import os

from job import Job, Skip, main


def says_hello(name):
    if name not in os.environ:
        raise Skip("no compiler for this language here, or none that goes with MPI and the sanitizers")
    with Job(nodes=2, per_node=1) as job:
        process = job.start(os.environ[name])
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, f"exit code {process.returncode}\n{out}{err}"
        files = {path.name: path.read_text() for path in (job.prefix / "hello").glob("rank_*")}
        assert files == {f"rank_{rank}.txt": f"hello from rank {rank}\n" for rank in range(2)}, (files, out, err)


def fails_without_its_file(name):
    """The program fails if a file could not be written."""
    if name not in os.environ:
        raise Skip("as above")
    with Job(nodes=1, per_node=1, SCR_CACHE_BYPASS=1) as job:
        (job.prefix / "hello").write_text("in the way")
        process = job.start(os.environ[name])
        out, err = process.communicate(timeout=60)
        assert process.returncode != 0, f"{out}{err}"


def test_c():
    says_hello("JOB_HELLO")
    fails_without_its_file("JOB_HELLO")


def test_cxx():
    says_hello("JOB_HELLO_CXX")
    fails_without_its_file("JOB_HELLO_CXX")


def test_fortran():
    says_hello("JOB_HELLO_FORTRAN")
    fails_without_its_file("JOB_HELLO_FORTRAN")


if __name__ == "__main__":
    main(globals())
