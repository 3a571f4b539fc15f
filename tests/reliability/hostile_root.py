# SPDX-License-Identifier: BSD-3-Clause
"""Points of hostile.py in which root is the victim: an attacker prepares the prefix directory and the caches of a job, and root runs the
commands of an administrator there. The number of a point is the seed of its mutations, so each point can be repeated.

No command shows or copies a secret of root or of another user, changes anything outside of the attacker's directories, leaves a file there that
is not the attacker's, runs a program of the attacker as another user, or hangs."""
import ctypes
import os
import pathlib
import pty
import pwd
import random
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import time

from job import JOB, USER, end_all
from sweep import check_processes, stage
import tree

GROUP = 59998  # root is in it
LIMIT = 100  # seconds of a command, on a busy machine; a hook may take 60
COMMANDS_PER_POINT = 10
SECRETS = {"root": b"what only root may know", "victim": b"what only the victim may know"}
CONTROL = "\x1b[2Jx\x9b0m"


def accounts():
    """Two that every system has; None where the test may not become them."""
    found = [user for user in pwd.getpwall() if 0 < user.pw_uid < 60000 and user.pw_gid]
    return found[:2] if os.geteuid() == 0 and len(found) > 1 else None


def is_possible():
    return accounts() is not None


def give(path, user, mode=None):
    os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    if mode is not None:
        path.chmod(mode)


def give_tree(folder, user):
    for path in (folder, *folder.rglob("*")):
        give(path, user)


# ---- the machine ----

class Machine:
    """The directories of a job that belong to the attacker, and what others have beside them."""

    def __init__(self, job):
        self.job, self.root = job, job.root
        self.attacker, self.victim = accounts()
        self.lair, self.vault, self.other = self.root / "lair", self.root / "vault", self.root / "victim"
        self.foreign = set()  # inodes that the test itself put among the attacker's files
        for folder in (self.lair, self.vault, self.other, self.root / "tmp", self.root / "way"):
            drop(folder)
        self.root.chmod(0o1777)
        self.set_bases()
        self.set_victim()
        self.set_vault()
        self.set_lair()
        (self.root / "tmp").mkdir()
        (self.root / "tmp").chmod(0o1777)
        (self.root / "way").symlink_to(self.other / "prefix")
        give(self.root / "way", self.attacker)

    def bases(self):
        return [self.job.node(node) / base for node in self.job.nodes() for base in ("cache", "cntl")]

    def set_bases(self):
        give_tree(self.job.prefix, self.attacker)
        for base in self.bases():
            (base / USER).mkdir(parents=True, exist_ok=True)
            base.chmod(0o1777)
            give_tree(base / USER, self.attacker)

    def set_victim(self):
        """A job of the same shape, whose records and files have the secret; only its user may enter the directories."""
        self.other.mkdir()
        shutil.copytree(self.job.prefix, self.other / "prefix", symlinks=True)
        copies = [self.other / "prefix"]
        for base in self.bases():
            copies.append(base / "victim")
            shutil.copytree(base / USER, base / "victim", symlinks=True)
        for folder in copies:
            for path in folder.rglob("*"):
                if path.is_file():
                    self.keep_secret(path)
            give_tree(folder, self.victim)
            folder.chmod(0o700)

    def keep_secret(self, path):
        secret = SECRETS["victim"]
        if path.name in ("halt.scr", "summary.scr"):
            tree.write(path, {**tree.read(path), "ExitReason": {secret.decode(): {}}})
        elif path.suffix not in (".scr", ".scriinfo", ".scrinfo", ".scrfilemap"):
            path.write_bytes(secret + path.read_bytes())
        path.chmod(0o600)

    def set_vault(self):
        (self.vault / "folder/.scr").mkdir(parents=True)
        for name in ("file", "folder/rank_0", "folder/.scr/summary.scr", "folder/.scrconf", "folder/spy"):
            (self.vault / name).write_bytes(SECRETS["root"])
            (self.vault / name).chmod(0o600)
        tree.write(self.vault / "folder/.scr/halt.scr", {"ExitReason": {SECRETS["root"].decode(): {}}})
        (self.vault / "folder/.scr/halt.scr").chmod(0o600)
        (self.vault / "folder").chmod(0o700)

    def set_lair(self):
        """Programs that write down as whom they run, and try what only others may."""
        self.lair.mkdir()
        give(self.lair, self.attacker, 0o755)
        self.seen = self.root / "seen"
        self.seen.write_text("")
        give(self.seen, self.attacker, 0o666)
        text = (f"#!/bin/sh\necho $(id -u) in $(id -G) >>{self.seen}\ncat {self.vault}/file {self.other}/prefix/a/rank_0\n"
                f"touch {self.vault}/touched\nprintf '\\033[2J\\233x'\n")
        for name in ("spy", "prerun", "postrun", "node_down", "mpiexec", "mpiexec.mpich", "srun", "true"):
            (self.lair / name).write_text(text)
            give(self.lair / name, self.attacker, 0o755)

    def places(self):
        """All files and directories of the attacker."""
        found = [self.job.prefix]
        for folder in (self.job.prefix, *(base / USER for base in self.bases())):
            found += [path for path in sorted(folder.rglob("*"))]
        return found

    def records(self):
        return [path for path in self.places() if path.suffix in (".scr", ".scriinfo", ".scrinfo", ".scrfilemap")
                and path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 24]


