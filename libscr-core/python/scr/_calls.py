# SPDX-License-Identifier: BSD-3-Clause
"""The calls of scr.h with the names, arguments and results of SCR 3.1's module scr.py.

If SCR is disabled (SCR_ENABLE=0), no call fails: no checkpoint is due, there is no
checkpoint to restart from, and paths are returned unchanged.
"""
from __future__ import annotations

import ctypes
import operator
import os
import re
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


def _has_field(descriptor: str, field: str) -> bool:
    """Whether a descriptor that was set has the field. If SCR_COPY_TYPE overrides all CKPT, only CKPT=0 has an answer."""
    kind, _, key = descriptor.partition("=")
    is_number = kind == "CKPT" and re.fullmatch("0*[0-9]{1,3}", key)
    asked = (descriptor, "CKPT=0") if is_number else (descriptor,)
    return any(_get_config(f"{each} {field}") is not None for each in asked)


def config(text: str) -> Optional[str]:
    """Sets or reads the configuration.

    "K=V" sets a parameter, before init() and on every rank alike. "K=" removes a value that
    was set. "K" returns the value in force, or None. "CKPT=0 TYPE=XOR SET_SIZE=16" sets
    fields of a descriptor, and "CKPT=0 TYPE" returns one. Raises Error for an unknown name;
    a value that is invalid for its parameter makes init() fail.
    """
    name, equals, value = text.partition("=")
    is_descriptor = name.split()[:1] in (["CKPT"], ["STORE"], ["GROUPS"])
    if not equals or (is_descriptor and text.count("=") == 1 and len(text.split()) > 1):
        return _get_config(text)  # a question
    if _library.is_in_run():
        raise error("SCR_Config", ERR_STATE)
    answer = _get_config(text)
    if is_descriptor:
        words = re.sub(r"[ \t]*=[ \t]*", "=", text).split()
        for word in words[1:]:
            field, _, wanted = word.partition("=")
            if wanted and not _has_field(words[0], field):
                raise _config_error(text)
    elif value.strip() and _get_config(name.strip()) is None:
        raise _config_error(text)
    return answer


def configure(params: Optional[Params] = None, **more: Any) -> None:
    """Sets parameters: configure(SCR_FLUSH=5, SCR_COPY_TYPE="XOR").

    params: a text, a list of texts or a mapping, as for init(). The value None removes a
    value that was set before.
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

    comm: a communicator of mpi4py; None: MPI_COMM_WORLD. If MPI is not running, this call
    starts it, and it is ended when the program exits.
    params: parameters to set first, as by configure(). As in SCR 3.1, params may be the
    first argument.
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
    """Ends SCR. Flushes the newest checkpoint unless the prefix directory has it. Collective."""
    code = call("SCR_Finalize")
    failure = error("SCR_Finalize", code) if code not in (SUCCESS, ERR_DISABLED) else None
    if code != ERR_STATE or _library.is_in_run():
        State.phase, State.comm = "finalized", None
    if failure:
        raise failure


def abandon() -> None:
    """Abandons the run on this rank, because other ranks have died or leave. Local: sends no
    messages. init() over a communicator of the remaining ranks continues from the cache."""
    code = call("SCR_Abandon")
    if code == SUCCESS:
        State.phase, State.comm = "abandoned", None
    if code not in (SUCCESS, ERR_DISABLED):
        raise error("SCR_Abandon", code)


def version() -> str:
    """Returns the version of libscr, such as "v4.0.0"."""
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
    """Returns the rank in the communicator of init(), for programs without mpi4py."""
    return _of_comm("MPI_Comm_rank")


def size() -> int:
    """Returns the size of the communicator of init(), for programs without mpi4py."""
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
    """Opens a dataset. Without a name, SCR chooses one. flags: FLAG_CHECKPOINT, FLAG_OUTPUT,
    FLAG_BYPASS, or several combined with |. Collective."""
    if succeed("SCR_Start_output", None if name is None else to_bytes(name), int(flags)):
        State.phase = "output"


def complete_output(valid: Any) -> bool:
    """Closes the dataset. Returns whether it is complete on every rank. Collective.

    valid: whether this rank wrote all its files. After False, last_code() gives the reason,
    which is scr.ERR_FLUSH if the dataset is complete and only its copy to the prefix
    directory failed.
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
    """Returns the code of the last complete_output() or complete_restart()."""
    return State.last_code


def route_file(name: Path) -> str:
    """Returns the path at which to open a file, as SCR_Route_file. Local, not collective."""
    path = ctypes.create_string_buffer(MAX_FILENAME)
    data = to_bytes(name)
    if not succeed("SCR_Route_file", data, path):
        return os.fsdecode(data)
    return os.fsdecode(path.value)


def _or_too_large(size: int) -> int:
    """Replaces a negative or too large number by one that is too large for the call."""
    number = operator.index(size)
    return number if 0 <= number < 1 << 63 else (1 << 64) - 1


