#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_env: each batch system according to its variables, and a batch system that answers
well, badly, or not at all."""
import getpass
import json
import os
import pathlib
import re
import socket
import subprocess
import time

from command import (COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import HALT, NODES, put_program, put_tree, value, without_scr_variables

PATH = os.environ['PATH']


def clean(**variables):
    without_scr_variables()
    os.environ['PATH'] = PATH
    os.environ.update(variables)


def put_sinfo(script):
    """The command of Slurm that lists the nodes that are down."""
    put_program('sinfo', f'echo "$@" >>{os.getcwd()}/asked\n{script}')


def test_without_batch_system():
    clean()
    here = socket.gethostname()
    expect(run('--manager'), 0, 'none\n')
    expect(run('--nodes'), 0, here + '\n')
    expect(run('--down'), 0, '\n')
    expect(run('-user'), 0, getpass.getuser() + '\n')
    assert re.fullmatch(rb'prefix-[0-9a-f]{8}\n', run('-jobid').stdout)
    expect(run('--endtime'), 1, '', ['END_TIME_UNKNOWN'])
    expect(run('--runnodes'), 1, '', ['RUN_NODES_UNKNOWN', '.scr/nodes.scr', 'No such file'])
    clean(SCR_NODE_NAME='n7', SCR_USER_NAME='me', SCR_JOB_ID='j1', SCR_END_TIME='1298937600')
    put_tree(NODES, {'NODES': value(4)})
    for question, answer in (('--nodes', 'n7'), ('--user', 'me'), ('--jobid', 'j1'), ('--endtime', '1298937600'),
                             ('--runnodes', '4')):
        expect(run(question), 0, answer + '\n')
    expect(run(), 0, 'user                   me\njob id                 j1\nbatch system           none\nnodes                  n7\n'
           'end time               1298937600\nnodes of the last run  4\n')
    assert json.loads(run('--json').stdout) == {'user': 'me', 'jobid': 'j1', 'manager': 'none', 'nodes': 'n7', 'lostnode': None,
                                                'endtime': 1298937600, 'runnodes': 4}


def test_each_batch_system():
    pathlib.Path('hosts').write_text('n2\nn2\nn1\nn1\n')
    for variables, manager, job, nodes in (
            ({'SLURM_JOB_ID': '17', 'SLURM_JOB_NODELIST': 'atlas[3,5-7]'}, 'slurm', '17', 'atlas[3,5-7]'),
            ({'SLURM_JOBID': '18', 'SLURM_NODELIST': 'a1'}, 'slurm', '18', 'a1'),
            ({'PBS_JOBID': '19.server', 'PBS_NODEFILE': 'hosts'}, 'pbs', '19.server', 'n[1-2]'),
            ({'LSB_JOBID': '20', 'LSB_HOSTS': 'b1 b1 b2 login'}, 'lsf', '20', 'b[1-2],login'),
            ({'LSB_JOBID': '20', 'LSB_MCPU_HOSTS': 'b1 16 b2 16 '}, 'lsf', '20', 'b[1-2]'),
            ({'LSB_JOBID': '20', 'LSB_DJOB_HOSTFILE': 'hosts'}, 'lsf', '20', 'n[1-2]')):
        clean(**variables)
        expect(run('--manager'), 0, manager + '\n')
        expect(run('--jobid'), 0, job + '\n')
        expect(run('-j'), 0, job + '\n')
        expect(run('--nodes'), 0, nodes + '\n')
        os.environ['SCR_NODELIST'] = 'own[1-2]'
        expect(run('--nodes'), 0, 'own[1-2]\n')
    clean(PBS_JOBID='1')
    expect(run('--nodes'), 1, '', ['NODELIST_MISSING', 'pbs ', 'SCR_NODELIST'])
    clean(FLUX_URI='local:///run/flux/local')
    put_program('flux', '[ "$*" = "getattr hostlist" ] && echo "f[0-3]"')
    expect(run('--manager'), 0, 'flux\n')
    expect(run('--nodes'), 0, 'f[0-3]\n')
    put_program('flux', 'exit 1')
    expect(run('--nodes'), 1, '', ['BATCH_QUERY_FAILED', 'flux: exit code 1'])
    os.unlink('bin/flux')
    clean(PBS_JOBID='1', PBS_NODEFILE='no')
    expect(run('--nodes'), 1, '', ['NODELIST_INVALID', 'list of nodes no: No such file'])
    os.environ['PBS_NODEFILE'] = '.'
    expect(run('--nodes'), 1, '', ['NODELIST_INVALID', 'Is a directory'])
    pathlib.Path('bad').write_bytes(b'n1\0n2\n')
    os.environ['PBS_NODEFILE'] = 'bad'
    expect(run('--nodes'), 1, '', ['NODELIST_INVALID'])
    clean(SLURM_JOB_ID='1', SLURM_JOB_NODELIST='n[1-')
    expect(run('--nodes'), 1, '', ['NODELIST_INVALID', 'hosts "n[1-"'])
    expect(run('--down'), 1, '', ['NODELIST_INVALID', 'hosts "n[1-"'])
    clean(SLURM_JOB_ID='1', SLURM_JOB_NODELIST='n1', SLURM_JOB_END_TIME='soon')
    expect(run('--endtime'), 1, '', ['END_TIME_INVALID', 'SLURM_JOB_END_TIME="soon"'])
    clean(SCR_JOB_ID='a/b')
    expect(run('--jobid'), 1, '', ['IDENTITY_INVALID', 'SCR_JOB_ID=a/b'])


def test_down():
    clean(SLURM_JOB_ID='17', SLURM_JOB_NODELIST='n[1-4]')
    put_sinfo('echo n[3-4]; echo n9')
    expect(run('--down'), 0, 'n[3-4]\n')
    asked = pathlib.Path('asked').read_text()
    assert '--nodes n[1-4]' in asked and 'down' in asked and 'drain' not in asked, asked
    put_sinfo('')
    expect(run('--down'), 0, '\n')
    for script, *told in (('exit 3', 'BATCH_QUERY_FAILED', 'sinfo: exit code 3'),
                          ('kill -9 $$', 'BATCH_QUERY_FAILED', 'sinfo: ended by signal 9'),
                          ("printf '\\033[2J'", 'NODELIST_INVALID'), ('yes n1', 'BATCH_QUERY_FAILED', 'sinfo: File too large')):
        put_sinfo(script)
        expect(run('--down'), 1, '', told)
    os.environ['PATH'] = os.getcwd()
    expect(run('--down'), 1, '', ['BATCH_QUERY_FAILED', 'sinfo: No such file'])


SQUEUE = """echo "$@" >>asked
[ "$SLURM_TIME_FORMAT" = standard ] || exit 9
case "$*" in "--noheader --format=%A %e --job 17") cat answer;; *) exit 8;; esac"""


def test_end_of_slurm():
    """squeue is queried if the environment has no end; "17" may be an array, other parts
    of which have lines, too."""
    clean(SLURM_JOB_ID='17', SLURM_JOB_NODELIST='n1', SLURM_TIME_FORMAT='relative')
    put_program('squeue', SQUEUE)
    answer, end = pathlib.Path('answer'), int(time.mktime((2030, 5, 4, 3, 2, 1, 0, 0, -1)))
    answer.write_text('16 2030-01-01T00:00:00\n17 2030-05-04T03:02:01\n170 2031-01-01T00:00:00\n')
    expect(run('--endtime'), 0, f'{end}\n')
    assert json.loads(run('--json').stdout)['endtime'] == end
    for told in ('17 N/A', '17 UNLIMITED', '17 Unknown', '17 NONE', '17', '18 2030-05-04T03:02:01', ''):
        answer.write_text(told + '\n')
        expect(run('--endtime'), 1, '', ['END_TIME_UNKNOWN'])
    answer.write_text('17 soon\n')
    expect(run('--endtime'), 1, '', ['BATCH_QUERY_FAILED', 'squeue', '"soon"'])
    for script, reason in (('echo no >&2; exit 3', 'squeue: exit code 3'), ('kill -9 $$', 'squeue: ended by signal 9')):
        put_program('squeue', script)
        expect(run('--endtime'), 1, '', ['BATCH_QUERY_FAILED', reason])
    os.unlink('asked')
    put_program('squeue', SQUEUE)
    for name in ('SCR_END_TIME', 'SLURM_JOB_END_TIME'):
        os.environ[name] = '1900000000'
        expect(run('--endtime'), 0, '1900000000\n')
        del os.environ[name]
    clean(PBS_JOBID='17')
    expect(run('--endtime'), 1, '', ['BATCH_QUERY_FAILED', 'qstat: No such file'])
    assert not os.path.exists('asked'), 'it is known, or this is not Slurm'


QSTAT = """Job Id: 19.server
    Job_Name = heat
    Resource_List.nodect = 2
    Resource_List.walltime = 26:30:01
    resources_used.walltime = 00:01:00
    stime = Sat May  4 03:02:01 2030
    Variable_List = PBS_O_HOME=/home/me,
