#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_get_jobstep_id: processes, and job steps of a Slurm with all kinds of answers."""
import os
import re
import shutil
import subprocess

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import put_program, without_scr_variables

without_scr_variables()
ME = str(os.getpid())


def test_process():
    done = run(ME)
    start = open('/proc/self/stat').read().rsplit(') ', 1)[1].split()[19]
    expect(done, 0, f'pid:{ME}:{start}\n')
    with subprocess.Popen(['true']) as child:
        pass
    expect(run(str(child.pid)), 1, '-1\n', ['JOBSTEP_UNKNOWN', f'process {child.pid} '])
    # whatever the name of the program
    shutil.copy('/bin/cat', ') R (')
    with subprocess.Popen(['./) R ('], stdin=subprocess.PIPE) as child:
        assert re.fullmatch(f'pid:{child.pid}:[0-9]+\n', run(str(child.pid)).stdout.decode())


def test_slurm():
    for said, step in (('17.0', '17.0'), ('17.batch\n17.2\n17.10\n17.extern', '17.10'), ('17_3.1', '17_3.1'), ('', None),
                       ('17.batch', None), ('17', None), ('17.$(reboot)', None), ('1' * 70 + '.1', None)):
        put_program('squeue', f"echo \"$@\" >asked; printf '%s\\n' '{said}'")
        os.environ['SLURM_JOB_ID'] = '17'
        if step:
            expect(run(ME), 0, step + '\n')
        else:
            expect(run(ME), 1, '-1\n', ['JOBSTEP_UNKNOWN', 'job 17 '])
        assert '--job 17' in open('asked').read()
    put_program('squeue', 'exit 1')
    expect(run(ME), 1, '-1\n', ['JOBSTEP_UNKNOWN', 'squeue: exit code 1'])
    del os.environ['SLURM_JOB_ID']


def test_usage():
    expect_output_fails([ME])
    expect_wrong_usage([], ['0'], ['1'], ['x'], ['99999999999'], [ME, ME])
    expect_documented(2)
    expect_well_formed_page()


run_tests(globals())
