#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the fuzz targets under libFuzzer.

    tests/fuzz.py [--minutes N] [--merge] [--folder FOLDER] [NAME...]

Builds all components that have targets with clang, sanitizers and coverage in FOLDER/build, and runs
each target (or those named) for N minutes (default 10), one after the other, on one core. It starts
from the corpus in the tree and from what earlier runs found; that is kept in FOLDER/NAME/finds,
inputs that failed in FOLDER/NAME/crashes, and what libFuzzer said in FOLDER/NAME/log. FOLDER is
scr-fuzz-UID in the directory for temporary files, unless given. After a failure the target goes on, up
to ten times. With --merge, inputs that reach something new are taken into the corpus in the tree
(--minutes 0 --merge: those of earlier runs). The exit code is 1 if a target failed.
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
INPUT_BYTES = 4096   # longest input
MEMORY_MB = 2048     # of one process, with its sanitizers
INPUT_SECONDS = 10   # for one input
FAILURES = 10        # after so many a target is given up
CORPUS_FILES, CORPUS_BYTES = 200, 200_000  # less than that lies in the tree, for each target
FAILURE_FILE = re.compile(r"Test unit written to (\S+)")


def targets():
    """name -> corpus in the tree."""
    sources = sorted(ROOT.glob("*/fuzz/fuzz_*.c"))
    return {source.stem: source.parent / "corpus" / source.stem for source in sources}


def prepare_folder(folder):
    """A directory of ours alone: its place may be one where anybody can create files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.geteuid() or folder.is_symlink():
        sys.exit(f"fuzz.py: {folder} belongs to somebody else")


def build(folder, names):
    components = ",".join(sorted({path.parents[2].name.removeprefix("lib")
                                  for path in targets().values()}))
    options = [f"-Dcomponents={components}", "-Dfuzzers=true", "-Dmpi=auto", "-Dtests=true",
               "-Db_sanitize=address,undefined", "-Db_lundef=false", "--wrap-mode=nodownload"]
    again = ["--reconfigure"] if (folder / "build.ninja").exists() else []
    subprocess.run(["meson", "setup", *again, *options, folder, ROOT], check=True,
                   env={**os.environ, "CC": "clang"}, stdout=subprocess.DEVNULL)
    subprocess.run(["meson", "compile", "-C", folder, *(f"{name}_libfuzzer" for name in names)], check=True,
                   stdout=subprocess.DEVNULL)


class Target:
    def __init__(self, name, folder):
        self.name = name
        self.corpus = targets()[name]
        self.program = folder / "build" / self.corpus.parents[2].name / "tests" / f"{name}_libfuzzer"
        self.finds, self.crashes = folder / name / "finds", folder / name / "crashes"
        self.log = folder / name / "log"
        self.executions, self.failed, self.coverage, self.features = 0, [], "?", "?"
        for place in (self.finds, self.crashes):
            place.mkdir(parents=True, exist_ok=True)

    def call(self, arguments, log, seconds):
        """Runs the program; its output goes to the file log."""
        with tempfile.TemporaryDirectory(prefix="scr-fuzz-") as scratch:
            environment = {**os.environ, "TMPDIR": scratch,
                           "UBSAN_OPTIONS": "print_stacktrace=1",
                           "ASAN_OPTIONS": "allocator_may_return_null=1"}
            command = [self.program, f"-rss_limit_mb={MEMORY_MB}", f"-timeout={INPUT_SECONDS}",
                       f"-max_len={INPUT_BYTES}", f"-artifact_prefix={self.crashes}/", *arguments]
            with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment,
                                  cwd=scratch) as process:
                try:
                    return process.wait(timeout=seconds)
                except BaseException:  # also an interrupt: nothing is left running
                    process.kill()
                    raise

    def run_once(self, seconds):
        with open(self.log, "ab") as log:
            start = log.tell()
            try:
                code = self.call(["-print_final_stats=1", f"-max_total_time={seconds}", self.finds,
                                  self.corpus], log, seconds + 300)
            except subprocess.TimeoutExpired:
                code = "it did not end"
        with open(self.log, "rb") as log:
            log.seek(start)
            self.account(code, log.read().decode(errors="replace"))

    def account(self, code, said):
        executions = re.findall(r"stat::number_of_executed_units: (\d+)", said)
        executions = executions or re.findall(r"^#(\d+)", said, re.MULTILINE)
        self.executions += int(executions[-1]) if executions else 0
        reached = re.findall(r"cov: (\d+) ft: (\d+)", said)
        if reached:
            self.coverage, self.features = reached[-1]
        if code:
            written = FAILURE_FILE.findall(said)
            self.failed.append(written[-1] if written else f"no input was saved ({code}), see {self.log}")

    def run(self, minutes):
        end = time.monotonic() + 60 * minutes
        self.log.unlink(missing_ok=True)
        while (left := int(end - time.monotonic())) > 0 and len(self.failed) < FAILURES:
            self.run_once(left)
        size = sum(1 for folder in (self.corpus, self.finds) for _ in folder.iterdir())
        print(f"{self.name:24} {self.executions:>12} {self.coverage:>9} {self.features:>9}"
              f" {size:>7} {len(self.failed):>9}", flush=True)
        for path in self.failed:
            print(f"    {path}", flush=True)

    def merge(self):
        """libFuzzer adds to a copy of the corpus what reaches something new, and as little as it
        can; the small ones come first into the tree, until it is full."""
        with tempfile.TemporaryDirectory(prefix="scr-fuzz-") as scratch:
            merged = pathlib.Path(scratch) / "merged"
            shutil.copytree(self.corpus, merged)
            with open(self.log, "ab") as log:
                if self.call(["-merge=1", merged, self.finds], log, 3600):
                    self.failed.append(f"merging failed, see {self.log}")
                    return
            known = {path.name for path in self.corpus.iterdir()}
            fresh = [path.read_bytes() for path in merged.iterdir() if path.name not in known]
        taken = self.take(sorted(fresh, key=lambda data: (len(data), data)))
        print(f"{self.name}: {taken} of {len(fresh)} new inputs taken into {self.corpus}", flush=True)

    def take(self, inputs):
        there = [path.stat().st_size for path in self.corpus.iterdir()]
        files, size, taken = len(there), sum(there), 0
        for data in inputs:
            if files + 1 >= CORPUS_FILES or size + len(data) >= CORPUS_BYTES:
                break
            name = f"found-{hashlib.sha256(data).hexdigest()[:12]}.bin"
            (self.corpus / name).write_bytes(data)
            files, size, taken = files + 1, size + len(data), taken + 1
        return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / f"scr-fuzz-{os.geteuid()}")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(targets())
    if unknown:
        sys.exit(f"fuzz.py: no target {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    names = arguments.names or list(targets())
    folder = arguments.folder.resolve()
    prepare_folder(folder)
    build(folder / "build", names)
    running = [Target(name, folder) for name in names]
    if arguments.minutes > 0:
        print(f"{'target':24} {'executions':>12} {'coverage':>9} {'features':>9} {'corpus':>7}"
              f" {'failures':>9}", flush=True)
        for target in running:
            target.run(arguments.minutes)
    if arguments.merge:
        for target in running:
            target.merge()
    return 1 if any(target.failed for target in running) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, subprocess.SubprocessError) as problem:
        sys.exit(f"fuzz.py: {problem}")
