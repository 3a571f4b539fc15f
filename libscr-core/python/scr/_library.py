# SPDX-License-Identifier: BSD-3-Clause
"""Finds and loads libscr when it is needed, calls it, and starts and ends MPI if the program
does not.

MPI is called through libscr, which is linked to its MPI, so other installed MPIs do not
matter.
"""
from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import sys
import threading
import time
from typing import Any, Optional

from ._errors import Error, LibraryError, StateError

SUCCESS, FAILURE, ERR_DISABLED, ERR_STATE, ERR_ARGUMENT, ERR_CONFIG = range(6)
ERR_CACHE, ERR_INVALID, ERR_REDUNDANCY, ERR_FLUSH, ERR_NO_DATASET, ERR_PREFIX = range(6, 12)
NAMES = ("SCR_SUCCESS", "SCR_FAILURE", "SCR_ERR_DISABLED", "SCR_ERR_STATE", "SCR_ERR_ARGUMENT", "SCR_ERR_CONFIG",
         "SCR_ERR_CACHE", "SCR_ERR_INVALID", "SCR_ERR_REDUNDANCY", "SCR_ERR_FLUSH", "SCR_ERR_NO_DATASET", "SCR_ERR_PREFIX")
MAX_FILENAME = 1024
MPICH_COMM_WORLD = 0x44000000  # a number in MPICH and all that share its binary interface
VERSION_SIZE = 1 << 14  # larger than MPI_MAX_LIBRARY_VERSION_STRING anywhere

_INT, _INTP = ctypes.c_int, ctypes.POINTER(ctypes.c_int)
_SIZE, _SIZEP = ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)
_TEXT, _TEXTS = ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)
_PROTOTYPES = {
    "SCR_Init": (), "SCR_Finalize": (), "SCR_Abandon": (), "SCR_Need_checkpoint": (_INTP,), "SCR_Should_exit": (_INTP,),
    "SCR_Start_output": (_TEXT, _INT), "SCR_Complete_output": (_INT,), "SCR_Route_file": (_TEXT, _TEXT),
    "SCR_Route_file_part": (_TEXT, _SIZE, _SIZE, _TEXT, _SIZEP), "SCR_Fetch_file_parts": (_INT, _TEXTS, _SIZEP, _SIZEP),
    "SCR_Have_restart": (_INTP, _TEXT), "SCR_Start_restart": (_TEXT,), "SCR_Complete_restart": (_INT,),
    "SCR_Fetch_files": (_INT, _TEXTS), "SCR_Dataset_ranks": (_INTP,), "SCR_Dataset_files": (_INT, _INTP),
    "SCR_Dataset_file": (_INT, _INT, _TEXT, _SIZEP),
    "SCR_Current": (_TEXT,), "SCR_Delete": (_TEXT,), "SCR_Drop": (_TEXT,),
}


class State:
    """The state of this process."""

    library: Optional[ctypes.CDLL] = None
    lock = threading.Lock()  # one thread at a time may be inside SCR
    phase = "start"          # or idle, output, restart, finalized, abandoned: after the last call
    comm: Any = None         # the communicator of mpi4py that init() received
    last_code = 0            # of the last call that completed an output or a restart
    started_mpi = False      # by this package
    exit_code: Optional[int] = None  # exit code of the run, after an exception or sys.exit has left the session
    watched: Optional[int] = None    # id of the process that registered the handler for exit


# ---- find and load ----

def _recorded() -> Any:
    """Returns the paths that the build recorded; None in the source tree."""
    try:
        return importlib.import_module("scr._paths")
    except ImportError:
        return None


def _installed() -> Optional[str]:
    """Returns the path of libscr in this installation, which may have been moved as a whole."""
    paths = _recorded()
    if not paths:
        return None
    here = os.path.dirname(os.path.realpath(__file__))
    moved = os.path.normpath(os.path.join(here, os.path.relpath(paths.LIBRARY, paths.PACKAGE)))
    return next((path for path in (moved, paths.LIBRARY) if os.path.exists(path)), None)


def _open() -> ctypes.CDLL:
    given = os.environ.get("SCR_LIBRARY")
    path = given or _installed() or str(getattr(_recorded(), "SONAME", "libscr.so.4"))
    try:
        # Open MPI loads plugins that look for its symbols in the whole program
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    except OSError as error:
        source = "SCR_LIBRARY" if given else "this installation" if os.path.isabs(path) else "the dynamic loader's path"
        raise LibraryError(f"libscr cannot be loaded: {error} (from {source}); set SCR_LIBRARY to the path of libscr.so, "
                           f"or LD_LIBRARY_PATH to the directories of libscr and its MPI") from None


def load() -> ctypes.CDLL:
    """Returns libscr, ready to be called."""
    if State.library is None:
        library = _open()
        try:
            for name, arguments in _PROTOTYPES.items():
                getattr(library, name).argtypes = arguments
            library.SCR_Config.argtypes = (_TEXT,)
            library.SCR_Config.restype = ctypes.c_void_p
            library.SCR_Get_version.restype = library.SCR_Strerror.restype = ctypes.c_char_p
            library.MPI_Init.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        except AttributeError as error:
            raise LibraryError(f"{library._name} is no libscr that works with this module: {error}") from None
        _check_mpi(library)
        State.library = library
    return State.library


