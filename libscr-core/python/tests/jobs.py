#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Python programs as whole jobs on simulated nodes: jobs.py RANKS [TEST]... See tests/jobs/job.py, ranks.py and names31.py."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.environ["TEST_JOBS"])
from job import Job, end_all, main  # noqa: E402

import scr  # noqa: E402

RANKS = int(sys.argv.pop(1))
PROGRAM = str(pathlib.Path(__file__).with_name("ranks.py"))
NAMES31 = str(pathlib.Path(__file__).with_name("names31.py"))
LIMIT = 100  # seconds per run


def job(**parameters):
    half = RANKS // 2
    layout = [("n1", RANKS - half), ("n2", half)] if half else [("n1", 1)]
    return Job(layout=layout, **{"SCR_FLUSH": 0, "SCR_LIBRARY": os.environ["SCR_LIBRARY"], **parameters})


def run(where, name, *arguments, program=PROGRAM, fails=False, **parameters):
    process = where.start(sys.executable, program, name, *arguments, **parameters)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        end_all()
        raise AssertionError(f"{name}: not done after {LIMIT} s: {process.communicate()}") from None
    assert (process.returncode != 0) == fails, f"{name}: exit code {process.returncode}\n{out}{err}"
    return out + err


def test_killed_and_restarted():
    with job(SCR_CHECKPOINT_INTERVAL=3) as j:
        assert "from 0\n" in run(j, "count", "100", "8", fails=True)
        if RANKS > 1:
            j.lose("n2")
        assert "from 6\n" in run(j, "count", "10", SCR_FLUSH=10)
        assert scr.index(j.prefix)[0].name == "ckpt.9" and scr.halt(j.prefix).reason == "SCR_FINALIZE_CALLED"
        assert "from 9\n" in run(j, "count", "10")


def test_example():
    example = pathlib.Path(os.environ["TEST_EXAMPLE"])
    with job() as j:
        for start in (0, 9):
            process = j.start(sys.executable, str(example), SCR_FLUSH=10)
            out, err = process.communicate(timeout=LIMIT)
            assert process.returncode == 0 and out == f"counting from {start}\n", out + err


def test_page():
    with job(SCR_RESTART_RANKS="any") as j:
        run(j, "page", str(pathlib.Path(__file__).resolve().parents[3] / "docs/python.md"))


def test_refused_by_one_rank():
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        assert [d.name for d in scr.index(j.prefix)] == ["plot.2", "ckpt.2", "ckpt.1"]
        run(j, "refuse")
        assert {d.name: d.valid for d in scr.index(j.prefix)} == {"plot.2": True, "ckpt.2": False, "ckpt.1": True}
        run(j, "refuse_all")
        assert [d.name for d in scr.index(j.prefix) if d.valid] == ["plot.2"]


def test_loop_of_attempts():
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        run(j, "loops")


def test_mistake_marks_nothing():
    """The program is killed, as intended, and its checkpoints stay valid."""
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        out = run(j, "mistake", fails=True)
        assert "NameError" in out, out
        found = {d.name: d for d in scr.index(j.prefix)}
        assert found["ckpt.2"].valid and found["ckpt.1"].valid and found["ckpt.2"].attempts == 1, found


def test_unwritten_by_one_rank():
    with job() as j:
        run(j, "unwritten")


def layouts():
    """Restarts with more, fewer and equally many ranks on the same nodes."""
    counts = ((RANKS + 1, 1), (1, 1), (RANKS - RANKS // 2, RANKS // 2))
    return [[("n1", first)] + ([("n2", second)] if RANKS > 1 else []) for first, second in counts]


def test_other_number_of_ranks():
    """Restarts from the cache, and from the prefix directory."""
    for flush in (0, 1):
        with job(SCR_RESTART_RANKS="any", SCR_FLUSH=flush) as j:
            run(j, "two")
            for layout in layouts():
                if flush:
                    j.lose(*j.nodes())
                run(j, "written_by", str(RANKS), layout=layout)


def test_parts_of_one_file():
    """Restarts with the same and another number of ranks: from the cache, after a loss, from the prefix directory, and without the cache."""
    with job(SCR_RESTART_RANKS="any") as j:
        run(j, "parts")
        if RANKS > 1:
            j.lose("n2")
        for layout in layouts():
            run(j, "read_parts", str(RANKS), layout=layout, SCR_FLUSH=1, SCR_CACHE_KEEP=1)
        assert sorted(path.name for path in (j.prefix / "ckpt.1/sub").iterdir()) == ["all"]
        j.lose(*j.nodes())
        for layout in layouts():
            run(j, "read_parts", str(RANKS), layout=layout)
    with job() as j:
        run(j, "parts", "bypass")


def test_files_of_one_rank():
    with job() as j:
        run(j, "two")
        run(j, "one_file")
        run(j, "no_list")


def test_lost_within_restart():
    if RANKS == 1:
        return  # a single rank fetches nothing
    with job(SCR_FLUSH=1) as j:
        run(j, "two")
        out = run(j, "lost", fails=True)
        assert "Error: SCR_Fetch_files: failure (SCR_FAILURE)" in out and "is refused" not in out, out
        assert {d.name: (d.valid, d.attempts) for d in scr.index(j.prefix) if d.checkpoint} == \
            {"ckpt.2": (True, 1), "ckpt.1": (True, 0)}


def test_states():
    with job() as j:
        run(j, "states", SCR_FLUSH=10)


def test_names_of_version_31():
    with job(SCR_FLUSH=None) as j:
        for number in ("0", "1", "2"):
            run(j, number, program=NAMES31)
        found = {d.name: d for d in scr.index(j.prefix)}
        assert sorted(found) == ["timestep_3", "timestep_4", "timestep_5"], found
        assert found["timestep_3"].current and found["timestep_4"].valid, found
        for step, there in ((1, True), (2, False)):  # dropped, deleted
            assert (j.prefix / f"ckpt_{step}_0.txt").exists() == there, step


def test_config():
    with job() as j:
        run(j, "config", SCR_FLUSH=None)


def test_disabled():
    with job() as j:
        run(j, "disabled", SCR_ENABLE=0)
        assert not (j.prefix / ".scr").exists()


def test_flush_fails():
    with job() as j:
        (j.prefix / "ckpt.1").write_text("in the way")
        run(j, "unflushed", SCR_FLUSH=1)


def test_one_rank_ends():
    """No rank waits for one that has ended."""
    for how, told in (("raise", "RuntimeError: the end of one rank"), ("exit", "")):
        with job() as j:
            out = run(j, "ends", how, fails=True)
            assert told in out and "nobody" not in out, out


def complaint(library):
    done = subprocess.run([sys.executable, "-c", "import scr; scr.init()"], capture_output=True, text=True,
                          env={**os.environ, "SCR_LIBRARY": library})
    assert done.returncode == 1 and "LibraryError" in done.stderr, done
    return done.stderr


def test_library_is_missing():
    assert "/no/libscr.so" in complaint("/no/libscr.so") and "set SCR_LIBRARY" in complaint("/no/libscr.so")
    assert "is no libscr" in complaint("libz.so.1")


if __name__ == "__main__":
    main(globals())
