#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""simulation.py SOURCE BUILD [WORLDS]: builds the simulator in BUILD and plays worlds.
First, the disks are compared with real ones, and some seeds are played twice with the
same system calls. The sources must have the texts that mutations.py changes. Counts of a
rank on 32 and 64 nodes must match the formulas in docs/scale.md. Of the states after a
loss of power, of lost nodes, and of the moments at which a process can be killed, a
sample is judged."""
import pathlib
import re
import shutil
import subprocess
import sys

import mutations
import scale as scale_tables

SKIP = 77
FOLDER = pathlib.Path(__file__).parent
OPTIONS = ["-Dsimulation=true", "-Dtests=false", "-Dmariadb=disabled", "-Dfortran=disabled", "-Db_lundef=false"]


def run(*command, good=(0,)):
    print(*command, flush=True)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode not in good:
        sys.exit(f"{done.stdout[-8000:]}\n{command[0]}: exit status {done.returncode}")
    return done.stdout


def last(text):
    return text.strip().splitlines()[-1]


def main(source, build, worlds="1000"):
    if not shutil.which("pkg-config") or subprocess.run(["pkg-config", "--exists", "simgrid"]).returncode != 0:
        print("SimGrid is not installed (Debian: libsimgrid-dev)")
        sys.exit(SKIP)
    mutations.check()
    build = pathlib.Path(build)
    if not (build / "build.ninja").exists():
        run("meson", "setup", build, source, *OPTIONS)
    targets = [f"tests/simulation/{name}" for name in ("simulate", "scale", "crash_states", "losses", "kills", "test_disk", "test_disk_crash")]
    run("ninja", "-C", build, *targets)
    simulate, scale, crash_states, losses, kills, test_disk, test_disk_crash = (build / target for target in targets)
    print(last(run(test_disk, "200", good=(0, SKIP)) or "test_disk is skipped: it needs root"))
    print(last(run(test_disk_crash, "20")))
    for seed in 5, 7, 41:
        traces = {re.search("trace ([0-9a-f]+)", last(run(simulate, "--seed", seed))).group(1) for _ in range(2)}
        if len(traces) != 1:
            sys.exit(f"seed {seed} is not the same twice: {traces}")
    print(last(run(simulate, "--seeds", FOLDER / "regressions.txt")))
    print(scale_tables.check(run(scale, 32, 64), (pathlib.Path(source) / "docs/scale.md").read_text()))
    print(last(run(crash_states, "--model", "weak", "--limit", 10)))
    print("losses:", last(run(losses, "--part", "77/4000")))
    print("kills:", last(run(kills, "--part", "7/300")))
    print(last(run(simulate, "--from", 0, "--to", worlds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
