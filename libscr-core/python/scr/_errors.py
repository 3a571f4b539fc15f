# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of this package."""


class Error(RuntimeError):
    """A call of SCR failed. Collective calls fail on every rank with the same code.

    code: the number, such as scr.ERR_FLUSH
    name: its name in scr.h, such as "SCR_ERR_FLUSH"
    call: the call that failed, such as "SCR_Complete_output"
    """

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{call}: {text} ({name})")
        self.call = call
        self.code = code
        self.name = name


class StateError(Error):
    """The call is not allowed in this state; the text names the missing call."""


class LibraryError(OSError):
    """libscr cannot be loaded, or it uses another MPI than mpi4py."""


class FormatError(ValueError):
    """A file is damaged, or has another format."""


class VersionError(FormatError):
    """An intact file of another version of SCR; it is not damaged."""
