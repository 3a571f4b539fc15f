# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first inputs of fuzz targets; libX/fuzz/make_corpus.py tells which."""
import pathlib


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