# ---- what the attacker does ----

def targets(m, path):
    """What links and records may lead to."""
    inside = path.relative_to(m.root)
    twin = m.other / inside if inside.parts[0] == "prefix" else m.root / str(inside).replace(f"/{USER}", "/victim")
    return [m.vault / "file", m.vault / "folder", m.other / "prefix", m.other / "prefix/a", twin, twin.parent, m.root, pathlib.Path("/")]


def drop(path):
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def put_link(m, path, draw):
    drop(path)
    path.symlink_to(draw.choice(targets(m, path)))


def put_other_name(m, path, draw):
    """A hard link, which the kernel may be told to allow."""
    target = draw.choice(targets(m, path)[:1] + [target for target in targets(m, path)[1:] if target.is_file()])
    drop(path)
    os.link(target, path)
    m.foreign.add(path.lstat().st_ino)


def put_foreign(m, path, draw):
    """What another user had in a shared directory, moved from there."""
    user = draw.choice([pwd.getpwuid(0), m.victim])
    if path == m.job.prefix or path.is_symlink() or path.lstat().st_ino in m.foreign:
        return  # the last one has another name outside
    give(path, user, draw.choice([0o600, 0o644, 0o666] if path.is_file() else [0o700, 0o755, 0o777]))
    m.foreign.add(path.lstat().st_ino)


def put_bits(m, path, draw):
    if not path.is_symlink():
        path.chmod(draw.choice([0o6777, 0o2777, 0o4755, 0o1777, 0o000, 0o777, 0o2770]))


def put_list(m, path, draw):
    """An access control list, or the one that new files get."""
    entries = [(1, 7), (2, 7, m.victim.pw_uid), (4, 7), (16, 7), (32, 7)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, *(who or (0xffffffff,))) for tag, bits, *who in entries)
    try:
        for name in ("access", "default")[:1 + path.is_dir()]:
            os.setxattr(path, f"system.posix_acl_{name}", packed, follow_symlinks=False)
    except OSError:
        pass  # of a link, or the file system has none


def put_way(m, path, draw):
    """A way of the sweep over hostile trees."""
    import hostile  # which imports this module
    ways = [way for way in sorted(hostile.WAYS) if "link to a f" not in way and way != "other name"]
    drop(path)
    hostile.WAYS[draw.choice(ways)](path, m.vault)
    if path.is_dir() and not path.is_symlink():
        for below in path.rglob("*"):
            give(below, m.attacker)


def keys_of(told):
    for key, value in told.items():
        yield key
        yield from keys_of(value)


def renamed(told, old, new):
    return {new if key == old else key: renamed(value, old, new) for key, value in told.items()}


