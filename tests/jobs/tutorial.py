#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Follows docs/tutorial.md from top to bottom: the program is compiled, and each block is
run and prints the output in the page."""
import os
import pathlib
import re
import subprocess

from job import MPI, Job, Skip, main

TEXT = (pathlib.Path(__file__).resolve().parents[2] / "docs/tutorial.md").read_text()
STEP = re.compile(r"^<!-- run: ([\w ]+) -->\n\n```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.M | re.S)
STEPS = {name: (script, shown) for name, script, shown in STEP.findall(TEXT)}
PATHS = STEPS["paths"][0]
CHANGES = {"mpiexec ": f"{MPI.mpiexec} ", "--nodes 4 --ranks 8 ./pi": "--ranks 2 ./pi", "SCR_MIN_NODES=4": "SCR_MIN_NODES=1"}


def block(kind):
    return re.search(rf"^```{kind}\n(.*?)^```$", TEXT, re.M | re.S)[1]


def run(job, name):
    script, shown = STEPS[name]
    for old, new in CHANGES.items():
        script = script.replace(old, new)
    env = job.environment({})
    env.update(PATH=f"{os.environ['JOB_PATH']}:{os.environ['PATH']}", LD_PRELOAD=MPI.preload, TMPDIR=str(job.root),
               PKG_CONFIG_PATH=f"{os.environ['JOB_BUILD']}/meson-uninstalled")
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", PATHS + script], cwd=job.prefix, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=150, check=False)
    assert done.returncode == 0, f"{name}: exit code {done.returncode}\n{script}\n{done.stdout}"
    rest = done.stdout
    for line in shown.splitlines():  # in this order; times, the steps that were done by then, and the code of a killed rank differ
        wanted = re.sub(r"(after|step) [\d.]+ s|(step|exit code) [1-9]\d*", lambda found: re.sub(r"[\d.]+", r"[\\d.]+", found[0]), re.escape(line).replace("\\ ", " "))
        found = re.search(wanted, rest)
        assert found, f"{name}: nothing matches {wanted!r}\n{done.stdout}"
        rest = rest[found.end():]
    return done.stdout


def step_of(out):
    """Returns the step at which the last run began."""
    return int(re.findall(r"from step (\d+)", out)[-1])


def test_tutorial():
    if "JOB_NOMEM" not in os.environ:
        raise Skip("a program without the sanitizers cannot use libraries with them")
    with Job(nodes=1, per_node=1, SCR_JOB_ID=None) as job:
        (job.prefix / "pi.c").write_text(block("c"))
        (job.prefix / "scr.yaml").write_text(block("yaml"))
        run(job, "first run")
        assert sorted(path.name for path in job.prefix.glob("ckpt.*")) == ["ckpt.100", "ckpt.200"]
        run(job, "begin again")
        assert step_of(run(job, "killed rank")) >= 10
        run(job, "begin again")
        assert 10 < step_of(run(job, "lost node")) <= 50
        run(job, "begin again")
        assert 10 < step_of(run(job, "fewer ranks")) <= 50
        out = run(job, "look")
        assert "newest that is flushed: ckpt.200" in out and re.search(r"nodes lost +1$", out, re.M), out
        run(job, "begin again")
        out = run(job, "slurm")
        assert "pi: after 200 steps: 3.141592654" in out, out


def test_each_block_has_a_step():
    own = pathlib.Path(__file__).read_text()
    assert len(STEPS) == TEXT.count("```sh") - TEXT.count("<!-- run: begin again -->") + 1, list(STEPS)
    assert all(f'"{name}"' in own for name in STEPS), list(STEPS)


if __name__ == "__main__":
    main(globals())
