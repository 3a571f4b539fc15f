#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_should_exit: a halt condition, the remaining nodes, and the end of the allocation;
on simulated nodes."""
import os
import pathlib
import shutil

from command import (COMMAND, expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import damage, put_halt, put_program, put_tree, value, without_scr_variables

without_scr_variables()
NODES = '.scr/nodes.scr'


def nodes(count):
    """Simulated nodes n1, n2, ..."""
    without_scr_variables()
    os.environ.update(SCR_PREFIX=os.getcwd(), SCR_SIMULATE=os.path.abspath('nodes'), SCR_NODELIST=f'n[1-{count}]')
    for number in range(count):
        os.makedirs(f'nodes/n{number + 1}')


def test_go_on():
    nodes(3)
    expect(run(), 1)
    expect(run('--verbose', '-p', '.'), 1)
    put_halt({'CheckpointsLeft': value(3)})
    expect(run('-v', '.'), 1)


def test_condition():
    """No node is queried then."""
    nodes(1)
    os.environ['SCR_SIMULATE'] = 'nowhere'
    for reason in ('SCR_FINALIZE_CALLED', 'enough'):
        put_halt({'ExitReason': value(reason)})
        expect(run(), 0)
        expect(run('--verbose'), 0, f'the job should halt: {reason}\n')
    for _ in damage(lambda: put_halt({'CheckpointsLeft': value(7)})):
        expect(run(), 3, '', ['HALT_FILE_UNREADABLE', 'HALT_REMEDY', '.scr/halt.scr'])


def test_nodes():
    """SCR_MIN_NODES, else as many as before, else all."""
    nodes(4)
    shutil.rmtree('nodes/n2')
    lost = 'n2: no answer: n2: Host is down\n'
    expect(run(), 0)
    expect(run('-v'), 0, f'{lost}3 of 4 nodes are left, 4 are needed\n')
    put_tree(NODES, {'NODES': value(3)})
    expect(run('-v'), 1, lost)
    expect(run('--down', 'n[3,9]', '-v'), 0, f'{lost}n3: known to be down\n2 of 4 nodes are left, 3 are needed\n')
    os.environ['SCR_MIN_NODES'] = '2'
    expect(run('--down', 'n3'), 1)
    expect(run('--down', 'n[3-4]', '-v'), 0, f'{lost}n3: known to be down\nn4: known to be down\n1 of 4 nodes are left, 2 are needed\n')
    del os.environ['SCR_MIN_NODES']
    pathlib.Path(NODES).write_bytes(b'no number')
    expect(run(), 0, '', ['RUN_NODES_UNKNOWN', NODES])
    os.environ['SCR_MIN_NODES'] = 'some'
    assert run().returncode == 3
    os.environ.update(SCR_MIN_NODES='1', SCR_EXCLUDE_NODES='n[')
    assert run().returncode == 3
    os.environ.update(SCR_EXCLUDE_NODES='n[1,3-4]')
    expect(run(), 0)


def test_end_of_allocation():
    nodes(1)
    os.environ['SLURM_JOB_ID'] = '17'
    put_program('sinfo', '')
    for state, code in (('RUNNING', 1), ('COMPLETING', 0)):
        put_program('squeue', f'echo "17 {state} N/A"')
        expect(run('-v'), code, '' if code else 'the allocation is over\n')
    del os.environ['SLURM_JOB_ID']


SCRIPT = """scr_prerun -p $PWD -v || exit 1
down=
for run in 1 2 3 4; do
    srun ${down:+--exclude $down} program
    scr_should_exit -p $PWD ${down:+--down $down} && break
    down=$(scr_list_down_nodes -j srun ${down:+--down $down})
    scr_should_exit -p $PWD ${down:+--down $down} && break
done
scr_postrun -p $PWD -j srun -v
"""


def test_script_of_scr_3():
    """Its loop: the first run loses n2, and the second one is halted."""
    nodes(3)
    os.environ.update(SCR_MIN_NODES='2', PATH=f'{COMMAND.parent}:{os.environ["PATH"]}')
    put_halt({})
    put_program('srun', f'echo "$*" >>{os.getcwd()}/calls; [ $# = 1 ] || exec scr_halt >/dev/null 2>&1; rm -r nodes/n2; exit 1')
    done = run('-c', SCRIPT, command='sh')
    assert pathlib.Path('calls').read_text() == 'program\n--exclude n2 program\n', (done, os.listdir('.'))
    assert done.returncode == 0 and done.stdout == b'nothing to save: no dataset is in the cache\n', done


def test_unknown():
    nodes(1)
    os.environ['SCR_REMOTE'] = 'pigeon'
    expect(run(), 3, '', ['REMOTE_UNUSABLE', 'SCR_REMOTE=pigeon'])
    without_scr_variables()
    expect(run('no'), 3, '', ['DIRECTORY_UNUSABLE'])
    pathlib.Path('scr.yaml').write_text('SCR_PREFIXX: x\n')
    assert run('.').returncode == 3
    # a script must not continue because its terminal is gone
    os.unlink('scr.yaml')
    put_halt({'ExitReason': value('enough')})
    expect_output_fails()
    with open('/dev/full', 'w') as full:
        assert run('-v', '.', stdout=full).returncode == 3


def test_usage():
    expect_wrong_usage(['--no'], ['a', 'b'], ['-p', 'a', 'b'], ['--down', 'n['])
    expect_documented(5, {'--prefix': 'x', '--down': 'n1'})
    expect_well_formed_page()


run_tests(globals())
