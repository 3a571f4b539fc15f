#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for a Flux instance and its command, with the behavior of flux-core 0.66 to
0.78: the broker, not "flux run", starts and ends jobs.

    with Instance(version=66, hostlist='n[1-3]') as flux:   # puts bin/flux into the current directory, and sets FLUX_URI
        flux.change(drained=['n2'])
        flux.jobs()                                         # that began or wait, each a dict

Simulated facts: FLUX_URI is set in an instance, FLUX_JOB_ID only in the processes of a
job; FLUX_ENCLOSING_ID exists from 0.71 and FLUX_JOB_ID_PATH from 0.76 on; "flux run" dies
of SIGTERM before 0.73 and forwards it since, and leaves its job behind when it is killed;
a job that needs a drained node waits; a job with more --ntasks than cores is refused;
with -o exit-on-error the loss of a rank ends a job at once, else after a while. Unknown
commands and options fail.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

CORES = 2  # of a node
EXIT_TIMEOUT = 15  # seconds until the loss of a rank ends a job without exit-on-error; really 30


def hosts(text):
    """Returns the hosts of n[1-3,5] or n1,n2."""
    found = []
    for name, ranges in re.findall(r'([^,\[]+)(?:\[([^\]]*)\])?', text):
        for one in ranges.split(',') if ranges else ['']:
            first, _, last = one.partition('-')
            found += [f'{name}{n}' for n in range(int(first), int(last or first) + 1)] if one else [name]
    return found


def write(path, value):
    path.with_suffix('.new').write_text(json.dumps(value))
    path.with_suffix('.new').rename(path)


# ---- the broker ----

class Job:
    def __init__(self, folder):
        self.folder = folder
        self.ask = json.loads((folder / 'ask').read_text())
        self.ranks, self.lost, self.kill_at = [], None, None

    def may_begin(self, config):
        nodes = self.ask['requires'] or hosts(config['hostlist'])
        free = [node for node in nodes if node not in config['drained']]
        return not config['busy'] and len(free) >= (self.ask['nodes'] or 1) and (not self.ask['requires'] or free == nodes)

    def begin(self, config):
        name = self.folder.name
        environ = {**self.ask['environ'], 'FLUX_JOB_ID': name}
        if config['jobid'] and config['version'] >= 71:
            environ['FLUX_ENCLOSING_ID'] = config['jobid']
        if config['version'] >= 76:
            environ['FLUX_JOB_ID_PATH'] = f'/{config["jobid"]}/{name}' if config['jobid'] else f'/{name}'
        self.ranks = [subprocess.Popen(self.ask['words'], env={**environ, 'FLUX_TASK_RANK': str(rank)}, cwd=self.ask['cwd'],
                                       start_new_session=True, stdin=subprocess.DEVNULL) for rank in range(self.ask['ranks'])]
        (self.folder / 'begun').touch()

    def signal(self, number):
        for rank in self.ranks:
            if rank.poll() is None:
                os.killpg(rank.pid, number)

    def obey(self, config):
        """Executes requests of "flux cancel" and "flux job kill"."""
        for path in self.folder.glob('signal-*'):
            self.signal(int(path.name.split('-')[1]))
            path.unlink()
        if (self.folder / 'cancel').exists() and self.kill_at is None:
            self.signal(signal.SIGTERM)
            self.kill_at = time.monotonic() + config['kill_timeout']
        if self.kill_at and time.monotonic() > self.kill_at:
            self.signal(signal.SIGKILL)

    def is_over(self):
        """Records the exit code of a job that has ended."""
        codes = [rank.poll() for rank in self.ranks]
        if not self.ranks:
            code = 1 if (self.folder / 'cancel').exists() else None
        elif None not in codes:
            code = max(128 - code if code < 0 else code for code in codes)
        else:
            code = None
            if any(one is not None and one < 0 for one in codes):
                self.lost = self.lost or time.monotonic()
                if 'exit-on-error' in self.ask['options'] or time.monotonic() > self.lost + EXIT_TIMEOUT:
                    self.signal(signal.SIGKILL)
        if code is not None:
            write(self.folder / 'clean', code)
        return code is not None


class Instance:
    def __init__(self, version=66, hostlist='n[1-3]', jobid='\u0192A1b', **config):
        self.root = pathlib.Path('instance').absolute()
        (self.root / 'jobs').mkdir(parents=True)
        self.config = {'version': version, 'hostlist': hostlist, 'jobid': jobid, 'drained': [], 'timeleft': 4294967295,
                       'busy': False, 'kill_timeout': 0.5, 'fails': False, **config}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.work)

    def change(self, **config):
        self.config.update(config)
        write(self.root / 'config', self.config)

    def jobs(self):
        found = []
        for path in sorted(self.root.glob('jobs/*/ask'), key=lambda path: int(path.parent.name[1:])):
            folder, ask = path.parent, json.loads(path.read_text())
            found.append({**ask, 'id': folder.name, 'begun': (folder / 'begun').exists(), 'active': not (folder / 'clean').exists()})
        return found

    def __enter__(self):
        self.change()
        os.makedirs('bin', exist_ok=True)
        path = pathlib.Path('bin/flux')
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {__file__} {self.root} "$@"\n')
        path.chmod(0o755)
        os.environ['FLUX_URI'] = f'local://{self.root}/local'
        if self.config['jobid'] and self.config['version'] >= 71:
            os.environ['FLUX_ENCLOSING_ID'] = self.config['jobid']
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def work(self):
        jobs = {}
        while not self.over.wait(0.02):
            for ask in self.root.glob('jobs/*/ask'):
                jobs.setdefault(ask.parent, Job(ask.parent))
            for folder, job in list(jobs.items()):
                if (folder / 'clean').exists():
                    continue
                job.obey(self.config)
                if not job.is_over() and not job.ranks and job.may_begin(self.config):
                    job.begin(self.config)
        for job in jobs.values():
            job.signal(signal.SIGKILL)


