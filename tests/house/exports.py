#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A public header declares exactly the functions that its library's symbol maps list."""
import re

from house import LIBRARIES, ROOT, exported, finish, public_headers, without_comments


def declared(header):
    """Names of the functions (and extern objects) that a header declares."""
    text = without_comments(header.read_text())
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = text.replace('extern "C" {', "")
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*(?=;)", "", text, flags=re.DOTALL)
    while "{" in text and re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", "", text)
    for statement in text.split(";"):
        statement = statement.strip().lstrip("}").strip()
        if statement.startswith("typedef"):
            continue
        found = re.match(r"[\w\s*]+?\b(\w+)\s*\(", statement) or \
            re.match(r"extern [\w\s*]*?\b(\w+)(\[.*\])?$", statement)
        if found:
            yield found[1]


def check(room):
    in_headers = {name for header in public_headers(room) for name in declared(header)}
    in_maps = {name for path in (ROOT / room).glob("*.map") for name in exported(path)}
    for name in sorted(in_headers - in_maps):
        yield f"{room}: {name} is declared in a public header, but no map lists it"
    for name in sorted(in_maps - in_headers):
        yield f"{room}: {name} is listed in a map, but no public header declares it"
    if not in_headers:
        yield f"{room}: no public function found"


if __name__ == "__main__":
    finish([complaint for room in LIBRARIES for complaint in check(room)])
