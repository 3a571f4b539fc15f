#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each library's README shows its example programs word for word, and docs/guide.md the shortest ones.

The build makes and runs those in C, and a test runs those in Python, so what a README shows works. A library's meson.build
must name each of them.
"""
from house import LIBRARIES, ROOT, finish


def check_example(room, example, readme):
    program = example.read_text().strip()
    if program not in readme:
        yield f"{room}/README.md does not show {example.name} as it is"
    if example.suffix == ".c" and f"'{example.stem}'" not in (ROOT / room / "meson.build").read_text():
        yield f"{room}/meson.build does not build {example.name}"


def check(room):
    path = ROOT / room / "README.md"
    examples = sorted(path for path in (ROOT / room / "examples").glob("example_*") if path.suffix in {".c", ".py"})
    if not path.is_file():
        yield f"{room} has no README.md"
        return
    if not examples:
        yield f"{room} has no examples/example_*.c"
    for example in examples:
        yield from check_example(room, example, path.read_text())


def check_top():
    """The first program in the README at the top is that of libscr-core."""
    first = ROOT / "libscr-core/examples/example_scr.c"
    if not first.is_file() or first.read_text().strip() not in (ROOT / "README.md").read_text():
        yield "README.md does not show libscr-core/examples/example_scr.c as it is"


def check_guide():
    guide = (ROOT / "docs/guide.md").read_text()
    examples = ROOT / "libscr-core/examples"
    hello = [*examples.glob("hello*"), *(examples / "cmake").iterdir()]
    if len(hello) < 4:
        yield "the programs of docs/guide.md were not found"
    for example in sorted(hello):
        if example.read_text().strip() not in guide:
            yield f"docs/guide.md does not show {example.relative_to(ROOT)} as it is"


if __name__ == "__main__":
    finish([complaint for room in LIBRARIES for complaint in check(room)] + list(check_top()) + list(check_guide()))