\tstime = never
"""


def test_end_of_pbs():
    """The start of the job and its limit; qstat is queried for that job."""
    clean(PBS_JOBID='19.server', SCR_NODELIST='n1')
    put_program('qstat', 'case "$*" in "-f 19.server") cat answer;; *) exit 8;; esac')
    answer = pathlib.Path('answer')
    start = int(time.mktime((2030, 5, 4, 3, 2, 1, 0, 0, -1)))
    answer.write_text(QSTAT)
    expect(run('--endtime'), 0, f'{start + 26 * 3600 + 1801}\n')
    assert 'tolerate_node_failures' in json.loads(run('--json').stdout)['lostnode']
    answer.write_text(QSTAT.replace('    Resource_List.walltime = 26:30:01\n', ''))
    expect(run('--endtime'), 1, '', ['END_TIME_UNKNOWN'])
    for old, new in (('26:30:01', '26h'), ('Sat May  4 03:02:01 2030', 'yesterday'), ('    stime = Sat May  4 03:02:01 2030\n', '')):
        answer.write_text(QSTAT.replace(old, new).replace('\tstime = never\n', ''))
        expect(run('--endtime'), 1, '', ['BATCH_QUERY_FAILED', 'qstat: '])
    put_program('qstat', 'exit 3')
    expect(run('--endtime'), 1, '', ['BATCH_QUERY_FAILED', 'qstat: exit code 3'])


def test_end_of_lsf():
    """The remaining time, to the minute; an estimate is not a limit."""
    clean(LSB_JOBID='20', SCR_NODELIST='n1')
    put_program('bjobs', 'case "$*" in "-noheader -o time_left 20") cat answer;; *) exit 8;; esac')
    answer = pathlib.Path('answer')
    answer.write_text('2:30 L\n')
    before = int(time.time())
    left = int(run('--endtime').stdout) - 9000
    assert before <= left <= time.time(), left
    for text in ('-\n', '', '- -  \n', '1:30 E\n'):
        answer.write_text(text)
        expect(run('--endtime'), 1, '', ['END_TIME_UNKNOWN'])
    answer.write_text('soon\n')
    expect(run('--endtime'), 1, '', ['BATCH_QUERY_FAILED', 'bjobs: "soon"'])


def test_end_of_slurm_in_programs():
    """scr_run queries once, so SCR in the program need not query; scr_retries_halt in a
    script does."""
    clean(SLURM_JOB_ID='17', SCR_NODELIST='n1', SCR_NODE_NAME='n1', SCR_REMOTE='local', SCR_RUNS='2', SCR_RUN_PAUSE='2',
          SCR_CNTL_BASE=os.path.abspath('cntl'), SCR_CACHE_BASE=os.path.abspath('cache'))
    for folder in ('cntl', 'cache'):
        os.mkdir(folder)
    put_program('squeue', SQUEUE)
    put_program('sinfo', '')
    put_program('mpiexec.mpich', 'echo "$SCR_END_TIME $SLURM_TIME_FORMAT" >>told; exit 7')
    beside = pathlib.Path(os.readlink(COMMAND) if COMMAND.is_symlink() else COMMAND).parent
    job = [beside / 'scr_run', '--launcher', 'hydra', 'program']

    def result():
        return subprocess.run(job, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=60, check=False).returncode

    end = int(time.time()) + 7200
    pathlib.Path('answer').write_text(time.strftime('17 %Y-%m-%dT%H:%M:%S\n', time.localtime(end)))
    assert result() == 7
    assert open('told').read() == f'{end} \n' * 2 and len(open('asked').readlines()) == 1
    put_tree(HALT, {'HaltSeconds': value(9000)})
    assert result() == 1 and f'{end} \n' * 2 == open('told').read()
    assert '(squeue)' in open('.scr/runs.log').read()


def test_usage():
    clean()
    expect_output_fails(['--user'], [], ['--json'], ['--nodes'])
    expect_wrong_usage(['x'], ['--user', '--nodes'], ['--json', '--user'], ['--never'])
    expect_documented(11, {'--prefix': '.'})
    expect_well_formed_page()


run_tests(globals())