def route_file_part(name: Path, offset: int, length: int) -> Tuple[str, int]:
    """Returns the path and position for length bytes of a file from offset on.

    The position is the offset of these bytes in the file at that path. The file must not be
    truncated: other ranks may write to it, too. Local, not collective.
    """
    path, at = ctypes.create_string_buffer(MAX_FILENAME), ctypes.c_uint64(0)
    data = to_bytes(name)
    if not succeed("SCR_Route_file_part", data, _or_too_large(offset), _or_too_large(length), path, ctypes.byref(at)):
        return os.fsdecode(data), operator.index(offset)
    return os.fsdecode(path.value), at.value


# ---- restart ----

def have_restart() -> Optional[str]:
    """Returns the name of the newest checkpoint that can be read, or None. Collective."""
    flag, name = ctypes.c_int(0), ctypes.create_string_buffer(MAX_FILENAME)
    succeed("SCR_Have_restart", ctypes.byref(flag), name)
    return os.fsdecode(name.value) if flag.value else None


def start_restart() -> str:
    """Opens the checkpoint that have_restart() offered, and returns its name. Collective."""
    name = ctypes.create_string_buffer(MAX_FILENAME)
    if succeed("SCR_Start_restart", name):
        State.phase = "restart"
    return os.fsdecode(name.value)


def complete_restart(valid: Any) -> bool:
    """Closes the restart. Returns whether it was valid on all ranks. Collective.

    valid: whether this rank read all it needs. After False, the checkpoint is marked as
    failed, and have_restart() offers an older one.
    """
    return _complete("SCR_Complete_restart", valid) == SUCCESS


# ---- files of other ranks, and another number of ranks ----

def path_list(names: Paths) -> List[Path]:
    """Returns a list of one name or of several names."""
    return [names] if isinstance(names, (str, bytes, os.PathLike)) else list(names)


def _or_missing(name: Path) -> Optional[bytes]:
    """Returns None for a name that C cannot represent, so that the collective call fails on
    all ranks instead of this one only."""
    try:
        return to_bytes(name)
    except ValueError:
        return None


def fetch_files(names: Paths) -> None:
    """Fetches files of the open restart to this node. Collective; ranks may pass different
    names, or none.

    names: paths below the prefix directory, as from dataset_file(). Afterwards route_file()
    returns the paths at which to read the files.
    """
    data = [_or_missing(name) for name in path_list(names)]
    succeed("SCR_Fetch_files", len(data), (ctypes.c_char_p * len(data))(*data))


def fetch_file_parts(parts: Parts) -> None:
    """Fetches bytes of files that ranks wrote in parts to this rank, in the open restart.
    Collective; ranks may pass different parts, or none.

    parts: (name, offset, length), .... Afterwards route_file_part() returns where to read
    these bytes.
    """
    wanted = list(parts)
    count = len(wanted)
    names = (ctypes.c_char_p * count)(*[_or_missing(name) for name, _, _ in wanted])
    offsets = (ctypes.c_uint64 * count)(*[_or_too_large(offset) for _, offset, _ in wanted])
    lengths = (ctypes.c_uint64 * count)(*[_or_too_large(length) for _, _, length in wanted])
    succeed("SCR_Fetch_file_parts", count, names, offsets, lengths)


def dataset_ranks() -> int:
    """Returns the number of ranks that wrote the checkpoint of the open restart."""
    ranks = ctypes.c_int(0)
    succeed("SCR_Dataset_ranks", ctypes.byref(ranks))
    return ranks.value


def dataset_files(rank: int) -> int:
    """Returns the number of files that a rank wrote. rank: 0 to dataset_ranks() - 1."""
    files = ctypes.c_int(0)
    succeed("SCR_Dataset_files", rank, ctypes.byref(files))
    return files.value


def dataset_file(rank: int, number: int) -> Tuple[str, int]:
    """Returns name and size in bytes of a file of a rank. number: 0 to dataset_files(rank) - 1.

    The name is the path on the prefix directory, even if the file is not there.
    """
    name, size = ctypes.create_string_buffer(MAX_FILENAME), ctypes.c_uint64(0)
    succeed("SCR_Dataset_file", rank, number, name, ctypes.byref(size))
    return os.fsdecode(name.value), size.value


# ---- datasets ----

def current(name: Path) -> None:
    """Makes the named checkpoint the one to restart from. Collective."""
    succeed("SCR_Current", to_bytes(name))


def delete(name: Path) -> None:
    """Removes a dataset: its files, and its entry in the index. Collective."""
    succeed("SCR_Delete", to_bytes(name))


def drop(name: Path) -> None:
    """Removes the entry of a dataset from the index; its files stay. Collective."""
    succeed("SCR_Drop", to_bytes(name))