# ---- flux run ----

class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise SystemExit(f'flux: ERROR: {message}')


def run(root, config, words):
    parser = Parser(prog='flux run', allow_abbrev=False)
    parser.add_argument('--job-name')
    parser.add_argument('-o', action='append', default=[])
    parser.add_argument('-N', '--nodes', type=int)
    parser.add_argument('-n', '--ntasks', type=int)
    parser.add_argument('--tasks-per-node', type=int)
    parser.add_argument('--requires', default='')
    parser.add_argument('words', nargs=argparse.REMAINDER)
    ask = parser.parse_args(words)
    if ask.ntasks and ask.tasks_per_node:
        parser.error('--tasks-per-node and --ntasks are mutually exclusive')
    nodes = ask.nodes or 1
    if not ask.tasks_per_node and (ask.ntasks or 1) > CORES * (ask.nodes or len(hosts(config['hostlist']))):
        parser.error('unsatisfiable request')
    wanted = hosts(ask.requires[len('host:'):]) if ask.requires.startswith('host:') else []
    number = 1
    while True:
        folder = root / 'jobs' / f'f{number}'
        try:
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
    ranks = ask.tasks_per_node * nodes if ask.tasks_per_node else ask.ntasks or nodes

    def forward(*_):
        (folder / f'signal-{int(signal.SIGTERM)}').touch()

    if config['version'] >= 73:
        signal.signal(signal.SIGTERM, forward)
    write(folder / 'ask', {'name': ask.job_name or os.path.basename(ask.words[0]), 'options': ask.o, 'nodes': ask.nodes,
                           'ranks': ranks, 'requires': wanted, 'words': ask.words, 'cwd': os.getcwd(),
                           'environ': dict(os.environ), 'line': words})
    while not (folder / 'clean').exists():
        time.sleep(0.02)
    return json.loads((folder / 'clean').read_text())


# ---- other commands ----

def jobs(root, format_, name):
    assert format_ == '{id}', format_
    for ask in sorted(root.glob('jobs/*/ask')):
        if not (ask.parent / 'clean').exists() and json.loads(ask.read_text())['name'] == name:
            print(ask.parent.name)
    return 0


def job_of(root, name):
    folder = root / 'jobs' / name
    if not (folder / 'ask').exists():
        raise SystemExit(f'flux-job: {name}: unknown job')
    return folder


def order(root, name, what):
    folder = job_of(root, name)
    if (folder / 'clean').exists():
        raise SystemExit(f'flux-job: {name}: job is inactive')
    if what.startswith('signal') and not (folder / 'begun').exists():
        raise SystemExit(f'flux-job: {name}: job is not running')
    (folder / what).touch()
    return 0


def wait_event(root, seconds, name, event):
    assert event == 'clean', event
    until = time.monotonic() + float(seconds)
    while not (job_of(root, name) / 'clean').exists():
        if time.monotonic() > until:
            raise SystemExit('flux-job: wait-event timed out')
        time.sleep(0.02)
    return 0


def answer(text):
    if text is None:
        raise SystemExit('flux: No such file or directory')
    print(text)
    return 0


def time_left(config):
    if not config['jobid']:
        raise SystemExit('flux-job: timeleft: not a job')
    return answer(config['timeleft'])


def main():
    root = pathlib.Path(sys.argv[1])
    config = json.loads((root / 'config').read_text())
    words = sys.argv[2:]
    if config['fails']:
        raise SystemExit('flux: ERROR: unable to connect to Flux')
    if words[:1] == ['run']:
        return run(root, config, words[1:])
    commands = {
        'getattr hostlist': lambda: answer(config['hostlist']),
        'getattr jobid': lambda: answer(config['jobid']),
        'job timeleft': lambda: time_left(config),
        'resource list -s down -no {nodelist}': lambda: answer(','.join(config['drained'])),
        r'jobs -no (\S+) --name=(\S+)': lambda *found: jobs(root, *found),
        r'cancel (\S+)': lambda name: order(root, name, 'cancel'),
        r'job kill -s KILL (\S+)': lambda name: order(root, name, f'signal-{int(signal.SIGKILL)}'),
        r'job wait-event -t (\S+) (\S+) (\S+)': lambda *found: wait_event(root, *found)}
    for pattern, command in commands.items():
        found = re.fullmatch(pattern, ' '.join(words))
        if found or pattern == ' '.join(words):
            return command(*(found.groups() if found else ()))
    raise SystemExit(f'flux: unknown command or option: {" ".join(words)}')


if __name__ == '__main__':
    sys.stdout.reconfigure(encoding='utf-8')
    sys.exit(main())
