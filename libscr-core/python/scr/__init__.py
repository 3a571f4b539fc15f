# SPDX-License-Identifier: BSD-3-Clause
"""SCR, scalable checkpoint / restart, for Python programs with MPI.

    def read(checkpoint):
        with open(checkpoint.route(f"rank_{scr.rank()}")) as file:
            return int(file.read())

    with scr.session():
        step = scr.restart(read, default=0)
        while step < 1000 and not scr.should_exit():
            step += 1
            if scr.need_checkpoint():
                with scr.output(f"ckpt.{step}") as out, open(out.route(f"rank_{scr.rank()}"), "w") as file:
                    file.write(str(step))

Blocks and functions: session, output, restart, restarts. They use the calls of scr.h, which
this module provides under the names of SCR 3.1's module: init, finalize, config,
need_checkpoint, start_output, route_file, complete_output, have_restart, start_restart,
complete_restart, should_exit, current, delete, drop; and abandon, fetch_files,
dataset_ranks, dataset_files, dataset_file, route_file_part, fetch_file_parts.

Records of a prefix directory, also without MPI and libscr: index, log, halt, read_tree.

Calls are collective over the communicator of init(), except abandon, route_file,
route_file_part, dataset_ranks, dataset_files, dataset_file, config, configure, rank, size
and version. A collective call that fails raises Error on every rank. The first call that
needs libscr loads it with its MPI.
"""
from ._calls import (FLAG_BYPASS, FLAG_CHECKPOINT, FLAG_NONE, FLAG_OUTPUT, abandon, complete_output, complete_restart, config,
                     configure, current, dataset_file, dataset_files, dataset_ranks, delete, drop, fetch_file_parts,
                     fetch_files, finalize, have_restart, init, last_code, need_checkpoint, rank, route_file,
                     route_file_part, should_exit, size, start_output, start_restart, version)
from ._errors import Error, FormatError, LibraryError, StateError, VersionError
from ._library import (ERR_ARGUMENT, ERR_CACHE, ERR_CONFIG, ERR_DISABLED, ERR_FLUSH, ERR_INVALID, ERR_NO_DATASET, ERR_PREFIX,
                       ERR_REDUNDANCY, ERR_STATE, FAILURE, SUCCESS)
from ._log import Event, log, parse_event
from ._records import Dataset, Halt, halt, index
from ._session import READ_ERRORS, Output, Restart, output, restart, restarts, session
from ._tree import Tree, read_tree

__all__ = [
    "Dataset", "ERR_ARGUMENT", "ERR_CACHE", "ERR_CONFIG", "ERR_DISABLED", "ERR_FLUSH", "ERR_INVALID", "ERR_NO_DATASET",
    "ERR_PREFIX", "ERR_REDUNDANCY", "ERR_STATE", "Error", "Event", "FAILURE", "FLAG_BYPASS", "FLAG_CHECKPOINT", "FLAG_NONE", "FLAG_OUTPUT",
    "FormatError", "Halt", "LibraryError", "Output", "READ_ERRORS", "Restart", "SUCCESS", "StateError", "Tree",
    "VersionError", "abandon", "complete_output", "complete_restart", "config", "configure", "current", "dataset_file", "dataset_files",
    "dataset_ranks", "delete", "drop", "fetch_file_parts", "fetch_files", "finalize", "halt", "have_restart", "index", "init", "last_code", "log",
    "need_checkpoint", "output", "parse_event", "rank", "read_tree", "restart", "restarts", "route_file", "route_file_part", "session",
    "should_exit", "size", "start_output", "start_restart", "version",
]
