#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every parameter has a test that observes its effect: parameters.md beside this script names one for each, and that test
names the parameter."""
import ast
import re

from house import ROOT, finish

TABLE = ROOT / "libscr-core/config/parameter_table.c"
DOC = ROOT / "tests/house/parameters.md"
ROW = re.compile(r"^\| `(SCR_\w+)` \| `([\w/.-]+)` (?:`(test_\w+)` )?\|$", re.MULTILINE)


def parameters():
    return re.findall(r'^    \{"(SCR_\w+)", \w+, (?:NULL|"[^"]*"), [^,]+, ', TABLE.read_text(), re.MULTILINE)


def function(path, name):
    """Its source; None: there is none."""
    text = path.read_text()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_source_segment(text, node)
    return None


def check(parameter, file, test):
    path = ROOT / file
    if not path.is_file():
        return f"{DOC}: {parameter}: there is no {file}"
    text = function(path, test) if test else path.read_text()
    if text is None:
        return f"{DOC}: {parameter}: {file} has no {test}"
    if not re.search(rf"\b{parameter}\b", text):
        return f"{DOC}: {parameter}: {file} {test} does not set it"
    return None


def main():
    rows = ROW.findall(DOC.read_text())
    named, wanted = [row[0] for row in rows], parameters()
    if len(wanted) < 50:
        yield f"{TABLE}: only {len(wanted)} parameters were understood"
    for parameter in wanted:
        if named.count(parameter) != 1:
            yield f"{DOC}: {parameter} has {named.count(parameter)} tests, not one"
    for parameter in set(named) - set(wanted):
        yield f"{DOC}: {parameter} is not a parameter"
    yield from filter(None, (check(*row) for row in rows))


if __name__ == "__main__":
    finish(list(main()))
