#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other content of the documents that no other test runs: a session of scr_run in the
guide, configurations, and scripts for administrators."""
import os
import pathlib
import re
import subprocess

from job import MPI, Job, main

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def blocks(page, kind):
    return [text for is_of, text in re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S) if is_of == kind]


def block(page, kind, words):
    """Returns the block with these words."""
    found, = (text for text in blocks(page, kind) if words in text)
    return found


def shell(job, script, code=0, cwd=None, **environment):
    env = job.environment({})
    env.update(PATH=f"{job.root}:{os.environ['JOB_PATH']}:{os.environ['PATH']}", LD_PRELOAD=MPI.preload, TMPDIR=str(job.root), **environment)
    done = subprocess.run(["bash", "-e", "-c", script], cwd=cwd or job.prefix, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
    assert done.returncode == code, f"exit code {done.returncode}\n{script}\n{done.stdout}"
    return done.stdout


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def test_session():
    """The lines of the session appear in this order. Times, steps and the code of a
    killed rank differ, and an MPI may continue without it until scr_run ends the run."""
    command, *shown = block("guide.md", "", "$ scr_run --simulate").splitlines()
    with Job(nodes=1, per_node=1, SCR_JOB_ID=None) as job:
        out = rest = shell(job, command.removeprefix("$ ").replace("./heat", os.environ["JOB_HEAT"] + " -n 48"))
        for line in shown:
            if line == "...":
                continue
            wanted = re.sub(r"(after )\d+\\\.\d|((?:step |code |ckpt\\\.))[1-9]\d*", lambda found: (found[1] or found[2]) + r"[\d.]+",
                            re.escape(line).replace("\\ ", " ")).replace("it failed", "(it failed|it was ended: down: node3)")
            found = re.search(wanted, rest)
            assert found, f"nothing matches {wanted!r}\n{out}"
            rest = rest[found.end():]


def test_configurations():
    texts = blocks("guide.md", "yaml") + blocks("migration.md", "yaml")
    assert len(texts) == 2
    with Job(nodes=1, per_node=1) as job:
        for text in texts:
            (job.prefix / "scr.yaml").write_text(text)
            assert shell(job, "env -i PATH=$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH scr_params --check") == ""


def test_test_of_a_node():
    script = block("administration.md", "sh", "MemTotal")
    with Job(nodes=1, per_node=1) as job:
        tests = job.root / "tests"
        tests.mkdir()
        commands = block("administration.md", "", "scr_check_node --tests").replace("/etc/scr/tests", str(tests)).splitlines()
        for least, code in ("1", 0), ("999999999", 1):
            program(tests / "10-memory", script.replace("250", least))
            out = shell(job, commands[0], code=code)
            assert (re.search(r"10-memory: only \d+ GiB of memory", out) is not None) == bool(code), out
        shell(job, commands[1], SCR_NODELIST=os.uname().nodename)


def test_epilog():
    """Caches of another job and of another user stay."""
    with Job(nodes=1, per_node=1) as job:
        program(job.root / "runuser", '#!/bin/sh\n[ "$1 $2 $3" = "-u ann --" ] || exit 9\nshift 3\nexec "$@"\n')
        leaves = [job.root / name for name in ("ssd/ann/scr.7/cache", "shm/ann/scr.7", "shm/ann.50/ann/scr.7")]
        stays = [job.root / name for name in ("ssd/ann/scr.8", "ssd/bob/scr.7", "shm/ann.50/ann/scr.77")]
        for folder in leaves + stays:
            folder.mkdir(parents=True)
        script = block("administration.md", "sh", "runuser").replace("/ssd /dev/shm", f"{job.root}/ssd {job.root}/shm")
        shell(job, script, SLURM_JOB_USER="ann", SLURM_JOB_UID="50", SLURM_JOB_ID="7")
        assert not any(folder.exists() for folder in leaves) and all(folder.exists() for folder in stays)


if __name__ == "__main__":
    main(globals())
