#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_nodes_file: the number, or an error."""
import os

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import NODES, damage, put_tree, value, without_scr_variables

without_scr_variables()


def test_number():
    put_tree(NODES, {'NODES': value(4)})
    expect(run(), 0, '4\n')
    expect(run('--dir', '.'), 0, '4\n')
    expect(run(os.getcwd()), 0, '4\n')
    os.mkdir('other')
    expect(run('other'), 1, '', ['RUN_NODES_UNKNOWN', 'PREFIX_UNUSED', 'nodes.scr', 'No such file'])
    expect(run('no'), 1, '', ['DIRECTORY_UNUSABLE'])
    expect_output_fails([])


def test_damaged_and_hostile():
    for _ in damage(lambda: put_tree(NODES, {'NODES': value(4)}), NODES):
        expect(run(), 1, '', ['RUN_NODES_UNKNOWN', '.scr/nodes.scr'])
    for tree in ({}, {'NODES': {}}, {'NODES': value(0)}, {'NODES': value('-1')}, {'NODES': value('\x1b[2J')},
                 {'NODES': {'1': {}, '2': {}}}, {'NODES': value(2**31)}):
        put_tree(NODES, tree)
        expect(run(), 1, '', ['RUN_NODES_UNKNOWN', '.scr/nodes.scr'])


def test_usage():
    expect_wrong_usage(['a', 'b'], ['-d', 'a', 'b'], ['--no'])
    expect_documented(4, {'--dir': 'x', '--prefix': 'x'})
    expect_well_formed_page()


run_tests(globals())
