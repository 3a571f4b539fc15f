#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program that is linked to another library with functions of our names: each calls its own, in both orders, shared and
static, and where the other one is loaded before everything else.

Arguments: directory of libscr-kvtree; C compiler; link=ARGUMENT that static libraries need; program=FILE of each that is started with the
other library loaded first; mpiexec=FILE, and after it mpi=FILE of those that are started by it.
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from exports import declared
from house import LIBRARIES, ROOT, finish, public_headers

# Each function of the other library ends the program, unless it is called by who is meant.
OTHER = """#include <stdlib.h>
int other_may;
static char marker;
static void *answer(void) { if (!other_may) abort(); return &marker; }
"""
USER = """extern int other_may;
void *kvtree_new(void);
void *user_call(void);
void *user_call(void) { other_may = 1; void *given = kvtree_new(); other_may = 0; return given; }
"""
MAIN = """#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
void *user_call(void);
int main(int argc, char **argv)
{
    int value = 0;
    kvtree *tree = kvtree_new(), *read = kvtree_new();
    int rc = kvtree_util_set_int(tree, "KEY", 7);
    if (!rc) rc = kvtree_write_file(argv[1], tree);
    if (!rc) rc = kvtree_read_file(argv[1], read);
    if (!rc) rc = kvtree_util_get_int(read, "KEY", &value);
    if (rc || value != 7) return 1;
    void *first = user_call(), *second = user_call();
    if (!first || first != second) return 2; /* the marker, not a new tree each time */
    kvtree_delete(&tree);
    kvtree_delete(&read);
    return 0;
}
"""


def names():
    return sorted({name for room in LIBRARIES for header in public_headers(room) for name in declared(header)
                   if not name.startswith(("SCR_", "scr_"))})


def make(folder, compiler):
    """The other library, and one that uses it, both shared and static."""
    (folder / "other.c").write_text(OTHER + "".join(f"void *{name}(void);\nvoid *{name}(void) {{ return answer(); }}\n"
                                                    for name in names()))
    (folder / "user.c").write_text(USER)
    (folder / "main.c").write_text(MAIN)
    for name in ("other", "user"):
        run(*compiler, "-fPIC", "-c", folder / f"{name}.c", "-o", folder / f"{name}.o")
        run("ar", "rcs", folder / f"lib{name}.a", folder / f"{name}.o")
    run(*compiler, "-shared", folder / "other.o", "-o", folder / "libother.so")
    run(*compiler, "-shared", folder / "user.o", "-o", folder / "libuser.so", f"-L{folder}", "-lother")


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **more)


def attempt(what, *command, **more):
    """The complaint, or nothing."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode:
        yield f"{what}: exit code {done.returncode}: {(done.stdout + done.stderr)[-400:]}"


def try_orders(folder, library, compiler, needed):
    start = [*compiler, f"-I{ROOT}/libkvtree/include", folder / "main.c", "-Wl,--no-as-needed"]
    ours, others = ["-lscr-kvtree"], ["-luser", "-lother"]
    static = [library / "libscr-kvtree.a"], [folder / "libuser.a", folder / "libother.a"]
    rest = [f"-L{library}", f"-L{folder}", f"-Wl,-rpath,{library}:{folder}", *needed, "-lz"]
    for kind, (a, b) in (("shared", (ours, others)), ("static", static)):
        for order, libraries in (("ours first", a + b), ("the other first", b + a)):
            program = folder / f"main-{kind}-{order.replace(' ', '-')}"
            failed = list(attempt(f"{kind}, {order}: link", *start, *libraries, *rest, "-o", program))
            yield from failed or attempt(f"{kind}, {order}", program, folder / "tree")


def try_preloaded(folder, arguments):
    """Programs of ours that know nothing of it."""
    env = {**os.environ, "LD_PRELOAD": str(folder / "libother.so"), "SCR_CNTL_BASE": str(folder), "SCR_CACHE_BASE": str(folder),
           "SCR_PREFIX": str(folder), "SCR_JOB_ID": "clash"}
    launcher = []
    for kind, program in arguments:
        if kind == "mpiexec":
            launcher = ["env", "-u", "LD_PRELOAD", program, "-n", "1", "env", f"LD_PRELOAD={env['LD_PRELOAD']}"]
        else:
            yield from attempt(f"loaded before {program}", *(launcher if kind == "mpi" else []), program, env=env, cwd=folder)


def main(library, compiler, *arguments):
    with tempfile.TemporaryDirectory(prefix="scr-test-") as scratch:
        folder = pathlib.Path(scratch)
        make(folder, shlex.split(compiler))
        pairs = [argument.split("=", 1) for argument in arguments]
        needed = [value for kind, value in pairs if kind == "link"]
        yield from try_orders(folder, pathlib.Path(library), shlex.split(compiler), needed)
        yield from try_preloaded(folder, [pair for pair in pairs if pair[0] != "link"])


if __name__ == "__main__":
    finish(list(main(*sys.argv[1:])))
