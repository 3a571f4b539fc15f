#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Parameters: the sources of their values, mistakes, and when a checkpoint is advised."""
import os
import pwd

from job import Job, checkpoint, main, restart

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
    """Each mistake is reported with file, line and column; an impossible value, with the
    place where it was set."""
    with Job(**PAIR) as job:
        del job.parameters["SCR_FLUSH"]
        write(job, MISTAKES)
        run = job.run("init => CONFIG", "have => STATE 0", SCR_DEBUG=None)
        run.says("CONFIG_MISTAKE", r'scr.yaml:1:1: unknown parameter "SCR_CACHE_SIZ"; did you mean SCR_CACHE_SIZE\?', times=1)
        run.says("CONFIG_MISTAKE", 'scr.yaml:3:1: given twice: "SCR_FLUSH"', times=1)
        run.says("CONFIG_MISTAKE", 'scr.yaml:4:15: one value was expected for "SCR_SET_SIZE"', times=1)
        run.says("CONFIG_MISTAKE", 'scr.yaml:6:15: no such environment variable: "NO_SUCH_VARIABLE"', times=1)
        run.says("CONFIG_MISTAKE", r'SCR_DEBUG="many" \(.*scr.yaml:7:12\)', times=1)
        run.says("CONFIG_MISTAKE", r'SCR_CHECKPOINT_SECONDS="10 parsecs" \(.*scr.yaml:8:25\)', times=1)
        run.says("CONFIG_MISTAKE", r'SCR_COPY_TYPE="ZOR" \(.*scr.yaml:9:16\): must be SINGLE, PARTNER, XOR, RS or FILE', times=1)
        run.says("CONFIG_REFUSED", times=1)
        run.said("^SCR: error: ", times=7 + 2)  # and one for SCR_Have_restart, one for them all
        assert not (job.root / "nodes").exists()


def test_no_yaml():
    for text, place in (("SCR_FLUSH: 'never ends\n", ":2:1: "), ("SCR_FLUSH: 1\n SCR_DEBUG: 0\n", ":2:"),
                        ("- a\n- b\n", ":1:1: "), ("just text\n", ":1:1: "), ("\0\1\2", ":")):
        with Job(**PAIR) as job:
            write(job, text)
            run = job.run("init => CONFIG")
            run.says("CONFIG_MISTAKE", f"scr.yaml{place}", times=1)


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
        run.says("CONFIG_MISTAKE", "SCR_CONF_FILE=.*no.yaml: no such file", times=1)


def test_link_to_a_file():
    """If the prefix directory's own file is a link, its target counts and must exist."""
    with Job(**PAIR) as job:
        write(job, "SCR_CACHE_SIZE: 5\n", "site.yaml")
        for link, named, why in (("scr.yaml", "gone.yaml", "this symbolic link has no target"),
                                 (".scrconf", ".scrconf", "Too many levels of symbolic links|a symbolic link")):
            (job.prefix / link).symlink_to(named)
            job.run("init => CONFIG").says("CONFIG_MISTAKE", f"/{link}: {why}", times=1)
            (job.prefix / link).unlink()
        (job.prefix / "scr.yaml").symlink_to("site.yaml")
        job.run("init", "config:SCR_CACHE_SIZE => 1 =5")


def test_older_form():
    """Lines instead of YAML are accepted in a file of either name; both files together
    are a mistake."""
    for name in (".scrconf", "scr.yaml"):
        with Job(**PAIR) as job:
            write(job, "# lines\nSCR_CACHE_SIZE=3\nSCR_JOB_NAME='a job of $SOMEBODY'\n", name)
            run = job.run("init", "config:SCR_CACHE_SIZE => 1 =3", "config:SCR_JOB_NAME", SOMEBODY="Ann")
            assert run.ops[2]["text"] == ["a job of Ann"] * 2, run
    with Job(**PAIR) as job:
        write(job, "SCR_CACHE_SIZE: 3\n")
        write(job, "SCR_CACHE_SIZE=3\n", ".scrconf")
        run = job.run("init => CONFIG")
        run.says("CONFIG_MISTAKE", "both .*/scr.yaml and .*/.scrconf exist; remove one of them", times=1)


# ---- descriptors ----

POWER = """\
GROUPS=n1 POWER=p1
GROUPS=n2 POWER=p1
GROUPS=n3 POWER=p2
GROUPS=n4 POWER=p2
"""


