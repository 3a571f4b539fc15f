#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The older restart protocol: between SCR_Init and the first SCR_Start_..., SCR_Route_file gives the path of a file of the
newest checkpoint (SCR Developer Guide 1.2, sections 2.1.1 and 2.29)."""
from job import Job, checkpoint, main, messages, restart

PAIR = {"nodes": 2, "per_node": 1}


def older(number):
    return [f"tag:{number}", "start_checkpoint", "put:ckpt_%r:1000", "complete_checkpoint:1"]


def read(number):
    return [f"tag:{number}", "get:ckpt_%r:1000"]


def test_from_the_cache():
    """The path is available until the first start, also after a loss. Other names are
    copied."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        run = job.run("init", older(1), older(2), "route:ckpt_0 => ckpt_0")
        run.says("RESTART_NOT_ASKED", times=0)
        for lost in (None, "n2"):
            job.lose(lost) if lost else None
            run = job.run("route:ckpt_0 => ckpt_0", "init", read(2), read(2), "route:other => other", f"route:{job.root}/x => {job.root}/x")
            run.says("RESTART_NOT_ASKED", times=0)
        job.run("init", read(2), older(3), "route:ckpt_0 => ckpt_0")
        job.run("init", read(3), "have => 1 scr.dataset.3", read(3), "start_restart => scr.dataset.3", "complete_restart:1",
                "route:ckpt_0 => ckpt_0", "finalize")


def test_from_the_prefix_folder():
    """SCR_Init fetches if the cache has no checkpoint, or an older one; without the
    parameter the program gets a message."""
    for parameters in ({}, {"SCR_CACHE_BYPASS": 1}):
        with Job(**PAIR, SCR_FLUSH=1, **parameters) as job:
            job.run("init", older(1), older(2), "finalize")
            run = job.run("init", "route:ckpt_0 => ckpt_0", "finalize")
            for _ in range(2):
                run = job.run("init", read(2), "tag:x", "start:x:o", "put:x/%r:10", "complete:1", "finalize", SCR_FETCH_ON_INIT=1)
                run.says("RESTART_NOT_ASKED", times=0)
            run = job.run("init", "route:ckpt_0 => ckpt_0", older(6), older(7), "finalize")
            run.says("RESTART_NOT_ASKED", times=1)
            run.says("RESTART_NOT_ASKED", "SCR_FETCH_ON_INIT=1", times=1)


def test_nothing_to_fetch():
    with Job(**PAIR) as job:
        run = job.run("init", "route:ckpt_0 => ckpt_0", older(1), SCR_FETCH_ON_INIT=1)
        run.says("RESTART_NOT_ASKED", times=0)


def test_checkpoints_that_cannot_be_read():
    """SCR_Init fails instead of letting the program begin anew."""
    with Job(**PAIR, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("a"), "finalize")
        job.run("unreadable@0:rank2file.scr", "init => PREFIX", SCR_FETCH_ON_INIT=1)
        job.run("init", restart("a"), SCR_FETCH_ON_INIT=1)


def test_damaged():
    """A file is compared with its checksum before its path is returned; with the
    parameter, it is rebuilt."""
    with Job(**PAIR, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        path = job.cache("n2") / "scr.dataset.1/a/rank_1"
        data = bytearray(path.read_bytes())
        data[500] ^= 1
        path.write_bytes(data)
        run = job.run("init", "tag:a", "get@0:a/rank_0", "route@1:a/rank_1 => FAILURE")
        run.says("ROUTE_REFUSED", "SCR_Route_file: rank 1: .*rank_1 has checksum", times=1)
        job.run("init", "tag:a", "get:a/rank_%r:1000", SCR_FETCH_ON_INIT=1)


def test_never_asked():
    """One message appears before anything leaves the cache; none if the program asked, or
    if there is nothing."""
    with Job(**PAIR, SCR_FLUSH=0, SCR_CACHE_SIZE=1) as job:
        run = job.run("init", checkpoint("a"), checkpoint("b"))
        run.says("RESTART_NOT_ASKED", times=0)
        run = job.run("init", checkpoint("c"), checkpoint("d"), SCR_DEBUG=2)
        run.says("RESTART_NOT_ASKED", times=1)
        lines = messages(run.err, "RESTART_NOT_ASKED|OUTPUT_STARTED")
        assert "RESTART_NOT_ASKED" in lines[0] and "dataset 3 (c)" in lines[1], run
        run = job.run("init", "have => 1 d", checkpoint("e"))
        run.says("RESTART_NOT_ASKED", times=0)
        run = job.run("init", "current:e", checkpoint("f"))
        run.says("RESTART_NOT_ASKED", times=0)
        run = job.run("init", checkpoint("f"), SCR_CACHE_PURGE=1)
        run.says("RESTART_NOT_ASKED", times=0)


if __name__ == "__main__":
    main(globals())
