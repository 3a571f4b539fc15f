# SPDX-License-Identifier: BSD-3-Clause
"""The log of events of a prefix directory (docs/formats/log.md). Reads it without libscr."""
from __future__ import annotations

import dataclasses
import datetime
import errno
import json
import os
import re
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Union

from ._tree import FilePath, open_regular

LINE_MAX = 1 << 18  # bytes; the longest event has less than half of this
Value = Union[str, int, float]

_NUMBER = rb"-?[0-9]{1,20}(?:\.[0-9]{1,20})?"
_TEXT = rb'"(?:[^"\\\x00-\x1f\x7f]|\\["\\n]|\\x[0-9a-f]{2})*"'
_HEAD = re.compile(rb"(\S{27}) ([A-Z_]{1,64})")
_FIELD = re.compile(rb" ([a-z_]{1,32})=(?:(" + _NUMBER + rb")|(" + _TEXT + rb"))(?= |$)")
_ESCAPE = re.compile(rb'\\(?:(["\\n])|x([0-9a-f]{2}))')


@dataclasses.dataclass(frozen=True)
class Event:
    """An event: its time (in UTC), its name, such as "OUTPUT_COMPLETE", and its other fields."""

    time: datetime.datetime
    name: str
    fields: Mapping[str, Value]


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)


def _number(text: bytes) -> Value:
    return float(text) if b"." in text else int(text)


def _escaped(found: "re.Match[bytes]") -> bytes:
    if found[2]:
        return bytes.fromhex(found[2].decode())
    return b"\n" if found[1] == b"n" else found[1]


def _parse_text(line: bytes) -> Event:
    head = _HEAD.match(line)
    if not head:
        raise ValueError("no time and event")
    fields: Dict[str, Value] = {}
    at = head.end()
    while at < len(line):
        field = _FIELD.match(line, at)
        if not field:
            raise ValueError(f"no field at byte {at}")
        fields[field[1].decode()] = _number(field[2]) if field[2] else \
            _ESCAPE.sub(_escaped, field[3][1:-1]).decode(errors="surrogateescape")
        at = field.end()
    return Event(_time(head[1].decode()), head[2].decode(), fields)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _parse_json(line: bytes) -> Event:
    told = json.loads(line, parse_constant=_no_constant)
    if not isinstance(told, dict):
        raise ValueError("no object")
    if not all(isinstance(value, (str, int, float)) and not isinstance(value, bool) for value in told.values()):
        raise ValueError("a field is no text and no number")
    for key in [key for key in told if key.endswith("_hex")]:
        told[key[:-4]] = bytes.fromhex(str(told.pop(key))).decode(errors="surrogateescape")
    time, name = told.pop("time", None), told.pop("event", None)
    if not isinstance(time, str) or not isinstance(name, str):
        raise ValueError("no time and event")
    return Event(_time(time), name, told)


def parse_event(line: Union[str, bytes]) -> Event:
    """Returns the event in one line of a text file or of JSON lines. Raises ValueError."""
    data = line.encode(errors="surrogateescape") if isinstance(line, str) else line
    data = data.rstrip(b"\r\n")
    try:
        return _parse_json(data) if data.startswith(b"{") else _parse_text(data)
    except RecursionError:
        raise ValueError("too many levels") from None


def _open_both(path: str) -> List[BinaryIO]:
    """Opens the file that was put aside at SCR_LOG_SIZE, and the current file, if they exist."""
    while True:
        # the current file first: if it is put aside meanwhile, it is found twice
        found: List[BinaryIO] = []
        for each in (path, path + ".1"):
            try:
                found.insert(0, open_regular(each))
            except FileNotFoundError:
                pass
        if len(found) < 2 or not os.path.sameopenfile(found[0].fileno(), found[1].fileno()):
            return found
        for file in found:
            file.close()


def _open_log(prefix: FilePath) -> List[BinaryIO]:
    """Opens the text files, or else the files of JSON lines."""
    paths = [os.path.join(os.fsdecode(prefix), ".scr", name) for name in ("log", "log.jsonl")]
    for path in paths:
        found = _open_both(path)
        if found:
            return found
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), paths[0])


def _events(file: BinaryIO) -> Iterator[Event]:
    cut = False
    while True:
        line = file.readline(LINE_MAX)
        if not line:
            return
        whole = line.endswith(b"\n") or len(line) < LINE_MAX
        if whole and not cut:
            try:
                yield parse_event(line)
            except ValueError:
                pass
        cut = not whole


def log(prefix: FilePath = ".", path: Optional[FilePath] = None) -> Iterator[Event]:
    """Yields the events in the log of a prefix directory (one or two files), or in the file
    path, in the order of the files.

    Lines that are not events, such as one that a full disk has cut off, are skipped. Raises
    FileNotFoundError if there is no log: SCR_LOG_ENABLE=1 creates one.
    """
    files = [open_regular(path)] if path else _open_log(prefix)
    try:
        for file in files:
            yield from _events(file)
    finally:
        for file in files:
            file.close()