def put_anew(m, path, draw):
    """A record of the attacker's with other names, paths and numbers, and a right checksum."""
    records = m.records()
    if not records:
        return None
    path = draw.choice(records)
    words = [*map(str, targets(m, path)), "../" * 9 + str(m.vault / "file")[1:], "../victim/prefix/a", "../../victim/prefix/a/rank_0", "..",
             "-rf", "n1;touch x", f"$({m.lair}/spy)", CONTROL, "0", "-1", str(2 ** 63), "1e9", str(m.lair / "spy"), "a", "a/rank_0", "n2"]
    try:
        told = tree.read(path)
    except (ValueError, AssertionError, IndexError, struct.error, OSError):
        return None  # it was damaged before
    for _ in range(draw.randint(1, 3)):
        keys = sorted(set(keys_of(told))) or [""]
        if draw.random() < 0.5:
            keys = [key for key in keys if "/" in key or key.islower()] or keys
        told = renamed(told, draw.choice(keys), draw.choice(words))
    drop(path)
    tree.write(path, told)
    return path


def put_configuration(m, path, draw):
    """Programs and places of the attacker's choice."""
    lair, twin = str(m.lair), str(m.other / "prefix")
    base = [lair, str(m.vault), twin, str(m.job.node("n1") / "cache"), str(m.root / "tmp"), "/"]
    lines = [f"SCR_NODE_TESTS={lair}", f"SCR_SITE_HOOKS={lair}", f"SCR_REMOTE=shell\nSCR_REMOTE_SHELL={lair}/spy", "SCR_REMOTE=srun",
             f"SCR_PREFIX={draw.choice([twin, str(m.vault), str(m.root)])}", f"SCR_CNTL_BASE={draw.choice(base)}",
             f"SCR_CACHE_BASE={draw.choice(base)}", f"SCR_USER_NAME={draw.choice(['victim', '..', '../victim', 'root'])}",
             f"SCR_JOB_ID={draw.choice(['1', '..', JOB])}", f"SCR_NODELIST={draw.choice(['n[1-4]', '$(id)', '-x', 'n[1-99999999]'])}",
             "SCR_LOG_ENABLE=1", "SCR_LOG_JSON_ENABLE=1", "SCR_USE_CONTAINERS=1", "SCR_CONTAINER_SIZE=1", "SCR_RUNS=-1", "SCR_RUN_PAUSE=0",
             f"SCR_TRUSTED_OWNERS={m.attacker.pw_name}", f"STORE={draw.choice(base)} COUNT=1", f"SCR_CURRENT={CONTROL}", "SCR_NODE_TIMEOUT=5"]
    path = m.job.prefix / draw.choice([".scrconf", "scr.yaml"])
    chosen = sorted(set(draw.sample(lines[:4], 1) + draw.sample(lines, draw.randint(0, 5))))
    if path.name == "scr.yaml":
        chosen = [line.replace("=", ": ", 1) for each in chosen for line in each.split("\n") if not line.startswith("STORE")]
    drop(path)
    path.write_text("\n".join(chosen) + "\n")
    return path


def put_reason(m, path, draw):
    """A reason for a halt, which may have any characters, unlike names."""
    path = m.job.prefix / ".scr/halt.scr"
    if not path.parent.is_dir() or path.parent.is_symlink():
        return None
    drop(path)
    tree.write(path, {"ExitReason": {draw.choice([CONTROL, "x\x9by", "x\nscr_halt: y"]): {}}})
    return path


MUTATIONS = [put_link, put_other_name, put_foreign, put_bits, put_list, put_way, put_anew, put_anew, put_configuration, put_configuration,
             put_reason, put_reason]
MINE = (put_link, put_bits, put_list, put_way, put_anew, put_configuration, put_reason)  # what they leave is the attacker's


def mutate(m, draw):
    """Some of them, and what they were, for the message of a failure."""
    done = []
    for _ in range(draw.randint(1, 4)):
        mutation, path = draw.choice(MUTATIONS), draw.choice(m.places())
        if path == m.job.prefix and mutation not in (put_bits, put_list):
            path = m.job.prefix / ".scr"
        if not os.path.lexists(path):
            continue
        path = mutation(m, path, draw) or path
        if mutation in MINE and os.path.lexists(path) and path.lstat().st_ino not in m.foreign:
            give_kept = stat.S_IMODE(path.lstat().st_mode)
            give(path, m.attacker)
            if not path.is_symlink():
                path.chmod(give_kept)  # chown takes bits away
        done.append(f"{mutation.__name__} {path.relative_to(m.root)}")
    return done


