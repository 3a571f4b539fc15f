#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_params --check refuses every value that SCR_Init refuses, with the same text."""
import json
import os
import pathlib
import re
import subprocess

from job import Job, main

# Sets of values for parameters of each type, each used in a run; most are wrong, some
# only for some parameters.
SETS = [{"switch": "maybe", "whole": "x", "auto": "often", "bytes": "much", "time": "soon", "decimal": "x", "text": "swallow"},
        {"switch": "2", "whole": "-7", "auto": "-1", "bytes": "-1", "time": "-1", "decimal": "-5", "text": "BBAPI"},
        {"whole": "0", "auto": "0", "bytes": "0", "time": "0", "decimal": "0", "text": "KILL"},
        {"whole": "99999999999", "auto": "99999999999", "bytes": "1", "decimal": "1e400", "text": "x:y"},
        {"bytes": "2GB"}, {"bytes": "9223372036854775808"}, {"bytes": "99999999999999999999"}]
# Values for places, users and nodes, and for parameters that are read before files.
NOT = {"SCR_PREFIX", "SCR_CNTL_BASE", "SCR_CACHE_BASE", "SCR_CONF_FILE", "SCR_ENABLE", "SCR_NODE_NAME", "SCR_JOB_ID", "SCR_USER_NAME",
       "SCR_CURRENT", "SCR_DEBUG", "SCR_LOCKED"}


def parameters():
    done = command("--json")
    return {row["name"]: row["type"] for row in map(json.loads, done.stdout.splitlines())}


def command(*arguments, **env):
    tools = pathlib.Path(os.environ["JOB_TOOLS"])
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SCR_")}
    return subprocess.run([tools / "scr_params", *arguments], env={**clean, **{key: str(value) for key, value in env.items()}},
                          capture_output=True, text=True)


def kind_of(name):
    """The word of SETS for a type that scr_params prints."""
    known = {"number": "whole", "number or auto": "auto", "scheme": "text"}
    return known.get(name, name)


def refused(text):
    return {found[1]: found[0] for found in re.findall(r"((\b(?:SCR_\w+|STORE=\S+ \w+|CKPT=\S+ \w+))=.*?)(?: \[\w+\])?$", text, re.MULTILINE)}


def compare(job, **values):
    run = job.run("init => ANY", **values)
    known = {key: value for key, value in job.environment(values).items() if key.startswith("SCR_")}
    checked = command("--check", **known)
    here, there = refused(run.err), refused(checked.stderr)
    missing = {name: text for name, text in here.items() if name not in there}
    assert not missing, f"scr_params --check says nothing of {missing}"
    other = {name: (text, there[name]) for name, text in here.items() if there[name] != text}
    assert not other, other
    is_config = run.first("init")["code"] == [5]
    assert checked.returncode == 1 or not is_config, f"{run}{checked}"
    return set(here)


def test_parameters():
    types, seen = parameters(), set()
    with Job(nodes=1, per_node=1) as job:
        for values in SETS:
            seen |= compare(job, **{name: values[kind_of(kind)] for name, kind in types.items()
                                    if name not in NOT and kind_of(kind) in values})
    assert len(seen) > 30, seen
    assert seen >= {"SCR_FLUSH_TYPE", "SCR_HALT_SIGNALS", "SCR_CONTAINER_SIZE", "SCR_MPI_BUF_SIZE", "SCR_FLUSH_WIDTH"}, seen


def test_stores():
    """Copy methods that this build does not have."""
    with Job(nodes=1, per_node=1) as job:
        for kind in ("BBAPI", "swallow"):
            (job.prefix / "scr.yaml").write_text(f"SCR_COPY_TYPE: FILE\nSTORE:\n  - STORE: {job.root}/s\n    TYPE: {kind}\n"
                                                 f"CKPT:\n  - CKPT: 0\n    STORE: {job.root}/s\n    TYPE: SINGLE\n")
            assert compare(job) == {f"STORE={job.root}/s TYPE"}


if __name__ == "__main__":
    main(globals())
