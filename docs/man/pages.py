#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the manual pages of section 3 from the public headers.

    pages.py OUTPUT VERSION HEADER...

OUTPUT becomes a directory of pages. A header NAME.h has one page NAME.h.3 with its introduction, its types
and its constants, and one page for each of its sections ("---- title ----" in a comment) that has functions.
NAME.3 is a link to NAME.h.3, but for scr, whose page scr.7 is written by hand. A section's page has the name of the section's first function; the other functions are links to it. A prototype
becomes SYNOPSIS, the comment above it DESCRIPTION. The name of a library for pkg-config comes from its
header: scr for scr.h, scr-FOLDER for FOLDER/NAME.h, scr-FOLDER-mpi for FOLDER/NAME_mpi.h.
"""
import pathlib
import re
import shutil
import sys

TITLE = re.compile(r"^---- (.*?) ----")
FUNCTION = re.compile(r"[\w\s*]+?\b(\w+)\s*\(")
WIDTH = 72  # of a prototype in one line: with its margin it fits a terminal of 80 columns


class Block:
    """A comment with what stands below it: prototypes, types, constants."""

    def __init__(self, comment):
        self.comment = comment
        self.prototypes = {}  # name -> text
        self.code = []


class Section:
    def __init__(self, title, comment=""):
        self.title, self.comment = title, comment
        self.blocks = []

    @property
    def functions(self):
        return [name for block in self.blocks for name in block.prototypes]


class Header:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.include = self.path.as_posix().split("/include/")[-1]
        folder, mpi = self.include.rpartition("/")[0], "-mpi" if self.path.stem.endswith("_mpi") else ""
        self.library = f"scr-{folder}{mpi}" if folder else self.path.stem
        text = self.path.read_text()
        intro = re.search(r"#define \w+_H\n\s*(/\*.*?\*/)", text, re.DOTALL)
        self.comment = comment_text(intro[1]) if intro else ""
        self.title = re.split(r"\.\s", " ".join(self.comment.split()) + " ")[0]
        body = re.search(r'extern "C" \{\n#endif\n(.*)#ifdef __cplusplus', text, re.DOTALL)
        # a list of other names for functions has no such brackets, and no pages
        self.sections = list(read_sections(body[1], self.title)) if body else []

    @property
    def pages(self):
        """Sections with functions; they have a page each."""
        return [section for section in self.sections if section.functions]

    @property
    def undocumented(self):
        return [name for section in self.sections for block in section.blocks if not block.comment
                for name in block.prototypes]


def comment_text(comment):
    """The text of a comment, without its decoration."""
    lines = comment.strip()[2:-2].split("\n")
    return "\n".join([lines[0].strip(), *(re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines[1:])]).strip()


def pieces(text):
    """The comments, directives, declarations and blank lines (None) of a header, in turn."""
    token = re.compile(r"/\*.*?\*/(?=[ \t]*\n)|#(?:[^\n]*\\\n)*[^\n]*|\s+", re.DOTALL)
    while text:
        found = token.match(text)
        if found:
            piece = found[0]
            if piece.strip():
                yield piece
            elif piece.count("\n") > 1:
                yield None
            text = text[found.end():]
            continue
        end = declaration_end(text)
        yield text[:end]
        text = text[end:]


def declaration_end(text):
    """Where a declaration ends: behind the semicolon outside of braces, and a comment in that line."""
    depth = 0
    for found in re.finditer(r"/\*.*?\*/|[{};]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if found[0] == ";" and depth == 0:
            tail = re.match(r"[ \t]*/\*.*?\*/", text[found.end():], re.DOTALL)
            return found.end() + (tail.end() if tail else 0)
    raise ValueError(f"no end of a declaration: {text[:60]!r}")


def read_sections(text, title):
    section, block = Section(title), None
    for piece in pieces(text):
        if piece is None:
            block = None
        elif piece.startswith("/*"):
            comment = comment_text(piece)
            heading = TITLE.match(comment)
            if heading:
                yield section
                section, block = Section(heading[1], comment[heading.end():].strip()), None
            else:
                block = Block(comment)
                section.blocks.append(block)
        elif re.match(r"#(?!define\s+\w+\s+\S)", piece):
            block = None
        else:
            if block is None:
                block = Block("")
                section.blocks.append(block)
            add_declaration(block, piece)
    yield section


def add_declaration(block, piece):
    function = not re.match(r"#|typedef|struct|enum|union", piece) and FUNCTION.match(piece)
    if function:
        attribute = re.sub(r"\s*__attribute__\s*\(\(.*\)\)", "", piece, flags=re.DOTALL)
        block.prototypes[function[1]] = " ".join(attribute.split())
    else:
        block.code.append(piece)


# ---- the pages ----

def plain(text):
    """Text as roff takes it."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    text = text.replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"(?m)^\.", "\\&.", text)


def code(text):
    return f".EX\n{plain(text)}\n.EE"


def kind_of(line):
    """A line of an example, the first one of an item in a list, or text."""
    return "code" if line.startswith("    ") else "item" if re.match(r" *- ", line) else "text"


