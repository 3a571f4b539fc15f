# SPDX-License-Identifier: BSD-3-Clause
"""The calls of scr.h under the names of SCR 3.1's module scr.py, with its arguments and results.

Where SCR is disabled (SCR_ENABLE=0) no call fails: none is due, there is no checkpoint, and paths are returned as they are.
"""
from __future__ import annotations

import ctypes
import operator
import os
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

from . import _library
from ._errors import Error, StateError
from ._library import (ERR_CONFIG, ERR_DISABLED, ERR_STATE, MAX_FILENAME, SUCCESS, State, call, comm_handle,
                       comm_world, error, load, succeed, to_bytes)

FLAG_NONE, FLAG_CHECKPOINT, FLAG_OUTPUT, FLAG_BYPASS = 0, 1, 2, 4

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Paths = Union[Path, Iterable[Path]]
Parts = Iterable[Tuple[Path, int, int]]
Params = Union[str, Iterable[str], Mapping[str, Any]]


# ---- configuration ----

def _get_config(question: str) -> Optional[str]:
    library = load()
    with State.lock:
        address = library.SCR_Config(to_bytes(question))
    if not address:
        return None
    text = os.fsdecode(ctypes.string_at(address))
    free = ctypes.CDLL(None).free
    free.argtypes = (ctypes.c_void_p,)
    free(address)
    return text


def _config_error(text: str) -> Exception:
    return Error("SCR_Config", ERR_CONFIG, "SCR_ERR_CONFIG", f"{text!r} was refused; a message gives the reason")


def config(text: str) -> Optional[str]:
    """Sets or reads the configuration.

    "K=V" sets a parameter, before init() and on every rank alike. "K=" removes what was set. "K" returns the value in
    force, or None. "CKPT=0 TYPE=XOR SET_SIZE=16" sets fields of a descriptor, and "CKPT=0 TYPE" returns one. Raises
    Error for an unknown name; a value that is invalid for its parameter makes init() fail.
    """
    name, equals, value = text.partition("=")
    is_descriptor = name.split()[:1] in (["CKPT"], ["STORE"], ["GROUPS"])
    if not equals or (is_descriptor and text.count("=") == 1 and len(text.split()) > 1):
        return _get_config(text)  # a question
    if _library.is_in_run():
        raise error("SCR_Config", ERR_STATE)
    answer = _get_config(text)
    if is_descriptor:
        words = text.split()
        for word in words[1:]:
            field, _, wanted = word.partition("=")
            if wanted and _get_config(f"{words[0]} {field}") is None:
                raise _config_error(text)
    elif value.strip() and _get_config(name.strip()) is None:
        raise _config_error(text)
    return answer


def configure(params: Optional[Params] = None, **more: Any) -> None:
    """Sets parameters: configure(SCR_FLUSH=5, SCR_COPY_TYPE="XOR"), or a text, a list of texts or a mapping as for init().

    The value None removes what was set before.
    """
    if isinstance(params, str):
        params = [params]
    if params is not None and not isinstance(params, Mapping):
        for text in params:
            config(str(text))
        params = None
    for name, value in {**(params or {}), **more}.items():
        config(f"{name}={'' if value is None else int(value) if isinstance(value, bool) else value}")


# ---- start and end ----

def init(comm: Any = None, params: Optional[Params] = None) -> None:
    """Starts SCR. Collective.

    comm: a communicator of mpi4py; MPI_COMM_WORLD where it is missing. Without mpi4py, MPI is started here, unless it
    runs already, and ended when the program exits.
    params: is set before, as by configure(). As in SCR 3.1, this may be the first argument.
    """
    if isinstance(comm, (str, list, tuple, Mapping)):
        comm, params = None, comm
    if params:
        configure(params)
    _library.start_mpi()
    code = call("SCR_Init") if comm is None else call("SCR_Init_comm", comm_handle(comm))
    if code not in (SUCCESS, ERR_DISABLED):
        raise error("SCR_Init", code)
    State.comm, State.exit_code = comm, None
    State.phase = "idle" if code == SUCCESS else "start"


