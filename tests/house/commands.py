#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every command of tools/ has its source, its page and its test, and stands in the table of tools/README.md. The table of commands in
docs/migration.md names tests that exist. Each verb of scr has a page, and stands in the table of its own page. Command lines in documents have
options that the pages of their commands have."""
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


def pages():
    """The options of each command, as its page has them."""
    found = {path.stem: set(re.findall(r"--?[\w-]+", re.sub(r"\\f.|\\", "", path.read_text()))) for path in ROOT.glob("*/commands/*.1")}
    for verb, command in re.findall(r'^    \{"([\w-]+)", "(scr_\w+)", ', (TOOLS / "commands/scr.c").read_text(), re.MULTILINE):
        found[f"scr {verb}"] = found[command]
    return found


def command_lines(text):
    """What stands in code: blocks, with lines that go on, and words within a sentence."""
    block = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for language, lines in block.findall(text):
        yield from lines.replace("\\\n", " ").splitlines() if language in ("", "sh") else []
    yield from re.findall(r"`([^`\n]+)`", block.sub("", text))


def check_documents():
    options, seen = pages(), 0
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]:
        for line in command_lines(path.read_text()):
            for command, rest in re.findall(r"(?<![\w/-])(scr [\w-]+|(?:scr|redset|kvtree)_\w+)((?: +[^\s|;&)]+)*)", line):
                words = re.split(r" \.?/|\bPROGRAM\b", rest.split("#")[0])[0].split()
                for word in words if command in options else []:
                    seen += 1
                    if re.match(r"--?[a-zA-Z]", word) and word.split("=")[0] not in options[command]:
                        yield f"{path.relative_to(ROOT)}: {command} {word}: its page does not have this option"
    assert seen > 100, "the command lines were not found"


finish([*check_documents(), *check(), *check_migration(), *check_verbs()])
