#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every public header compiles alone; in C++, the example programs in C++ without a warning.

Arguments: the language standard (c11 or c++17), then the compiler's command.
"""
import shutil
import subprocess
import sys

from house import LIBRARIES, ROOT, SKIP, finish, public_headers


def mpi_flags():
    """Where mpi.h is; None without MPI."""
    found = subprocess.run(["pkg-config", "--cflags", "mpich"], capture_output=True, text=True)
    return found.stdout.split() if found.returncode == 0 else None


def compile_alone(command, room, header):
    name = header.relative_to(ROOT / room / "include").as_posix()
    done = subprocess.run([*command, "-"], input=f"#include <{name}>\nextern int nothing;\n", text=True,
                          capture_output=True)
    return f"{name}: {done.stderr.strip()}" if done.returncode else None


def compile_example(command, source):
    done = subprocess.run([*command, source], text=True, capture_output=True)
    return f"{source.name}: {done.stderr.strip()}" if done.returncode else None


def main(standard, *compiler):
    if not shutil.which(compiler[0]):
        print(f"no {compiler[0]} here")
        return SKIP
    mpi = mpi_flags()
    if mpi is None:
        print("no MPI here")
        return SKIP
    # the directory of mpi.h as a system's: warnings about it are not ours
    system = [flag.replace("-I", "-isystem", 1) for flag in mpi if flag.startswith("-I")]
    command = [*compiler, "-fsyntax-only", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic",
               "-Werror", "-x", "c++" if "++" in standard else "c", *system]
    command += [f"-I{ROOT / room / 'include'}" for room in LIBRARIES]
    results = [compile_alone(command, room, header)
               for room in LIBRARIES for header in public_headers(room)]
    assert len(results) > 5, "the headers were not found"
    if "++" in standard:
        examples = sorted(ROOT.glob("lib*/examples/*.cpp"))
        assert examples, "the examples were not found"
        results += [compile_example(command, source) for source in examples]
    finish([result for result in results if result])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
