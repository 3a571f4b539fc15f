#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records larger than any that SCR writes: one of each kind is replaced by a sparse file with the header of a tree of 3 GiB.
All commands, and the next run, work there as beside a damaged record, in no more memory than otherwise, and what the run
offers is right in every byte."""
import os
import resource
import struct

from sweep import check_processes
from hostile import begin, commands_work, places, run_works
from job import end_all, main
import tree

SIZE = 3 << 30
MEMORY = 512 << 10  # kB of a process; without sanitizers a tenth is enough
done = set()  # (whether it is on the prefix folder, name) of records, which several stories have


def records(job):
    """{kind: path} of one file of each kind that begins with a tree."""
    def is_tree(path):
        return path.is_file() and path.read_bytes()[:4] == struct.pack(">I", tree.MAGIC)
    return {kind: paths[0] for kind, paths in places(job).items() if is_tree(paths[0])}


def make_large(path):
    with open(path, "r+b") as file:
        file.write(tree.HEADER.pack(tree.MAGIC, tree.TYPE, tree.VERSION, SIZE, 0))
    os.truncate(path, SIZE)


def check(job, kind, work):
    job.go_back()
    make_large(records(job)[kind])
    work(job)
    end_all()
    check_processes()
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert most < MEMORY, f"{kind}, {work.__name__}: a process took {most} kB"


def check_story(story, prepare=lambda job: None, expected=()):
    with begin(story) as job:
        prepare(job)
        job.save()
        found = {kind: (path.is_relative_to(job.prefix), path.name) for kind, path in records(job).items()}
        assert set(expected) <= {name for _, name in found.values()}, found
        for kind, record in found.items():
            for work in (commands_work, run_works) if record not in done else ():
                check(job, kind, work)
            done.add(record)


def test_flushed_and_cached():
    check_story("flushed_and_cached", expected=[
        "index.scr", "flush.scr", "halt.scr", "nodes.scr", "summary.scr", "rank2file.scr", "rank2file.0.0.scr",
        "filemap.scriinfo", "filemap_0.scriinfo", "prefix.scriinfo", "1_of_4_in_0.xor"])


def test_under_way():
    check_story("under_way", expected=["stage.scr", "transfer_0.scrinfo"])


def put_whole(job):
    """Files are about to be renamed."""
    for hidden in job.prefix.glob("a/.scr/scavenge.*/.scr"):
        tree.write(hidden / "whole", {"CONTAINER": {"0": {}}})


def test_scavenged():
    check_story("scavenged", put_whole, ["0.scrfilemap", "1_of_4_in_0.xor", "whole"])


if __name__ == "__main__":
    main(globals())