def parts(text):
    """The parts of a comment, each a kind and its lines: examples, items and paragraphs."""
    found = []
    for line in text.split("\n") + [""]:
        kind = kind_of(line)
        last = found[-1] if found else ("", [])
        goes_on = kind == last[0] != "item" or (last[0] == "item" and line.startswith("  ") and kind != "item")
        if not line:
            found.append(("", []))
        elif goes_on:
            last[1].append(line)
        else:
            found.append((kind, [line]))
    return [part for part in found if part[1]]


def paragraphs(text, names, separator):
    """A comment as roff; the names of functions stand out."""
    emphasis = re.compile(r"\b(" + "|".join(sorted(names, key=len, reverse=True)) + r")\b(?!\.h)")
    done = []
    for kind, lines in parts(text):
        if kind == "code":
            indent = min(len(line) - len(line.lstrip()) for line in lines)
            done.append(code("\n".join(line[indent:] for line in lines)))
        else:
            done.append(emphasis.sub(r"\\fB\1\\fR", plain(" ".join(" ".join(lines).split()))))
    return f"\n{separator}\n".join(done)


def synopsis(header, section):
    yield f".nf\n.B #include <{header.include}>"
    for block in section.blocks:
        if block.prototypes:
            yield ".PP"
        for prototype in block.prototypes.values():
            yield f".B {broken(prototype)}"
    yield ".fi\n.PP"
    yield f"Flags for compiler and linker: \\fBpkg\\-config \\-\\-cflags \\-\\-libs {plain(header.library)}\\fR"


def broken(prototype):
    """A prototype in lines of at most WIDTH characters."""
    name = FUNCTION.match(prototype)
    lines = [prototype[:name.end()]]
    for argument in re.findall(r"[^,]+,?\s*", prototype[name.end():]):
        if len(lines[-1] + argument.rstrip()) > WIDTH:
            lines.append("    ")
        lines[-1] += argument
    return "\n.B ".join(f'"{plain(line.rstrip())}"' for line in lines)


def shared(header):
    """Where a page's functions have more in common than their section says."""
    yield f".BR {header.path.name} (3)\ndescribes what all functions of this header share, such as their return values.\n.PP"


def description(section, names):
    if section.comment:
        yield paragraphs(section.comment, names, ".PP")
    for block in section.blocks:
        if block.prototypes:
            yield f".TP\n.B {plain(', '.join(name + '()' for name in block.prototypes))}"
        else:
            yield ".PP"
        if block.comment:
            yield paragraphs(block.comment, names, ".IP" if block.prototypes else ".PP")
        if block.code:
            yield (".IP\n" if block.prototypes else ".PP\n") + code("\n".join(block.code))


def page(title, version, name_line, *parts):
    yield '.\\" Made from the public headers by docs/man/pages.py.'
    yield f'.TH {plain(title)} 3 "" "SCR {version}" "Library functions"'
    yield f".nh\n.SH NAME\n{name_line}"
    for heading, lines in parts:
        yield f'.SH "{heading}"'
        yield from lines


def name_line(names, title):
    title = title[0].lower() + title[1:] if title[:2].istitle() else title
    return f"{', '.join(names)} \\- {plain(title)}"


def section_page(header, section, version, names):
    others = [other.functions[0] for other in header.pages if other is not section]
    see = [f"{header.path.name}", *others]
    return page(section.functions[0], version, name_line(section.functions, section.title),
                ("SYNOPSIS", synopsis(header, section)), ("DESCRIPTION", [*shared(header), *description(section, names)]),
                ("SEE ALSO", [references(see)]))


def references(names):
    return ",\n".join(f".BR {plain(name)} (3)" if i == len(names) - 1 else f".BR {plain(name)} (3),"
                      for i, name in enumerate(names)).replace(",\n.BR", "\n.BR")


def header_page(header, version, names):
    parts = [("SYNOPSIS", [f".nf\n.B #include <{header.include}>\n.fi"]),
             ("DESCRIPTION", [paragraphs(header.comment, names, ".PP")])]
    if header.pages:
        parts.append(("FUNCTIONS", [f".TP\n.BR {plain(section.functions[0])} (3)\n"
                                    f"{plain(section.title)}: {plain(', '.join(section.functions))}"
                                    for section in header.pages]))
    types = Section("")
    types.blocks = [block for section in header.sections if not section.functions for block in section.blocks]
    if types.blocks:
        parts.append(("TYPES AND CONSTANTS", description(types, names)))
    parts.append(("SEE ALSO", [references([section.functions[0] for section in header.pages])]))
    return page(header.path.name, version, name_line([header.path.name], header.title), *parts)


def write_pages(output, version, headers):
    names = {name for header in headers for section in header.sections for name in section.functions}
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)

    def write(name, lines):
        (output / f"{name}.3").write_text("\n".join(lines) + "\n")

    for header in headers:
        if not header.sections:
            continue
        write(header.path.name, header_page(header, version, names))
        if header.path.stem != "scr":
            write(header.path.stem, [f".so man3/{header.path.name}.3"])
        for section in header.pages:
            first, *others = section.functions
            write(first, section_page(header, section, version, names))
            for name in others:
                write(name, [f".so man3/{first}.3"])


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    write_pages(pathlib.Path(sys.argv[1]), sys.argv[2], [Header(path) for path in sys.argv[3:]])
