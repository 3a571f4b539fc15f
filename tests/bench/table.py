#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs all benchmarks of a build directory and writes docs/benchmarks.md.

    tests/bench/table.py BUILD

The text around the tables is that of benchmarks.md.in beside this script, where ${bench_kvtree}
stands for the tables that the program of that name prints (without the middle of long ones), and ${machine} for what the numbers depend on.
"""
import json
import os
import pathlib
import re
import string
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUTPUT = HERE.parents[1] / "docs/benchmarks.md"


# libraries that the figures depend on
USED = ("mpich", "zlib", "libisal", "jansson")


LONG = 12  # rows, beyond which a table shows only the first and the last case


def shorten(text):
    """Tables without the blanks that align columns; a long one only for the first and the last value of its first
    column, and then of its second."""
    tables = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
              for table in text.split("\n\n")]
    return "\n\n".join(shorten_table(table) if len(table) > 2 else "\n".join("|".join(row) for row in table)
                       for table in tables)


def shorten_table(table):
    head, rule, *rows = table
    for column in 0, 1:
        ends = rows[0][column], rows[-1][column]
        if len(rows) > LONG and ends[0] != ends[1]:
            rows = [row for row in rows if row[column] in ends]
    rule = ["--:" if cell.endswith(":") else "---" for cell in rule]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def run(command, **more):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def measure(build, benchmark):
    """The tables that a program prints, shortened."""
    print(f"{benchmark['name']} ...", file=sys.stderr)
    environment = {**os.environ, **benchmark["env"]}
    return shorten(run(benchmark["cmd"], cwd=build, env=environment, timeout=benchmark["timeout"]).strip())


def first_match(path, pattern):
    found = re.search(pattern, pathlib.Path(path).read_text())
    return found[1].strip() if found else "unknown"


def about_machine(info):
    """Lines about this machine and this build; neither names nor paths."""
    compiler = info("targets")[0]["target_sources"][0]["compiler"][0]
    options = {option["name"]: option["value"] for option in info("buildoptions")}
    versions = {library["name"]: library["version"] for library in info("dependencies")}
    memory = int(first_match("/proc/meminfo", r"MemTotal:\s*(\d+)")) / 2**20
    processor = first_match("/proc/cpuinfo", r"model name\s*:(.*)")
    yield f"- processor: {processor}, {os.cpu_count()} cores"
    yield f"- memory: {memory:.0f} GiB"
    yield f"- compiler: {run([compiler, '--version']).splitlines()[0]}, build type {options['buildtype']}"
    yield f"- libraries: {', '.join(f'{name} {version}' for name, version in versions.items() if name in USED)}"
    yield f"- load of the machine before the first benchmark: {os.getloadavg()[0]:.1f} (it should be 0)"


def main(build):
    def info(what):
        return json.loads((pathlib.Path(build) / f"meson-info/intro-{what}.json").read_text())

    run(["ninja", "-C", build])
    fill = {"machine": "\n".join(about_machine(info))}
    fill.update((benchmark["name"], measure(build, benchmark)) for benchmark in info("benchmarks"))
    template = string.Template((HERE / "benchmarks.md.in").read_text())
    OUTPUT.write_text(template.substitute(fill))
    print(f"wrote {OUTPUT}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except (OSError, subprocess.SubprocessError) as problem:
        sys.exit(f"table.py: {problem}")
