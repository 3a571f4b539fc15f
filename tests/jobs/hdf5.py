#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A file of all ranks written by parallel HDF5, in a checkpoint that bypasses the cache
while others do not."""
import os
import shutil
import subprocess

from elastic import nodes
from job import Job, Skip, checkpoint, main


def hdf5(job, *arguments, **parameters):
    process = job.start(os.environ["JOB_HDF5_SHARED"], *arguments, **parameters)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "done" in out, f"exit code {process.returncode}\n{out}{err}"
    return err


def is_equal(one, other):
    done = subprocess.run(["h5diff", one, other], capture_output=True, text=True)
    assert done.returncode in (0, 1), done
    return done.returncode == 0


def test_hdf5():
    """All nodes are lost; the same number of ranks, more, and fewer read the file, which
    equals a file written without SCR."""
    if "JOB_HDF5_SHARED" not in os.environ:
        raise Skip("no HDF5 for this MPI here (Debian: libhdf5-mpich-dev), or sanitizers")
    with Job(2, 2, SCR_FLUSH=0, SCR_RESTART_RANKS="any") as job:
        job.run("init", checkpoint("small"))
        err = hdf5(job, "write", "large")
        assert "[OUTPUT_IN_PLACE]" in err and not (job.prefix / "small").exists(), err
        written, plain = job.prefix / "large/state.h5", job.root / "plain.h5"
        job.lose("n1", "n2")
        for layout in job.layout, nodes(3), nodes(2, 3):
            assert "[FETCH_DIRECT]" in hdf5(job, "read", layout=layout)
        hdf5(job, "plain", str(plain))
        assert written.read_bytes() == plain.read_bytes()
        if shutil.which("h5diff"):
            assert is_equal(written, plain)
            damaged = bytearray(plain.read_bytes())
            damaged[-100] ^= 0x40
            plain.write_bytes(damaged)
            assert not is_equal(written, plain)
        job.run("init", checkpoint("small"), "have => 1 small", "start_restart => small", "get:small/rank_%r:1000", "complete_restart:1")


if __name__ == "__main__":
    main(globals())
