#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The C sources are formatted as .clang-format says.

Only by the version named here: others break lines elsewhere.
"""
import shutil
import subprocess
import sys

from house import ROOT, SKIP, files, finish

VERSION = "14."


def check(program, path):
    done = subprocess.run([program, path], cwd=ROOT, check=True, capture_output=True)
    if done.stdout != path.read_bytes():
        yield f"{path.relative_to(ROOT)}: clang-format -i would change it"


def main():
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = program and subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if not version or f"version {VERSION}" not in version:
        print(f"no clang-format {VERSION}x here")
        return SKIP
    sources = files(".c", ".h")
    assert len(sources) > 20, "the sources were not found"
    return finish([complaint for path in sources for complaint in check(program, path)])


if __name__ == "__main__":
    sys.exit(main())
