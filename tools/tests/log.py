# SPDX-License-Identifier: BSD-3-Clause
"""For tests of the commands that add to the log: common requirements."""
import json
import os
import pathlib

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, run,
                     run_closed, run_unread)
from prefix import expect_owner_kept, without_scr_variables


def switch_on():
    """Logs to files only: a syslog daemon here is not part of the test."""
    without_scr_variables()
    os.environ.update(SCR_LOG_ENABLE='1', SCR_LOG_SYSLOG_ENABLE='0', SCR_LOG_JSON_ENABLE='1', SCR_USER_NAME='tester',
                      SCR_JOB_ID='17', SCR_NODE_NAME='n1', TZ='UTC')
    os.makedirs('.scr', exist_ok=True)


def logged(folder='.'):
    """All events so far, without time and host."""
    lines = pathlib.Path(folder, '.scr/log.jsonl').read_text().splitlines()
    assert len(pathlib.Path(folder, '.scr/log').read_text().splitlines()) == len(lines)
    return [json.loads(line) for line in lines]


def check_places(good):
    """good: arguments of a valid event."""
    os.mkdir('other')
    os.mkdir('other/.scr')
    expect(run('--prefix', 'other', *good), 0)
    assert len(logged('other')) == 1 and not os.listdir('.scr')
    os.environ['SCR_PREFIX'] = 'other'
    expect(run(*good), 0)
    assert len(logged('other')) == 2
    del os.environ['SCR_PREFIX']
    expect(run('-p', 'no', *good), 1, '', ['DIRECTORY_UNUSABLE'])
    os.environ['SCR_LOG_ENABLE'] = '0'
    expect(run(*good), 0, '', ['LOG_OFF', 'SCR_LOG_ENABLE'])
    assert not os.listdir('.scr')
    pathlib.Path('scr.yaml').write_text('SCR_LOG_TXT_ENABLE: maybe\n')
    expect(run(*good), 1, '', ['CONFIG_MISTAKE', 'SCR_LOG_TXT_ENABLE'])
    os.unlink('scr.yaml')


def check_owner(good):
    switch_on()
    expect_owner_kept(good)


def check_targets_that_fail(good):
    """Other targets still get the event, and the exit code shows the failure."""
    os.mkdir('.scr/log')
    done = run(*good)
    assert done.returncode == 1 and b'.scr/log' in done.stderr and b'[LOG_TARGET_FAILED]' in done.stderr, done
    assert len(pathlib.Path('.scr/log.jsonl').read_text().splitlines()) == 1
    # nor do its messages get into the log if there is no other place
    os.rmdir('.scr/log')
    os.unlink('.scr/log.jsonl')
    os.mkdir('.scr/log.jsonl')
    assert run_unread(*good).returncode == 1
    for first in range(3):
        assert run_closed(*good, first=first).returncode == 1
        told = pathlib.Path('.scr/log').read_text()
        assert told.count('\n') == first + 2 and 'log.jsonl' not in told, told
    os.environ.update(SCR_JOB_ID='a/b')
    expect(run(*good), 1, '', ['IDENTITY_INVALID', 'SCR_JOB_ID=a/b'])


def check_usage(kind):
    expect_wrong_usage([], ['NAME=x'], ['-T', ''], ['-T', kind, 'x'], ['-T', kind, '=x'],
                       ['-T', kind, 'nothing=x'], ['-T', kind, 'event=ERROR'], ['-T', kind, 'ranks=5'],
                       ['-T', kind, '--start', 'soon'], ['-T', kind, 'time=99999999999999'])
    assert not os.listdir('.scr')
    expect_output_fails(['--kinds'])
    expect_documented(18, {long: 'x' for long in ('--prefix', '--type', '--jobstart', '--jobid', '--user', '--jobname', '--dset', '--name',
                                                  '--note', '--start', '--secs', '--from', '--to', '--bytes', '--files')})
    expect_well_formed_page()
