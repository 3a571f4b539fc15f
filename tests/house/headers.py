#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every public header compiles alone; in C++, the example programs in C++ without a warning.

Arguments: the build directory, the language standard (c11 or c++17), then the compiler's command.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from house import LIBRARIES, ROOT, SKIP, finish, public_headers


def mpi_flags(build):
    """Where mpi.h is, by what pkg-config says of SCR as it lies in the build directory; None without SCR."""
    env = {**os.environ, "PKG_CONFIG_PATH": f"{build}/meson-uninstalled"}
    found = subprocess.run(["pkg-config", "--cflags", "scr"], env=env, capture_output=True, text=True)
    if found.returncode:
        return None
    ours = [f"-I{folder}" for folder in (ROOT, pathlib.Path(build).resolve())]
    return [flag for flag in found.stdout.split()
            if flag not in ours and not flag.startswith(tuple(f"{folder}/" for folder in ours))]


def compile_alone(command, room, header):
    name = header.relative_to(ROOT / room / "include").as_posix()
    done = subprocess.run([*command, "-"], input=f"#include <{name}>\nextern int nothing;\n", text=True,
                          capture_output=True)
    return f"{name}: {done.stderr.strip()}" if done.returncode else None


def compile_example(command, source):
    done = subprocess.run([*command, source], text=True, capture_output=True)
    return f"{source.name}: {done.stderr.strip()}" if done.returncode else None


def main(build, standard, *compiler):
    if not shutil.which(compiler[0]):
        print(f"no {compiler[0]} here")
        return SKIP
    mpi = mpi_flags(build)
    if mpi is None:
        print("SCR is not built here")
        return SKIP
    # the directory of mpi.h as a system's: warnings about it are not ours
    system = [flag.replace("-I", "-isystem", 1) for flag in mpi]
    command = [*compiler, "-fsyntax-only", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic",
               "-Werror", "-x", "c++" if "++" in standard else "c", *system]
    command += [f"-I{ROOT / room / 'include'}" for room in LIBRARIES] + [f"-I{build}/libscr-core/include"]
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