def exchange_forever(user, pairs):
    """In a process of its own, which is the attacker's."""
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    call, here, exchange = ctypes.CDLL(None).renameat2, -100, 2
    while True:
        for one, other in pairs:
            call(here, os.fsencode(one), here, os.fsencode(other), exchange)
        time.sleep(0.0003)


def begin_exchange(m, root, draw):
    """The id of a process of the attacker that exchanges directories for links as fast as it can; None: this point has none."""
    if draw.random() < 0.5:
        return None
    pairs, folders = [], [m.job.prefix, m.job.prefix / ".scr", *(m.job.prefix / name for name in ("a", "b", "a/.scr")),
                          m.job.cache("n1"), m.job.cache("n1").parent, m.job.control("n1"), m.job.control("n1").parent]
    for folder in draw.sample(folders, 2):
        if folder == m.job.prefix and root.inside:
            continue  # root would be in another directory before any command begins
        if not folder.is_dir() or folder.is_symlink() or folder.lstat().st_uid != m.attacker.pw_uid:
            continue
        away = folder.parent / f"{folder.name}.away"
        away.symlink_to(draw.choice(targets(m, folder)))
        give(away, m.attacker)
        pairs.append((folder, away))
    if not pairs:
        return None
    process = os.fork()
    if process == 0:
        try:
            exchange_forever(m.attacker, pairs)
        finally:
            os._exit(1)
    return process


# ---- what root does ----

def readable(job, pattern):
    """What can be read in time: not what has very many bytes."""
    return [path for path in sorted(job.prefix.glob(pattern)) if path.lstat().st_size < 1 << 30]


def commands(prefix, job, lair):
    """Of an administrator; prefix is a path, or '.', or a link of the attacker to the victim's."""
    record = next(iter(job.control("n1").glob("transfer_*")), job.control("n1") / "transfer_0.scrinfo")
    return [
        ("scr_check_node", "-p", prefix), ("scr_list_down_nodes", "-p", prefix), ("scr_prefix",), ("scr_params", "-p", prefix),
        ("scr_list_dir", "-p", prefix, "all"), ("scr_nodes_file", prefix), ("scr_flush_file", "--list", prefix), ("scr_halt", "--list", prefix),
        ("scr_retries_halt", prefix), ("scr_env", "-p", prefix, "--nodes"), ("scr_index", "-p", prefix, "--list"),
        ("scr_index", "-p", prefix, "--verify"), ("scr_index", "-p", prefix, "--rebuild"), ("scr_index", "-p", prefix, "--add", "a"),
        ("scr_index", "-p", prefix, "--scan", "a"), ("scr_index", "-p", prefix, "--summary", "a"), ("scr_index", "-p", prefix, "--inspect", "a"),
        ("scr_index", "-p", prefix, "--current", "a"), ("scr_index", "-p", prefix, "--drop", "b"), ("scr_inspect", "-p", prefix),
        ("scr_inspect", "-p", prefix, "--up", "n[1-4]"), ("scr_ckpt_interval", prefix), ("scr_status", "-p", prefix), ("scr_report", "-p", prefix),
        ("scr_report", "-p", prefix, "--json"), ("scr", "-p", prefix, "status"), ("scr_doctor", "-p", prefix), ("scr_copy", "-p", prefix, "--id", 1),
        ("scr_copy", "-p", prefix, "--id", 2), ("scr_scavenge", "-p", prefix, "--id", 1), ("scr_scavenge", "-p", prefix, "--id", 2),
        ("scr_prerun", "-p", prefix), ("scr_postrun", "-p", prefix), ("scr_halt", "--checkpoints", 50, prefix), ("scr_halt", "--remove", prefix),
        ("scr_log_event", "-p", prefix, "--type", "HALT", "--note", "x"), ("scr_log_transfer", "-p", prefix, "--type", "FLUSH"), ("scr_run", "-p", prefix, "--simulate", "1x1", lair / "spy"),
        ("scr_test_runtime", "-p", prefix), ("scr_crc32", *readable(job, "*")), ("scr_crc32", *readable(job, "*/*")), ("scr_extract", job.prefix / "a"), ("redset_rebuild", job.prefix / "a"),
        ("redset_rebuild", next(job.cache("n1").glob("scr.dataset.*"), prefix)), ("scr_transfer", "--leave", record),
        ("kvtree_print", *(sorted(job.prefix.glob(".scr/*.scr"))[:3] or [record])),
    ]


