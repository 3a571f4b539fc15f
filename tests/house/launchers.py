#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/administration.md have every launcher and batch system that scr_run knows, say of each how it is tested, and name
tests that exist and speak of it. README.md has the first table without the tests."""
import re

from house import ROOT, finish

DOC = ROOT / "docs/administration.md"
LAUNCHERS = ROOT / "tools/run/launcher_table.c"
MANAGERS = ROOT / "tools/lib/tool_manager_table.c"
HOW = {"real", "stand-in", "documents", "-"}


def tables():
    """Rows of the two tables of the section, each a list of cells."""
    text = DOC.read_text(encoding="utf-8").split("### Launchers and batch systems")[1].split("\n### ")[0]
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines())
        yield head, rows


def check_test(path, name):
    """A function of that name, in a file that exists."""
    file = ROOT / path
    if not file.is_file():
        yield f"{DOC}: there is no {path}"
    elif not re.search(rf"^(def|static void) {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
        yield f"{DOC}: {path} has no {name}"


def check_rows(head, rows, known):
    named = set()
    for row in rows:
        named |= set(re.findall(r"\(`([a-z]+)`\)", row[0]))
        tests = re.findall(r"`([\w/]+\.(?:py|c))` `(test_\w+)`", row[-1])
        if len(row) != len(head) or not tests:
            yield f"{DOC}: {row[0]}: it has no test"
        for cell, title in zip(row[1:-1], head[1:-1]):
            if (title == "tested" or "MPI" in title or "Intel" in title) and cell not in HOW:
                yield f"{DOC}: {row[0]}: {title}: {cell!r} is none of {', '.join(sorted(HOW))}"
        for test in tests:
            yield from check_test(*test)
    for name in sorted(known ^ named):
        yield f"{DOC}: {name} is {'not in the table' if name in known else 'no row of the code'}"


def check():
    (head, launchers), (other_head, managers) = tables()
    for path, rows, titles in ((LAUNCHERS, launchers, head), (MANAGERS, managers, other_head)):
        known = set(re.findall(r'^    \{\.name = "(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE))
        assert len(known) > 3, f"{path}: the names were not found"
        yield from check_rows(titles, rows, known)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in (head, *launchers):
        if "| " + " | ".join(row[:5]) + " |\n" not in readme:
            yield f"{ROOT}/README.md: it has no line of {row[0]}, {row[1]} as {DOC}"


finish(list(check()))
