# SPDX-License-Identifier: BSD-3-Clause
"""Blocks around the calls: a session, an output, and attempts to restart."""
from __future__ import annotations

import logging
import os
import pickle
import struct
import zlib
from types import TracebackType
from typing import Any, Callable, Iterator, List, Optional, Tuple, Type, TypeVar, Union, overload

from . import _calls, _library
from ._calls import FLAG_BYPASS, FLAG_CHECKPOINT, FLAG_OUTPUT, Params, Parts, Path, Paths
from ._errors import Error, StateError
from ._library import ERR_DISABLED, ERR_INVALID, ERR_STATE, FAILURE, SUCCESS, State

T = TypeVar("T")
U = TypeVar("U")
Refusal = Union[Type[BaseException], Tuple[Type[BaseException], ...]]

# Exceptions from reading a damaged file. Any other exception is a mistake of the program (such as a
# KeyError after a change of the data that it saves), which must not mark good checkpoints as failed.
READ_ERRORS: Tuple[Type[BaseException], ...] = (OSError, EOFError, ValueError, struct.error, zlib.error, pickle.UnpicklingError)
_log = logging.getLogger("scr")


class session:
    """Runs SCR for the duration of a block: init() and finalize().

        with scr.session():
            ...

    An exception, or sys.exit() with another code than 0, leaves SCR as a crash would, without
    finalize(): the other ranks would not reach it, and scr_run must start the program again.
    At exit, this process then ends all ranks by MPI_Abort.
    """

    def __init__(self, comm: Any = None, params: Optional[Params] = None) -> None:
        self._arguments = comm, params

    def __enter__(self) -> session:
        _calls.init(*self._arguments)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], reason: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        code = reason.code if isinstance(reason, SystemExit) else None
        if reason is None or (isinstance(reason, SystemExit) and code in (None, 0)):
            if _library.is_in_run():
                _calls.finalize()
        else:
            State.exit_code = code if isinstance(code, int) else 1


def _place(dataset: Optional[str], name: Path) -> str:
    """Returns the path of a file below the prefix directory: the current directory may differ,
    also at the restart."""
    text = os.fsdecode(name)
    prefix = _calls.config("SCR_PREFIX")
    return text if dataset is None or prefix is None else os.path.join(prefix, dataset, text)


class Output:
    """A dataset that is being written; see output()."""

    def __init__(self, name: Optional[Path], flags: int) -> None:
        self.name = None if name is None else os.fsdecode(name)
        self._flags = flags

    def route(self, name: Path) -> str:
        """Returns the path at which to write a file of the dataset.

        name is relative to the directory of the dataset.
        """
        return self._usable(_calls.route_file(_place(self.name, name)))

    def part(self, name: Path, offset: int, length: int) -> Tuple[str, int]:
        """Returns the path and position for writing a part of a file that ranks write together.

            path, at = out.part("state", scr.rank() * len(data), len(data))
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
                file.seek(at)
                file.write(data)

        The part has length bytes from offset on. Parts of different ranks must not overlap, and
        each rank must write exactly its parts. open(path, "wb") would truncate the file, which
        contains the bytes of other ranks if it is on the prefix directory.
        """
        path, at = _calls.route_file_part(_place(self.name, name), offset, length)
        return self._usable(path), at

    @staticmethod
    def _usable(path: str) -> str:
        if State.phase != "output":  # SCR is disabled and makes no directories
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return path

    def __enter__(self) -> Output:
        _calls.start_output(self.name, self._flags)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], reason: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        code = _calls._complete("SCR_Complete_output", reason is None)
        if reason is None and code not in (SUCCESS, ERR_DISABLED):
            raise _library.error("SCR_Complete_output", code)


def output(name: Optional[Path] = None, *, checkpoint: bool = True, output: bool = False, bypass: bool = False) -> Output:
    """Returns a block that writes a dataset. Collective.

        with scr.output("ckpt.7") as out:
            with open(out.route(f"rank_{rank}"), "wb") as file:
                ...

    checkpoint: the program can restart from it. output: it must be copied to the prefix
    directory. bypass: it is written to the prefix directory, not to the cache, so that ranks
    may write one file by MPI-IO. Without a name, the dataset is called scr.dataset.<id>, and
    its files keep the paths given to route().

    The dataset is complete if the blocks of all ranks end normally. If the block of a rank
    raises an exception, the dataset is removed on all ranks. The exception continues on that
    rank, and the other ranks get Error with the code ERR_INVALID. A program that continues
    without the checkpoint catches both. ERR_FLUSH: the dataset is complete, but not copied.
    """
    kinds = (checkpoint, FLAG_CHECKPOINT), (output, FLAG_OUTPUT), (bypass, FLAG_BYPASS)
    return Output(name, sum(flag for wanted, flag in kinds if wanted))


