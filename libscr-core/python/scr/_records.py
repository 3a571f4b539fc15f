# SPDX-License-Identifier: BSD-3-Clause
"""The index and the halt file of a prefix directory (docs/formats/scr.md). Reads them without libscr."""
from __future__ import annotations

import dataclasses
import datetime
import os
import re
from typing import List, Optional

from ._errors import FormatError, VersionError
from ._tree import INDEX, SMALL, FilePath, Tree, missing, read_tree

INDEX_VERSION = 1
ID_MAX, INT_MAX, INT64_MAX, UINT64_MAX = 10 ** 9, 2 ** 31 - 1, 2 ** 63 - 1, 2 ** 64 - 1
NAME_MAX, TEXT_MAX = 1023, 127  # bytes


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A dataset in the index. Times are local with their zone: "2026-11-22T18:30:00+01:00"."""

    id: int
    name: str
    valid: bool             # complete, and neither failed nor being deleted
    current: bool           # a restart tries this dataset first
    checkpoint: int         # its number; 0: not a checkpoint
    output: bool
    complete: bool
    failed: Optional[str]   # time of the last failure
    deleting: bool
    attempts: int           # number of restarts that began and did not end
    flushed: Optional[str]
    fetched: Optional[str]
    reason: Optional[str]   # why it is not complete
    created_us: int         # microseconds since 1970; 0: unknown
    ranks: int
    files: int
    size: int               # bytes
    bypass: bool
    scattered: bool
    user: str
    job_id: str
    job_name: str
    cluster: str

    @property
    def created(self) -> Optional[datetime.datetime]:
        """Time of creation in UTC; None if it is unknown."""
        try:
            epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
            return epoch + datetime.timedelta(microseconds=self.created_us) if self.created_us else None
        except OverflowError:
            return None


@dataclasses.dataclass(frozen=True)
class Halt:
    """The conditions of the halt file; None: no such condition."""

    reason: Optional[str]
    checkpoints_left: Optional[int]
    exit_after: Optional[int]   # seconds since 1970
    exit_before: Optional[int]  # the same
    seconds: Optional[int]      # before exit_before, or before the end of the allocation
    now: bool                   # scr_run ends the program immediately


# ---- fields ----

def _only(tree: Tree, key: str) -> Optional[str]:
    """Returns the text of a field; None if it is missing. Several values are damage."""
    if key not in tree:
        return None
    values = tree[key]
    if len(values) != 1:
        raise FormatError(f"{key} has {len(values)} values")
    return next(iter(values))


def _number(tree: Tree, key: str, least: int, most: int, default: int = 0) -> int:
    text = _only(tree, key)
    if text is None:
        return default
    if len(text) > 40 or not re.fullmatch(r"[+-]?[0-9]+", text) or not least <= int(text) <= most:
        raise FormatError(f"{key} is not a number from {least} to {most}")
    return int(text)


def _optional(tree: Tree, key: str, least: int = -INT64_MAX - 1, most: int = INT64_MAX) -> Optional[int]:
    """Returns a number; None if it is missing or invalid."""
    try:
        return _number(tree, key, least, most) if key in tree else None
    except FormatError:
        return None


def _size(tree: Tree) -> int:
    text = _only(tree, "SIZE")
    if text is not None and not re.fullmatch("[0-9]+", text):
        raise FormatError("SIZE is not a number of bytes")
    return _number(tree, "SIZE", 0, UINT64_MAX)


def _text(tree: Tree, key: str, most: int = TEXT_MAX) -> str:
    text = _only(tree, key) or ""
    if len(text.encode(errors="surrogateescape")) > most:
        raise FormatError(f"{key} is longer than {most} bytes")
    return text


def _name(tree: Tree) -> str:
    name = _text(tree, "NAME", NAME_MAX)
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or parts[0] == ".scr" or re.search("[\x00-\x1f\x7f]", name):
        raise FormatError("NAME is not a name of a dataset")
    return name


def _latest(entry: Tree, key: str) -> Optional[str]:
    values = entry.get(key, {})
    return max(values, key=lambda text: text.encode(errors="surrogateescape")) if values else None


def _time(entry: Tree, key: str) -> Optional[str]:
    """Returns the latest time of a field, with the zone of this machine, which the index does
    not have. A text that is no time is unchanged."""
    text = _latest(entry, key)
    try:
        return datetime.datetime.strptime(text or "", "%Y-%m-%dT%H:%M:%S").astimezone().isoformat()
    except (OSError, OverflowError, ValueError):
        return text


# ---- the index ----

def _dataset(entry: Tree, current: Optional[str]) -> Dataset:
    """Raises FormatError if the description is unusable."""
    told = entry.get("DSET", {})
    complete, failed = _optional(entry, "COMPLETE", -INT_MAX - 1, INT_MAX) == 1, _time(entry, "FAILED")
    deleting = bool(_optional(entry, "DELETING", -INT_MAX - 1, INT_MAX))
    name = _name(told)
    _number(told, "COMPLETE", 0, 1)
    return Dataset(
        id=_number(told, "ID", 1, ID_MAX, -1), name=name, valid=complete and "FAILED" not in entry and not deleting,
        current=current == name, checkpoint=_number(told, "CKPT", 0, ID_MAX), output=_number(told, "OUTPUT", 0, 1) == 1,
        complete=complete, failed=failed, deleting=deleting,
        attempts=_optional(entry, "ATTEMPTS", -INT_MAX - 1, INT_MAX) or 0, flushed=_time(entry, "FLUSHED"),
        fetched=_time(entry, "FETCHED"), reason=_latest(entry, "REASON"),
        created_us=_number(told, "CREATED", 0, INT64_MAX), ranks=_number(told, "RANKS", 1, INT_MAX),
        files=_number(told, "FILES", 0, INT64_MAX), size=_size(told), bypass=_number(told, "BYPASS", 0, 1) == 1,
        scattered=_number(told, "SCATTERED", 0, 1) == 1, user=_text(told, "USER"), job_id=_text(told, "JOBID"),
        job_name=_text(told, "JOBNAME"), cluster=_text(told, "CLUSTER"))


def _check_version(tree: Tree, path: str) -> None:
    version = _optional(tree, "VERSION", -INT_MAX - 1, INT_MAX)
    if version is None:
        raise FormatError(f"{path}: no version")
    if version != INDEX_VERSION:
        raise VersionError(f"{path}: version {version}; this program knows version {INDEX_VERSION}")


def index(prefix: FilePath = ".") -> List[Dataset]:
    """Returns the datasets in the index of a prefix directory, newest first, as scr_index lists
    them.

    Entries with an invalid description are omitted. Raises FileNotFoundError if there is no
    index, FormatError if it is damaged, and VersionError if it is of another version.
    """
    path = os.path.join(os.fsdecode(prefix), ".scr", "index.scr")
    tree = read_tree(path, INDEX)
    if not tree:
        raise missing(path)
    _check_version(tree, path)
    named = tree.get("CURRENT", {})
    current = next(iter(named)) if len(named) == 1 else None
    found = []
    for number, of_id in tree.get("DSET", {}).items():
        for name, entry in of_id.get("DIR", {}).items():
            try:
                dataset = _dataset(entry, current)
            except FormatError:
                continue
            if dataset.name == name and str(dataset.id) == number:
                found.append(dataset)
    return sorted(found, key=lambda dataset: (dataset.id, dataset.created_us), reverse=True)


# ---- the halt file ----

def halt(prefix: FilePath = ".") -> Halt:
    """Returns the halt conditions of a prefix directory. A missing file has none. Raises
    FormatError and VersionError."""
    try:
        tree = read_tree(os.path.join(os.fsdecode(prefix), ".scr", "halt.scr"), SMALL)
    except FileNotFoundError:
        tree = {}
    return Halt(
        reason=next(iter(tree.get("ExitReason", {})), None), exit_after=_optional(tree, "ExitAfter"),
        checkpoints_left=_optional(tree, "CheckpointsLeft", -INT_MAX - 1, INT_MAX),
        exit_before=_optional(tree, "ExitBefore"), seconds=_optional(tree, "HaltSeconds"),
        now="ExitNow" in tree)
