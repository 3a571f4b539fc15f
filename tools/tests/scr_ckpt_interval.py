#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_ckpt_interval: an independent computation of the formulas, and facts from logs."""
import json
import math
import pathlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import NODES, put, put_tree, value, without_scr_variables

without_scr_variables()
WIDTH = len('seconds that a checkpoint takes') + 2


def young(cost, mtbf):
    return math.sqrt(2 * cost * mtbf)


def daly(cost, mtbf):
    x = cost / (2 * mtbf)
    return young(cost, mtbf) * (1 + math.sqrt(x) / 3 + x / 9) - cost if cost < 2 * mtbf else mtbf


def ask(*arguments):
    done = run('--json', *arguments)
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)


def near(a, b):
    return abs(a - b) <= 0.06


def test_given():
    for cost, mtbf, c, m in ((30, 86400, '30', '1d'), (12.5, 3600, '12.5', '60min'), (120, 50, '2min', '50'), (1, 1, '1', '1')):
        found = ask('--cost', c, '--mtbf', m)
        assert near(found['interval'], daly(cost, mtbf)) and near(found['young'], young(cost, mtbf)), found
        assert found['cost'] == cost and found['mtbf'] == mtbf and found['runs'] is None
    rows = (('seconds between checkpoints', daly(50, 100)), ("the same by Young's formula", 100),
            ('seconds that a checkpoint takes', 50), ('seconds between failures', 100))
    expect(run('-c', '50', '-m', '100'), 0, ''.join(f'{title:<{WIDTH}}{number:.1f}\n' for title, number in rows))


def event(second, kind, run, **fields):
    rest = ''.join(f' {key}={value}' for key, value in fields.items())
    return (f'2026-01-01T00:{second // 60:02}:{second % 60:02}.000000Z {kind} run="{run}" user="u" jobid="1" host="n"'
            f'{rest}\n')


def put_log():
    lines = ''
    for number in range(3):  # each makes two checkpoints of 2 and 4 seconds; the last run ends well
        name, start = f'r{number}', number * 1000
        lines += event(start, 'RUN_START', name, ranks=8, nodes=4) + event(start + 1, 'RUN_READY', name, secs='1.000000')
        for i, secs in enumerate((2, 4)):
            at = start + 100 * (i + 1)
            lines += event(at, 'OUTPUT_START', name, dset=i + 1, name='"c"', type='"checkpoint"', compute='1.000000')
            lines += event(at + secs, 'OUTPUT_COMPLETE', name, dset=i + 1, name='"c"', type='"checkpoint"', files=8, bytes=80,
                           secs=f'{secs}.000000', bw=8)
        if number == 2:
            lines += event(start + 900, 'RUN_END', name, secs='900.000000', code=0)
    put('.scr/log', lines.encode())


def test_from_the_log():
    put_log()
    put_tree(NODES, {'NODES': value(4)})
    found = ask()
    assert found['runs'] == 3 and found['interrupted'] == 2 and found['nodes'] == 4 and found['cost'] == 3, found
    assert near(found['interval'], daly(3, found['mtbf'])), found
    # twice the nodes fail twice as often, and given values prevail
    assert ask('--nodes', '8')['mtbf'] < found['mtbf'] and ask('--nodes', '8')['nodes'] == 8
    given = ask('--cost', '10', '.')
    assert given['cost'] == 10 and given['mtbf'] == found['mtbf']
    given = ask('--mtbf', '1h')
    assert given['cost'] == 3 and given['mtbf'] == 3600
    text = run().stdout.decode()
    for title, number in (('runs in the log', 3), ('of them interrupted', 2), ('nodes', 4)):
        assert f'{title:<{WIDTH}}{number}\n' in text, text


def test_nothing_is_known():
    expect(run(), 1, '', ['LOG_WITHOUT_CHECKPOINT'])
    put('.scr/log', b'')
    expect(run(), 1, '', ['LOG_WITHOUT_CHECKPOINT'])
    # without known failures, one per day is assumed
    assert ask('--cost', '10')['mtbf'] == 86400
    expect(run('no'), 1, '', ['DIRECTORY_UNUSABLE'])


def test_damaged_log():
    """Invalid lines are skipped; the rest counts."""
    put_log()
    good = pathlib.Path('.scr/log').read_bytes()
    put('.scr/log', b'\0\xff' * 5000 + b'\n' + good + b'2026-01-01T00:00:00.000000Z OUTPUT_COMPLETE secs=' + b'9' * 5000)
    assert ask()['cost'] == 3
    pathlib.Path('.scr/log').unlink()
    pathlib.Path('.scr/log').mkdir()
    expect(run(), 1, '', ['LOG_UNREADABLE'])


def test_usage():
    expect_output_fails(['-c', '1', '-m', '2'], ['-j', '-c', '1', '-m', '2'])
    for text in ('0', '-1', 'x', '', '1e13', 'nan', 'inf', '5 apples'):
        expect_wrong_usage([f'--cost={text}'], [f'--mtbf={text}'])
    expect_wrong_usage(['-n', '-1'], ['a', 'b'], ['-d', 'a', 'b'])
    expect_documented(8, {'--dir': 'x', '--prefix': 'x', '--cost': '1', '--mtbf': '1', '--nodes': '1'})
    expect_well_formed_page()


run_tests(globals())