def redundancy_files(folder):
    """Kinds of the redundancy files in a cache."""
    return {path.suffix for path in folder.rglob("*_of_*_in_*")}


def test_failure_groups():
    """Nodes on one power supply may fail together if SCR knows the groups."""
    for group, code in (("POWER", 1), ("NODE", 0)):
        with Job(4, 2, SCR_FLUSH=0, SCR_GROUP=group) as job:
            write(job, POWER)
            job.run("init", checkpoint("a"))
            job.lose("n1", "n2")
            job.run("init", restart("a") if code else "have => 0", "config:CKPT=0 GROUP => 1 " + group)


def test_many_nodes():
    """Ranks do not store rows for 10,000 other nodes or for each other."""
    others = "".join(f"GROUPS=other{i} POWER=p{i} RACK=r\n" for i in range(10000))
    held = []
    for rows in (POWER, POWER + others):
        with Job(4, 2, SCR_FLUSH=0, SCR_GROUP="POWER") as job:
            write(job, rows)
            held.append(job.run("init", "allocated", checkpoint("a")).ops[1]["flag"])
            job.lose("n1", "n2")
            job.run("init", restart("a"), "finalize")
    print("bytes after SCR_Init:", *held)
    assert all(many - few < 100000 for few, many in zip(*held)), held
    with Job(1, 2) as job:
        write(job, rows)
        job.run("init", "config:GROUPS => 1 =n1", "config:GROUPS=n1 POWER => 1 =p1", "config:GROUPS=n2 POWER => 0", "finalize")


def test_node_without_a_group():
    with Job(4, 1, SCR_FLUSH=0, SCR_GROUP="POWER") as job:
        write(job, POWER.replace("n3", "n7"))
        run = job.run("init => CONFIG")
        run.says("REDUNDANCY_GROUP_INVALID", "rank 2: node n3 has no value for the group POWER in GROUPS", times=1)


def test_one_descriptor():
    """A descriptor counts, with everything that it names, instead of the parameters."""
    with Job(4, 1, SCR_FLUSH=0, SCR_CACHE_SIZE=5, SCR_SET_SIZE=4) as job:
        store = job.root / "nodes" / "store"
        write(job, f"""\
{POWER}
STORE={store}/ COUNT=1
CKPT=0 GROUP=POWER TYPE=PARTNER STORE={store} SET_SIZE=2
CKPT=1 ENABLED=0 INTERVAL=2 TYPE=XOR
""")
        run = job.run("config:CKPT=0 TYPE => 1 PARTNER", "init", "config:CKPT=0 TYPE => 1 PARTNER",
                      "config:CKPT=0 GROUP => 1 POWER", f"config:CKPT=0 STORE => 1 {store}",
                      f"config:STORE={store} COUNT => 1 =1", "config:CKPT=1 ENABLED => 1 =0",
                      checkpoint("a"), checkpoint("b"))
        run.not_said("_UNUSED")
        cache = store / "tester" / "scr.17"
        assert [path.name for path in cache.iterdir()] == ["scr.dataset.2"], list(cache.iterdir())
        assert redundancy_files(cache) == {".partner"}, redundancy_files(cache)
        assert len(list(cache.rglob("*_of_2_in_*"))) == 4, list(cache.rglob("*"))
        assert not job.cached("n1")
        job.run("init", restart("b"))


def test_descriptor_of_the_application():
    with Job(4, 1, SCR_FLUSH=0) as job:
        run = job.run("config:CKPT=0 TYPE=RS SET_SIZE=4 SET_FAILURES=2", "config:CKPT=0 TYPE => 1 RS", "init",
                      "config:CKPT=0 TYPE => 1 RS", "config:CKPT=0 TYPE=XOR => ANY", checkpoint("a"))
        run.says("CALL_OUT_OF_ORDER", "SCR_Config", times=1)
        assert redundancy_files(job.cache("n1")) == {".rs"}, redundancy_files(job.cache("n1"))
        job.lose("n1", "n2")
        job.run("init", restart("a"))
        run = job.run("config:CKPT=0 TYP=RS", "config:CKPT=0 TYPE => 1 XOR", "init")
        run.says("CONFIG_MISTAKE", 'SCR_Config:1:8: unknown field of CKPT "TYP"; did you mean TYPE', times=1)


