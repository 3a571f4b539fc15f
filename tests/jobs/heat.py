#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The example heat in C, C++ and Fortran is killed and started again, and ends with the
result of an undisturbed run, to the last bit; the three programs have the same result."""
import array
import os
import re
import signal

from job import Job, Skip, descendants, main

POINTS, EVERY = 48, 20
DONE = re.compile(r"heat: step (\d+): checkpoint done")
RESTARTED = re.compile(r"heat: restarted from ckpt\.(\d+), at step (\d+)")
LIMIT = 60  # seconds per run
LAYOUTS = {1: [("n1", 1)], 4: [("n1", 2), ("n2", 2)]}


def arguments(language, steps, result=None):
    """Returns the program in that language, with its arguments."""
    name = {"C": "JOB_HEAT", "C++": "JOB_HEAT_CXX", "Fortran": "JOB_HEAT_FORTRAN"}[language]
    if name not in os.environ:
        raise Skip(f"no compiler for {language} here, or none that goes with MPI and the sanitizers")
    values = {"-n": POINTS, "-t": steps, "-c": EVERY, "-o": result}
    given = [(key, str(value)) for key, value in values.items() if value]
    return [os.environ[name]] + [word for pair in given for word in (pair if language == "C" else pair[1:])]


def finished(process):
    """Returns the output of the program, which must have ended successfully."""
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, f"exit code {process.returncode}\n{out}{err}"
    return out + err


def undisturbed(job, language, steps):
    result = job.root / "undisturbed"
    finished(job.start(*arguments(language, steps, result), SCR_ENABLE=0))
    return result.read_bytes()


def kill_one_rank(name):
    ranks = []
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                ranks += [pid] if file.read().strip() == name else []
        except OSError:
            pass  # it ended just now
    assert ranks, f"no process {name}"
    os.kill(max(ranks), signal.SIGKILL)


def run_and_kill(job, language):
    """Returns the step of the last checkpoint that the program reported before one of its
    ranks was killed."""
    program = arguments(language, 10 ** 8)  # it does not end by itself
    process = job.start(*program)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if len(lines) == 3:
            kill_one_rank(os.path.basename(program[0]))
    process.wait(LIMIT)
    told = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert process.returncode != 0, f"the end of a rank was not noticed\n{lines}{told}"
    steps = [int(found[1]) for found in map(DONE.match, lines) if found]
    assert len(steps) >= 3 and steps[0] == EVERY, f"{lines}{told}"
    return steps[-1]


def killed_and_restarted(language, ranks):
    with Job(layout=LAYOUTS[ranks], SCR_FLUSH=2) as job:
        last = run_and_kill(job, language)
        if ranks > 1:
            job.lose("n2")
        steps, result = last + 3 * EVERY, job.root / "result"
        out = finished(job.start(*arguments(language, steps, result)))
        found = RESTARTED.search(out)
        # another checkpoint may have been complete before it was reported
        assert found and found[1] == found[2] and last <= int(found[1]) <= last + EVERY, out
        assert result.read_bytes() == undisturbed(job, language, steps), "the results differ"


def test_c():
    for ranks in LAYOUTS:
        killed_and_restarted("C", ranks)


def test_cxx():
    for ranks in LAYOUTS:
        killed_and_restarted("C++", ranks)


def test_fortran():
    for ranks in LAYOUTS:
        killed_and_restarted("Fortran", ranks)


def test_same_result():
    """The result is the same in every language and with any number of ranks. Fortran's
    files have columns where those of C have rows."""
    steps = 50
    with Job(layout=LAYOUTS[1]) as job:
        wanted = undisturbed(job, "C", steps)
    assert len(wanted) == 8 * POINTS ** 2 and any(wanted)
    points = array.array("d", wanted)
    turned = array.array("d", [points[row * POINTS + column] for column in range(POINTS)
                               for row in range(POINTS)])
    for language in ("C", "C++", "Fortran"):
        with Job(layout=LAYOUTS[4]) as job:
            got = undisturbed(job, language, steps)
        assert got == (turned.tobytes() if language == "Fortran" else wanted), language


if __name__ == "__main__":
    main(globals())
