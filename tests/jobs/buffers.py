#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How much file data one call transfers: SCR_FILE_BUF_SIZE and SCR_MPI_BUF_SIZE. Counters
are read, and thereby reset, before each test, so that calls of MPI itself do not
count."""
from job import Job, checkpoint, main, restart

PAIR = {"nodes": 2, "per_node": 1, "SCR_SET_SIZE": 2}
KB, SIZE = 1024, 3000000  # more than any usual buffer


def largest(run, what):
    """Returns the answers of all ranks, one list per question."""
    return [op["flag"] for op in run.ops if op["op"] == f"largest:{what}"]


def all_are(run, what, size):
    """Whether both ranks have these values in the last question."""
    assert largest(run, what)[-1] == [size] * 2, f"{what}: {largest(run, what)}, not {size}\n{run}"


def test_flush_and_fetch():
    """Reads and writes of a flush and a fetch."""
    for parameters, size in (({}, 256 * KB), ({"SCR_FILE_BUF_SIZE": "0"}, 256 * KB),
                             ({"SCR_FILE_BUF_SIZE": "20KB"}, 20 * KB),
                             ({"SCR_FILE_BUF_SIZE": "20KB", "SCR_FLUSH_ASYNC": 1}, 20 * KB),
                             ({"SCR_FILE_BUF_SIZE": "20KB", "SCR_USE_CONTAINERS": 1}, 20 * KB),
                             ({"SCR_FILE_BUF_SIZE": "1MB"}, 1024 * KB)):
        with Job(**PAIR, SCR_COPY_TYPE="SINGLE", **parameters) as job:
            start, put, complete = checkpoint("a", SIZE)
            run = job.run("init", start, put, "largest:write", complete, "finalize", "largest:write", SCR_FLUSH=1)
            all_are(run, "write", size)
            run = job.run("init", "largest:write", restart("a", SIZE), "largest:write")
            all_are(run, "write", size)


def test_messages_of_redundancy():
    """Encoding and rebuilding send pieces of the configured size."""
    for parameters, size in (({}, 512 * KB), ({"SCR_MPI_BUF_SIZE": "16KB"}, 16 * KB)):
        with Job(**PAIR, SCR_COPY_TYPE="PARTNER", SCR_FLUSH=0, **parameters) as job:
            all_are(job.run("init", checkpoint("a", SIZE), "largest:message"), "message", size)
            job.lose("n2")
            run = job.run("init", "largest:message", restart("a", SIZE))
            run.says("REBUILD_COMPLETE", "1 of 2 ranks", times=1)
            assert largest(run, "message") == [[size, 0]], run


def test_files_that_move():
    """Ranks change places, and their files move with them."""
    for parameters, message, piece in (({}, 1024 * KB, 1024 * KB),
                                       ({"SCR_MPI_BUF_SIZE": "200KB"}, 200 * KB, 200 * KB),
                                       ({"SCR_FILE_BUF_SIZE": "600KB"}, 1024 * KB, 600 * KB)):
        with Job(**PAIR, SCR_COPY_TYPE="SINGLE", SCR_FLUSH=0, **parameters) as job:
            job.run("init", checkpoint("a", SIZE))
            run = job.run("init", "largest:read", "largest:write", "largest:message", restart("a", SIZE),
                          layout=[("n2", 1), ("n1", 1)])
            run.says("REBUILD_FILES_MOVED", "2 files of dataset 1", times=1)
            for what, size in (("read", piece), ("write", piece), ("message", message)):
                all_are(run, what, size)


def test_mistakes():
    for name in ("SCR_FILE_BUF_SIZE", "SCR_MPI_BUF_SIZE"):
        for value in ("4095", "2GB", "many", "-1"):
            with Job(**PAIR) as job:
                run = job.run("init => CONFIG", **{name: value})
                run.said(f'{name}="{value}"', times=1)


if __name__ == "__main__":
    main(globals())