def test_missing_equals():
    """That is a mistake, and no question about a name with a blank."""
    with Job(**PAIR) as job:
        run = job.run("config:SCR_FLUSH 5 => 0", "init", "config:SCR_FLUSH => 1 =1", "finalize", SCR_FLUSH=1)
        run.says("CONFIG_MISTAKE", 'SCR_Config: no "=" in "SCR_FLUSH 5"', times=1)


def test_copy_type_of_a_run():
    with Job(**PAIR) as job:
        write(job, "CKPT=0 TYPE=RS\n")
        run = job.run("init", "config:CKPT=0 TYPE => 1 PARTNER", SCR_COPY_TYPE="PARTNER")
        run.says("CONFIG_DESCRIPTORS_UNUSED", r"SCR_COPY_TYPE=PARTNER \(the environment\)", times=1)
        for copy_type in (None, "FILE"):
            run = job.run("init", "config:CKPT=0 TYPE => 1 RS", SCR_COPY_TYPE=copy_type)
            run.says("CONFIG_DESCRIPTORS_UNUSED", times=0)


def test_mistakes_of_descriptors():
    with Job(**PAIR) as job:
        write(job, "CKPT=1 TYPE=XRO STORE=/sdd\nSTORE=/ssd COUNT=-1\nCKPT=1\n")
        run = job.run("init => CONFIG")
        run.says("CONFIG_MISTAKE", 'scr.yaml:3:6: given twice: "CKPT=1"', times=1)
        run.says("CONFIG_MISTAKE", r'CKPT=1 TYPE="XRO" \(.*scr.yaml:1:13\): must be SINGLE, PARTNER, XOR or RS', times=1)
        run.says("CONFIG_MISTAKE", r'CKPT=1 STORE="/sdd" \(.*scr.yaml:1:23\): no such store; did you mean /ssd\?', times=1)
        run.says("CONFIG_MISTAKE", r'STORE=/ssd COUNT="-1" \(.*scr.yaml:2:18\): must be at least 0', times=1)
        run.says("CONFIG_MISTAKE", r"CKPT=1 \(.*scr.yaml:1:6\): numbers must be consecutive from 0; CKPT=0 is missing", times=1)
        run.said("^SCR: error: ", times=5 + 1)


# ---- who may set what ----

def test_places():
    with Job(**PAIR) as job:
        write(job, "SCR_LOCKED: [SCR_FLUSH]\nSCR_NODE_NAME: me\n")
        run = job.run("init => CONFIG")
        run.says("CONFIG_MISTAKE", r"SCR_LOCKED \(.*scr.yaml:1:14\): only the system file may have it", times=1)
        run.says("CONFIG_MISTAKE", r'SCR_NODE_NAME="me" \(.*scr.yaml:2:16\): may only be set in the environment', times=1)
        run.said("^SCR: error: ", times=2 + 1)


def test_mistake_of_one_node():
    """Only the environment of n2 has a mistake; all ranks report it."""
    with Job(**PAIR) as job:
        run = job.run("init => CONFIG", of_node={"n2": {"SCR_CACHE_BASE": "/" + "x" * 1100}})
        run.says("CONFIG_MISTAKE", r'rank 1: SCR_CACHE_BASE="/x*" \(the environment\): longer than 1023 bytes', times=1)
        run.said("^SCR: error: ", times=1 + 1)


# ---- questions ----

GIVEN = {"SCR_USER_NAME": "tester", "SCR_JOB_ID": "=17", "SCR_FLUSH_TYPE": "SYNC"}


def test_questions():
    """SCR_Config returns the value in force, also before SCR_Init, and if it is
    determined at run time."""
    with Job(**PAIR) as job:
        ask = [f"config:{name} => 1 {value}" for name, value in GIVEN.items()]
        ask += [f"config:SCR_PREFIX => 1 {job.prefix}", "config:SCR_CURRENT => 0",
                "config:SCR_NONSENSE => 0", "config:CKPT=3 TYPE => 0", "config:SCR_CACHE_SIZE => 1 =4",
                "config:STORE=/ssd COUNT => 1 =4", "config:SCR_SET_SIZE => 1 =5", "config:SCR_DEBUG => 1 =1"]
        write(job, "SCR_CACHE_SIZE: 4\nSTORE: {/ssd: {}}\n")
        job.run("config:SCR_CACHE_SIZE=3", "config:SCR_SET_SIZE=5", ask, "init", ask, "finalize",
                [question for question in ask if "SET_SIZE" not in question])
        ask = "config:SCR_NODE_NAME => 1 n1"
        job.run(ask, "init", ask, layout=[("n1", 2)])


