#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the shared libraries export, and what they need.

Arguments: how the name of MPI's library begins; PART=FILE for each library that was built, such as
kvtree-mpi=/.../libscr-kvtree-mpi.so. A library exports exactly what its map lists; needs only
libraries below it, with MPI only where MPI belongs; and does not print, exit or abort. libscr contains
the libraries below it, hidden, and needs none. Of a static
library that is private (FILE ends with .a) only its manners can be asked. plugin=FILE and command=FILE:
a plugin exports one table and uses no library of ours; a command needs no client of a database.
"""
import subprocess
import sys

from house import BELOW, ROOT, exported, finish

SYSTEM = ("libc.", "libm.", "libpthread.", "libdl.", "librt.", "libgcc_s.", "ld-linux", "libz.", "libisal.",
          "libasan.", "libubsan.", "libtsan.", "libclang_rt.")
EXTRA = {"scr": ("libyaml-0.",)}
PLUGIN_TABLE = "scr_log_plugin_table"
DATABASE = "libmariadb."
MPI_PARTS = {"kvtree-mpi", "redset-mpi", "filo-mpi", "scr"}

ENDS = {"exit", "_exit", "_Exit", "quick_exit", "abort", "raise", "__assert_fail", "MPI_Abort",
        "PMPI_Abort"}
PRINTS = {"stdout", "printf", "__printf_chk", "vprintf", "__vprintf_chk", "puts", "putchar"}
WARNS = {"stderr", "perror", "psignal", "warn", "warnx", "err", "errx"}
# What an object file of a library may use all the same: kvtree_print; the end of SCR's messages; SCR_HALT_EXIT.
ALLOWED = {"src_kvtree_print.c.o": PRINTS, "report_message.c.o": {"stderr"}, "ops_halt_exit.c.o": {"exit"}}
# What commands share, and the end of a process that scr_run forked.
ALLOWED_TO_TOOLS = PRINTS | WARNS | {"raise", "_exit"}
WHOLE = {"scr"} # contains what is below it


class Library:
    def __init__(self, part, path):
        self.part = part
        self.archive = path.split(".so")[0] + ".a" # the same objects
        self.map = next(ROOT.glob(f"lib*/{part}.map"))
        self.room = self.map.parent.name
        self.private = exported(self.map, private=True)
        self.defined = names("--defined-only", path)
        self.undefined = names("--undefined-only", path)
        self.needed = set(dynamic(path, "(NEEDED)"))
        self.soname = next(dynamic(path, "(SONAME)"))

    @property
    def may_use_mpi(self):
        return self.part in MPI_PARTS

    def is_below(self, other):
        """May other use this library?"""
        if self.may_use_mpi and not other.may_use_mpi:
            return False
        return self.room in BELOW[other.room] or (self.room == other.room and self is not other)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Archive:
    """A private static library: a serial part."""
    may_use_mpi = False

    def __init__(self, part, path):
        self.part, self.soname, self.archive = part, path.rsplit("/")[-1], path


def names(which, path):
    """Dynamic symbols without their versions; the names of versions themselves are of type A."""
    rows = (line.split() for line in run("nm", "-D", "-P", which, path).splitlines())
    return {row[0].split("@")[0] for row in rows if row[1] != "A"}


def dynamic(path, tag):
    """Names that the dynamic section gives under a tag."""
    for line in run("readelf", "-d", "-W", path).splitlines():
        if tag in line:
            yield line[line.index("[") + 1:line.rindex("]")]


def check_exports(library):
    listed = exported(library.map) | library.private
    if not listed:
        yield f"{library.map.name} lists nothing"
    for name in sorted(listed - library.defined):
        yield f"lists {name} in its map, but does not define it"
    for name in sorted(library.defined - listed):
        yield f"exports {name}, which its map does not list"


def check_needed(library, libraries, mpi):
    by_soname = {other.soname: other for other in libraries}
    for soname in sorted(library.needed):
        if soname in by_soname:
            if not by_soname[soname].is_below(library):
                yield f"needs {soname}, which is not below it"
            if library.part in WHOLE:
                yield f"needs {soname}, which it contains"
        elif soname.startswith(mpi):
            if not library.may_use_mpi:
                yield f"needs {soname}, but is a serial part"
        elif not soname.startswith(SYSTEM + EXTRA.get(library.part, ())):
            yield f"needs {soname}, which nobody told this test about"


def check_links(library, libraries):
    for other in libraries:
        shared = library.undefined & other.defined
        if shared and other.soname not in library.needed:
            yield f"uses {', '.join(sorted(shared))} of {other.soname} without being linked to it"
        if shared & other.private and other.room != library.room:
            yield f"uses {', '.join(sorted(shared & other.private))}, private to {other.room}"


def check_way(path):
    """The loader looks for libraries only where nobody else can put one: not below the current directory."""
    for tag in "(RUNPATH)", "(RPATH)":
        for way in dynamic(path, tag):
            if not all(folder.startswith(("/", "$ORIGIN")) for folder in way.split(":")):
                yield f"{path} loads libraries from the current directory, or below it: {way}"


def check_plugin(path):
    if names("--defined-only", path) != {PLUGIN_TABLE}:
        yield f"{path} exports {names('--defined-only', path)}, not {PLUGIN_TABLE} alone"
    for soname in dynamic(path, "(NEEDED)"):
        if not soname.startswith(SYSTEM + (DATABASE,)):
            yield f"{path} needs {soname}"


def check_command(path, mpi):
    for soname in dynamic(path, "(NEEDED)"):
        if soname.startswith((DATABASE, mpi)):
            yield f"{path} needs {soname}"


def members(archive):
    """Object file and undefined symbol."""
    for line in run("nm", "-A", "-P", "--undefined-only", archive).splitlines():
        where, name, *kind = line.split()
        if kind and kind[0] in "Uw":
            yield where[where.rindex("[") + 1:where.rindex("]")], name


def check_manners(library):
    for member, name in members(library.archive):
        if not library.may_use_mpi and name.startswith(("MPI_", "PMPI_", "MPIX_")):
            yield f"{member} uses {name}, but is of a serial part"
        allowed = ALLOWED_TO_TOOLS if library.part == "tools" else ALLOWED.get(member, ())
        if name in ENDS | PRINTS | WARNS and name not in allowed:
            yield f"{member} uses {name}: a library does not print, exit or abort"


def main(mpi, *arguments):
    parts = [argument.split("=", 1) for argument in arguments]
    complaints = [complaint for part, path in parts if part == "plugin" for complaint in check_plugin(path)]
    complaints += [complaint for part, path in parts if part == "command" for complaint in check_command(path, mpi)]
    complaints += [complaint for part, path in parts if not path.endswith(".a") for complaint in check_way(path)]
    parts = [part for part in parts if part[0] not in ("plugin", "command")]
    libraries = [Library(*part) for part in parts if not part[1].endswith(".a")]
    archives = [Archive(*part) for part in parts if part[1].endswith(".a")]
    assert libraries, "no library was built"
    for library in libraries:
        found = [*check_exports(library), *check_needed(library, libraries, mpi),
                 *check_links(library, libraries)]
        complaints += [f"{library.soname}: {complaint}" for complaint in found]
    for library in libraries + archives:
        complaints += [f"{library.soname}: {complaint}" for complaint in check_manners(library)]
    finish(complaints)


if __name__ == "__main__":
    main(*sys.argv[1:])
