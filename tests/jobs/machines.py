# SPDX-License-Identifier: BSD-3-Clause
"""A cluster on one machine: nodes with their own names, processes, network, /dev/shm and
disk, which can lose power at any moment. They are Linux namespaces, which need root, and
all of them are inside the namespaces of the test's own process: whatever ends the test
ends the nodes, and nothing of them remains.

    begin()                         # the script starts again, as the only process of the head node
    with Machines("n1", "n2") as machines:
        machines.cut("n2")          # with silent=True nothing reports it

Nodes share all files with the head except /dev/shm and LOCAL. The head reaches them by
machines.shell, which is called like ssh."""
import itertools
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

from job import MPI, Skip

HEAD, NETWORK = "head", "10.77.0"
INSIDE = "SCR_TEST_HEAD"  # in the environment: where files of the cluster are; all of them are in memory
PLACES = ["/mnt", "/media", "/srv"]  # one of them is hidden behind it


def command(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{shlex.join(map(str, words))}: {done.stderr.strip()}")


def goes_on(pid):
    """Whether a process has not ended, even if no process has waited for it."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def begin():
    """Continues as the first process of the head node; or returns the reason why that is
    impossible here."""
    if INSIDE not in os.environ:
        if os.geteuid() != 0:
            return "namespaces of a test's own take root"
        for program in ("unshare", "nsenter", "ip", "mount", "hostname"):
            if not shutil.which(program):
                return f"{program} is not installed"
        ours = [pathlib.Path(path).resolve() for path in (os.environ["JOB_BUILD"], __file__, sys.executable)]
        place = next((place for place in PLACES if os.path.isdir(place) and
                      not any(path.is_relative_to(place) for path in ours)), None)
        if not place:
            return f"none of {', '.join(PLACES)} can be hidden"
        words = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
        if tried.returncode:
            return f"no namespaces here: {tried.stderr.strip()}"
        os.environ[INSIDE] = place
        os.execvp(words[0], [*words, sys.executable, *sys.argv])
    place = os.environ[INSIDE]
    command("mount", "-t", "tmpfs", "-o", "mode=755", "cluster", place)
    command("hostname", HEAD)
    command("ip", "link", "set", "lo", "up")
    try:
        # a fixed address: otherwise it changes with the nodes, and others use the old one
        # for a while
        command("ip", "link", "add", "br0", "address", "02:00:00:00:00:fe", "type", "bridge")
        command("ip", "addr", "add", f"{NETWORK}.254/24", "dev", "br0")
        command("ip", "link", "set", "br0", "up")
    except OSError as error:
        return f"no networks here: {error}"
    hosts = pathlib.Path(place) / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{NETWORK}.{number} n{number}\n" for number in range(1, 100)) +
                     f"{NETWORK}.254 {HEAD}\n")
    command("mount", "--bind", hosts, "/etc/hosts")
    os.environ["TMPDIR"] = place
    MPI.go_apart()
    return None


# The first process of a node. Orphans there become its children, and are not waited for.
INIT = """
read -r pid rest </proc/self/stat
hostname $1
mount -t proc proc /proc
mount -t tmpfs -o mode=1777,size=256m $1 /dev/shm
mount -t tmpfs -o mode=1777,size=256m $1 $2
ip link set lo up
echo $pid
exec sleep infinity
"""

SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
node=$1
shift
[ ! -e @/$node.silent ] || exec sleep 1000
read -r pid <@/$node.pid || { echo "ssh: connect to host $node port 22: No route to host" >&2; exit 255; }
[ ! -e @/$node.preload ] || . @/$node.preload
nsenter -t $pid -m -u -i -n -p -- env -i PATH="$PATH" HOME=/ $variables sh -c "$*"
code=$?
[ ! -e @/$node.silent ] || exec sleep 1000
exit $code
"""


class Machines:
    links = itertools.count()  # the name of a link can be in use for a moment after it is gone

    def __init__(self, *names):
        place = pathlib.Path(os.environ[INSIDE])
        self.local, self.folder, self.nodes, self.link = place / "local", place / "machines", {}, {}
        self.local.mkdir(exist_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.shell = self.folder / "shell"
        self.shell.write_text(SHELL.replace("@", str(self.folder)))
        self.shell.chmod(0o755)
        self.names, self.variables = names, {}
        for name in names:
            self.start(name)

    def start_again(self):
        """Restarts all nodes that lost power, which are empty."""
        for name in self.names:
            if name not in self.nodes:
                (self.folder / f"{name}.silent").unlink(missing_ok=True)
                (self.folder / f"{name}.preload").unlink(missing_ok=True)
                self.variables.pop(name, None)
                self.start(name)

    def processes(self):
        """The processes that implement the nodes, and no others on them."""
        return {process for first, pid in self.nodes.values() for process in (first.pid, pid)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in list(self.nodes):
            self.cut(name)
        shutil.rmtree(self.folder)

    def start(self, name):
        """Starts a node; name: n and a number."""
        words = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child"]
        first = subprocess.Popen([*words, "sh", "-e", "-c", INIT, "init", name, self.local], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        pid = first.stdout.readline().strip()
        if not pid:
            raise Skip(f"node {name} does not start: {first.communicate()[1].strip()}")
        self.link[name] = f"v{next(self.links)}"
        command("ip", "link", "add", self.link[name], "type", "veth", "peer", "name", "eth0", "netns", pid)
        command("ip", "link", "set", self.link[name], "master", "br0", "up")
        inside = ["nsenter", "-t", pid, "-n", "ip"]
        command(*inside, "addr", "add", f"{NETWORK}.{name[1:]}/24", "dev", "eth0")
        command(*inside, "link", "set", "eth0", "up")
        (self.folder / f"{name}.pid").write_text(pid + "\n")
        self.nodes[name] = (first, int(pid))

    def path(self, name, path):
        """Returns a path on that node, as seen from here."""
        return pathlib.Path(f"/proc/{self.nodes[name][1]}/root{path}")

    def preload(self, name, **variables):
        """Sets the environment of programs that are started on that node from now on, in
        addition to earlier calls."""
        known = self.variables.setdefault(name, {})
        known.update(variables)
        words = " ".join(f"{key}={value}" for key, value in known.items())
        (self.folder / f"{name}.preload").write_text(f"variables={shlex.quote(words)}\n")

    def cut(self, name, silent=False):
        """Cuts the power of a node. silent: processes that wait for the node, or query
        it, get no answer."""
        first, pid = self.nodes.pop(name)
        if silent:
            (self.folder / f"{name}.silent").touch()
            command("ip", "link", "set", self.link[name], "down")
        (self.folder / f"{name}.pid").unlink()
        os.kill(pid, signal.SIGKILL)  # and all others there
        first.communicate()
        subprocess.run(["ip", "link", "del", self.link[name]], stderr=subprocess.DEVNULL, check=False)  # it may be gone by now