def test_questions_about_defaults():
    """Without any parameter, the answers before and after SCR_Init are the same."""
    names = ["SCR_USER_NAME", "SCR_JOB_ID", "SCR_NODE_NAME", "SCR_PREFIX", "SCR_FLUSH_TYPE"]
    ask = [f"config:{name} => ANY" for name in names]
    with Job(1, 2, SCR_FLUSH=0, SCR_FLUSH_ASYNC=1) as job:
        run = job.run(ask, "init", ask, of_node={"n1": {"SCR_NODE_NAME": ""}}, SCR_USER_NAME=None, SCR_JOB_ID=None,
                      SCR_PREFIX=None)
        early, late = ([op["text"] for op in run.ops[at:at + len(names)]] for at in (0, len(names) + 1))
        assert early == late, run
        user = pwd.getpwuid(os.geteuid()).pw_name
        assert [text[0] for text in early[:1] + early[2:]] == [
            user, os.uname().nodename, str(job.prefix), "PTHREAD"], run
        assert early[1][0].startswith("prefix-"), run


def test_questions_before_the_folder():
    """A missing prefix directory may turn out to be a link, so no job id is known."""
    with Job(1, 1) as job:
        job.run("config:SCR_JOB_ID => 0", "config:SCR_PREFIX => 1 " + str(job.root / "new"),
                SCR_JOB_ID=None, SCR_PREFIX=job.root / "new")


# ---- layers ----

def test_order():
    """The order is: environment, file, application, default."""
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
    """Values for the whole job come from rank 0; directories come from each node."""
    with Job(**PAIR) as job:
        of_node = {"n1": {"SCR_CACHE_SIZE": 3}, "n2": {"SCR_CACHE_SIZE": 1}}
        job.run("init", "config:SCR_CACHE_SIZE => 1 =3", [checkpoint(f"c{i}") for i in range(4)],
                of_node=of_node)
        assert job.cached("n1") == job.cached("n2") == [2, 3, 4]


def test_environment_mistakes():
    for name, value, text in (("SCR_CACHE_SIZE", "abc", "not a whole number"),
                              ("SCR_CACHE_SIZE", "-1", "must be at least 0"),
                              ("SCR_SET_SIZE", "1", "must be at least 2"),
                              ("SCR_FLUSH", "-1", "must be at least 0"),
                              ("SCR_FETCH", "yes", "neither 0 nor 1"),
                              ("SCR_FETCH", "2", "neither 0 nor 1"),
                              ("SCR_CHECKPOINT_OVERHEAD", "ten", "not a number"),
                              ("SCR_CHECKPOINT_INTERVAL", "1e3", 'neither a whole number nor "auto"'),
                              ("SCR_CHECKPOINT_INTERVAL", "-1", "must be at least 0"),
                              ("SCR_CACHE_SIZE", "99999999999", "must be .* to 2147483647"),
                              ("SCR_CONTAINER_SIZE", "99999999999GB", "too large"),
                              ("SCR_CHECKPOINT_OVERHEAD", "-1", "must be at least 0"),
                              ("SCR_CHECKPOINT_OVERHEAD", "nan", "not a number"),
                              ("SCR_GROUP", "NOED", "no such group; did you mean NODE"),
                              ("SCR_COPY_TYPE", "FILE", "no descriptor CKPT is given"),
                              ("SCR_COPY_TYPE", "", None)):
        with Job(**PAIR) as job:
            if text is None:
                job.run("init", **{name: value})
                continue
            run = job.run("init => CONFIG", **{name: value})
            run.says("CONFIG_MISTAKE", rf"{name}=.*{value}.* \(the environment\): {text}", times=1)
            run.said("error: ", times=2)  # this one, and that the configuration has mistakes


def test_identity_mistakes():
    """Invalid names that would become parts of paths."""
    for name, value in (("SCR_JOB_ID", "a/b"), ("SCR_JOB_ID", "a\nb"), ("SCR_USER_NAME", "../../x"),
                        ("SCR_JOB_ID", "x" * 200), ("SCR_USER_NAME", "x" * 200)):
        with Job(**PAIR) as job:
            run = job.run("init => CONFIG", **{name: value})
            run.says("RUN_NAME_INVALID", name, times=1)
    with Job(**PAIR) as job:
        run = job.run("init => CACHE", of_node={"n2": {"SCR_NODE_NAME": "a/b"}})
        run.says("CACHE_NOT_LOCKED", "SCR_NODE_NAME=a/b has a slash", times=1)


