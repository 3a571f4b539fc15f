#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A public header declares exactly the functions that its library's symbol maps list, each by a name that nobody else has
(docs/decisions/0020-unique-symbols.md); and Fortran has every
call and every constant of scr.h, with its module and without it."""
import re

from house import LIBRARIES, ROOT, exported, finish, public_headers, without_comments


def declared(header):
    """Names of the functions (and extern objects) that a header declares."""
    text = without_comments(header.read_text())
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = text.replace('extern "C" {', "")
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*(?=;)", "", text, flags=re.DOTALL)
    while "{" in text and re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", "", text)
    for statement in text.split(";"):
        statement = statement.strip().lstrip("}").strip()
        if statement.startswith("typedef"):
            continue
        found = re.match(r"[\w\s*]+?\b(\w+)\s*\(", statement) or \
            re.match(r"extern [\w\s*]*?\b(\w+)(\[.*\])?$", statement)
        if found:
            yield found[1]


def renamed(room):
    """What functions are called in the libraries, where their headers give them other names."""
    text = "".join(header.read_text() for header in public_headers(room))
    return dict(re.findall(r"^#define (\w+) (scr_\w+)$", text, re.MULTILINE))


def check(room):
    names = renamed(room)
    declared_names = {name for header in public_headers(room) for name in declared(header)}
    for name in sorted(set(names) - declared_names):
        yield f"{room}: {name} gets another name, but no public header declares it"
    for name, other in sorted(names.items()):
        if other != "scr_" + name:
            yield f"{room}: {name} is called {other}, not scr_{name}"
    if room != "libscr-core":
        for name in sorted(declared_names - set(names)):
            yield f"{room}: {name} gets no name of its own by a line in ..._names.h"
    in_headers = {names.get(name, name) for name in declared_names}
    in_maps = {name for path in (ROOT / room).glob("*.map") for name in exported(path)}
    for name in sorted(in_headers - in_maps):
        yield f"{room}: {name} is declared in a public header, but no map lists it"
    for name in sorted(in_maps - in_headers):
        yield f"{room}: {name} is listed in a map, but no public header declares it"
    if not in_headers:
        yield f"{room}: no public function found"


def constants_of_c(text):
    """The numbers that scr.h defines, by name."""
    found = re.findall(r"^#define[ \t]+(SCR_\w+)[ \t]+(?:\\\n[ \t]*)?(?:\(1 << )?(\d+)(\)?)", text, re.MULTILINE)
    return {name: 1 << int(value) if shifted else int(value) for name, value, shifted in found}


def check_fortran():
    folder, header = ROOT / "libscr-core/fortran", ROOT / "libscr-core/include/scr.h"
    wanted = constants_of_c(without_comments(header.read_text()))
    # a format with arguments of any type is nothing for Fortran
    calls = {name.lower() for name in declared(header)} - {"scr_configf"}
    module, plain = (folder / "scr.f90").read_text(), (folder / "scrf.inc").read_text()
    external = (folder / "scr_external.f90").read_text()
    public = " ".join(re.findall(r"^ +public :: (.*)$", module, re.MULTILINE))
    for name, text in ("scr.f90", module), ("scrf.inc", plain):
        got = {constant: int(value) for constant, value in
               re.findall(r"parameter(?:, public)? :: (SCR_\w+) = (\d+)", text)}
        if got != wanted:
            yield f"{name} has other constants than scr.h: {set(got.items()) ^ set(wanted.items())}"
    for name, got in (("scr.f90", re.findall(r"\w+", public)), ("scrf.inc", re.findall(r"external (\w+)", plain)),
                      ("scr_external.f90", re.findall(r"^subroutine (\w+)", external, re.MULTILINE))):
        if set(got) != calls:
            yield f"{name} has other calls than scr.h: {set(got) ^ calls}"


if __name__ == "__main__":
    finish([complaint for room in LIBRARIES for complaint in check(room)] + list(check_fortran()))
