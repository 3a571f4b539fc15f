#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each public function has a manual page, made from the comment above it, and no page has a warning.

Argument: the directory of the pages of section 3 that the build has made. In scr.h, each call that returns a
code names those that it can return.
"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from house import LIBRARIES, ROOT, finish, public_headers  # noqa: E402
from exports import declared  # noqa: E402
sys.path.insert(0, str(ROOT / "docs/man"))
import pages  # noqa: E402

OVERVIEW = ROOT / "docs/man/scr.7"
COMMAND = re.compile(r"^\.BR (\w+) \(1\)", re.MULTILINE)


def target(page):
    """The page that a page is, or is a link to."""
    found = re.match(r"\.so man3/(\S+)\n$", page.read_text())
    return page.with_name(found[1]) if found else page


def check_header(header, folder):
    read = pages.Header(header)
    for name in read.undocumented:
        yield f"{header}: {name} has no comment above it"
    for name in set(declared(header)) - {name for section in read.sections for name in section.functions}:
        yield f"{header}: {name} is not understood by {pages.__file__}"
    for name in declared(header):
        page = folder / f"{name}.3"
        if not page.is_file():
            yield f"{header}: {name} has no page in {folder}"
        elif not target(page).is_file() or name not in target(page).read_text():
            yield f"{page} does not lead to a page about {name}"


def check_codes():
    """In scr.h."""
    header = pages.Header(ROOT / "libscr-core/include/scr.h")
    for section in header.sections:
        for block in section.blocks:
            calls = [name for name, text in block.prototypes.items() if text.startswith("int ")]
            if calls and not re.search(r"\b[Rr]eturns? .*SCR_(ERR_|FAILURE)", block.comment, re.DOTALL):
                yield f"{header.path}: {', '.join(calls)}: the comment does not say which codes are returned"


def warnings(shown):
    """Those of all pages; one man for each only where there are any."""
    found = run_man(*shown)
    if found and len(shown) > 1:
        return [line for page in shown for line in warnings([page])]
    return [f"{shown[0]}: {line}" for line in found]


def run_man(*shown):
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", *shown], capture_output=True, text=True)
    return done.stderr.splitlines()


def main(folder):
    folder = pathlib.Path(folder)
    headers = [header for room in LIBRARIES for header in public_headers(room)]
    # where only some libraries are built, only these have pages
    built = [header for header in headers if (folder / f"{header.name}.3").is_file()]
    assert built, f"no pages in {folder}"
    for header in built:
        yield from check_header(header, folder)
    yield from check_codes()
    for command in COMMAND.findall(OVERVIEW.read_text()):
        if not list(ROOT.glob(f"*/commands/{command}.1")):
            yield f"{OVERVIEW}: there is no {command}(1)"
    if not shutil.which("man") or not shutil.which("groff"):
        print("no man here: warnings are not looked for")
        return
    yield from warnings([OVERVIEW, *(page for page in sorted(folder.glob("*.3")) if target(page) == page)])


if __name__ == "__main__":
    finish(list(main(sys.argv[1])))
