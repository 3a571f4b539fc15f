#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of messages are sorted and used completely, a test compares each identifier, and docs/messages.md is made from them."""
import re
import sys

from house import LIBRARIES, ROOT, finish

sys.path.insert(0, str(ROOT / "docs"))
import messages  # noqa: E402

SOURCES = [path for folder in (*LIBRARIES, "common", "tools") for path in sorted((ROOT / folder).rglob("*.[ch]"))
           if not {"tests", "fuzz", "bench", "examples"} & set(path.parts)]
TESTS = [path for folder in ("tests", "tools/tests", *(f"{library}/tests" for library in LIBRARIES))
         for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".c", ".h", ".sh") and path.parent.name != "house"]
LONGEST = 40


def check_entry(entry):
    if not re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", entry.identifier) or len(entry.identifier) > LONGEST:
        yield "is no TOPIC_WHAT_HAPPENED"
    if entry.severity not in messages.SEVERITIES:
        yield f"has the severity {entry.severity}"
    for text in (entry.meaning, entry.cause, entry.remedy):
        if not re.fullmatch(r"[A-Z`].*\.", text, re.DOTALL):
            yield f"has a text that is no sentence: {text!r}"


def words(paths):
    return {word for path in paths for word in re.findall(r"\b[A-Z][A-Z0-9_]+\b", path.read_text(errors="replace"))}


def check_table(table, prefixes, found, used):
    for entry in found:
        yield from (f"{table}: {entry.identifier} {problem}" for problem in check_entry(entry))
        if not any(prefix + entry.identifier in used for prefix in prefixes):
            yield f"{table}: {entry.identifier} is not used"
    for one, two in zip(found, found[1:]):
        if one.topic == two.topic and one.identifier > two.identifier:
            yield f"{table}: {two.identifier} is not in order"


def main():
    used, names = words(SOURCES), []
    for table, (prefixes, *_) in messages.TABLES.items():
        found = messages.entries(table)
        names += [entry.identifier for entry in found]
        yield from check_table(table, prefixes, found, used)
    # the compiler knows all others
    literals = {name for path in SOURCES for name in re.findall(r'command_complain\(\s*"(\w+)"', path.read_text())}
    yield from (f"{name} is in no table" for name in sorted(literals - set(names)))
    yield from (f"{name} is there twice" for name in sorted({name for name in names if names.count(name) > 1}))
    if messages.DOC.read_text() != messages.page():
        yield f"{messages.DOC}: not as docs/messages.py makes it"
    compared = words(TESTS)
    yield from (f"{name} is compared by no test" for name in names if name not in compared)


if __name__ == "__main__":
    finish(list(main()))
