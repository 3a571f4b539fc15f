#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An #include may only point down the floors, and mpi.h stays where MPI belongs."""
import re

from house import BELOW, LIBRARIES, ROOT, files, finish, public_headers, without_comments

# public header, as it is included -> the library it belongs to
OWNER = {header.relative_to(ROOT / room / "include").as_posix(): room
         for room in LIBRARIES for header in public_headers(room)}

# Public headers that declare a type alone, so that every room may use them: there is nothing to link
TYPES = {"kvtree/kvtree_error.h"}

# Headers of others that users bring along
FOREIGN = {"tv_data_display.h"}

# Where MPI may be used besides in files with _mpi in their name: the chapters of libscr-core, but for the sources
# that commands use, too, with the headers of the same names
MPI_PLACES = re.compile(r"libscr-core/(api|ops|job|cache|prefix|halt|include)/|tests/|[^/]+/(tests|examples|bench)/")
RECORDS = set(re.findall(r"'([a-z]+/\w+)\.c'",
                         (ROOT / "libscr-core/meson.build").read_text().split("'scr-records'")[1].split("common[")[0]))


def is_mpi_header(name):
    return name == "mpi.h" or name.endswith("_mpi.h")


def may_use_mpi(path):
    place = path.relative_to(ROOT).as_posix()
    if place.removeprefix("libscr-core/").rsplit(".", 1)[0] in RECORDS:
        return False
    return "mpi" in path.stem.split("_")[1:] or MPI_PLACES.match(place)


def candidates(path, room):
    """Directories in which an include in quotes is looked up."""
    records = [ROOT / "libscr-core"] if room == "tools" else []
    return [path.parent, ROOT / room, ROOT, *records, ROOT / "tests/support"]


def check_include(path, quote, name):
    """Complaint about one include, or None."""
    room = path.relative_to(ROOT).parts[0]
    if is_mpi_header(name) and not may_use_mpi(path):
        return f"{name} is for MPI, and this file is not"
    if room == "tests":
        return None
    allowed = BELOW[room] | {room}
    if name in OWNER:
        return None if OWNER[name] in allowed or name in TYPES else f"{name} of {OWNER[name]} is not below {room}"
    if quote == "<" or name in FOREIGN:
        return None
    target = next((folder / name for folder in candidates(path, room) if (folder / name).is_file()), None)
    if target is None:
        return f"{name} is not found"
    owner = target.resolve().relative_to(ROOT).parts[0]
    in_public = "include" in path.relative_to(ROOT).parts
    if in_public:
        return f"a public header includes the private {name}"
    if owner == "tests":
        in_test = {"tests", "bench", "fuzz"} & set(path.relative_to(ROOT).parts)
        return None if in_test else f"{name} is for tests"
    return None if owner in allowed else f"{name} of {owner} is not below {room}"


def check(path):
    lines = without_comments(path.read_text()).splitlines()
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)', line)
        complaint = check_include(path, *found.groups()) if found else None
        if complaint:
            yield f"{path.relative_to(ROOT)}:{number}: {complaint}"


if __name__ == "__main__":
    sources = files(".c", ".h")
    assert len(sources) > 20, "the sources were not found"
    finish([complaint for path in sources for complaint in check(path)])