def finalize() -> None:
    """Ends SCR, and flushes the newest checkpoint where it is not on the prefix directory yet. Collective."""
    code = call("SCR_Finalize")
    failure = error("SCR_Finalize", code) if code not in (SUCCESS, ERR_DISABLED) else None
    if code != ERR_STATE or _library.is_in_run():
        State.phase, State.comm = "finalized", None
    if failure:
        raise failure


def abandon() -> None:
    """Gives up the run on this rank, because others have died or leave; init() over the communicator of those that are
    left goes on from the cache. Sends nothing to other ranks."""
    code = call("SCR_Abandon")
    if code == SUCCESS:
        State.phase, State.comm = "abandoned", None
    if code not in (SUCCESS, ERR_DISABLED):
        raise error("SCR_Abandon", code)


def version() -> str:
    """The version of libscr, such as "v4.0.0"."""
    return str(load().SCR_Get_version().decode())


def _of_comm(name: str) -> int:
    library = load()
    if not _library.is_mpi_up(library):
        raise StateError(name, ERR_STATE, "SCR_ERR_STATE", "MPI does not run; scr.init() is missing")
    value = ctypes.c_int(0)
    comm = comm_world(library) if State.comm is None else comm_handle(State.comm)
    getattr(library, name)(comm, ctypes.byref(value))
    return value.value


def rank() -> int:
    """The rank of this process in the communicator of init(), for programs without mpi4py."""
    return _of_comm("MPI_Comm_rank")


def size() -> int:
    """The number of processes of the communicator of init(), for programs without mpi4py."""
    return _of_comm("MPI_Comm_size")


# ---- output ----

def _flag(name: str) -> bool:
    flag = ctypes.c_int(0)
    succeed(name, ctypes.byref(flag))
    return bool(flag.value)


def need_checkpoint() -> bool:
    """Whether a checkpoint is due. Collective."""
    return _flag("SCR_Need_checkpoint")


def should_exit() -> bool:
    """Whether the run should end now. Collective."""
    return _flag("SCR_Should_exit")


def start_output(name: Optional[Path], flags: int = FLAG_NONE) -> None:
    """Opens a dataset of that name, or of none. flags: FLAG_CHECKPOINT, FLAG_OUTPUT, FLAG_BYPASS, or several with |.
    Collective."""
    if succeed("SCR_Start_output", None if name is None else to_bytes(name), int(flags)):
        State.phase = "output"


def complete_output(valid: Any) -> bool:
    """Closes the dataset. valid: whether this rank wrote all its files. Whether it is complete on every rank. Collective.

    After False, last_code() gives the reason; it is scr.ERR_FLUSH where the dataset is complete and only its copy to the
    prefix directory failed.
    """
    return _complete("SCR_Complete_output", valid) == SUCCESS


def _complete(name: str, valid: Any) -> int:
    code = call(name, int(bool(valid)))
    if code == ERR_STATE:
        raise error(name, code)
    if code != ERR_DISABLED:
        State.phase = "idle"
    State.last_code = code
    return code


def last_code() -> int:
    """The code of the last complete_output() or complete_restart()."""
    return State.last_code


def route_file(name: Path) -> str:
    """The path at which to open that file, as SCR_Route_file. Local, not collective."""
    path = ctypes.create_string_buffer(MAX_FILENAME)
    data = to_bytes(name)
    if not succeed("SCR_Route_file", data, path):
        return os.fsdecode(data)
    return os.fsdecode(path.value)


def _or_too_large(size: int) -> int:
    """What does not fit in C, or is negative, is too large: the call refuses it."""
    number = operator.index(size)
    return number if 0 <= number < 1 << 63 else (1 << 64) - 1


def route_file_part(name: Path, offset: int, length: int) -> Tuple[str, int]:
    """The path at which to open that file for its length bytes from offset on, and where they are in it. Local, not collective.

    The file must not be truncated: other ranks may write to it, too.
    """
    path, at = ctypes.create_string_buffer(MAX_FILENAME), ctypes.c_uint64(0)
    data = to_bytes(name)
    if not succeed("SCR_Route_file_part", data, _or_too_large(offset), _or_too_large(length), path, ctypes.byref(at)):
        return os.fsdecode(data), operator.index(offset)
    return os.fsdecode(path.value), at.value


