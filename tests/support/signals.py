# SPDX-License-Identifier: BSD-3-Clause
"""What a test starts gets every signal, also where the test itself was started by nohup, or in the background of a
script: those signals are ignored there, and by all that is started from there."""
import signal

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