class Root:
    """Root at a terminal, in the directory or not, with some parameters in the environment or none."""

    def __init__(self, m, draw):
        self.m, self.inside = m, draw.random() < 0.4
        self.prefix = "." if self.inside else draw.choice([m.job.prefix] * 4 + [m.root / "way"])
        self.terminal, self.locale = draw.random() < 0.4, draw.choice(["C", "C.UTF-8"])
        own = {"LC_ALL": self.locale, "SCR_NODE_NAME": "n1", "SCR_DEBUG": 1, "TMPDIR": m.root / "tmp", "SCR_LOG_SYSLOG_ENABLE": 0}
        given = {"SCR_CACHE_BASE": m.job.node("n1") / "cache", "SCR_CNTL_BASE": m.job.node("n1") / "cntl", "SCR_NODELIST": "n[1-4]",
                 "SCR_REMOTE": "simulate", "SCR_SIMULATE": m.root / "nodes", "SCR_USER_NAME": USER, "SCR_NODE_TIMEOUT": 5}
        self.environment = m.job.environment({**own, **{name: value for name, value in given.items() if draw.random() < 0.7}})
        if draw.random() < 0.7:
            del self.environment["SCR_PREFIX"]

    def run(self, words):
        words = [str(word) for word in words]
        program = shutil.which(words[0], path=os.environ["JOB_PATH"])
        assert program, words
        cwd = self.m.job.prefix if self.inside or words[0] == "scr_prefix" else "/"
        begin = {"args": [program, *words[1:]], "cwd": cwd, "env": self.environment, "stdin": subprocess.DEVNULL,
                 "extra_groups": [GROUP]}
        try:
            return at_terminal(begin) if self.terminal else at_pipe(begin)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{words} hangs") from None


