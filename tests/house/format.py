#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The C sources are formatted as .clang-format says.

Only by the version named here: others break lines elsewhere.
"""
import re
import shutil
import subprocess
import sys

from house import ROOT, SKIP, files, finish

VERSION = "14."


def check(program, paths):
    """One complaint per file: clang-format itself has one per line."""
    done = subprocess.run([program, "--dry-run", "-Werror", *paths], cwd=ROOT, capture_output=True,
                          text=True)
    changed = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", done.stderr, re.MULTILINE)))
    yield from (f"{path}: clang-format -i would change it" for path in changed)
    if done.returncode and not changed:
        yield done.stderr


def main():
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = program and subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if not version or f"version {VERSION}" not in version:
        print(f"no clang-format {VERSION}x here")
        return SKIP
    sources = files(".c", ".h")
    assert len(sources) > 20, "the sources were not found"
    return finish(list(check(program, [path.relative_to(ROOT) for path in sources])))


if __name__ == "__main__":
    sys.exit(main())
