#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_params: every parameter with its value and source; all mistakes in the
configuration at once."""
import json
import os
import pathlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_tests)
from prefix import without_scr_variables


def clean(text=None, **variables):
    without_scr_variables()
    os.environ.update(variables)
    if text is not None:
        pathlib.Path('conf').write_text(text)
        os.environ['SCR_CONF_FILE'] = 'conf'


def rows(*arguments, code=0):
    result = run('--json', *arguments)
    assert result.returncode == code, result
    return {row['name']: row for row in map(json.loads, result.stdout.splitlines())}


def test_values():
    clean('SCR_FLUSH: 7\nSCR_COPY_TYPE: RS\n', SCR_FLUSH='9')
    every = rows()
    assert len(every) > 60 and all(row['help'] and row['type'] for row in every.values())
    assert every['SCR_FLUSH'] == {'name': 'SCR_FLUSH', 'value': '9', 'source': 'the environment', 'type': 'number',
                                  'default': '10', 'help': every['SCR_FLUSH']['help']}, every['SCR_FLUSH']
    assert (every['SCR_COPY_TYPE']['value'], every['SCR_COPY_TYPE']['source']) == ('RS', 'conf:2:16')
    assert every['SCR_CACHE_SIZE']['value'] == every['SCR_CACHE_SIZE']['default']
    assert every['SCR_CACHE_SIZE']['source'] is None and every['SCR_MTBF']['value'] is None
    assert set(rows('--set')) == {'SCR_FLUSH', 'SCR_COPY_TYPE'}
    assert set(rows('SCR_MTBF', 'SCR_FLUSH')) == {'SCR_MTBF', 'SCR_FLUSH'}
    lines = run('SCR_FLUSH').stdout.decode().splitlines()
    assert len(lines) == 2 and lines[0].split()[:3] == ['PARAMETER', 'VALUE', 'SET'], lines
    expect(run('--check'), 0, '')
    expect_output_fails([])


def test_mistakes():
    """Mistakes of the environment, of each type, of files and of descriptors."""
    clean('SCR_FLUSH: often\nSCR_SET_SIZ: 4\nSCR_MTBF: soon\nCKPT:\n  - CKPT: 0\n    TYPE: XOOR\n', SCR_FLUSHH='1',
          SCR_ENABLE='maybe', SCR_CONTAINER_SIZE='big', SCR_CHECKPOINT_OVERHEAD='much')
    wrong = ['CONFIG_MISTAKE', 'CONFIG_VARIABLE_UNKNOWN', 'SCR_FLUSHH', 'did you mean SCR_FLUSH?', 'SCR_FLUSH="often" (conf:1:', 'SCR_SET_SIZ',
             'SCR_ENABLE="maybe" (the environment)', 'SCR_CONTAINER_SIZE="big"', 'SCR_CHECKPOINT_OVERHEAD="much"']
    expect(run('--check'), 1, '', wrong)
    for name, value in (('SCR_ENABLE', 'maybe'), ('SCR_CHECKPOINT_INTERVAL', 'now'), ('SCR_COPY_TYPE', 'XOOR'),
                        ('SCR_CRC_ON_COPY', '2')):
        clean('', **{name: value})
        expect(run('--check'), 1, '', ['CONFIG_MISTAKE', name, value])
        assert rows(name, code=1)[name]['value'] == value


def test_system_file():
    """Another system file is tried: it may set what only the system file may set."""
    clean()
    pathlib.Path('new').write_text('SCR_FLUSH: 3\nSCR_LOCKED: [SCR_FLUSH]\n')
    flush = rows('--system', 'new', 'SCR_FLUSH')['SCR_FLUSH']
    assert (flush['value'], flush['source']) == ('3', 'new:1:12'), flush
    expect(run('-c', '-y', 'new'), 0, '')
    clean(SCR_FLUSH='4')
    expect(run('-c', '-y', 'new'), 1, '', ['CONFIG_MISTAKE', 'SCR_FLUSH="4"'])
    pathlib.Path('new').write_text('SCR_FLSH: 3\n')
    expect(run('-c', '-y', 'new'), 1, '', ['CONFIG_MISTAKE', 'new:1:1', 'did you mean SCR_FLUSH?'])
    expect(run('-c', '-y', 'no'), 1, '', ['CONFIG_FILE_UNREADABLE', 'scr_params: no: No such file'])


def test_earlier_version():
    """Names of SCR 3.1 are warned about, and are no mistakes."""
    clean('CACHEDIR=/ssd BYTES=1GB\nSCR_DB_HOST=h\nSCR_FLUSH_TYPE=BBAPI\n', SCR_FLUSH_POSTSTAGE='1')
    expect(run('--check'), 0, '', ['CONFIG_FORMER', 'conf:1:1: CACHEDIR has no meaning', 'SCR_FLUSH_POSTSTAGE in the environment',
                                   'SCR_FLUSH_TYPE=BBAPI is not in this build, and PTHREAD is used'])
    assert rows('SCR_DB_HOST')['SCR_LOG_DB_HOST']['value'] == 'h'


def test_list_of_nodes():
    clean(SCR_EXCLUDE_NODES='node1[')
    expect(run('-c'), 1, '', ['NODELIST_INVALID', 'SCR_EXCLUDE_NODES: '])


def test_password():
    """It is in no output that could be kept or shown to others."""
    clean(SCR_LOG_DB_PASS='open sesame')
    assert rows('SCR_LOG_DB_PASS')['SCR_LOG_DB_PASS']['value'] == '(not shown)'
    assert b'sesame' not in run().stdout
    clean()


def test_example():
    """The system file that docs/administration.md proposes."""
    clean()
    page = (pathlib.Path(__file__).parents[2] / 'docs/administration.md').read_text()
    pathlib.Path('new').write_text(page.partition('```yaml\n')[2].partition('```')[0])
    expect(run('-c', '-y', 'new'), 0, '')
    assert len(rows('-y', 'new', '--set')) == 7


def test_usage():
    clean()
    expect_wrong_usage(['--check', '--json'], ['--check', 'SCR_FLUSH'], ['SCR_FLUSHH'], ['SCR_FLUSH', ''], ['--no'])
    expect_documented(7, {'--prefix': 'x', '--system': 'x'})
    expect_well_formed_page()


run_tests(globals())
