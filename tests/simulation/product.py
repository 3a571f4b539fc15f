#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""product.py FOLDER OUTPUT ARCHIVE... -- PART...: links archives of the product, and the
parts that they use, into one object, in which the functions of redirected.txt are those
of the simulator. Fails if the product uses a function that is neither defined there nor
in pure.txt, the list of functions that depend only on their arguments: a new system call
must be simulated."""
import pathlib
import re
import subprocess
import sys


def names(path):
    return set(path.read_text().split())


def main(folder, output, *archives):
    folder = pathlib.Path(folder)
    redirected = names(folder / "redirected.txt")
    pairs = pathlib.Path(output + ".names")
    pairs.write_text("".join(f"{name} simulated_{name}\n" for name in sorted(redirected)))
    archives, parts = archives[:archives.index("--")], archives[archives.index("--") + 1:]
    subprocess.run(["ld", "-r", "-o", output, "--allow-multiple-definition", "--whole-archive", *archives, "--no-whole-archive", *parts],
                   check=True)
    subprocess.run(["objcopy", f"--redefine-syms={pairs}", "--weaken-symbol=scr_default", output], check=True)
    listed = subprocess.run(["nm", "-u", output], check=True, capture_output=True, text=True).stdout
    used = {line.split()[-1] for line in listed.splitlines()}
    ours = re.compile("simulated_|MPI_|smpi_|_GLOBAL_OFFSET_TABLE_")
    unknown = sorted(name for name in used - names(folder / "pure.txt") if not ours.match(name))
    if unknown:
        sys.exit(f"neither in redirected.txt nor in pure.txt: {' '.join(unknown)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
