#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scr_report: an independent computation of every figure from the events; the HTML page,
and the metrics."""
import datetime
import html.parser
import json
import math
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess

from command import (expect, expect_documented, expect_output_fails, expect_well_formed_page, expect_wrong_usage, identifiers, run,
                     run_tests)
from prefix import put, without_scr_variables

without_scr_variables()
BEGIN = 1795257190


class Log:
    """Events with their fields; times are seconds after BEGIN."""

    def __init__(self):
        self.events = []

    def add(self, when, kind, whose=None, **fields):
        self.events.append({'time': when, 'kind': kind, 'run': whose, **fields})

    def put(self):
        lines = []
        for event in sorted(self.events, key=lambda event: event['time']):
            when = datetime.datetime.fromtimestamp(BEGIN, datetime.timezone.utc) + datetime.timedelta(seconds=event['time'])
            line = f'{when.strftime("%Y-%m-%dT%H:%M:%S.%f")}Z {event["kind"]}'
            for key, value in event.items():
                if key not in ('time', 'kind') and value is not None:
                    value = f'{value:.6f}' if isinstance(value, float) else value
                    line += f' {key}="{value}"' if isinstance(value, str) and not re.fullmatch(r'[\d.]+', value) else f' {key}={value}'
            lines.append(line + '\n')
        put('.scr/log', ''.join(lines).encode())

    def run(self, whose, start, steps, ending=None, restart=None, launch=None, interrupted=None, named=False):
        """steps: (seconds of computing, of the output, id, of a flush that is waited
        for). named: LAUNCH_END has the id of the run. interrupted: seconds until
        RUN_INTERRUPTED is logged. Returns the end."""
        now = start
        self.add(now, 'RUN_START', whose, jobid='17', ranks=8, nodes=4)
        now += 5
        self.add(now, 'RUN_READY', whose, secs='5.000000')
        if restart:
            self.add(now + 1, 'RESTART_START', whose, dset=restart, name='c')
            self.add(now + 3, 'RESTART_COMPLETE', whose, dset=restart, name='c', secs='2.000000')
            now += 3
        for compute, output, dset, flush in steps:
            now += compute
            self.add(now, 'OUTPUT_START', whose, dset=dset, name='c', type='checkpoint', compute=float(compute))
            now += output
            self.add(now, 'OUTPUT_COMPLETE', whose, dset=dset, name='c', type='checkpoint', bytes=1000 * dset, secs=float(output))
            if flush:
                self.add(now, 'FLUSH_START', whose, dset=dset, name='c', method='sync')
                self.add(now + flush, 'FLUSH_COMPLETE', whose, dset=dset, name='c', method='sync', bytes=1000 * dset, secs=float(flush))
                now += flush
        if ending:
            for kind in ending:
                now += 1
                self.add(now, kind, whose)
        if launch:
            now += launch
            self.add(now, 'LAUNCH_END', whose if named else None, code=9)
        if interrupted is not None:
            self.add(now + interrupted, 'RUN_INTERRUPTED', whose, secs=float(now - start))
        return now


# ---- the figures again ----

def again(log):
    """Computes from the events alone, without spans: the seconds of each kind are sums of
    differences."""
    events = sorted(log.events, key=lambda event: event['time'])
    names = [event['run'] for event in events if event['kind'] == 'RUN_START']
    of = {name: [event for event in events if event['run'] == name] for name in names}
    found = dict.fromkeys(('start', 'output', 'flush', 'restart', 'compute', 'lost', 'down'), 0.0)
    ends, how, work, points = {}, {}, {}, {}
    for place, name in enumerate(names):
        mine = [event for event in of[name] if event['kind'] not in ('LAUNCH_END', 'RUN_INTERRUPTED')]
        begin, kinds = mine[0]['time'], {event['kind'] for event in mine}
        until = of[names[place + 1]][0]['time'] if place + 1 < len(names) else math.inf
        launched = [event['time'] for event in events if event['kind'] == 'LAUNCH_END' and begin < event['time'] < until]
        launched += [begin + event['secs'] for event in of[name] if event['kind'] == 'RUN_INTERRUPTED']
        is_over = 'RUN_END' not in kinds and bool(launched)
        ends[name] = launched[0] if is_over else mine[-1]['time']
        how[name] = ('halted' if 'HALT' in kinds else 'finished') if 'RUN_END' in kinds else \
            ('halted' if 'HALT' in kinds else 'interrupted') if is_over or place + 1 < len(names) else 'open'
        ready = next((event['time'] for event in mine if event['kind'] == 'RUN_READY'), None)
        found['start'] += (ready if ready is not None else ends[name]) - begin
        # times without computing, as pairs
        pauses = []
        for first, *last in (('OUTPUT_START', 'OUTPUT_COMPLETE', 'OUTPUT_FAILED'), ('FLUSH_START', 'FLUSH_COMPLETE', 'FLUSH_FAILED'),
                             ('RESTART_START', 'RESTART_COMPLETE')):
            starts = [event for event in mine if event['kind'] == first and 'background' not in event.get('method', '')]
            for event in starts:
                stop = next((other['time'] for other in mine if other['kind'] in last and other['dset'] == event['dset']
                             and other['time'] >= event['time']), ends[name])
                found[first.split('_')[0].lower()] += stop - event['time']
                pauses.append((event['time'], stop))
        edges = [ready] + [edge for pair in sorted(pauses) for edge in pair] + [ends[name]] if ready is not None else []
        work[name] = [(a, b) for a, b in zip(edges[::2], edges[1::2]) if b > a]
        points[name] = {event['dset']: event['time'] for event in mine if event['kind'] == 'OUTPUT_COMPLETE'}
        if place and how[names[place - 1]] == 'interrupted':
            found['down'] += max(0, begin - ends[names[place - 1]])
    lost = set()
    since = 0
    for place, name in enumerate(names):
        restart = next((event['dset'] for event in of[name] if event['kind'] == 'RESTART_COMPLETE'), None)
        ready = any(event['kind'] == 'RUN_READY' for event in of[name])
        if restart:
            source = next((k for k in range(place - 1, -1, -1) if restart in points[names[k]]), None)
            if source is not None:
                lost |= {(k, span) for k in range(source, place) for span in work[names[k]] if span[0] >= points[names[source]][restart]}
        elif place and ready:
            if how[names[place - 1]] == 'interrupted':
                lost |= {(k, span) for k in range(since, place) for span in work[names[k]]}
            since = place
        if how[name] == 'finished':
            since = place + 1
    if names and how[names[-1]] == 'interrupted':
        newest = max(points[names[-1]].values(), default=0)
        lost |= {(len(names) - 1, span) for span in work[names[-1]] if span[0] >= newest}
    for place, name in enumerate(names):
        for span in work[name]:
            found['lost' if (place, span) in lost else 'compute'] += span[1] - span[0]
    walls = sum(ends[name] - of[name][0]['time'] for name in names)
    ready = [name for name in names if any(event['kind'] == 'RUN_READY' for event in of[name])]
    failures = sum(how[name] == 'interrupted' for name in ready)
    outputs = [event for event in events if event['kind'] == 'OUTPUT_COMPLETE']
    computes = [event['compute'] for event in events if event['kind'] == 'OUTPUT_START']
    found.update(total=walls + found['down'], runs=len(names), interrupted=failures, checkpoints=len(outputs),
                 finished=sum(word == 'finished' for word in how.values()), halted=sum(word == 'halted' for word in how.values()),
                 nodes_lost=sum(event['kind'] == 'NODE_LOST' for event in events))
    found['efficiency'] = 100 * found['compute'] / found['total'] if found['total'] else None
    found['cost'] = cost = statistics.mean(event['secs'] for event in outputs) if outputs else None
    found['interval'] = interval = statistics.mean(computes) if computes else None
    found['mtbf'] = mtbf = sum(ends[name] - of[name][0]['time'] for name in ready) / failures if failures else None
    found['best_interval'] = found['saved'] = None
    if cost and mtbf:
        x = cost / (2 * mtbf)
        best = math.sqrt(2 * cost * mtbf) * (1 + math.sqrt(x) / 3 + x / 9) - cost if x < 1 else mtbf
        shares = [min(1, cost / (i + cost) + (i + cost) / (2 * mtbf)) for i in (interval, best)]
        found.update(best_interval=best, saved=walls * max(0, shares[0] - shares[1]))
    return found, how


def levels(log):
    for level, kind in (('cache', 'OUTPUT'), ('flush', 'FLUSH')):
        done = [event for event in log.events if event['kind'] == f'{kind}_COMPLETE']
        failed = sum(event['kind'] == f'{kind}_FAILED' for event in log.events)
        rates = [event['bytes'] / event['secs'] for event in done]
        if done or failed:
            yield {'level': level, 'count': len(done), 'failed': failed, 'bytes': sum(event['bytes'] for event in done),
                   'seconds': sum(event['secs'] for event in done),
                   'mean': sum(event['bytes'] for event in done) / sum(event['secs'] for event in done) if done else None,
                   'least': min(rates, default=None), 'median': statistics.median(rates) if rates else None, 'most': max(rates, default=None)}


def ask(*arguments):
    done = run('--json', *arguments)
    assert done.returncode == 0 and not done.stderr, done
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {kind: [row for row in rows if row['kind'] == kind] for kind in ('summary', 'level', 'run', 'span')}


def same(is_, wanted):
    if isinstance(wanted, (int, float)) and isinstance(is_, (int, float)):
        return abs(is_ - wanted) <= 2e-5 * max(1, abs(wanted))
    return is_ == wanted


def compare(log):
    log.put()
    found, (wanted, how) = ask(), again(log)
    summary = found['summary'][0]
    for key, value in wanted.items():
        assert same(summary[key], value), (key, summary[key], value, log.events)
    assert [row['ended'] for row in found['run']] == list(how.values()), (found['run'], how)
    wanted_levels = list(levels(log))
    assert len(found['level']) == len(wanted_levels)
    for row, level in zip(found['level'], wanted_levels):
        assert all(same(row[key], value) for key, value in level.items()), (row, level)
    # the spans of a run follow each other
    for row in found['run']:
        spans = sorted((span['from'], span['to']) for span in found['span'] if span['run'] == row['run'])
        edges = [row['start'], *(edge for span in spans for edge in span), row['end']]
        assert all(same(a, b) for a, b in zip(edges[::2], edges[1::2])), (row, spans)
    return summary


def story():
    """A run is killed by the loss of a node; the next continues from its newest
    checkpoint, and is halted; the third one finishes."""
    log = Log()
    end = log.run('r1', 0, [(100, 2, 1, 0), (100, 4, 2, 8), (70, 3, 3, 0)], launch=40)
    log.add(end + 1, 'NODE_LOST', None, node='n3')
    end = log.run('r2', end + 10, [(50, 2, 4, 0), (60, 2, 5, 5)], ('HALT', 'RUN_END'), restart=2)
    end = log.run('r3', end + 1000, [(50, 2, 6, 0)], ('RUN_END',), restart=5)
    return log


def test_a_story():
    summary = compare(story())
    # by hand: r1 loses 70 s after checkpoint 2 and 40 s after checkpoint 3; r2 loses 2 s
    # at its end
    assert summary['lost'] == 112 and summary['down'] == 10 and summary['interrupted'] == 1, summary
    assert summary['flush'] == 13 and summary['output'] == 15 and summary['start'] == 15 and summary['restart'] == 4, summary
    assert summary['mtbf'] == summary['total'] - 10 and summary['nodes_lost'] == 1, summary


def test_begins_and_ends():
    log = Log()
    log.run('r1', 0, [(100, 2, 1, 0)])
    log.run('r2', 500, [(100, 2, 1, 0)])  # anew: what r1 computed is lost
    assert compare(log)['lost'] == 100
    log = Log()
    log.run('r1', 0, [(100, 2, 1, 0)])
    assert compare(log)['lost'] == 0  # it may still run
    log.add(200, 'LAUNCH_END', None, code=1)
    assert compare(log)['lost'] == 93  # since its checkpoint
    log = Log()
    log.run('r1', 0, [(100, 2, 1, 0)], interrupted=5000)
    assert compare(log)['lost'] == 0 and ask()['run'][0]['ended'] == 'interrupted'
    assert ask()['summary'][0]['total'] == 107  # and not until somebody knew
    log = Log()  # of two programs at the same time, one has ended
    log.run('r1', 0, [(100, 2, 1, 0)])
    log.run('r2', 50, [(100, 2, 2, 0)])
    log.add(200, 'LAUNCH_END', 'r1', code=1)
    log.put()
    assert [row['ended'] for row in ask()['run']] == ['interrupted', 'open']
    log = Log()
    log.add(0, 'RUN_START', 'r1', ranks=1, nodes=1)
    log.add(9, 'ERROR', 'r1', code=1, note='x')
    assert compare(log)['interrupted'] == 0
    log.add(20, 'FLUSH_START', 'r1', dset=1, method='pthread background')
    log.add(21, 'FLUSH_COMPLETE', 'r1', dset=1, method='pthread background', bytes=10, secs=1.0)
    log.add(22, 'FLUSH_FAILED', 'r1', dset=2, method='pthread background')
    log.add(23, 'OUTPUT_FAILED', 'r1', dset=2, type='output')
    log.put()
    assert ask()['summary'][0]['flush'] == 0
    put('.scr/log', b'')
    summary = ask()['summary'][0]
    assert (summary['runs'], summary['efficiency'], summary['mtbf'], summary['best_interval']) == (0, None, None, None), summary


def test_long_logs():
    """The report has the events that the two files keep; the start of a run may be
    lost."""
    story().put()
    whole = run().stdout
    lines = pathlib.Path('.scr/log').read_bytes().splitlines(keepends=True)
    put('.scr/log.1', b''.join(lines[:8]))
    put('.scr/log', b''.join(lines[8:]))
    assert run().stdout == whole
    os.unlink('.scr/log.1')
    log = story()
    log.events = sorted(log.events, key=lambda event: event['time'])[8:]
    assert log.events[0]['kind'] == 'OUTPUT_START' and log.events[0]['run'] == 'r1', log.events[0]
    found = ask()
    assert [row['ended'] for row in found['run']] == ['interrupted', 'halted', 'finished'], found['run']
    # of r1: 3 s of the last checkpoint, and 40 s until its end, which are lost together
    # with the 70 s before, whose events are gone
    first = [span for span in found['span'] if span['run'] == 'r1']
    assert sum(span['to'] - span['from'] for span in first) == 43, first


def test_random_histories():
    for seed in range(40):
        chance, log, now, dset, known = random.Random(seed), Log(), 0, 0, []
        for number in range(chance.randrange(1, 12)):
            steps = []
            for _ in range(chance.randrange(5)):
                dset += 1
                steps.append((chance.randrange(1, 200), chance.randrange(1, 9), dset, chance.choice((0, 0, 7))))
            restart = chance.choice(known[-3:]) if known and chance.random() < 0.8 else None
            ending = chance.choice((None, None, ('RUN_END',), ('HALT', 'RUN_END')))
            launch = chance.choice((None, 3, 60)) if not ending else chance.choice((None, 2))
            interrupted = chance.choice((None, 0, 400)) if not ending else None
            now = log.run(f'r{number}', now + chance.randrange(1, 300), steps, ending, restart, launch, interrupted, chance.random() < 0.5)
            known += [step[2] for step in steps]
        compare(log)


# ---- other forms ----

def test_text():
    story().put()
    text = run().stdout.decode()
    summary = ask()['summary'][0]
    for title, key in (('runs', 'runs'), ('checkpoints', 'checkpoints'), ('lost computing', 'lost'), ('efficiency in percent', 'efficiency'),
                       ('best interval, s', 'best_interval')):
        value = summary[key]
        shown = str(value) if isinstance(value, int) else f'{value:.3f}' if value < 10 else f'{value:.1f}'
        assert re.search(rf'^{title} +{re.escape(shown)}$', text, re.MULTILINE), (title, shown, text)
    assert text.count('interrupted\n') == 1 and 'finished\n' in text and re.search(r'^cache +6 +0 +21.0 kB', text, re.MULTILINE), text
    assert all(len(line) <= 80 for line in text.splitlines()), text


class Page(html.parser.HTMLParser):
    """Each element is closed, and nothing is loaded from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rects, self.text = [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert not {'src', 'href', 'srcset'} & {name for name, _ in attrs} and tag not in ('script', 'link', 'img'), (tag, attrs)
        if tag not in ('meta', 'br', '!doctype'):
            self.open.append(tag)
        if tag == 'rect':
            self.rects.append(dict(attrs))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        self.text.append(data)


def test_html():
    os.mkdir('a<b>&"c')
    os.chdir('a<b>&"c')
    story().put()
    expect(run('--html', '../page.html'), 0)
    text = pathlib.Path('../page.html').read_text()
    page = Page(text)
    shown = ''.join(page.text)
    assert 'http' not in text and 'prefers-color-scheme:dark' in text and 'viewport' in text and 'a<b>&"c' in shown
    summary = ask()['summary'][0]
    assert f'{summary["efficiency"]:.1f} %' in shown and '1 of 3' in shown and shown.count('interrupted') == 2 and text.count('title="interrupted"') == 1, shown
    # the widths of a color are the seconds of its kind
    widths = {kind: sum(float(rect['width']) for rect in page.rects if rect.get('class') == f'k{place}' and rect['height'] == '16')
              for place, kind in enumerate(('start', 'compute', 'output', 'flush', 'restart', 'lost'))}
    scale = sum(widths.values()) / sum(summary[kind] for kind in widths)
    for kind, width in widths.items():
        assert abs(width - summary[kind] * scale) < 1.5, (kind, widths, scale)
    # many spans: those that are too narrow are joined
    log = Log()
    log.run('r1', 0, [(1, 1, dset, 0) for dset in range(1, 20000)])
    log.put()
    expect(run('-H', '../page.html'), 0)
    assert len(Page(pathlib.Path('../page.html').read_text()).rects) < 1000
    assert sorted(os.listdir('..')) == ['a<b>&"c', 'page.html']


def test_metrics():
    story().put()
    expect(run('--metrics', 'scr.prom'), 0)
    text = pathlib.Path('scr.prom').read_text()
    summary = ask()['summary'][0]
    found = {(name, rest): float(value) for name, rest, value in re.findall(rf'^(\w+){{prefix="{os.getcwd()}"(.*)}} (\S+)$', text, re.MULTILINE)}
    for name, key in (('scr_runs', 'runs'), ('scr_checkpoints', 'checkpoints'), ('scr_failure_interval_seconds', 'mtbf'),
                      ('scr_checkpoint_interval_best_seconds', 'best_interval')):
        assert same(found[(name, '')], summary[key]), (name, found)
    for kind in ('compute', 'lost', 'down', 'flush'):
        assert same(found[('scr_time_seconds', f',kind="{kind}"')], summary[kind])
    assert same(found[('scr_moved_bytes', ',level="cache"')], 21000)
    assert text.endswith('\n# EOF\n')
    families = re.findall(r'^# TYPE (\w+) gauge$', text, re.MULTILINE)
    assert len(set(families)) == len(families) and {name for name, _ in found} == set(families), families
    if shutil.which('promtool'):
        done = subprocess.run(['promtool', 'check', 'metrics'], input=text.encode(), capture_output=True, check=False)
        assert done.returncode == 0 and not done.stderr, done
    else:
        print('not checked by promtool (Debian: prometheus), which is not here')


def test_files():
    """A file is complete, or the old one stays."""
    expect(run('-m', 'x'), 1, '', ['LOG_UNREADABLE', 'SCR_LOG_ENABLE=1'])
    story().put()
    put('x', b'old')
    os.mkdir('folder')
    for path in ('no/x', 'folder'):
        done = run('--html', path)
        assert done.returncode == 1 and identifiers(done) == ['REPORT_NOT_WRITTEN'], done
    expect(run('--html', 'folder/y', '--metrics', 'x'), 0)
    assert sorted(os.listdir('folder')) == ['y'] and pathlib.Path('x').read_text().startswith('# TYPE')
    os.rename('.scr/log', '.scr/log.old')
    os.mkdir('.scr/log')
    assert identifiers(run()) == ['LOG_UNREADABLE']


def test_usage():
    story().put()
    expect_output_fails([], ['--json'])
    expect_wrong_usage(['x'], ['--html'], ['--no'])
    expect_documented(6, {'--prefix': 'x', '--html': 'x', '--metrics': 'x'})
    expect_well_formed_page()


run_tests(globals())
