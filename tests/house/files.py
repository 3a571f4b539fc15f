#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every file is short, clean, and says its licence; every source is built."""
import ast
import re

from house import BELOW, ROOT, files, finish

SOURCES = {".c", ".h", ".py", ".sh", ".f90"}
TEXTS = {".md", ".build", ".map", ".txt", ".wrap", ".yaml", ".yml", ""}
MOST_LINES = 600
CORPUS_FILES, CORPUS_BYTES = 200, 200_000  # of a fuzz target: less than that
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"


def is_script(text):
    return text.startswith("#!")


def check(path):
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    if (path.suffix in SOURCES or is_script(text)) and LICENCE not in "\n".join(lines[:3]):
        yield "no licence line in the first three lines"
    if path.suffix in SOURCES and len(lines) > MOST_LINES:
        yield f"{len(lines)} lines, more than {MOST_LINES}"
    if text and not text.endswith("\n"):
        yield "no newline at the end"
    for number, line in enumerate(lines, 1):
        if "\t" in line or "\r" in line:
            yield f"line {number} has a tab or a carriage return"
        if line != line.rstrip():
            yield f"line {number} ends in blanks"


def check_names(path):
    """A second function of the same name would silently replace the first: a test would be lost. Types may have several."""
    seen = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and "overload" not in map(ast.unparse, node.decorator_list):
            if node.name in seen:
                yield f"line {node.lineno} defines {node.name} again"
            seen.add(node.name)


def check_corpora():
    """What every clone of the repository carries stays small."""
    for corpus in sorted(ROOT.glob("*/fuzz/corpus/*")):
        sizes = [path.stat().st_size for path in corpus.iterdir()]
        if len(sizes) >= CORPUS_FILES or sum(sizes) >= CORPUS_BYTES:
            yield f"{corpus.relative_to(ROOT)}: {len(sizes)} files of {sum(sizes)} bytes are too many"


def check_built():
    """A test that no list names would never run."""
    for room in (*BELOW, "tests"):
        build = " ".join(path.read_text() for path in sorted((ROOT / room).rglob("meson.build")))
        for path in files(".c", ".cpp", ".f90", rooms=[room]):
            if not re.search(rf"['/]{path.stem}({path.suffix})?'", build):
                yield f"{path.relative_to(ROOT)}: no meson.build of {room} builds it"


def everything():
    """Files of the project: not those of build directories, and not unpacked subprojects."""
    top = [path for path in ROOT.iterdir() if path.is_file()]
    folders = [path for name in (".ci", "docs", "packaging", "subprojects/packagefiles")
               for path in (ROOT / name).rglob("*") if path.is_file()]
    inside = files(*SOURCES, *TEXTS)
    return [path for path in sorted({*top, *folders, *inside}) if path.suffix in SOURCES | TEXTS]


if __name__ == "__main__":
    found = everything()
    assert len(found) > 40, "the files were not found"
    finish([f"{path.relative_to(ROOT)}: {complaint}" for path in found for complaint in check(path)] +
           [f"{path.relative_to(ROOT)}: {complaint}" for path in found if path.suffix == ".py"
            for complaint in check_names(path)] +
           list(check_corpora()) + list(check_built()))
