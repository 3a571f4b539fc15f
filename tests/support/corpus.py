# SPDX-License-Identifier: BSD-3-Clause
"""Writes the initial inputs of fuzz targets, as chosen by libX/fuzz/make_corpus.py."""
import pathlib


def lines(tree, depth=0):
    """Writes a tree in the form of fuzz_lines.h; values may be numbers, texts or
    trees."""
    out = b""
    for key, value in tree.items():
        out += b" " * depth + str(key).encode() + b"\n"
        out += lines(value if isinstance(value, dict) else {value: {}}, depth + 1)
    return out


def write(script, targets):
    """targets: name of the target -> {name: bytes}. Inputs found by fuzzing, found-*,
    stay."""
    for target, inputs in targets.items():
        folder = pathlib.Path(script).resolve().parent / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if not old.name.startswith("found-"):
                old.unlink()
        for name, data in inputs.items():
            (folder / f"{name}.bin").write_bytes(data)
        print(f"{folder}: {len(inputs)} inputs")
