#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other users of the machine exchange a file or folder between a check and the use of what was checked."""
import ctypes
import os
import time

from as_users import ATTACKER, VICTIM, command, prefix_of
from command import run_tests
from prefix import HALT


def exchange_forever(one, other):
    """By the attacker; the id of the process."""
    process = os.fork()
    if process == 0:
        try:
            os.setgroups([])
            os.setgid(ATTACKER.pw_gid)
            os.setuid(ATTACKER.pw_uid)
            call, here, exchange = ctypes.CDLL(None).renameat2, -100, 2
            while True:
                call(here, os.fsencode(one), here, os.fsencode(other), exchange)
                time.sleep(0.0001)
        finally:
            os._exit(1)
    return process


def test_folder_is_exchanged():
    """Between the moment when root becomes the victim and the use of the folder, which is the attacker's then."""
    above = prefix_of(ATTACKER, 'above')
    folders = [prefix_of(VICTIM, 'above/p'), prefix_of(ATTACKER, 'above/q')]
    (folders[1] / '.scr').chmod(0o777)
    process = exchange_forever(*folders)
    try:
        for _ in range(100):
            command('scr_halt', '--reason', 'x', above / 'p')
            for folder in folders:
                here = os.open(folder, os.O_RDONLY)
                try:
                    assert os.stat(HALT, dir_fd=here).st_uid == os.fstat(here).st_uid
                    os.unlink(HALT, dir_fd=here)
                except FileNotFoundError:
                    pass
                os.close(here)
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


run_tests(globals())