def test_only_warnings():
    with Job(**PAIR) as job:
        run = job.run("init", SCR_CACHE_SIZ=3)
        run.says("CONFIG_VARIABLE_UNKNOWN", "SCR_CACHE_SIZ", "SCR_CACHE_SIZE",
                 times=1)


def test_earlier_version():
    """With a configuration and a program of SCR 3.1, meaningless parameters cause
    warnings, and checkpoints are written and flushed."""
    with Job(**PAIR) as job:
        del job.parameters["SCR_FLUSH"]
        write(job, "CNTLDIR=/dev/shm BYTES=1GB\nSCR_FLUSH=1\nSCR_FLUSH_TYPE=BBAPI\nSCR_DB_ENABLE=0\nSCR_DB_HOST=h\n"
                   "SCR_FLUSH_ASYNC=1\nSCR_COPY_TYPE=FILE\nCKPT=0 INTERVAL=1 TYPE=xor\n", ".scrconf")
        run = job.run("config:SCR_COPY_METADATA=1 => 0", "config:SCR_JOB_NAME=$SOMEBODY", "init", "config:SCR_LOG_DB_HOST => 1 =h",
                      "config:SCR_DB_HOST => 1 =h", "config:SCR_JOB_NAME => 1 =Ann", "config:CKPT=0 TYPE => 1 XOR", checkpoint("a"),
                      "finalize", SCR_FLUSH_POSTSTAGE=1, SOMEBODY="Ann")
        run.says("CONFIG_FORMER", r"/.scrconf:1:1: CNTLDIR has no meaning here, because .*CAPACITY", times=1)
        run.says("CONFIG_FORMER", "SCR_FLUSH_TYPE=BBAPI is not in this build, and PTHREAD is used instead", times=1)
        run.says("CONFIG_FORMER", "SCR_FLUSH_POSTSTAGE in the environment has no meaning here", times=1)
        run.says("CONFIG_FORMER", "SCR_Config: SCR_COPY_METADATA has no meaning here", times=1)
        run.not_said("SCR: error")
        assert (job.prefix / "a/rank_1").is_file(), list((job.prefix / "a").iterdir())


def test_sets_too_small():
    """The requested number of failures exceeds what a set can tolerate."""
    for nodes, failures, members in ((2, 2, 2), (3, 99, 3), (3, 2, None)):
        with Job(nodes=nodes, per_node=1, SCR_COPY_TYPE="RS", SCR_SET_FAILURES=failures) as job:
            run = job.run("init", checkpoint("a"), "finalize")
            if members:
                run.says("REDUNDANCY_REDUCED", f"{failures}", f"{members}", f"{members - 1}",
                         times=1)
            else:
                run.not_said("warning")


# ---- advice ----

def test_interval():
    with Job(**PAIR, SCR_CHECKPOINT_INTERVAL=3) as job:
        job.run("init", "need => 0", "need => 0", "need => 1", checkpoint("a"), "need => 0", "need => 0", "need => 1",
                "need => 0", "need => 0", "need => 1", checkpoint("bad", valid="0", code="INVALID"), "need => 0",
                checkpoint("out", flags="o"), "need => 0", checkpoint("b"), "need => 1")


def test_no_advice():
    with Job(**PAIR) as job:
        job.run("init", ["need => 0"] * 5, checkpoint("a"), ["need => 0"] * 5)


def test_seconds():
    with Job(**PAIR) as job:
        job.run("init", "need => 0", SCR_CHECKPOINT_SECONDS="1h")
        job.run("init", "sleep:3100", "need => 1", checkpoint("a"), "need => 0", SCR_CHECKPOINT_SECONDS=3)


def test_overhead():
    """The first checkpoint shows its cost; after that, checkpoints are rare."""
    with Job(**PAIR) as job:
        job.run("init", "need => 1", checkpoint("a"), "need => 0", SCR_CHECKPOINT_OVERHEAD="0.0001")
        job.run("init", "need => 1", checkpoint("b"), "need => 1", SCR_CHECKPOINT_OVERHEAD=100)


if __name__ == "__main__":
    main(globals())
