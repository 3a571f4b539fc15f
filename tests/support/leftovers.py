# SPDX-License-Identifier: BSD-3-Clause
"""What MPICH leaves in /dev/shm when its processes are killed.

UCX can be told to use a directory of the job (UCX_POSIX_DIR), which goes with it. MPICH itself maps a file
/dev/shm/mpich_shar_tmp* and removes it in MPI_Finalize, which a killed process never comes to."""
import glob
import os
import time

AGE = 1.0  # seconds; a younger file may be about to be mapped


def mapped():
    """The files of /dev/shm that processes which we may look at have mapped."""
    found = set()
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps) as f:
                found.update(line.split(None, 5)[5].strip() for line in f if "/dev/shm/mpich" in line)
        except (OSError, ValueError):
            continue  # gone, or not ours
    return found


def remove():
    """Removes those of this user's files that no process has mapped."""
    def candidates():
        used = mapped()
        for path in set(glob.glob("/dev/shm/mpich_shar_tmp*")) - used:
            try:
                status = os.stat(path)
            except OSError:
                continue
            if status.st_uid == os.geteuid():
                yield path, time.time() - status.st_mtime
    if any(age < AGE for _, age in candidates()):
        time.sleep(AGE)
    for path, age in candidates():
        if age >= AGE:
            try:
                os.unlink(path)
            except OSError:
                pass  # another test was faster
