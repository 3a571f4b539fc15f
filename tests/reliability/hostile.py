#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sweep over hostile trees: each file and directory that a job leaves, one of a kind, is replaced by a link, a pipe, a
socket, a device, a name of another file, something huge, or something that nobody may read. Then all commands, and the next
run, work there.

Points of the kinds "root" are those of hostile_root.py: root's commands in a directory that an attacker has prepared.

All of them end in time and by themselves. Nothing outside of the job's directories is changed, nothing of it is shown or
copied, and no control character reaches the output. What the run offers is right in every byte."""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess

from sweep import Job, METHODS, RANKS, Sweep, agreed, anyhow, check_processes, checkpoint, options, stage
from job import JOB, USER, end_all
import hostile_root

SIZE, LIMIT = 3000, 120  # bytes of a file; seconds, on a busy machine
SECRET = b"what only the owner of the witness knows"


# ---- stories ----

def written(name, flags="c"):
    return checkpoint(name, SIZE, flags)


def command(job, name, *arguments, node="n1"):
    own = {"SCR_NODE_NAME": node, "SCR_CACHE_BASE": job.node(node) / "cache", "SCR_CNTL_BASE": job.node(node) / "cntl",
           "SCR_NODELIST": ",".join(job.nodes()), "SCR_REMOTE": "simulate", "SCR_SIMULATE": job.root / "nodes", "SCR_DEBUG": 0}
    program = shutil.which(name, path=os.environ["JOB_PATH"])
    done = subprocess.run([program, *map(str, arguments)], cwd=job.prefix, env=job.environment(own), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=LIMIT)
    return [name, *map(str, arguments)], done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def flushed_and_cached(job):
    job.run("init", written("a"), "finalize", SCR_CACHE_KEEP=1)
    job.run("init", written("b", "co"), SCR_FLUSH=0)


def in_containers(job):
    job.run("init", written("a"), "finalize", SCR_USE_CONTAINERS=1, SCR_CONTAINER_SIZE=5000)


def under_way(job):
    job.run("init", written("a"), written("b"), "kill@0", dies=None, SCR_FLUSH_ASYNC_BW="10KB", **METHODS["daemon"])
    end_all()


def scavenged(job):
    job.run("init", written("a"), SCR_FLUSH=0)
    for node in job.nodes():
        command(job, "scr_copy", "--id", 1, node=node)


STORIES = {function.__name__: function for function in (flushed_and_cached, in_containers, under_way, scavenged)}


def begin(story):
    job = Job(RANKS, 1, SCR_FLUSH=1, SCR_SET_SIZE=4, SCR_LOG_ENABLE=1, SCR_LOG_SYSLOG_ENABLE=0, SCR_NODE_TIMEOUT=20,
              SCR_FILE_BUF_SIZE=4096)
    STORIES[story](job)
    (job.prefix / ("scr.yaml" if story == "scavenged" else ".scrconf")).write_text("")
    (job.prefix / ".scr/runs.log").write_text("2030-01-01 00:00:00  run 1\n")
    command(job, "scr_halt", "--after", 30)
    return job


# ---- places ----

def kind_of(path):
    """Nodes, ranks, times and ids of flushes are all alike."""
    for pattern, to in ((f"{USER}/scr.{JOB}", "job"), (r"[0-9a-f]{16}|[0-9]{12,}", "#"), (r"\bn[1-4](?=/|$)", "n#"),
                        (r"(rank|filemap|transfer)_[0-9]+", r"\1_#"), (r"/[0-9]+(_of|\.scrfilemap)", r"/#\1")):
        path = re.sub(pattern, to, path)
    return path


def places(job):
    """{kind: [path]} of all files and directories but those that a parameter names, which may be links."""
    found = {}
    for folder in (job.root / "nodes", job.prefix):
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(job.root))
            if name.count("/") > 2 or name.startswith("prefix"):
                found.setdefault(kind_of(name), []).append(path)
    return found


def kinds(story):
    """{kind: whether it is a directory}"""
    with begin(story) as job:
        return {kind: paths[0].is_dir() for kind, paths in places(job).items()}


# ---- what is put there ----

def link(to):
    return lambda path, witness: path.symlink_to(witness / to)


def device(number):
    return lambda path, _: os.mknod(path, 0o666 | stat.S_IFCHR, number)


def put_socket(path, _):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        here = os.open(path.parent, os.O_PATH)
        s.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def huge(path, _):
    path.touch()
    os.truncate(path, 1 << 40)


def closed_file(path, _):
    path.write_bytes(b"x" * 100)
    path.chmod(0)


def closed_folder(path, _):
    path.mkdir()
    (path / "x").touch()
    path.chmod(0)


def odd_names(path, _):
    path.mkdir()
    for name in ("\x1b[31mred", "a\nb", "\u202egpj", "-rf", "x" * 255):
        (path / name).write_bytes(name.encode())


def deep(path, _):
    path.mkdir()
    here = os.open(path, os.O_PATH)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_PATH, dir_fd=here), here
        os.close(above)
    os.close(here)


FILES = {"link to a file": link("file"), "link to a folder": link("folder"), "dangling link": link("nothing"),
         "link to itself": lambda path, _: path.symlink_to(path), "pipe": lambda path, _: os.mkfifo(path), "socket": put_socket,
         "other name": lambda path, witness: os.link(witness / "file", path), "huge": huge, "closed": closed_file}
FOLDERS = {"folder": odd_names, "closed folder": closed_folder, "deep": deep}
IN_PLACE_OF = {False: [*FILES, *FOLDERS], True: ["link to a folder", "dangling link", "link to itself", "pipe", "other name",
                                                 "folder", "closed folder", "deep"]}
if os.geteuid() == 0:
    FILES |= {"null": device(os.makedev(1, 3)), "zero": device(os.makedev(1, 5))}
    IN_PLACE_OF[False] += ["null", "zero"]
WAYS = FILES | FOLDERS


def put_witness(job):
    witness = job.root / "witness"
    shutil.rmtree(witness, ignore_errors=True)
    (witness / "folder/.scr").mkdir(parents=True)
    for name in ("file", "folder/rank_0", "folder/.scr/summary.scr", "folder/filemap.scriinfo"):
        (witness / name).write_bytes(SECRET)
        (witness / name).chmod(0o640)
    return witness


def seen(witness):
    """All that may not change."""
    found = {}
    for path in [witness, *sorted(witness.rglob("*"))]:
        st = path.lstat()
        found[str(path)] = (st.st_mode, st.st_uid, st.st_mtime_ns, path.read_bytes() if stat.S_ISREG(st.st_mode) else b"")
    return found


def replace(path, way, witness):
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    WAYS[way](path, witness)


# ---- what must be true ----

def check_output(who, code, text):
    assert code >= 0, f"{who} was ended by signal {-code}\n{text}"
    assert code != 2, f"{who} is no command\n{text}"
    assert not re.search("Sanitizer|runtime error", text), f"{who}\n{text}"
    assert SECRET.decode() not in text, f"{who} shows the secret\n{text}"
    found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert not found, f"{who} prints {found.group()!r}\n{text!r}"


def check_tree(job, witness):
    """Nothing of the witness was copied."""
    inode = (witness / "file").stat().st_ino
    for folder, _, names in os.walk(job.root):
        for name in names:
            path = pathlib.Path(folder) / name
            st = path.lstat()
            if stat.S_ISREG(st.st_mode) and st.st_size < 1 << 30 and st.st_ino != inode and witness not in path.parents:
                assert SECRET not in path.read_bytes(), f"{path} has the secret"


COMMANDS = [
    ("scr_check_node", "-p", "."), ("scr_list_down_nodes",), ("scr_prefix",), ("scr_params",), ("scr_list_dir", "all"),
    ("scr_nodes_file", "."), ("scr_flush_file", "--list", "."), ("scr_halt", "--list", "."), ("scr_retries_halt", "."),
    ("scr_index", "--list"), ("scr_index", "--verify"), ("scr_inspect",), ("scr_inspect", "--up", "n[1-4]"), ("scr_index", "--scan", "a"),
    ("scr_ckpt_interval", "."), ("scr_status",), ("scr_report",), ("scr_doctor",), ("scr_log_event", "--type", "HALT", "--note", "x"), ("scr_copy", "--id", 1), ("scr_copy", "--id", 2),
    ("scr_prerun", "."), ("scr_halt", "--checkpoints", 50, "."), ("scr_index", "--add", "a"), ("scr_scavenge", "--id", 1),
    ("scr_postrun", "-p", "."), ("scr_index", "--current", "a"), ("scr_index", "--drop", "b"), ("scr_halt", "--remove", "."), ("scr_run", "--runs", 1, "--ranks", 1, "true"),
]


def commands_work(job):
    for words in COMMANDS:
        check_output(*command(job, *words))
    check_output(*command(job, "redset_rebuild", *list(job.root.glob("nodes/n1/cache/**/scr.dataset.1"))[:1] or ["."]))


def run_works(job):
    run = job.run(anyhow("init", "have", "start_restart", f"get:%T/rank_%r:{SIZE}", "complete_restart:1", written("next"),
                         "delete:a", "finalize"), dies=None, limit=LIMIT)
    check_output("run", run.code, run.out + run.err)
    agreed(run)
    offered = [op for op in run.ops if op["op"].startswith("have") and set(op.get("flag", [])) == {1}]
    if offered:
        assert set(run.first("get:")["code"]) == {0}, f"not as it was written\n{run}"


def hostile(story, kind, way, who):
    job = stage(begin, story)
    found = places(job).get(kind)
    if not found:
        return False
    witness = put_witness(job)
    replace(found[0], way, witness)
    before = seen(witness)
    {"commands": commands_work, "run": run_works}[who](job)
    assert seen(witness) == before, "the witness was changed"
    check_tree(job, witness)
    end_all()
    check_processes()
    return True


def more_options(parser):
    parser.add_argument("--seed", type=int, default=1, help="of the first point of each kind 'root' (%(default)s)")
    parser.add_argument("--seeds", type=int, default=300, help="so many points of each kind 'root' (%(default)s)")


def main():
    given = options(__doc__, sample=90, more=more_options)
    sweep = Sweep(given)
    for story in STORIES:
        for kind, is_folder in sweep.ask(kinds, story).items():
            sweep.add(f"{story}: {kind}", hostile,
                      [(story, kind, way, who) for way in IN_PLACE_OF[is_folder] for who in ("commands", "run")])
        if hostile_root.is_possible():
            sweep.add(f"root: {story}", hostile_root.hostile_to_root,
                      [(story, seed) for seed in range(given.seed, given.seed + given.seeds)])
    sweep.run()


if __name__ == "__main__":
    main()
