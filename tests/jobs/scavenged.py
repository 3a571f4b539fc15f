# SPDX-License-Identifier: BSD-3-Clause
"""For tests of scavenging: jobs that have ended, and the commands that save their
caches."""
import os
import pathlib
import subprocess

from job import Job, checkpoint, restart
import tree

TOOLS = pathlib.Path(os.environ["JOB_TOOLS"])


class Done:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __str__(self):
        return f"exit code {self.code}\n{self.out}{self.err}"


def command(job, name, *arguments, code=0, node=None, faults={}, preload="JOB_FAULTS", **parameters):
    """Runs a command, maybe on a node."""
    own = {} if not node else {"SCR_NODE_NAME": node, "SCR_CACHE_BASE": job.node(node) / "cache",
                               "SCR_CNTL_BASE": job.node(node) / "cntl"}
    env = job.environment({**own, **parameters, **faults})
    if faults:
        env["LD_PRELOAD"] = os.environ[preload]
    done = Done(subprocess.run([TOOLS / name, *map(str, arguments)], cwd=job.prefix, env=env, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, errors="replace", timeout=240, **job.identity))
    assert code is None or done.code == code, (name, arguments, str(done))
    return done


def begin(job, name, *arguments):
    """Starts a command without waiting for it."""
    return subprocess.Popen([TOOLS / name, *map(str, arguments)], cwd=job.prefix, env=job.environment({}),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def copy(job, number, *arguments, nodes=None, code=0, **how):
    for node in nodes or job.nodes():
        done = command(job, "scr_copy", "--id", number, *arguments, node=node, code=code, **how)
    return done


def lose_all(job):
    job.lose(*[node for node in job.nodes() if job.node(node).exists()])


def index(job):
    return tree.read(job.prefix / ".scr/index.scr")


def entry(job, name, number):
    return index(job)["DSET"][str(number)]["DIR"][name]


def saved(job, name, number):
    """Returns the directory of the saved files, if there is one."""
    return next((job.prefix / name / ".scr").glob(f"scavenge.{number}.*"), job.prefix / "nowhere")


def is_committed(job, name, number):
    """Checks that the dataset looks as after a flush."""
    folder = job.prefix / name / ".scr"
    assert sorted(path.name for path in folder.iterdir()) == ["rank2file.0.0.scr", "rank2file.scr", "summary.scr"], \
        list(folder.iterdir())
    e = entry(job, name, number)
    assert tree.only(e["COMPLETE"]) == "1" and "REASON" not in e and "FLUSHED" in e, e


def next_run_reads(job, name, size=1000):
    """The next run reads the dataset after the loss of all caches."""
    lose_all(job)
    run = job.run("init", restart(name, size), "finalize")
    run.says("FETCH_COMPLETE", name)


SCHEMES = {"PARTNER": {}, "XOR": {"SCR_SET_SIZE": 4}, "RS": {"SCR_SET_SIZE": 4, "SCR_SET_FAILURES": 2}}


def scavenge(job, number, *arguments, code=0, **how):
    """Runs scr_scavenge on the nodes of the job; a name may be that of a lost node."""
    return command(job, "scr_scavenge", "--id", number, "--up", ",".join(job.nodes()), *arguments, code=code,
                   SCR_SIMULATE=job.root / "nodes", **how)


def cached(scheme="XOR", **how):
    """A job that has ended with dataset "a" on the prefix directory, and "b" only in the
    cache."""
    how = {"nodes": 4, "per_node": 2, "SCR_COPY_TYPE": scheme, "SCR_FLUSH": 2, **SCHEMES.get(scheme, {}), **how}
    job = Job(**how)
    job.run("init", checkpoint("x"), checkpoint("a"), checkpoint("b", size=5000))
    assert tree.only(entry(job, "a", 2)["COMPLETE"]) == "1" and not (job.prefix / "b").exists()
    return job
