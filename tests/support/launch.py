# SPDX-License-Identifier: BSD-3-Clause
"""How MPI programs are started on this machine, as recorded by the build in
tests/support/launch.json.

Options of launchers differ, so their settings are variables, and env gives each rank its
own variables."""
import glob
import json
import os
import pathlib
import time

AGE = 1.0  # seconds; a younger file may be about to be mapped


class Launch:
    """mpi: name of the implementation. launcher: name of mpiexec's kind, as for scr_run
    --launcher. preload: the module that makes idle ranks sleep, or nothing. together:
    variables for nodes that share this machine but have their own daemons. passes:
    whether ranks on other nodes get the variables of mpiexec. slurm: how srun starts
    programs, or nothing."""

    def __init__(self, build):
        self.__dict__.update(json.loads((pathlib.Path(build) / "tests/support/launch.json").read_text()))

    def places(self, folder):
        """Variables for mpiexec: killed ranks leave files of MPI in the directory."""
        return {name: f"{folder}/" for name in self.directories if name}

    def by_shell(self, path):
        """Variables with which mpiexec reaches other nodes by a program that is called
        like ssh."""
        return {name: value.format(shell=path) for name, value in self.shell.items()}

    def go_apart(self):
        """From now on ranks reach each other through a network."""
        for name, value in self.apart.items():
            os.environ.pop(name, None)
            if value:
                os.environ[name] = value

    def command(self, sections, preload=()):
        """Starts sections: the number of ranks, their variables, and a program with its
        arguments."""
        modules = ":".join(module for module in (*preload, self.preload) if module)
        command = [self.mpiexec]
        for number, (ranks, own, program) in enumerate(sections):
            own = {**({"LD_PRELOAD": modules} if modules else {}), **own}
            command += [":"] if number else []
            command += ["-n", str(ranks), "env", *(f"{key}={value}" for key, value in own.items()), *program]
        return command

    def remove_leftovers(self):
        """Removes files that MPI left in /dev/shm when its processes were killed: those
        of this user that no process has mapped."""
        if any(age < AGE for _, age in self._candidates()):
            time.sleep(AGE)
        for path, age in self._candidates():
            if age >= AGE:
                try:
                    os.unlink(path)
                except OSError:
                    pass  # another test was faster

    def _candidates(self):
        paths = {path for pattern in self.leftovers for path in glob.glob(pattern)}
        for path in paths - mapped(paths):
            try:
                status = os.stat(path)
            except OSError:
                continue
            if status.st_uid == os.geteuid():
                yield path, time.time() - status.st_mtime


def mapped(paths):
    """Returns the paths that are mapped by processes that we may inspect."""
    found = set()
    for maps in glob.glob("/proc/[0-9]*/maps") if paths else []:
        try:
            with open(maps) as f:
                found.update(path for path in (line.split(None, 5)[-1].strip() for line in f) if path in paths)
        except (OSError, ValueError):
            continue  # gone, or not ours
    return found
