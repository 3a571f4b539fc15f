#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Another user has made a directory, a link or a file with the name of one of a job's
directories, below a base that is open to everybody."""
import os
import shutil
import sys

from job import JOB, USER, Job, checkpoint, main, messages, restart
from scavenged import command, is_committed, lose_all, next_run_reads, scavenge

SOMEBODY = 65534
DETOUR = f"{USER}.{os.geteuid()}"


def bases(job, node):
    return [job.node(node) / name for name in ("cntl", "cache")]


def make_folder(path):
    path.mkdir()


def make_link(path):
    path.symlink_to("/nowhere")


def make_file(path):
    path.write_text("x")


def obstruct(job, nodes, make, name=USER, owner=SOMEBODY):
    for node in nodes:
        for base in bases(job, node):
            base.mkdir(parents=True, exist_ok=True)
            make(base / name)
            os.chown(base / name, owner, owner, follow_symlinks=False)


def remove_obstacles(job, nodes):
    for node in nodes:
        for base in bases(job, node):
            path = base / USER
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def is_beside(job, node):
    return all((base / DETOUR / USER / f"scr.{JOB}").is_dir() for base in bases(job, node))


def test_on_some_nodes():
    """The job uses alternative directories, and finds its cache again, also when the
    obstacle has gone."""
    for make in (make_folder, make_link, make_file):
        with Job(4, 1, SCR_FLUSH=0) as job:
            obstruct(job, ["n2", "n3"], make)
            run = job.run("init", checkpoint("a"))
            run.says("CACHE_BASE_OF_OTHERS", "node n[23]", f"/{USER}", f"/{DETOUR}/{USER}/", times=4)
            assert is_beside(job, "n2") and is_beside(job, "n3") and not is_beside(job, "n1")
            job.run("init", restart("a"), checkpoint("b"))
            remove_obstacles(job, ["n2", "n3"])
            job.run("init", restart("b"), checkpoint("c"))
            assert is_beside(job, "n2") and not (job.cache("n2")).exists()
            job.lose("n2")
            job.run("init", restart("c"))


def test_it_comes_later():
    """The obstacle appears between two runs, on a node that was lost: it does not hide
    the cache of the other nodes."""
    with Job(4, 1, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("a"))
        job.lose("n3")
        obstruct(job, ["n3"], make_folder)
        run = job.run("init", restart("a"), checkpoint("b"))
        run.says("CACHE_BASE_OF_OTHERS", times=2)
        job.lose("n1")
        job.run("init", restart("b"), "finalize")


def test_commands():
    """Commands find the alternative directories."""
    with Job(2, 2, SCR_FLUSH=0) as job:
        obstruct(job, ["n1", "n2"], make_folder)
        job.run("init", checkpoint("a"), checkpoint("b"))
        for what in ("control", "cache"):
            done = command(job, "scr_list_dir", what, SCR_NODE_NAME="n1", SCR_CACHE_BASE=bases(job, "n1")[1],
                           SCR_CNTL_BASE=bases(job, "n1")[0])
            assert f"/{DETOUR}/{USER}/scr.{JOB}" in done.out, done
        scavenge(job, 2)
        command(job, "scr_index", "--add", "b")
        is_committed(job, "b", 2)
        lose_all(job)
        next_run_reads(job, "b")


def test_both_names():
    """Both names are taken: the check of the node and the run detect it, and both name
    the obstacle."""
    with Job(2, 1) as job:
        obstruct(job, ["n2"], make_folder)
        obstruct(job, ["n2"], make_folder, name=DETOUR)
        run = job.run("init => CACHE")
        run.says("CACHE_NOT_LOCKED", f"/{DETOUR} belongs to user {SOMEBODY}, not to us", times=1)
        for base in bases(job, "n2"):
            done = command(job, "scr_check_node", "-c", base, "-a", base, code=1)
            assert f"private: {base}/{DETOUR} belongs to user {SOMEBODY}" in done.err, done
            shutil.rmtree(base / DETOUR)
            command(job, "scr_check_node", "-c", base, "-a", base)
            assert not (base / DETOUR).exists()
        job.run("init", checkpoint("a"), "finalize")


def test_a_link_of_ours():
    """The user's own link may be a mistake: no alternative directory is made."""
    with Job(2, 1) as job:
        obstruct(job, ["n1"], make_link, owner=os.geteuid())
        run = job.run("init => CACHE")
        run.says("CACHE_NOT_LOCKED", f"/cntl/{USER} is a symbolic link of user {os.geteuid()}, which is not followed; remove it", times=1)
        base = bases(job, "n1")[0]
        done = command(job, "scr_check_node", "-c", base, "-a", base, code=1)
        assert f"{base}/{USER} is a symbolic link" in done.err, done


def make_open_folder(path):
    path.mkdir()
    path.chmod(0o2770)


def test_a_file_of_ours():
    """A user who may write to one of the user's files or directories has given it one of
    the names."""
    for make in (make_file, make_open_folder):
        with Job(2, 1, SCR_FLUSH=0) as job:
            obstruct(job, ["n1"], make, name=DETOUR, owner=os.geteuid())
            job.run("init", checkpoint("a")).not_said("CACHE_BASE_OF_OTHERS|error")
            job.run("init", restart("a"))
            base = bases(job, "n1")[0]
            command(job, "scr_check_node", "-c", base, "-a", base)
    with Job(2, 1, SCR_FLUSH=0) as job:
        obstruct(job, ["n1"], make_file, owner=os.geteuid())
        job.run("init", checkpoint("a")).says("CACHE_BASE_OF_OTHERS", times=2)
        assert is_beside(job, "n1")


def test_no_sticky_bit():
    """Without it, others could rename the directories of the job, which is reported; with
    it, nothing is reported."""
    with Job(2, 1) as job:
        for node in job.nodes():
            for base in bases(job, node):
                base.mkdir(parents=True)
                base.chmod(0o777)
        run = job.run("init", checkpoint("a"), "finalize")
        run.says("CACHE_BASE_UNSAFE", times=2)
        base = bases(job, "n1")[0]
        done = command(job, "scr_check_node", "-c", base, "-a", base)
        assert messages(done.err, "CACHE_BASE_UNSAFE", "warning: ") and "PASS" in done.out, done
        for node in job.nodes():
            for base in bases(job, node):
                base.chmod(0o1777)
        job.run("init", restart("a"), "finalize").not_said("warning")
        base = bases(job, "n1")[0]
        os.chown(base, SOMEBODY, SOMEBODY)
        job.run("init", restart("a"), "finalize").said(f"warning: {base} belongs to another user, who may rename and remove", times=1)
        done = command(job, "scr_check_node", "-c", base, "-a", base)
        assert messages(done.err, "CACHE_BASE_UNSAFE", f"{base} belongs to another user") and "PASS" in done.out, done


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("needs root, who makes directories of another user")
        sys.exit(77)
    main(globals())
