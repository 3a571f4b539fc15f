#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""simulation.py SOURCE BUILD [WORLDS]: builds the simulator in BUILD and plays worlds. The disks are compared with real ones first,
and some seeds are played twice: all of their system calls must be the same. On 64 nodes a rank may do little
more than on 8. Of the states that a loss of power may leave,
of lost nodes, and of the moments at which a process can be killed, a part is judged."""
import pathlib
import re
import shutil
import subprocess
import sys

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


def check_scale(table):
    """Collective calls are the same on 8 and on 64 nodes; messages and system calls of the busiest rank grow by a fifth at most."""
    rows = {}
    for line in table.splitlines()[2:]:
        nodes, step, *figures = (cell.strip() for cell in line.strip("| ").split("|"))
        collectives, _, messages, _, _, calls, _ = map(float, figures)
        rows.setdefault(step, {})[int(nodes)] = collectives, messages, calls
    for step, of in rows.items():
        (collectives, messages, calls), (collectives_64, messages_64, calls_64) = of[8], of[64]
        if collectives_64 != collectives or messages_64 > 1.2 * messages + 1 or calls_64 > 1.2 * calls:
            sys.exit(f"{table}\n{step}: more on 64 nodes than on 8")
    return f"scale: {len(rows)} steps cost a rank of 64 nodes what they cost one of 8"


def main(source, build, worlds="1000"):
    if not shutil.which("pkg-config") or subprocess.run(["pkg-config", "--exists", "simgrid"]).returncode != 0:
        print("SimGrid is not installed (Debian: libsimgrid-dev)")
        sys.exit(SKIP)
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
    print(check_scale(run(scale, 8, 64)))
    print(last(run(crash_states, "--model", "weak", "--limit", 10)))
    print("losses:", last(run(losses, "--part", "77/4000")))
    print("kills:", last(run(kills, "--part", "7/300")))
    print(last(run(simulate, "--from", 0, "--to", worlds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
