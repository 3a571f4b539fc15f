#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters: where their values come from, what is a mistake, and when a checkpoint is advised."""
from job import Job, checkpoint, main

PAIR = {"nodes": 2, "per_node": 1, "SCR_FLUSH": 0}

MISTAKES = """\
SCR_CACHE_SIZ: 3
SCR_FLUSH: 1
SCR_FLUSH: 2
SCR_SET_SIZE: [8, 9]
  # a comment
SCR_JOB_NAME: $NO_SUCH_VARIABLE
SCR_DEBUG: many
SCR_CHECKPOINT_SECONDS: 10 parsecs
SCR_COPY_TYPE: ZOR
"""


def write(job, text, name="scr.yaml"):
    (job.prefix / name).write_text(text)


# ---- files ----

def test_all_mistakes_at_once():
    """Each with file, line and column; a value that cannot be, with the place where it was set."""
    with Job(**PAIR) as job:
        del job.parameters["SCR_FLUSH"]
        write(job, MISTAKES)
        run = job.run("init => CONFIG", "have => STATE 0", SCR_DEBUG=None)
        run.said(r'scr.yaml:1:1: unknown parameter "SCR_CACHE_SIZ"; did you mean SCR_CACHE_SIZE\?', times=1)
        run.said(r'scr.yaml:3:1: given twice: "SCR_FLUSH"', times=1)
        run.said(r'scr.yaml:4:15: one value was expected for "SCR_SET_SIZE"', times=1)
        run.said(r'scr.yaml:6:15: no such environment variable: "NO_SUCH_VARIABLE"', times=1)
        run.said(r'SCR_DEBUG="many" \(.*scr.yaml:7:12\)', times=1)
        run.said(r'SCR_CHECKPOINT_SECONDS="10 parsecs" \(.*scr.yaml:8:25\)', times=1)
        run.said(r'SCR_COPY_TYPE="ZOR" \(.*scr.yaml:9:16\): must be SINGLE, PARTNER, XOR or RS', times=1)
        run.said("^SCR: error: ", times=7 + 2)  # and one for SCR_Have_restart, one for them all
        assert not (job.root / "nodes").exists()


def test_no_yaml():
    for text, place in (("SCR_FLUSH: 'never ends\n", ":2:1: "), ("SCR_FLUSH: 1\n SCR_DEBUG: 0\n", ":2:"),
                        ("- a\n- b\n", ":1:1: "), ("just text\n", ":1:1: "), ("\0\1\2", ":")):
        with Job(**PAIR) as job:
            write(job, text)
            run = job.run("init => CONFIG")
            run.said(f"error: .*scr.yaml{place}", times=1)


def test_good_file():
    with Job(**PAIR) as job:
        write(job, "# nothing but a comment\n")
        job.run("init", "config:SCR_CACHE_SIZE => 1 =2")
        write(job, "SCR_CACHE_SIZE: 3\nSCR_JOB_NAME: \"$SOMEBODY's ${SOMETHING}_$\"\n")
        run = job.run("init", "config:SCR_CACHE_SIZE => 1 =3", "config:SCR_JOB_NAME",
                      [checkpoint(f"c{number}") for number in range(4)], SOMEBODY="Ann", SOMETHING="run")
        assert job.cached() == [2, 3, 4], job.cached()
        assert run.ops[2]["text"] == ["Ann's run_$"] * 2, run


def test_another_file():
    with Job(**PAIR) as job:
        write(job, "SCR_CACHE_SIZE: 3\n")
        write(job, "SCR_CACHE_SIZE: 4\n", "other.yaml")
        job.run("init", "config:SCR_CACHE_SIZE => 1 =4", SCR_CONF_FILE=job.prefix / "other.yaml")
        run = job.run("init => CONFIG", SCR_CONF_FILE=job.prefix / "no.yaml")
        run.said("error: SCR_CONF_FILE=.*no.yaml: no such file", times=1)


# ---- layers ----

def test_order():
    """The environment, then the file, then the application, then the default."""
    script = ["config:SCR_CACHE_SIZE=5", "config:SCR_SET_SIZE=5", "config:SCR_JOB_NAME=set", "init",
              "config:SCR_CACHE_SIZE", "config:SCR_SET_SIZE", "config:SCR_JOB_NAME",
              "config:SCR_FETCH => 1 =1"]
    with Job(**PAIR) as job:
        write(job, "SCR_CACHE_SIZE: 4\nSCR_SET_SIZE: 4\n")
        run = job.run(script, SCR_CACHE_SIZE=3)
        assert [op["text"][0] for op in run.ops[4:7]] == ["3", "4", "set"], run
        run = job.run(script, SCR_CACHE_SIZE="")  # an empty variable is none
        assert [op["text"][0] for op in run.ops[4:7]] == ["4", "4", "set"], run