# ---- restart ----

def have_restart() -> Optional[str]:
    """The name of the newest checkpoint that can be read, or None. Collective."""
    flag, name = ctypes.c_int(0), ctypes.create_string_buffer(MAX_FILENAME)
    succeed("SCR_Have_restart", ctypes.byref(flag), name)
    return os.fsdecode(name.value) if flag.value else None


def start_restart() -> str:
    """Opens that checkpoint and returns its name. Collective."""
    name = ctypes.create_string_buffer(MAX_FILENAME)
    if succeed("SCR_Start_restart", name):
        State.phase = "restart"
    return os.fsdecode(name.value)


def complete_restart(valid: Any) -> bool:
    """Closes the restart. valid: whether this rank read what it needs. Whether all ranks did. Collective.

    After False, the checkpoint is marked as failed, and have_restart() offers an older one.
    """
    return _complete("SCR_Complete_restart", valid) == SUCCESS


# ---- files of other ranks, and another number of ranks ----

def path_list(names: Paths) -> List[Path]:
    """One name, or several."""
    return [names] if isinstance(names, (str, bytes, os.PathLike)) else list(names)


def _or_missing(name: Path) -> Optional[bytes]:
    """What is no name for C counts as missing: then the call fails on all ranks, which are in it, and not on this one only."""
    try:
        return to_bytes(name)
    except ValueError:
        return None


def fetch_files(names: Paths) -> None:
    """Brings these files of the open restart to this node. Collective; each rank has names of its own, or none.

    names: paths below the prefix directory, such as those of dataset_file(); route_file() then returns where to read them.
    """
    data = [_or_missing(name) for name in path_list(names)]
    succeed("SCR_Fetch_files", len(data), (ctypes.c_char_p * len(data))(*data))


def fetch_file_parts(parts: Parts) -> None:
    """Brings bytes of files that ranks wrote in parts to this rank, in the open restart. Collective; each rank has its own, or none.

    parts: (name, offset, length), ...; route_file_part() then returns where to read these bytes.
    """
    wanted = list(parts)
    count = len(wanted)
    names = (ctypes.c_char_p * count)(*[_or_missing(name) for name, _, _ in wanted])
    offsets = (ctypes.c_uint64 * count)(*[_or_too_large(offset) for _, offset, _ in wanted])
    lengths = (ctypes.c_uint64 * count)(*[_or_too_large(length) for _, _, length in wanted])
    succeed("SCR_Fetch_file_parts", count, names, offsets, lengths)


def dataset_ranks() -> int:
    """How many ranks wrote the checkpoint of the open restart."""
    ranks = ctypes.c_int(0)
    succeed("SCR_Dataset_ranks", ctypes.byref(ranks))
    return ranks.value


def dataset_files(rank: int) -> int:
    """How many files that rank wrote, one of dataset_ranks(). Ranks count from 0."""
    files = ctypes.c_int(0)
    succeed("SCR_Dataset_files", rank, ctypes.byref(files))
    return files.value


def dataset_file(rank: int, number: int) -> Tuple[str, int]:
    """Name and size in bytes of a file of that rank, one of dataset_files(rank). Files count from 0.

    The name is the path on the prefix directory, whether the file is there or not.
    """
    name, size = ctypes.create_string_buffer(MAX_FILENAME), ctypes.c_uint64(0)
    succeed("SCR_Dataset_file", rank, number, name, ctypes.byref(size))
    return os.fsdecode(name.value), size.value


# ---- datasets ----

def current(name: Path) -> None:
    """Makes the checkpoint of that name the one to restart from. Collective."""
    succeed("SCR_Current", to_bytes(name))


def delete(name: Path) -> None:
    """Removes that dataset: its files, and its entry in the index. Collective."""
    succeed("SCR_Delete", to_bytes(name))


def drop(name: Path) -> None:
    """Removes the entry of that dataset from the index; its files stay. Collective."""
    succeed("SCR_Drop", to_bytes(name))
