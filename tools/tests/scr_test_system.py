#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_test_system: every step is good on a good system, and bad on a bad one. mpiexec is
a script here, with chosen faults; tests/jobs/run.py uses a real one."""
import json
import os
import pathlib

from command import (identifiers, expect, expect_documented, expect_well_formed_page, expect_wrong_usage, run, run_tests)
from prefix import put_launcher, put_program, without_scr_variables

without_scr_variables()

# "-launcher fork [-genv LD_PRELOAD ...] -n 1 -env A a ... PROGRAM... : ...": every
# section is a process; it ends when all processes have, with the worst code, and ends
# them when one was killed.
MPIEXEC = r'''import os, signal, subprocess, sys, time
fault = os.environ.get("FAULT", "")
sections, words = [], sys.argv[6:] if sys.argv[3] == "-genv" else sys.argv[3:]
while words:
    end = words.index(":") if ":" in words else len(words)
    sections.append(words[:end])
    words = words[end + 1:]
ranks = []
for section in sections:
    env = dict(os.environ)
    section = section[2:]
    while section[0] == "-env":
        env[section[1]] = section[2]
        section = section[3:]
    if fault == "one node" and ranks:
        env["SCR_NODE_NAME"] = "node1"
    if fault == "forgets" and ranks and "kill" in str(section):
        time.sleep(4)
        fault = "waits" if ranks[0].poll() else fault
    if fault == "swaps" and not ranks and "kill" in str(section):
        folder = next(word for word in section if ".scr_test_system." in word)
        os.rename(folder, "aside")
        os.symlink(os.path.abspath("private"), folder)
    ranks.append(subprocess.Popen(section, env=env, start_new_session=True))
def end(*_):
    time.sleep(2 * (fault == "takes time"))
    for rank in ranks:
        if fault != "leaves":
            try:
                os.killpg(rank.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    os._exit(9)
signal.signal(signal.SIGTERM, end)
codes = []
for _ in ranks:
    codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
    if codes[-1] < 0 and fault != "waits":
        end()
sys.exit(0 if fault == "success" else max(codes))
'''


def prepare():
    pathlib.Path('mpiexec.py').write_text(MPIEXEC)
    put_launcher(f'exec python3 "{os.getcwd()}/mpiexec.py" "$@"')


def steps(*arguments, code, fault='', nodes='3x1'):
    os.environ['FAULT'] = fault
    done = run('--simulate', nodes, '--json', *arguments)
    assert done.returncode == code, done
    rows = list(map(json.loads, filter(lambda line: line.startswith(b'{'), done.stdout.splitlines())))
    assert identifiers(done).count('SYSTEM_STEP') == len(rows) == len(GOOD), done
    return {row['step']: row['result'] for row in rows}, {row['step']: row['found'] for row in rows}


GOOD = {'programs': 'good', 'nodes': 'good', 'launch': 'good', 'end': 'good', 'crash': 'good', 'steer': 'good',
        'return': 'not made', 'detect': 'not made', 'again': 'not made', 'cycle': 'not made'}


def test_good():
    prepare()
    results, found = steps(code=0)
    assert results == GOOD and found['steer'] == 'without node3' and found['nodes'] == '3 nodes', (results, found)


def test_bad():
    prepare()
    results, found = steps(code=1, fault='one node')
    assert results == {**GOOD, 'launch': 'BAD', 'steer': 'BAD'} and found['launch'] == 'no rank ran on node2', (results, found)
    results, found = steps('--seconds', '3', code=1, fault='leaves')
    assert results['end'] == 'BAD' and found['end'].endswith('processes were left'), (results, found)
    results, found = steps('--seconds', '3', code=1, fault='waits')
    assert results == {**GOOD, 'crash': 'BAD'} and 'did not end within 3 seconds' in found['crash'], (results, found)


def test_slow_end():
    """A launcher takes two seconds to end its ranks; Open MPI's takes one."""
    prepare()
    results, found = steps(code=0, fault='takes time')
    assert results == GOOD, (results, found)


def test_slow_start():
    """A launcher that would not return if a rank were killed before all have started."""
    prepare()
    results, found = steps('--seconds', '30', code=0, fault='forgets', nodes='2x1')
    assert results == GOOD, (results, found)
    assert not list(pathlib.Path().glob('.scr_test_system.*'))


def test_folder_is_exchanged():
    """Others exchange the directory for a link to a private one, in which nothing is
    created, truncated or removed."""
    prepare()
    private = pathlib.Path('private')
    private.mkdir()
    for name in ('0', '1', '2'):
        (private / name).write_text('work')
    steps('--seconds', '3', code=0, fault='swaps')
    assert {path.name: path.read_text() for path in private.iterdir()} == {'0': 'work', '1': 'work', '2': 'work'}


def test_node_is_bad():
    """It is reported, and excluded from the other steps."""
    prepare()
    os.environ['SCR_EXCLUDE_NODES'] = 'node2'
    results, found = steps(code=1, nodes='2x1')
    assert results == {**GOOD, 'nodes': 'BAD', 'steer': 'not made'}, (results, found)
    assert found['nodes'] == 'node2: excluded by SCR_EXCLUDE_NODES', found
    del os.environ['SCR_EXCLUDE_NODES']


def test_cycle():
    """Programs that end before a node is lost, or do not continue from a checkpoint; a
    good one is in tests/jobs/run.py."""
    prepare()
    results, found = steps('true', code=1)
    assert results == {**GOOD, 'detect': 'BAD', 'again': 'BAD', 'cycle': 'BAD'}, (results, found)
    assert found['return'] == 'the program ended by itself' and found['detect'] == 'node1: it was not found to be down', found
    assert found['cycle'] == 'no node was lost; see .scr/runs.log', found
    results, found = steps('false', code=1)
    assert results == {**GOOD, 'return': 'good', 'detect': 'BAD', 'again': 'BAD', 'cycle': 'BAD'}, (results, found)
    assert found['return'] == 'exit code 1: it failed' and found['again'] == 'on node[1-2]', found
    assert found['cycle'].startswith('exit code 1; '), found
    results, found = steps('true', code=0, nodes='1x2')
    assert results == {**GOOD, 'steer': 'not made'} and found['cycle'] == 'there are too few nodes to lose one', (results, found)


def test_program_is_missing():
    """This is reported before any step."""
    prepare()
    for program in ('no', './no', '/no/true', "''"):
        expect(run('--simulate', '2x1', program.strip("'")), 1, '', ['PROGRAM_MISSING', program])


def test_usage():
    prepare()
    expect_wrong_usage(['--seconds', 'x'], ['--simulate', '2', '--launcher', 'hydra'],
                       ['--simulate', '2', '--switch-off', 'true'], ['--switch-off', ''],
                       *(['--simulate', wrong] for wrong in ('x', '0x1', '1x0', '2x')))
    assert b"NODESxRANKS" in run('--simulate', '0x1').stderr
    expect_documented(8, {'--switch-off': 'true', '--prefix': '.', '--launcher': 'hydra', '--simulate': '2', '--seconds': '1'})
    expect_well_formed_page()


run_tests(globals())
