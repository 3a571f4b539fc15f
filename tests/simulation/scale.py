#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of docs/scale.md, from the output of the program `scale`.

    scale.py SCALE DOCS NODES...     runs it on numbers of nodes, and writes the tables into DOCS/scale.md

Every figure of a step is A + B x NODES, computed from two numbers of nodes; the others
are verified to be on the same line. The test `simulation` compares its counts with the
formulas in the page."""
import pathlib
import re
import subprocess
import sys

FIGURES = ("collectives", "messages", "most", "bytes", "calls", "most_calls", "prefix", "memory", "time")
LINES = ("messages", "bytes", "calls", "prefix")  # which have a formula
BY_STEP = "| step | collectives | messages | bytes sent | system calls | ... on the prefix directory |"
HEAD = {"formulas": BY_STEP + " memory of a rank [KiB] |\n| --- |" + " --: |" * 6, "million": BY_STEP + "\n| --- |" + " --: |" * 5,
        "counts": "| nodes | step | collectives | messages/rank | most | bytes/rank | system calls/rank | most | prefix directory/rank | "
                  "memory [KiB] | virtual ms |\n| --: | --- |" + " --: |" * 9}
FAR = 10**6
NEAR = 0.01  # names of files and nodes have more digits on more nodes


def parse(text):
    """Returns {step: {nodes: {figure: value}}} from the output of the program."""
    steps = {}
    for line in text.splitlines()[1:]:
        nodes, step, *values = line.split("\t")
        row = dict(zip(FIGURES, map(float, values)))
        row["memory"] /= 1024
        steps.setdefault(step, {})[int(nodes)] = row
    return steps


def line_of(rows, figure):
    """(A, B) of A + B x nodes, from the fewest and the most nodes."""
    few, many = min(rows), max(rows)
    slope = (rows[many][figure] - rows[few][figure]) / (many - few)
    return rows[few][figure] - slope * few, slope


def complaints(step, rows, lines):
    """Lists values that differ from a formula by more than a hundredth, and by more than
    2."""
    for figure, (base, slope) in lines.items():
        for nodes, row in rows.items():
            told = base + slope * nodes
            if abs(row[figure] - told) > max(2, NEAR * told):
                yield f"{step}: {figure} on {nodes} nodes: {row[figure]:.0f}, by the formula {told:.0f}"


def formula(base, slope):
    base, slope = round(base), round(slope, 2 if abs(slope) < 10 else 0)
    if abs(slope) * FAR < max(1, NEAR * abs(base)) or not slope:
        return f"{base}"
    term = "P" if slope == 1 else f"{slope:.10g} P"
    return term if not base else f"{base} + {term}" if base > 0 else f"{term} - {-base}"


def value(text):
    """Returns (A, B) of a formula text."""
    match = re.fullmatch(r"(?:(\d+)(?: \+ |$))?(?:([\d.]+ )?(P)(?: - (\d+))?)?", text)
    assert match and text, f"no formula: {text!r}"
    base, slope, grows, less = match.groups()
    return float(base or 0) - float(less or 0), float(slope or 1) if grows else 0.0


def formulas(page):
    """{step: (collectives, {figure: (A, B)}, memory)} of the page."""
    table = {}
    for line in between(page, "formulas").splitlines()[2:]:
        step, collectives, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        table[step] = float(collectives), {figure: value(cell) for figure, cell in zip(LINES, cells)}, float(cells[-1])
    return table


def check(text, page):
    """Compares the output of the program with the formulas of the page."""
    steps, table = parse(text), formulas(page)
    wrong = [f"{step}: not the steps of the page" for step in set(steps) ^ set(table)]
    for step in set(steps) & set(table):
        collectives, lines, memory = table[step]
        wrong += complaints(step, steps[step], lines)
        wrong += [f"{step}: {row['collectives']:.0f} collective calls on {nodes} nodes, not {collectives:.0f}"
                  for nodes, row in steps[step].items() if row["collectives"] != collectives]
        wrong += [f"{step}: {row['memory']:.0f} KiB on {nodes} nodes, not {memory:.0f}"
                  for nodes, row in steps[step].items() if row["memory"] > (1 + NEAR) * memory]
    if wrong:
        sys.exit("\n".join(wrong) + "\ndocs/scale.md tells something else; tests/simulation/scale.py writes its tables")
    return f"scale: {len(steps)} steps cost what docs/scale.md tells"


def marks(name):
    return f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"


def between(page, name):
    begin, end = marks(name)
    return page[page.index(begin) + len(begin):page.index(end)]


def put(page, name, rows):
    begin, end = marks(name)
    return page[:page.index(begin) + len(begin)] + "\n".join([HEAD[name], *rows]) + "\n" + page[page.index(end):]


def main(program, docs, *nodes):
    text = subprocess.run([program, *nodes], check=True, capture_output=True, text=True).stdout
    path = pathlib.Path(docs) / "scale.md"
    page, steps = path.read_text(), parse(text)
    told, far, counted = [], [], []
    for step, rows in steps.items():
        # beyond SCR_FLUSH_WIDTH, ranks flush in waves; with less than 32 nodes, less than
        # 3 are lost
        rows = {nodes: row for nodes, row in rows.items() if 32 <= nodes <= 256}
        lines = {figure: line_of(rows, figure) for figure in LINES}
        print(*complaints(step, rows, lines), sep="\n")
        cells = [f"{step} | {rows[32]['collectives']:.0f}"]
        memory = max(row["memory"] for row in rows.values())
        told.append("| " + " | ".join(cells + [formula(*lines[figure]) for figure in LINES] + [f"{memory:.0f}"]) + " |")
        far.append("| " + " | ".join(cells + [f"{base + slope * FAR:,.0f}" for base, slope in lines.values()]) + " |")
    for number in sorted({number for rows in steps.values() for number in rows}):
        for step, rows in steps.items():
            r = rows[number]
            counted.append(f"| {number} | {step} | {r['collectives']:.0f} | {r['messages'] / number:.1f} | {r['most']:.0f} | "
                           f"{r['bytes'] / number:.0f} | {r['calls'] / number:.1f} | {r['most_calls']:.0f} | "
                           f"{r['prefix'] / number:.1f} | {r['memory']:.0f} | {r['time']:.1f} |")
    for name, rows in (("formulas", told), ("million", far), ("counts", counted)):
        page = put(page, name, rows)
    path.write_text(page)


if __name__ == "__main__":
    main(*sys.argv[1:])
