#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_run and the log of events: a launch and its run have one id, and the end of a
killed run is logged once."""
import os
import pathlib
import re
import subprocess

from command import COMMAND, run, run_tests
from prefix import put, put_launcher, put_program, without_scr_variables

BESIDE = pathlib.Path(os.readlink(COMMAND) if COMMAND.is_symlink() else COMMAND).parent
LOG = '.scr/log'
LOGGED = {'SCR_LOG_ENABLE': '1', 'SCR_LOG_SYSLOG_ENABLE': '0', 'SCR_JOB_ID': '17'}


def test_ids_of_runs():
    """The program gets the id of its launch. The second run ends by itself."""
    without_scr_variables()
    os.environ.update(LOGGED, SCR_RUN_ID='stale')
    put_program('program', '')
    put_launcher(f'exec >>{os.path.abspath(LOG)}; echo "2026-11-21T10:00:00.000000Z RUN_START run=\\"$SCR_RUN_ID\\" jobid=\\"17\\""; '
                 'ls call 2>/dev/null >&2 && echo "2026-11-21T10:00:09.000000Z RUN_END run=\\"$SCR_RUN_ID\\" secs=9.000000"; touch call; exit 9')
    assert run('--simulate', '2x1', '--runs', '2', 'program').returncode == 9
    lines = re.findall(r'^\S+Z (\w+) run="([^"]+)"', pathlib.Path(LOG).read_text(), re.MULTILINE)
    assert [name for name, _ in lines] == ['LAUNCH_START', 'RUN_START', 'LAUNCH_END', 'RUN_INTERRUPTED', 'LAUNCH_START', 'RUN_START',
                                           'RUN_END', 'LAUNCH_END'], lines
    first, second = lines[0][1], lines[-1][1]
    assert [name for _, name in lines] == [first] * 4 + [second] * 4 and len({first, second, 'stale'}) == 3, lines


def test_postrun():
    """scr_run was killed, too; runs of another job are not ended."""
    without_scr_variables()
    os.environ.update(LOGGED)
    put(LOG, b'2026-11-21T10:00:00.000000Z RUN_START run="r1" jobid="17"\n2026-11-21T10:00:07.500000Z HALT run="r1"\n'
             b'2026-11-21T10:00:00.000000Z RUN_START run="r2" jobid="18"\n')
    for _ in range(2):
        subprocess.run([BESIDE / 'scr_postrun'], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = re.findall('RUN_INTERRUPTED .*', pathlib.Path(LOG).read_text())
        assert len(found) == 1 and ' run="r1" ' in found[0] and ' secs=7.500000 ' in found[0] and 'scr_postrun' in found[0], found


run_tests(globals())