def at_pipe(begin):
    process = subprocess.Popen(**begin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = process.communicate(timeout=LIMIT)
    return process.returncode, said


def at_terminal(begin):
    terminal, ours = pty.openpty()
    try:
        process = subprocess.Popen(**begin, stdout=ours, stderr=ours)
    finally:
        os.close(ours)
    said, until = b"", time.monotonic() + LIMIT
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        while select.select([stream], [], [], max(0, until - time.monotonic()))[0]:
            try:
                piece = stream.read(65536)
            except OSError:  # nobody has it any more
                break
            said += piece
        return process.wait(max(0, until - time.monotonic()) + 1), said.replace(b"\r\n", b"\n")


def enter_later(function, *args):
    """The directory may be exchanged for a link that leads nowhere."""
    for _ in range(200):
        try:
            return function(*args)
        except OSError:
            time.sleep(0.002)
    return None


# ---- what must be true ----

def outside(m):
    """All that may not change."""
    found = {}
    ours = {m.job.prefix, *(base / USER for base in m.bases())}

    def visit(folder):
        for path in sorted(folder.iterdir()):
            if path in ours or path.name.endswith(".away") or path.name in ("saved", "seen", "tmp"):
                continue
            st = path.lstat()
            found[str(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, path.read_bytes() if stat.S_ISREG(st.st_mode) else
                                os.readlink(path) if stat.S_ISLNK(st.st_mode) else b"")
            if stat.S_ISDIR(st.st_mode):
                visit(path)

    visit(m.root)
    return found


def compare(before, after, m):
    for path, what in before.items():
        assert path in after, f"{path} was removed"
        assert after[path] == what, f"{path} was changed: {what[:4]} became {after[path][:4]}"
    new = after.keys() - before.keys()
    for path in new:
        above = pathlib.Path(path).parent
        assert after[path][1] == m.attacker.pw_uid, f"{path} was made, by user {after[path][1]}"
        assert above == m.root or above in m.bases() or str(above) in new, f"{path} was made"


def foreign_files(m):
    """What belongs to others among the attacker's files."""
    found = {}
    for folder in (m.job.prefix, *(base / USER for base in m.bases())):
        for path in (folder, *folder.rglob("*")):
            st = path.lstat()
            if st.st_ino in m.foreign:
                private = stat.S_ISREG(st.st_mode) and not st.st_mode & 0o002  # others the attacker may write, too
                found[st.st_ino] = (st.st_uid, st.st_gid, st.st_mode, path.read_bytes() if private else b"")
    return found


def check_own(m, known):
    """What is new among the attacker's files is the attacker's, and none has a secret; what belongs to others is as it was."""
    for inode, what in foreign_files(m).items():
        assert m.kept[inode] == what, f"a file of another user was changed: {m.kept[inode]} became {what}"
    for folder in (m.job.prefix, m.root / "tmp", *(base / USER for base in m.bases())):
        for path in (folder, *folder.rglob("*")):
            st = path.lstat()
            if st.st_ino not in known:
                assert st.st_uid == m.attacker.pw_uid, f"{path} was made, by user {st.st_uid}"
                assert not stat.S_ISREG(st.st_mode) or not st.st_mode & 0o6000, f"{path} has mode {st.st_mode:o}"
            if stat.S_ISREG(st.st_mode) and st.st_size < 1 << 24 and st.st_ino not in m.foreign:
                for secret in SECRETS.values():
                    assert secret not in path.read_bytes(), f"{path} has the secret"


def check_seen(m):
    for line in m.seen.read_text().splitlines():
        user, _, *groups = line.split()
        assert user == str(m.attacker.pw_uid) and not {"0", str(GROUP), str(m.victim.pw_gid)} & set(groups), f"a program ran as {line}"


def check_output(root, words, code, said):
    assert code >= 0 or code == -signal.SIGPIPE, f"{words} was ended by signal {-code}\n{said.decode(errors='replace')}"
    assert code != 2, f"{words} is no command\n{said.decode(errors='replace')}"
    for secret in SECRETS.values() if words[0] != "kvtree_print" else []:  # that prints the files that root names
        assert secret not in said, f"{words} shows the secret\n{said.decode(errors='replace')}"
    # the process of root masks what goes to a terminal; elsewhere only the commands themselves do so, not the program of a run
    text = said.decode("latin-1" if root.terminal and root.locale == "C" else "utf-8", errors="surrogateescape")
    found = (root.terminal or words[0] != "scr_run") and re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udcff]", text)
    assert not found, f"{words} prints {found.group()!r}{' to a terminal' if root.terminal else ''}\n{text!r}"
    assert b"runtime error" not in said and b"Sanitizer" not in said, said.decode(errors="replace")


def inodes(m):
    found = set()
    for folder in (m.job.prefix, m.root / "tmp", *(base / USER for base in m.bases())):
        found |= {path.lstat().st_ino for path in (folder, *folder.rglob("*"))}
    return found


def hostile_to_root(story, seed):
    import hostile
    draw = random.Random(f"{story} {seed}")
    job = stage(hostile.begin, story)
    for left in list(job.root.rglob("*.away")):
        drop(left)
    m = Machine(job)
    done = mutate(m, draw)
    root, tried = Root(m, draw), []
    before, known, m.kept = outside(m), inodes(m), foreign_files(m)
    chosen = draw.sample(commands(root.prefix, job, m.lair), COMMANDS_PER_POINT)
    exchange = begin_exchange(m, root, draw)
    try:
        for words in chosen:
            tried.append(" ".join(map(str, words)))
            answer = enter_later(root.run, words)
            if answer:
                check_output(root, words, *answer)
        if exchange:
            end_exchange(exchange)
            exchange = None
        put_back(m)
        compare(before, outside(m), m)
        check_own(m, known)
        check_seen(m)
    except AssertionError as error:
        raise AssertionError(f"{error}\nafter {done}\nroot ran {tried}") from None
    finally:
        if exchange:
            end_exchange(exchange)
        put_back(m)
    end_all()
    check_processes()
    return True


def end_exchange(process):
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def put_back(m):
    """Directories whose names links have now get them again."""
    for away in m.root.rglob("*.away"):
        folder = away.with_suffix("") if away.suffix == ".away" else away
        if folder.is_symlink() and not away.is_symlink():
            folder.unlink()
            away.rename(folder)
