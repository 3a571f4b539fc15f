#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_test_runtime: which programs are missing; scr_prerun.py has more."""
import os

from command import expect, expect_documented, expect_well_formed_page, expect_wrong_usage, run, run_tests
from prefix import put_program, without_scr_variables

without_scr_variables()


def test_programs():
    os.makedirs('bin')
    path, os.environ['PATH'] = os.environ['PATH'], f'{os.getcwd()}/bin'
    expect(run(), 1, '', ['LAUNCHER_MISSING'])
    expect(run('--launcher', 'hydra'), 1, '', ['LAUNCHER_MISSING', ': hydra: ', ' mpiexec.mpich '])
    put_program('mpiexec', 'echo HYDRA build details:')
    expect(run(), 0)
    os.environ.update(SLURM_JOB_ID='17', SLURM_JOB_NODELIST='n[1-2]')
    put_program('srun', '')
    expect(run('--launcher', 'slurm'), 0)
    os.remove('bin/srun')
    os.environ['SCR_REMOTE'] = 'srun'
    expect(run('--launcher', 'hydra'), 1, '', ['PROGRAM_MISSING', 'srun ', 'SCR_REMOTE'])
    for name in ('SLURM_JOB_ID', 'SLURM_JOB_NODELIST', 'SCR_REMOTE'):
        del os.environ[name]
    os.environ['PATH'] = path


def test_usage():
    expect_wrong_usage(['argument'])
    expect(run('--prefix', 'none'), 1, '', ['DIRECTORY_UNUSABLE'])
    expect_documented(4, {'--prefix': '.', '--launcher': 'hydra'})
    expect_well_formed_page()


run_tests(globals())