def test_rank_0_counts():
    """Values that are for the whole job are those of rank 0; folders are those of the node."""
    with Job(**PAIR) as job:
        of_node = {"n1": {"SCR_CACHE_SIZE": 3}, "n2": {"SCR_CACHE_SIZE": 1}}
        job.run("init", "config:SCR_CACHE_SIZE => 1 =3", [checkpoint(f"c{i}") for i in range(4)],
                of_node=of_node)
        assert job.cached("n1") == job.cached("n2") == [2, 3, 4]


def test_environment_mistakes():
    for name, value, text in (("SCR_CACHE_SIZE", "abc", "not a whole number"),
                              ("SCR_CACHE_SIZE", "0", "must be at least 1"),
                              ("SCR_SET_SIZE", "1", "must be at least 2"),
                              ("SCR_FLUSH", "-1", "must be at least 0"),
                              ("SCR_FETCH", "yes", "not a whole number"),
                              ("SCR_FETCH", "2", "neither 0 nor 1"),
                              ("SCR_CHECKPOINT_OVERHEAD", "ten", "not a number"),
                              ("SCR_CHECKPOINT_INTERVAL", "1e3", "not a whole number"),
                              ("SCR_CHECKPOINT_INTERVAL", "-1", "must be at least 0"),
                              ("SCR_CACHE_SIZE", "99999999999", "not a whole number"),
                              ("SCR_GROUP", "RACK", "must be NODE or WORLD"),
                              ("SCR_COPY_TYPE", "", None)):
        with Job(**PAIR) as job:
            if text is None:
                job.run("init", **{name: value})
                continue
            run = job.run("init => CONFIG", **{name: value})
            run.said(rf"error: {name}=.*{value}.* \(the environment\): {text}", times=1)
            run.said("error: ", times=2)  # this one, and that the configuration has mistakes


def test_identity_mistakes():
    """Names that become parts of paths."""
    for name, value in (("SCR_JOB_ID", "a/b"), ("SCR_JOB_ID", "a\nb"), ("SCR_USER_NAME", "../../x"),
                        ("SCR_JOB_ID", "x" * 200), ("SCR_USER_NAME", "x" * 200)):
        with Job(**PAIR) as job:
            run = job.run("init => CONFIG", **{name: value})
            run.said("error: ", times=1)
    with Job(**PAIR) as job:
        run = job.run("init => CACHE", of_node={"n2": {"SCR_NODE_NAME": "a/b"}})
        run.said("error: .*SCR_NODE_NAME=a/b has a slash", times=1)


def test_only_warnings():
    with Job(**PAIR) as job:
        run = job.run("init", SCR_CACHE_SIZ=3, SCR_HALT_EXIT=1)
        run.said("warning: unknown variable SCR_CACHE_SIZ in the environment; did you mean SCR_CACHE_SIZE",
                 times=1)
        run.said(r"warning: SCR_HALT_EXIT=1 \(the environment\) has no effect", times=1)


# ---- advice ----

def test_interval():
    with Job(**PAIR, SCR_CHECKPOINT_INTERVAL=3) as job:
        job.run("init", "need => 0", "need => 0", "need => 1", checkpoint("a"), "need => 0", "need => 0",
                "need => 1", "need => 1", checkpoint("bad", valid="0", code="INVALID"), "need => 0",
                checkpoint("out", flags="o"), "need => 0", "need => 1")


def test_no_advice():
    with Job(**PAIR) as job:
        job.run("init", ["need => 0"] * 5, checkpoint("a"), ["need => 0"] * 5)


def test_seconds():
    with Job(**PAIR) as job:
        job.run("init", "need => 0", SCR_CHECKPOINT_SECONDS="1h")
        job.run("init", "sleep:1100", "need => 1", checkpoint("a"), "need => 0", SCR_CHECKPOINT_SECONDS=1)


def test_overhead():
    """The first checkpoint tells what one costs; after that they are rare."""
    with Job(**PAIR) as job:
        job.run("init", "need => 1", checkpoint("a"), "need => 0", SCR_CHECKPOINT_OVERHEAD="0.0001")
        job.run("init", "need => 1", checkpoint("b"), "need => 1", SCR_CHECKPOINT_OVERHEAD=100)


if __name__ == "__main__":
    main(globals())
