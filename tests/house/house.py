# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the house share: its floors, its files, and how a failure is told.

The floors are those of docs/architecture.md. A room may use the rooms below it, and nothing else.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

SKIP = 77  # Meson's exit code for a test that cannot be made here

# room -> the rooms that it may use
BELOW = {
    "common": set(),
    "libkvtree": {"common"},
    "libaxl-lite": {"common", "libkvtree"},
    "libredset": {"common", "libkvtree"},
    "libfilo": {"common", "libkvtree", "libaxl-lite"},
    "libscr-core": {"common", "libkvtree", "libaxl-lite", "libredset", "libfilo"},
    "tools": {"common", "libkvtree", "libaxl-lite", "libredset", "libfilo", "libscr-core"},
}
LIBRARIES = [room for room in BELOW if room.startswith("lib")]


def files(*suffixes, rooms=tuple(BELOW) + ("tests",)):
    """All files of the rooms with one of the suffixes."""
    found = (path for room in rooms for path in (ROOT / room).rglob("*") if path.is_file())
    return sorted(path for path in found if path.suffix in suffixes)


def public_headers(room):
    return sorted((ROOT / room / "include").rglob("*.h"))


def without_comments(text):
    """C source without comments; line numbers stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: "\n" * found[0].count("\n"), text,
                  flags=re.DOTALL)


def exported(map_file, private=False):
    """The names that a symbol map lists: for everybody, or in nodes named *_PRIVATE, which are for
    the other parts of the same library."""
    text = without_comments(re.sub(r"#.*", "", map_file.read_text()))
    nodes = re.findall(r"(\w*)\s*\{(.*?)\}", text, re.DOTALL)
    listed = [re.search(r"global:(.*?)(local:|$)", body, re.DOTALL) for name, body in nodes
              if name.endswith("_PRIVATE") == private]
    return {name.strip() for found in listed if found for name in found[1].split(";")} - {""}


def finish(complaints):
    """Ends the test: every complaint on a line, and 1 if there was one."""
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints")
    sys.exit(1 if complaints else 0)
