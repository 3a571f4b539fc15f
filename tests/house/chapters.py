#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The chapters of libscr-core: what each includes and calls is in itself or in a chapter below it."""
import collections
import re

from house import ROOT, finish, without_comments

CORE = ROOT / "libscr-core"
BELOW = {
    "base": (),
    "config": ("base",),
    "plan": ("base", "config"),
    "report": ("base", "config", "plan"),
    "job": ("base", "config", "plan", "report"),
    "cache": ("base", "config", "plan", "report", "job"),
    "prefix": ("base", "config", "plan", "report", "job"),
    "halt": ("base", "config", "plan", "report", "job"),
    "ops": ("base", "config", "plan", "report", "job", "cache", "prefix", "halt"),
    "api": ("base", "config", "plan", "report", "ops"),
}
WORD = re.compile(r"\b[a-z_][a-z0-9_]*\b")
DEFINED = re.compile(r"^(?!static\b|typedef\b|return\b)[A-Za-z_][\w \*]*?\b(scr_[a-z0-9_]+)\([^;{]*\)\s*\n?\{", re.M)


def text_of(path):
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', without_comments(path.read_text()))


def sources(chapter):
    return sorted([*(CORE / chapter).glob("*.c"), *(CORE / chapter).glob("*.h")])


def homes():
    """{name of a function: its chapter}"""
    return {name: chapter for chapter in BELOW for path in sources(chapter) if path.suffix == ".c"
            for name in DEFINED.findall(text_of(path))}


def check():
    home = homes()
    assert len(home) > 100, "the functions were not found"
    for chapter, below in BELOW.items():
        allowed = {chapter, *below}
        for path in sources(chapter):
            name = path.relative_to(ROOT)
            for include in re.findall(r'#include "([a-z_]+)/[a-z_]+\.h"', path.read_text()):
                if include in BELOW and include not in allowed:
                    yield f"{name} includes {include}, which is not below {chapter}"
            used = collections.Counter(home[word] for word in WORD.findall(text_of(path)) if word in home)
            for other in sorted(set(used) - allowed):
                words = sorted({word for word in WORD.findall(text_of(path)) if home.get(word) == other})
                yield f"{name} calls {', '.join(words)} of {other}, which is not below {chapter}"


if __name__ == "__main__":
    finish(list(check()))
