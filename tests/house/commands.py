#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every command of tools/ has its source, its page and its test, and stands in the table of tools/README.md."""
import re

from house import ROOT, finish

TOOLS = ROOT / "tools"


def check():
    places = {
        "commands/*.c": {path.stem for path in TOOLS.glob("commands/*.c") if "int main(" in path.read_text()},
        "commands/*.1": {path.stem for path in TOOLS.glob("commands/*.1")},
        "tests/*.py": {path.stem for path in TOOLS.glob("tests/scr_*.py")},
        "README.md": set(re.findall(r"^\| `(scr_\w+)` \|", (TOOLS / "README.md").read_text(), re.MULTILINE)),
        # but for other names of a command: a line of their own
        "meson.build": set(re.findall(r"'(scr_\w+)'", re.sub(r"^aliases \+= .*|shared_module\('\w+'", "", (TOOLS / "meson.build").read_text(),
                                                             flags=re.MULTILINE))),
    }
    everything = set().union(*places.values())
    assert len(everything) > 5, "the commands were not found"
    for place, names in places.items():
        for name in sorted(everything - names):
            yield f"{name} is missing in tools/{place}"


finish(list(check()))
