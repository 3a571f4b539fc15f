#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands in docs/howto.md work: each of its blocks is run here, with smaller
numbers."""
import os
import pathlib
import re
import subprocess

from job import MPI, Job, checkpoint, main

TEXT = (pathlib.Path(__file__).resolve().parents[2] / "docs/howto.md").read_text()
BLOCKS = dict(re.findall(r"^<!-- run: ([\w ]+) -->\n\n```sh\n(.*?)^```$", TEXT, re.M | re.S))
HEAT = {"./heat_elastic": os.environ["JOB_HEAT_ELASTIC"], "./heat ": os.environ["JOB_HEAT"] + " -n 48 "}
SMALL = {"--nodes 8 --ranks 512": "--ranks 2", "./simulation input": os.environ["JOB_HEAT"] + " -n 48 -t 40 -c 20"}


def type_in(job, name, changes={}, **parameters):
    """Runs a block in the prefix directory as a user would; returns the output."""
    script = BLOCKS[name]
    for old, new in {**HEAT, **changes}.items():
        script = script.replace(old, new)
    env = job.environment(parameters)
    env.update(PATH=f"{os.environ['JOB_PATH']}:{os.environ['PATH']}", LD_PRELOAD=MPI.preload, TMPDIR=str(job.root))
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=job.prefix, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
    assert done.returncode == 0, f"{name}: exit code {done.returncode}\n{script}\n{done.stdout}"
    return done.stdout


def alone():
    """A job of this machine alone, with directories and names like those of simulated
    nodes."""
    return Job(nodes=1, per_node=1, SCR_JOB_ID=None)


def test_fewer_nodes():
    with alone() as job:
        out = type_in(job, "fewer nodes")
        assert re.search(r"run 2: begins on node\[1-2,4\], 6 ranks", out), out
        assert "the program is done" in out, out


def test_two_losses():
    with alone() as job:
        out = type_in(job, "two losses")
        assert re.search(r"run 2: begins on node\[1,4-6\], 8 ranks", out), out
        assert "restarted from" in out and "the program is done" in out, out


def test_interval():
    with alone() as job:
        seconds = float(re.search(r"[\d.]+", type_in(job, "interval"))[0])
        assert 600 < seconds < 720, seconds


def test_save():
    with Job(nodes=1, per_node=2, SCR_FLUSH=0) as job:
        job.run("init", checkpoint("c1"), "kill@0", dies=True)
        own = {"SCR_NODE_NAME": "n1", "SCR_NODELIST": "n1", "SCR_CACHE_BASE": job.node("n1") / "cache",
               "SCR_CNTL_BASE": job.node("n1") / "cntl"}
        assert "c1" in type_in(job, "save", **own)
        job.lose("n1")
        job.run("init", "have => 1 c1")


def test_older():
    with Job(nodes=1, per_node=1, SCR_FLUSH=1) as job:
        job.run("init", checkpoint("ckpt.20"), checkpoint("ckpt.40"), "finalize")
        type_in(job, "older")
        job.run("init", "have => 1 ckpt.20")


def test_look():
    with Job(nodes=1, per_node=2, SCR_FLUSH=1, SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0) as job:
        job.run("init", checkpoint("ckpt.20"), "finalize")
        assert "ckpt.20" in type_in(job, "look")
        assert "<svg" in (job.prefix / "report.html").read_text()


def test_batch_scripts():
    """Without their batch systems the scripts run on this machine."""
    for name in ("slurm", "flux", "pbs", "lsf"):
        with alone() as job:
            out = type_in(job, name, {**SMALL, "SCR_MIN_NODES=8": "SCR_MIN_NODES=1", '"$PBS_O_WORKDIR"': "."})
            assert "the program is done" in out, out


def test_containers():
    with alone() as job:
        type_in(job, "containers")
        assert len([path for path in (job.prefix / "ckpt.20").rglob("*") if path.name.startswith("ctr.")]) == 2
        assert len([path for path in (job.prefix / "files").rglob("*") if path.is_file()]) == 4


def test_each_block_has_a_test():
    own = pathlib.Path(__file__).read_text()
    assert len(BLOCKS) == TEXT.count("```sh") and all(f'"{name}"' in own for name in BLOCKS), list(BLOCKS)


if __name__ == "__main__":
    main(globals())
