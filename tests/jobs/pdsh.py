#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands that reach nodes by pdsh: nodes whose copy fails, that hang, or do not exist.
pdsh is the real one; ssh below it is a script that knows simulated nodes. Skipped if pdsh
(Debian: pdsh) is not installed."""
import os
import pathlib
import shutil
import signal
import subprocess

from job import Job, Skip, checkpoint, main, messages, nothing_is_left, wait_until
from scavenged import TOOLS, cached, command, is_committed, next_run_reads, saved
import damage

# "ssh -oConnectTimeout=10 -2 -a -x NODE LINE". A hanging node has a file "hung" with the
# command that hangs.
SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
node=$NODES/$1 line=$2
[ -d "$node" ] || { echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255; }
export SCR_NODE_NAME=$1 SCR_CACHE_BASE=$node/cache SCR_CNTL_BASE=$node/cntl
echo "Warning: Permanently added '$1' to the list of known hosts." >&2
hung=$(cat "$node/hung" 2>/dev/null)
case $line in *"${hung:-nothing}"*) echo $$ >>"$NODES/hanging"; trap "" TERM INT; while :; do sleep 1; done;; esac
exec sh -c "$line"
"""


def reach(job, **how):
    """Parameters for commands that reach the nodes of the job by pdsh."""
    if not shutil.which("pdsh"):
        raise Skip("pdsh is not installed")
    folder = job.root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    return {"SCR_REMOTE": "pdsh", "PDSH_RCMD_TYPE": "ssh", "PATH": f"{folder}:{os.environ['PATH']}", "NODES": job.root / "nodes",
            "SCR_NODE_NAME": "login", "SCR_NODELIST": "n[1-4]", **how}


def hangs(job, node, at):
    (job.node(node) / "hung").write_text(at)


def is_gone(pid):
    try:
        return "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def expect_gone(job):
    """Processes that pdsh starts in their own sessions are ended with it, too. Killed
    processes need a moment."""
    for pid in (job.root / "nodes/hanging").read_text().split():
        wait_until(lambda pid=pid: is_gone(pid))


def test_all():
    with cached("XOR") as job:
        done = command(job, "scr_postrun", **reach(job))
        assert "b: added; the next run begins with it" in done.out and not done.err, done
        assert done.out.count("round 1, ") == 4, done
        is_committed(job, "b", 3)
        next_run_reads(job, "b", size=5000)


def test_failures():
    """A copy fails on one node and hangs on another: both are reported and rebuilt."""
    with cached("RS") as job:
        path = next(job.cache("n2").glob("scr.dataset.3/b/rank_*"))
        damage.flip(path)
        hangs(job, "n4", "scr_copy")
        done = command(job, "scr_scavenge", "--id", 3, "--up", "n[1-4]", "--timeout", 20, **reach(job))
        assert messages(done.err, "NODE_REPORT", "node n2: pdsh: exit code 1: ", " 1 rank", r"\[CACHE_COPY_FAILED\]"), done
        assert "node n4: pdsh: " in done.err and "node n1" not in done.err and "node n3" not in done.err, done
        assert "Permanently" not in done.out and " of 8 ranks are missing" in done.out, done
        expect_gone(job)
        command(job, "scr_index", "--add", "b")
        is_committed(job, "b", 3)
        next_run_reads(job, "b", size=5000)


def test_node_is_not_there():
    """ssh does not reach the node: it is not asked again, and its files are rebuilt."""
    with cached("XOR") as job:
        job.lose("n2")
        done = command(job, "scr_scavenge", "--id", 3, "--up", "n[1-4]", **reach(job))
        assert "node n2: pdsh: exit code 255" in done.err and "No route to host" in done.err, done
        assert "round 1, 3 of 3: " in done.out and "2 of 8 ranks are missing" in done.out, done
        command(job, "scr_index", "--add", "b")
        is_committed(job, "b", 3)
        next_run_reads(job, "b", size=5000)


def test_down_nodes():
    """Output of scr_list_down_nodes for nodes that do not exist, hang, or are bad."""
    with Job(nodes=4, per_node=1) as job:
        for node in ("n1", "n3", "n4"):
            job.node(node).mkdir(parents=True)
        (job.node("n3") / "cache").symlink_to("/proc/self")
        hangs(job, "n4", "scr_check_node")
        done = command(job, "scr_list_down_nodes", "--reason", code=1, SCR_NODE_TIMEOUT=20, **reach(job))
        lines = {line.split(":")[0]: line for line in done.out.splitlines()}
        assert sorted(lines) == ["n2", "n3", "n4"] and "No route to host" in lines["n2"] and "no answer: " in lines["n4"], done
        assert "n3/cache: a new file" in lines["n3"], done
        expect_gone(job)


def test_interrupted():
    """Ctrl-C while nodes copy: nothing continues, nothing incomplete looks complete, and
    the next scr_postrun saves everything."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with cached("XOR") as job:
            hangs(job, "n3", "scr_copy")
            env = job.environment({})
            env.update({name: str(value) for name, value in reach(job).items()})
            process = subprocess.Popen([TOOLS / "scr_scavenge", "--id", "3", "--up", "n[1-4]"], cwd=job.prefix, env=env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            wait_until((job.root / "nodes/hanging").exists)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            assert process.returncode == -number, (process.returncode, out)
            expect_gone(job)
            wait_until(nothing_is_left)
            assert not (job.prefix / "b/rank_4").exists() and not list(saved(job, "b", 3).glob(".scr/[45].scrfilemap")), out
            (job.node("n3") / "hung").unlink()
            command(job, "scr_postrun", **reach(job))
            is_committed(job, "b", 3)
            next_run_reads(job, "b", size=5000)


if __name__ == "__main__":
    main(globals())
