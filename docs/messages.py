#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/messages.md from the tables of messages. A table is a file of entries

    /* ---- title of a topic ---- */
    MESSAGE(TOPIC_WHAT_HAPPENED, SEVERITY, "meaning", "cause", "remedy")

that C includes for the identifiers and severities (common/message.h); the texts are for this script.
"""
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOC = ROOT / "docs/messages.md"
# each with what may precede its identifiers in C, and its part of the page
TABLES = {
    ROOT / "libscr-core/report/messages.def": (["SCR_MSG_"], "Messages of a run", "Lines that begin with `SCR: `."),
    ROOT / "tools/lib/messages.def": (["", "TOOL_MSG_"], "Messages of commands", "Lines that begin with the name of a command. "
                                      "Commands also print messages of a run."),
}
SEVERITIES = {"ERROR": "Error", "WARNING": "Warning", "NOTICE": "Notice", "INFO": "Information, with `SCR_DEBUG=1`",
              "DEBUG": "Information, with `SCR_DEBUG=2`"}
INTRODUCTION = """# Messages

This page is made by `docs/messages.py` from the tables in the sources.

A message is one line. It ends with an identifier in brackets, which is the same in all versions; the text before it may change, so scripts
should search for the identifier:

```
SCR: warning: 3 events were not logged to syslog [LOG_EVENTS_DROPPED]
```

A long text is cut, the identifier never. The notes of [events in the log](formats/log.md) have it, too. The text names the dataset, the node, the
file and the reason; this page explains what happened in general, and what to do. Notices, warnings and errors are always printed.
"""

Entry = collections.namedtuple("Entry", "topic identifier severity meaning cause remedy")
TEXT = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
ENTRY = re.compile(rf"MESSAGE\((\w+),\s*(\w+),\s*{TEXT},\s*{TEXT},\s*{TEXT}\)")
TITLE = re.compile(r"/\* ---- (.*) ---- \*/")


def joined(literals):
    """The text of adjacent string literals."""
    return re.sub(r"\\(.)", r"\1", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)))


def entries(table):
    """The entries of a table, if there is one; ValueError where it has anything else."""
    found, topic, text = [], "", re.sub(r"/\*(?! ----).*?\*/", "", table.read_text() if table.exists() else "", flags=re.DOTALL)
    while text := text.lstrip():
        title, entry = TITLE.match(text), ENTRY.match(text)
        if not title and not entry:
            raise ValueError(f"{table}: no entry: {text[:60]!r}")
        if title:
            topic = title[1]
        else:
            found.append(Entry(topic, entry[1], entry[2], *map(joined, entry.groups()[2:])))
        text = text[(title or entry).end():]
    return found


def page():
    text, topic = INTRODUCTION, None
    for table, (_, title, introduction) in TABLES.items():
        found = entries(table)
        text += f"\n## {title}\n\n{introduction}\n" if found else ""
        for entry in found:
            if entry.topic != topic:
                topic = entry.topic
                text += f"\n### {topic[0].upper()}{topic[1:]}\n"
            text += (f"\n#### {entry.identifier}\n\n**{SEVERITIES.get(entry.severity)}.** {entry.meaning}\n\n"
                     f"- Cause: {entry.cause}\n- Remedy: {entry.remedy}\n")
    return text


if __name__ == "__main__":
    DOC.write_text(page())
