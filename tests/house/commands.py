#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every command of tools/ has its source, its page and its test, and stands in the table of tools/README.md. The table of commands in
docs/migration.md names tests that exist. Each verb of scr has a page, and stands in the table of its own page."""
import re

from house import ROOT, finish

TOOLS = ROOT / "tools"


def check():
    places = {
        "commands/*.c": {path.stem for path in TOOLS.glob("commands/*.c") if "int main(" in path.read_text()},
        "commands/*.1": {path.stem for path in TOOLS.glob("commands/*.1")},
        "tests/*.py": {path.stem for path in [*TOOLS.glob("tests/scr.py"), *TOOLS.glob("tests/scr_*.py")]},
        "README.md": set(re.findall(r"^\| `(scr(?:_\w+)?)` \|", (TOOLS / "README.md").read_text(), re.MULTILINE)),
        # but for other names of a command: a line of their own, and the verbs
        "meson.build": set(re.findall(r"'(scr(?:_\w+)?)'", re.sub(r"^aliases \+= .*|shared_module\('\w+'|^foreach verb[^}]*", "",
                                                             (TOOLS / "meson.build").read_text(), flags=re.MULTILINE))),
    }
    everything = set().union(*places.values())
    assert len(everything) > 5, "the commands were not found"
    for place, names in places.items():
        for name in sorted(everything - names):
            yield f"{name} is missing in tools/{place}"


def check_migration():
    text = (ROOT / "docs/migration.md").read_text().split("### Commands of SCR 3.1")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| `.*", text, re.MULTILINE)]
    assert len(rows) > 15, "the table of docs/migration.md was not found"
    for row in rows:
        names = re.findall(r"`([\w/]+\.py|test_\w+)`", row[-1])
        file = None
        if not names or len(row) != 4:
            yield f"docs/migration.md: {row[0]}: it has no test"
        for name in names:
            if name.endswith(".py"):
                file = ROOT / name if "/" in name else TOOLS / "tests" / name
                if not file.is_file():
                    yield f"docs/migration.md: {row[0]}: there is no {name}"
            elif not file or not file.is_file() or f"\ndef {name}(" not in file.read_text():
                yield f"docs/migration.md: {row[0]}: there is no {name}"


def check_verbs():
    table = re.findall(r'^    \{"([\w-]+)", "(scr_\w+)", ', (TOOLS / "commands/scr.c").read_text(), re.MULTILINE)
    assert len(table) > 10, "the verbs were not found"
    places = {"tools/meson.build": re.findall(r"'([\w-]+)': '(scr_\w+)'", (TOOLS / "meson.build").read_text().split("foreach verb")[1].split("}")[0]),
              "tools/commands/scr.1": [(verb.replace("\\", ""), command) for verb, command in re.findall(
                  r"^\.B ([\w\\-]+)(?: .*)?\n.*\n?\.BR (scr_\w+) \(1\)", (TOOLS / "commands/scr.1").read_text(), re.MULTILINE)]}
    for place, found in places.items():
        yield from (f"{place}: {pair} is in one table of verbs alone" for pair in sorted(set(found) ^ set(table)))


finish([*check(), *check_migration(), *check_verbs()])
