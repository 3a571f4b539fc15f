# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first inputs of fuzz targets; libX/fuzz/make_corpus.py tells which."""
import pathlib


def lines(tree, depth=0):
    """A tree as fuzz_lines.h reads it; values may be numbers, texts or trees."""
    out = b""
    for key, value in tree.items():
        out += b" " * depth + str(key).encode() + b"\n"
        out += lines(value if isinstance(value, dict) else {value: {}}, depth + 1)
    return out


def write(script, targets):
    """targets: name of the target -> {name: bytes}. What was found by fuzzing, found-*, stays."""
    for target, inputs in targets.items():
        folder = pathlib.Path(script).resolve().parent / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if not old.name.startswith("found-"):
                old.unlink()
        for name, data in inputs.items():
            (folder / f"{name}.bin").write_bytes(data)
        print(f"{folder}: {len(inputs)} inputs")
