#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completion for bash and zsh offers exactly the options of each manual page, the directories and files that options take, and works
in a shell that somebody types in. zsh is skipped where it is not installed.

Arguments: the files for bash and zsh, and the commands."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from house import ROOT, finish

BASH, ZSH, *COMMANDS = (pathlib.Path(path).resolve() for path in sys.argv[1:])
ENVIRONMENT = {**os.environ, "PATH": ":".join(dict.fromkeys(str(path.parent) for path in COMMANDS)) + ":" + os.environ["PATH"],
               "LC_ALL": "C", "TERM": "dumb", "HISTFILE": "/dev/null"}

# what the arguments would be given
ASK_BASH = """source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_scr
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASK_ZSH = """file=$1 words=($2 '')
_arguments() { print -l -- $@ }
setopt extendedglob
source $file
"""


def documented(command):
    """Options of the manual page, those with a value, and its name."""
    page = next(path for path in ROOT.rglob(f"{command}.1") if "build" not in path.relative_to(ROOT).parts[0])
    rows = re.findall(r'^\.BR (-\w) ", " (--[\w-]+)(?: " \\fI(.*)\\fR")?', page.read_text().replace("\\-", "-"), flags=re.MULTILINE)
    return {name: value for short, long, value in rows for name in (short, long)}


def ask(shell, script, *arguments, **how):
    done = subprocess.run([*shell, "-c", script, "ask", *map(str, arguments)], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, **how)
    return [line for line in done.stdout.splitlines() if line] + done.stderr.splitlines()


def check_options(command):
    wanted = documented(command)
    assert len(wanted) >= 4, (command, wanted)
    found = ask(["bash", "--norc"], ASK_BASH, BASH, command, "-")
    if set(found) != set(wanted):
        yield f"{command} in bash: {sorted(set(found) ^ set(wanted))}"
    if shutil.which("zsh"):
        # *--name=[text]:VALUE:action
        found = re.findall(r"^\*(-\w|--[\w-]+)=?\[", "\n".join(ask(["zsh", "-f"], ASK_ZSH, ZSH, command)), re.MULTILINE)
        if set(found) != set(wanted):
            yield f"{command} in zsh: {sorted(set(found) ^ set(wanted))}"


def check_values(folder):
    """Directories for --prefix, in each form; nothing for a number; files for what is no option."""
    for words, wanted in ((["scr_env", "--prefix", "d"], ["data"]), (["scr_env", "-p", "d"], ["data"]),
                          (["scr_env", "--prefix", "=", "d"], ["data"]), (["scr_env", "--prefix", "="], ["data"]),
                          (["scr_run", "--ranks", "d"], []), (["scr_env", "--man"], ["--manager"]), (["scr_env", "d"], [])):
        found = ask(["bash", "--norc"], ASK_BASH, BASH, *words, cwd=folder)
        if found != wanted:
            yield f"bash: {' '.join(words)}: {found}, not {wanted}"


def check_verbs(folder):
    """Verbs of scr; behind one, the options of its command, with its values."""
    for words, wanted in ((["scr", "l"], ["list"]), (["scr", "--prefix", "data", "ver"], ["verify"]), (["scr", "-p", "=", "data", "ver"], ["verify"]),
                          (["scr", "--pre"], ["--prefix"]), (["scr", "help", "ver"], ["verify"]), (["scr", "halt", "--che"], ["--checkpoints"]),
                          (["scr", "halt", "--prefix", "d"], ["data"]), (["scr", "--prefix", "d"], ["data"])):
        found = ask(["bash", "--norc"], ASK_BASH, BASH, *words, cwd=folder)
        if found != wanted:
            yield f"bash: {' '.join(words)}: {found}, not {wanted}"


# ---- somebody types ----

def typed(command, lines, keys, wanted, folder):
    """Whether the text appears after these keys in an interactive shell that has read the lines."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, ENVIRONMENT)
    text = b""
    os.write(terminal, f"{lines}; echo rea''dy\n".encode())
    until = time.monotonic() + 30
    while time.monotonic() < until and wanted.encode() not in text:
        if b"ready\r" in text and keys:
            text = b""
            os.write(terminal, keys.encode())
            keys = None
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                text += os.read(terminal, 4096)
            except OSError:
                break
    os.close(terminal)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return None if wanted.encode() in text else f"{command[0]}: no {wanted!r} in {text!r}"


def check_typed(folder):
    for keys, wanted in (("scr_env --mana\t", "--manager"), ("scr_env --prefix da\t", "data/"), ("scr verif\t", "verify"), ("scr help verif\t", "verify"),
                         ("scr halt --checkp\t", "--checkpoints"), ("scr halt --prefix da\t", "data/")):
        yield typed(["bash", "--norc", "-i"], f"PS1='$ '; source {BASH}", keys, wanted, folder)
        if shutil.which("zsh"):
            yield typed(["zsh", "-f", "-i"], f"fpath=({ZSH.parent} $fpath); autoload -U compinit; compinit -u -D", keys, wanted, folder)


def check():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/data")
        pathlib.Path(f"{folder}/dull").touch()
        for command in COMMANDS:
            yield from check_options(command.name)
        if any(command.name == "scr_env" for command in COMMANDS):
            yield from check_values(folder)
            yield from check_verbs(folder)
            yield from filter(None, check_typed(folder))
    if not shutil.which("zsh"):
        print("no zsh here")


finish(list(check()))