# ---- MPI ----

def mpi_version(library: ctypes.CDLL) -> str:
    """Returns the version text of the MPI of libscr."""
    text, size = ctypes.create_string_buffer(VERSION_SIZE), ctypes.c_int()
    library.MPI_Get_library_version(text, ctypes.byref(size))
    return text.value.decode(errors="replace")


def _mpi_flag(library: ctypes.CDLL, name: str) -> bool:
    flag = ctypes.c_int(0)
    getattr(library, name)(ctypes.byref(flag))
    return bool(flag.value)


def is_mpi_up(library: ctypes.CDLL) -> bool:
    """Whether MPI is between MPI_Init and MPI_Finalize."""
    return _mpi_flag(library, "MPI_Initialized") and not _mpi_flag(library, "MPI_Finalized")


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].strip() if text.strip() else "an unknown MPI"


def _check_mpi(library: ctypes.CDLL) -> None:
    """Raises LibraryError if mpi4py uses another MPI: two MPIs in one process crash it."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None:
        return
    theirs, ours = mpi.Get_library_version().rstrip("\0"), mpi_version(library)
    advice = "use an mpi4py that was built with the MPI of libscr, or run without mpi4py"
    if theirs.strip() != ours.strip():
        raise LibraryError(f"mpi4py uses {_first_line(theirs)}, but {library._name} uses {_first_line(ours)}: {advice}")
    if mpi.Is_initialized() != _mpi_flag(library, "MPI_Initialized"):
        raise LibraryError(f"mpi4py and {library._name} have loaded two copies of {_first_line(ours)}: {advice}")


def comm_world(library: ctypes.CDLL) -> Any:
    """Returns MPI_COMM_WORLD as an argument: an address in Open MPI, a number elsewhere."""
    try:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "ompi_mpi_comm_world")))
    except ValueError:
        return ctypes.c_int(MPICH_COMM_WORLD)


def comm_handle(comm: Any) -> Any:
    """Returns the handle of mpi4py's communicator as an argument."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Comm):
        raise TypeError(f"a communicator of mpi4py is needed, not {type(comm).__name__}")
    kind: Any = ctypes.c_void_p if mpi._sizeof(mpi.Comm) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_int
    return kind(kind.from_address(mpi._addressof(comm)).value)


def start_mpi() -> None:
    """Starts MPI unless it is running. MPI that was started here is ended at exit."""
    library = load()
    _check_mpi(library)  # mpi4py may have been imported since load()
    if State.watched != os.getpid():
        State.watched = os.getpid()
        atexit.register(_end_of_program)
    if _mpi_flag(library, "MPI_Initialized"):
        return
    if library.MPI_Init(None, None) != 0:
        raise LibraryError(f"MPI_Init of {_first_line(mpi_version(library))} failed")
    State.started_mpi = True


def is_in_run() -> bool:
    """Whether the program is between init() and the end of the run."""
    return State.phase in ("idle", "output", "restart")


def _end_of_program() -> None:
    """Ends MPI at exit. After a failure of this rank, calls MPI_Abort: MPI_Finalize would wait
    for the other ranks, which never reach it."""
    library = State.library
    if library is None or State.watched != os.getpid() or not is_mpi_up(library):
        return
    failed = State.exit_code
    if failed is None and getattr(sys, "last_value", None) is not None:
        failed = 1
    if is_in_run() and failed is not None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass  # it is closed
        time.sleep(0.3)  # launchers drop output that they have not read when they end the job
        library.MPI_Abort(comm_world(library), failed)
    if State.started_mpi:
        library.MPI_Finalize()


# ---- calls ----

_ADVICE = {
    "start": "SCR is not initialized; scr.init() is missing or has failed",
    "finalized": "scr.finalize() has ended the run already; this call belongs before it, or after another scr.init()",
    "abandoned": "scr.abandon() has ended the run already; this call belongs before it, or after another scr.init()",
    "idle": "SCR is initialized, and no output and no restart is open",
    "output": "an output is open; scr.complete_output() or the end of its block is missing",
    "restart": "a restart is open; scr.complete_restart() or the end of its block is missing",
}


def error(name: str, code: int) -> Error:
    """Returns the exception for a code of a call."""
    text = load().SCR_Strerror(code).decode()
    if code == ERR_STATE:
        return StateError(name, code, NAMES[code], f"{text}: {_ADVICE[State.phase]}")
    return Error(name, code, NAMES[code] if 0 <= code < len(NAMES) else f"code {code}", text)


def call(name: str, *arguments: Any) -> int:
    """Makes a call and returns its code."""
    function = getattr(load(), name)
    with State.lock:
        return int(function(*arguments))


def succeed(name: str, *arguments: Any) -> bool:
    """Makes a call and raises Error if it fails. Returns False if SCR is disabled: the program
    then runs as without SCR."""
    code = call(name, *arguments)
    if code not in (SUCCESS, ERR_DISABLED):
        raise error(name, code)
    return code == SUCCESS


def to_bytes(text: Any) -> bytes:
    """Returns a name or path as bytes for C."""
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError(f"a name must not contain a NUL character: {text!r}")
    return data