class Restart:
    """A checkpoint that is offered; see restarts().

    name: name of the dataset
    accepted: whether all ranks have read it
    error: the exception with which this rank refused it
    """

    def __init__(self, name: str, refuse: Refusal) -> None:
        self.name = name
        self.accepted = False
        self.error: Optional[BaseException] = None
        self.opened = False
        self._refuse = refuse

    def _place(self, name: Path) -> str:
        return _place(None if self.name.startswith("scr.dataset.") else self.name, name)

    def route(self, name: Path) -> str:
        """Returns the path at which to read a file of the checkpoint.

        name: as for Output.route(), or as from files().
        """
        return _calls.route_file(self._place(name))

    def part(self, name: Path, offset: int, length: int) -> Tuple[str, int]:
        """Returns the path and position for reading length bytes from offset on of a file that
        ranks wrote together.

        The bytes are ones that this rank wrote, or that fetch_parts() fetched.
        """
        return _calls.route_file_part(self._place(name), offset, length)

    @property
    def ranks(self) -> int:
        """Number of ranks that wrote the checkpoint. With SCR_RESTART_RANKS=any it may differ
        from scr.size()."""
        return _calls.dataset_ranks()

    def files(self, rank: int) -> List[Tuple[str, int]]:
        """Returns names and sizes in bytes of the files of a rank from 0 to ranks - 1. Local.

        The names are valid for fetch() and route(). If the checkpoint is in the cache only,
        this needs SCR_RESTART_RANKS=any.
        """
        return [_calls.dataset_file(rank, number) for number in range(_calls.dataset_files(rank))]

    def fetch(self, names: Paths) -> None:
        """Fetches files of any ranks to this node for route(), until the end of the block.
        Collective.

            wanted = [name for writer in range(scr.rank(), checkpoint.ranks, scr.size())
                      for name, size in checkpoint.files(writer)]
            checkpoint.fetch(wanted)
            for name in wanted:
                with open(checkpoint.route(name), "rb") as file:
                    ...

        names: as from files(), or as for Output.route(). All ranks call this, also those that
        need no files, before they read data that may make them refuse the checkpoint. If a file
        cannot be fetched, all ranks get Error. This error does not refuse the checkpoint,
        because a full cache may be the reason.
        """
        _calls.fetch_files([self._place(name) for name in _calls.path_list(names)])

    def fetch_parts(self, parts: Parts) -> None:
        """Fetches bytes of files that ranks wrote together, from any rank, to this rank for
        part(). Collective.

            checkpoint.fetch_parts([("state", offset, length)])
            path, at = checkpoint.part("state", offset, length)
            with open(path, "rb") as file:
                file.seek(at)
                data = file.read(length)

        parts: (name, offset, length), .... Ranks and failures are handled as by fetch().
        """
        _calls.fetch_file_parts([(self._place(name), offset, length) for name, offset, length in parts])

    def _is_refusal(self, reason: BaseException) -> bool:
        unreadable = isinstance(reason, Error) and reason.call == "SCR_Route_file" and reason.code == FAILURE
        return unreadable or isinstance(reason, self._refuse)

    def __enter__(self) -> Restart:
        self.opened = True
        self.name = _calls.start_restart()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], reason: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        if reason is not None and not self._is_refusal(reason):
            return False
        code = _calls._complete("SCR_Complete_restart", reason is None)
        if code not in (SUCCESS, ERR_INVALID):
            raise _library.error("SCR_Complete_restart", code)
        self.accepted, self.error = code == SUCCESS, reason
        if reason is not None:
            _log.warning("checkpoint %s is refused: %s: %s", self.name, type(reason).__name__, reason)
        return reason is not None


def restarts(refuse: Refusal = READ_ERRORS) -> Iterator[Restart]:
    """Yields the checkpoints to restart from, newest first, until one is accepted. Collective.

        for attempt in scr.restarts():
            with attempt:
                with open(attempt.route(f"rank_{rank}"), "rb") as file:
                    state = read(file)

    The checkpoint is accepted if the blocks of all ranks end normally. An exception of the
    kinds in refuse refuses it for all ranks: the loop continues with the next older one, also
    on ranks that have read the checkpoint and must discard their data. restart() does so. Any
    other exception is a mistake of the program, such as a name that the checkpoint does not
    have. It leaves the loop, and the checkpoint is not marked as failed.
    """
    while True:
        name = _calls.have_restart()
        if name is None:
            return
        attempt = Restart(name, refuse)
        yield attempt
        if not attempt.opened:
            raise StateError("SCR_Have_restart", ERR_STATE, "SCR_ERR_STATE",
                             f"checkpoint {name} was offered, but not opened: \"with attempt:\" is missing")
        if attempt.accepted:
            return


@overload
def restart(read: Callable[[Restart], T], *, refuse: Refusal = ...) -> Optional[T]: ...


@overload
def restart(read: Callable[[Restart], T], default: U, refuse: Refusal = ...) -> Union[T, U]: ...


def restart(read: Callable[[Restart], Any], default: Any = None, refuse: Refusal = READ_ERRORS) -> Any:
    """Returns the result of read for the newest checkpoint that all ranks can read, or default
    if there is none. Collective.

        def read(checkpoint):
            with open(checkpoint.route(f"rank_{scr.rank()}")) as file:
                return int(file.read())

        step = scr.restart(read, default=0)

    Results for checkpoints that another rank refuses are dropped. refuse: see restarts().
    """
    for attempt in restarts(refuse):
        with attempt:
            value = read(attempt)
        if attempt.accepted:
            return value
    return default
