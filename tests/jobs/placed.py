#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Caches of a build before sets were made over nodes first (docs/decisions/0005): they restart, also when nodes are lost, and with
fewer ranks. golden/placed_*.tar.xz hold the nodes' directories after

    job.run("init", checkpoint("a", 100), checkpoint("b", 100))

with SCR_FLUSH=0 and SCR_CACHE_SIZE=1, without run.lock and prefix.scriinfo, which has the path of that prefix directory. In each of
them some sets have other members than now."""
import os
import pathlib
import tarfile

from job import Job, checkpoint, main, restart

GOLDEN = pathlib.Path(__file__).parent / "golden"


def even(nodes):
    return [(f"n{i + 1}", 2) for i in range(nodes)]


WAYS = {  # layout, parameters, nodes that may be lost together
    "xor": (even(3), {"SCR_COPY_TYPE": "XOR", "SCR_SET_SIZE": 2}, [["n1"], ["n2"], ["n3"]]),
    "rs": (even(5), {"SCR_COPY_TYPE": "RS", "SCR_SET_SIZE": 3, "SCR_SET_FAILURES": 2}, [["n1", "n3"], ["n2", "n5"], ["n4", "n5"]]),
    "partner": ([("n1", 1), ("n2", 3), ("n3", 2)], {"SCR_COPY_TYPE": "PARTNER", "SCR_SET_SIZE": 2}, [["n1"], ["n3"]]),
}


def job_of(way):
    layout, parameters, losses = WAYS[way]
    return Job(layout=layout, SCR_FLUSH=0, SCR_CACHE_SIZE=1, **parameters), losses


def unpack(job, way):
    with tarfile.open(GOLDEN / f"placed_{way}.tar.xz") as tar:
        for member in tar:
            member.uid, member.gid = os.getuid(), os.getgid()
            tar.extract(member, job.root)


def sets(job):
    """The names of redundancy files of each node."""
    return {node: sorted(path.name for path in job.cache(node).rglob("*_of_*_in_*")) for node in job.nodes()}


def ranks(job, lost):
    return sum(count for node, count in job.layout if node in lost)


def lose_each(way):
    job, losses = job_of(way)
    with job:
        for lost in losses:
            unpack(job, way)
            before = sets(job)
            job.lose(*lost)
            run = job.run("init", restart("b", 100), checkpoint("c", 100))
            run.says("REBUILD_COMPLETE", f"{ranks(job, lost)} of {ranks(job, job.nodes())} ranks")
            assert sets(job) != before, f"{way}: {before} is what is made now"
            job.run("init", restart("c", 100))
            job.lose(*job.nodes())


def test_xor():
    lose_each("xor")


def test_reed_solomon():
    lose_each("rs")


def test_partner():
    lose_each("partner")


def test_too_many_are_lost():
    """n1 and n3 share a set that XOR cannot rebuild, in the old and the new build."""
    job, _ = job_of("xor")
    with job:
        unpack(job, "xor")
        job.lose("n1", "n3")
        job.run("init", "have => 0")


def test_fewer_ranks():
    """A node is lost without a replacement."""
    job, _ = job_of("xor")
    with job:
        unpack(job, "xor")
        job.lose("n2")
        job.layout = [("n1", 2), ("n3", 2)]
        job.run("init", "have => 1 b", "start_restart => b", "take:100 => 6", "complete_restart:1", SCR_RESTART_RANKS="any")


if __name__ == "__main__":
    main(globals())
