#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The lists of the Debian packages in debian/ cover exactly the files that `meson install` puts: each file is in one
package, and no line of a list is in vain.

Arguments: build directory, meson.
"""
import fnmatch
import json
import pathlib
import subprocess
import sys

from house import ROOT, finish

BUILD, MESON = sys.argv[1:3]


def introspect(what):
    done = subprocess.run([MESON, "introspect", what, BUILD], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def installed():
    """Paths as in a package: usr/bin/scr_run. An empty directory of pages counts as one file."""
    options = {option["name"]: option["value"] for option in introspect("--buildoptions")}
    prefix, libdir = pathlib.PurePath(options["prefix"]), options["libdir"]
    for path in introspect("--installed").values():
        below = pathlib.PurePath(path).relative_to(prefix)
        if below.is_relative_to(libdir):
            below = pathlib.PurePath("lib/any") / below.relative_to(libdir)
        yield str("usr" / below)


def covers(pattern, path):
    """As dh_install does: * stands for anything in one component; a directory stands for all that is in it."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def check(lists, paths):
    for path in paths:
        packages = sorted({package for package, pattern in lists if covers(pattern, path)})
        if len(packages) != 1:
            yield f"{path} is in {' and '.join(packages) or 'no package'}; see debian/*.install"
    for package, pattern in lists:
        if not any(covers(pattern, path) for path in paths):
            yield f"debian/{package}.install: nothing is installed for {pattern}"


if __name__ == "__main__":
    found = [(file.stem, line.split()[0]) for file in sorted((ROOT / "debian").glob("*.install"))
             for line in file.read_text().splitlines() if line.strip()]
    assert len(found) > 10, "the lists were not found"
    names = sorted(set(installed()))
    assert len(names) > 50, "the installed files were not found"
    finish(list(check(found, names)))
