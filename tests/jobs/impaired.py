#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An impaired node that a run can do without, or can repair: SCR_Init does not refuse the
run."""
import contextlib
import os
import shutil
import subprocess

from job import Job, checkpoint, main, restart, Skip

FOUR = {"nodes": 4, "per_node": 1, "SCR_FLUSH": 0, "SCR_CACHE_SIZE": 2}


@contextlib.contextmanager
def small(*folders, size):
    """Mounts a small file system at each directory."""
    mounted = []
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", folder]
            if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
                raise Skip("no file system can be mounted")
            mounted.append(folder)
        yield
    finally:
        for folder in mounted:
            subprocess.run(["umount", folder], check=True)


def fill(folder):
    """Fills a file system completely."""
    with open(folder / "filler", "wb", buffering=0) as file:
        size = 65536
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2


def put_folder(path):
    path.mkdir()
    (path / "inside").write_text("x")


def put_link(path):
    path.symlink_to("/etc/passwd")


def put_dangling_link(path):
    path.symlink_to("nowhere")


def test_no_control_file():
    """A directory or a link has the name of a file: the file counts as lost, and the run
    continues."""
    for name in ("filemap_0.scriinfo", "filemap.scriinfo", "prefix.scriinfo", "run.lock"):
        for put in (put_folder, put_link, put_dangling_link):
            with Job(**FOUR) as job:
                job.run("init", checkpoint("c1"))
                path = job.control("n2") / name
                path.unlink()
                put(path)
                run = job.run("init", restart("c1"), checkpoint("c2"))
                run.says("CONTROL_FILE_LOST", "node n2", f"{name} is not a regular file, or has another name, and is removed",
                         times=1)
                run.not_said("REBUILD_COMPLETE|error")
                assert path.is_file() and not path.is_symlink()
                job.lose("n1")
                job.run("init", restart("c2"))


class Unprivileged(Job):
    """Root without the capability to ignore file modes."""

    def command(self, *args):
        return ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *super().command(*args)]


def test_folder_without_rights():
    """The mode of a dataset's directory, which is our own, is restored."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skip("root cannot do without its rights: there is no setpriv")
    kind = Unprivileged if os.geteuid() == 0 else Job
    with kind(**FOUR) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        folder = job.cache("n2") / "scr.dataset.2"
        folder.chmod(0)
        run = job.run("init", restart("c2"))
        run.not_said("_LOST|REBUILD_(COMPLETE|IMPOSSIBLE|FAILED)|error")
        assert folder.stat().st_mode & 0o777 == 0o700
        job.lose("n1")
        job.run("init", restart("c2"))


def test_full_node():
    """A node has no space: the run still has its checkpoint, and only that node reports
    it."""
    with Job(**FOUR) as job, small(job.node("n2"), size="2m"):
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        fill(job.node("n2"))
        run = job.run("init", restart("c2"))
        run.says("CACHE_FILEMAP_NOT_WRITTEN", "node n2", "No space left on device", times=1)
        job.run("init", restart("c2"), "start:c3:c", "put:c3/rank_%r:3000000 => ANY", "complete:1 => ANY", restart("c2"))
        (job.node("n2") / "filler").unlink()
        job.run("init", restart("c2"), checkpoint("c4"))
        job.lose("n1")
        job.run("init", restart("c4"))


def test_full_node_and_one_lost():
    """Files that cannot be rebuilt on the full node are kept, and rebuilt when there is
    space."""
    with Job(**FOUR) as job, small(job.node("n2"), size="2m"):
        job.run("init", checkpoint("c1"))
        shutil.rmtree(job.cache("n2"))
        fill(job.node("n2"))
        run = job.run("init => ANY", "have => ANY")
        run.said("No space left on device")
        assert run.first("have")["code"][0] != 0, f"nothing was offered, and no error\n{run}"
        (job.node("n2") / "filler").unlink()
        job.run("init", restart("c1"))


def test_full_prefix():
    """The cache has a checkpoint, and the prefix directory has no space at all."""
    with Job(**FOUR) as job, small(job.prefix, size="1m"):
        job.run("init", checkpoint("c1"))
        fill(job.prefix)
        for path in (job.prefix / ".scr").glob("nodes.scr"):
            path.unlink()
        fill(job.prefix)
        run = job.run("init", restart("c1"), SCR_HALT_SECONDS=7)
        run.says("PREFIX_NOT_WRITABLE", job.prefix.name, "No space left on device")
        run.not_said("SCR: error")
        (job.prefix / "filler").unlink()
        job.run("init", restart("c1"), "finalize", SCR_FLUSH=1)


if __name__ == "__main__":
    main(globals())
