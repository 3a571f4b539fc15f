# SPDX-License-Identifier: BSD-3-Clause
"""Restores all signals for the processes that a test starts: under nohup, or in the
background of a script, some signals are ignored, and all started processes inherit
that."""
import signal

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
