#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Several stores and redundancy descriptors at the same time: the store and protection of
each dataset, and that it is found again after changes of the configuration."""
import os
import pathlib
import shutil

from job import JOB, USER, Job, checkpoint, main, restart
import tree


class Stores(Job):
    """A job whose nodes have a directory for each name of a store; ${name} in the text is
    its path."""

    def __init__(self, text, *stores, nodes=4, per_node=1, **parameters):
        super().__init__(nodes, per_node, SCR_FLUSH=0, **parameters)
        self.stores = stores
        self.configure(text)

    def configure(self, text):
        (self.prefix / "scr.yaml").write_text(text)

    def environment(self, parameters):
        places = {name: self.root / "nodes" / name for name in self.stores}
        return {**super().environment(parameters), **{name: str(path) for name, path in places.items()}}

    def held(self, store):
        """Ids of the datasets in a store that all nodes have at one path."""
        return ids(self.root / "nodes" / store / USER / f"scr.{JOB}")


def ids(folder):
    return sorted(int(path.name.rsplit(".", 1)[1]) for path in folder.glob("scr.dataset.*"))


def kinds(folder, number):
    """The protection of a dataset there."""
    return {path.suffix for path in folder.glob(f"**/scr.dataset.{number}/*_of_*_in_*")}


THREE = """\
STORE=$fast COUNT=2
STORE=$slow COUNT=1
STORE=$out COUNT=1
CKPT=0 INTERVAL=1 STORE=$fast TYPE=XOR
CKPT=1 INTERVAL=3 STORE=$slow TYPE=PARTNER
CKPT=2 INTERVAL=9 STORE=$out TYPE=SINGLE OUTPUT=1
"""


def test_each_to_its_store():
    """The number of the checkpoint chooses the store; each store has its own capacity."""
    with Stores(THREE, "fast", "slow", "out") as job:
        job.run("init", [checkpoint(f"c{number}") for number in range(1, 9)])
        assert job.held("fast") == [7, 8], job.held("fast")
        assert job.held("slow") == [6], job.held("slow")
        assert job.held("out") == [], job.held("out")
        nodes = job.root / "nodes"
        assert kinds(nodes, 8) == {".xor"} and kinds(nodes, 6) == {".partner"}
        run = job.run("init", restart("c8"))
        run.says("REBUILD_NOT_NEEDED", "dataset 6", times=1)
        job.run("init", restart("c8"), checkpoint("c9"))
        assert job.held("out") == [9] and job.held("slow") == [6], (job.held("out"), job.held("slow"))
        job.run("init", restart("c9"))


def test_output_has_its_own():
    """An output that is not a checkpoint leaves the cache when it is on the prefix
    directory."""
    with Stores(THREE, "fast", "slow", "out") as job:
        job.run("init", checkpoint("c1"), checkpoint("o2", flags="o"), checkpoint("both", flags="co"),
                "finalize", SCR_CACHE_KEEP=1)
        assert job.held("out") == [3] and job.held("fast") == [1], (job.held("out"), job.held("fast"))
        assert (job.prefix / "o2" / "rank_0").exists() and (job.prefix / "both" / "rank_0").exists()
        job.run("init", restart("both"))


def test_only_checkpoint_and_output():
    """An output that needs space in the cache does not evict the only checkpoint."""
    with Stores("", SCR_CACHE_SIZE=1) as job:
        run = job.run("init", checkpoint("c1"), checkpoint("o2", flags="o"))
        run.says("FLUSH_COMPLETE", "dataset 1 .c1.", times=1)
        job.run("init", restart("c1"))


def test_nodes_lost():
    """Datasets of both stores are rebuilt after a loss, each by its own scheme."""
    with Stores("""\
STORE=$more COUNT=1
CKPT=0 INTERVAL=1 TYPE=XOR
CKPT=1 INTERVAL=2 STORE=$more TYPE=PARTNER
""", "more") as job:
        # $more is one directory for all simulated nodes; rank 3 loses its files in both stores
        job.run("init", [checkpoint(f"c{number}") for number in (1, 2, 3)])
        assert job.held("more") == [2] and job.cached() == [1, 3], (job.held("more"), job.cached())
        job.lose("n4")
        for path in (job.root / "nodes" / "more").glob("**/c2/rank_3"):
            path.unlink()
        run = job.run("init", restart("c3"))
        for number in (1, 2, 3):
            run.says("REBUILD_COMPLETE", f"dataset {number}", times=1)


def test_configuration_changed():
    """Datasets in a store that the configuration no longer has are found, and evicted for
    newer ones."""
    with Stores("STORE=$old\nCKPT=0 STORE=$old TYPE=XOR\n", "old", "new") as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        assert job.held("old") == [1, 2]
        job.configure("STORE=$new\nCKPT=0 STORE=$new TYPE=PARTNER\n")
        job.run("init", restart("c2"))
        job.run("init", restart("c2"), checkpoint("c3"))
        assert job.held("new") == [3] and job.held("old") == [], (job.held("new"), job.held("old"))
        job.run("init", restart("c3"))


def test_earlier_store_cannot_be_read():
    """Datasets that may be in a store of an earlier run are not abandoned because of an
    error, and the next run finds them."""
    for how in ("EACCES", "EIO"):
        with Stores("STORE=$old\nCKPT=0 STORE=$old TYPE=XOR\n", "old", "new") as job:
            job.run("init", checkpoint("c1"))
            job.configure("STORE=$new\nCKPT=0 STORE=$new TYPE=XOR\n")
            struck = job.root / "struck"
            disk = {"FAULTS_RANK": 0, "FAULTS_BELOW": job.root / "nodes/old", "FAULTS_AT": 1, "FAULTS_STAYS": 1, "FAULTS_HOW": how,
                    "FAULTS_READING": 1, "FAULTS_MARK": struck}
            run = job.run("init => CACHE", dies=None, faults=disk)
            run.says("CACHE_NOT_READ", "STORE of an earlier run=.*/old")
            assert struck.exists(), str(run)
            job.run("init", restart("c1"))


def test_reason_is_of_the_folder():
    """A file in the place of a dataset does not count, and is not the reason why another one cannot be read."""
    with Stores("STORE=$fast\nCKPT=0 STORE=$fast TYPE=XOR\n", "fast") as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        folder = job.root / "nodes/fast" / USER / f"scr.{JOB}"
        shutil.rmtree(folder / "scr.dataset.1")
        (folder / "scr.dataset.1").write_text("")
        disk = {"FAULTS_RANK": 0, "FAULTS_BELOW": folder / "scr.dataset.2", "FAULTS_AT": 1, "FAULTS_STAYS": 1, "FAULTS_HOW": "EIO",
                "FAULTS_READING": 1}
        run = job.run("init => CACHE", dies=None, faults=disk)
        run.says("CACHE_NOT_READ", "scr.dataset.2: Input/output error")
        job.run("init", restart("c2"))


def test_other_places_per_node():
    """The cache base of each node may change, too; files of moved ranks move with
    them."""
    with Stores("", per_node=2) as job:
        job.run("init", checkpoint("c1"))
        job.layout = job.layout[1:] + job.layout[:1]
        other = {node: {"SCR_CACHE_BASE": job.node(node) / "other"} for node in job.nodes()}
        job.run("init", restart("c1"), checkpoint("c2"), of_node=other)
        for node in job.nodes():
            assert job.cached(node) == [], node
            assert ids(job.node(node) / "other" / USER / f"scr.{JOB}") == [2], node
        job.lose("n2")
        job.run("init", restart("c2"), of_node=other)


def test_other_places_and_new_nodes():
    """Files that are rebuilt for a node without files go to its own directory, not to
    that of another node."""
    with Stores("", nodes=3) as job:
        job.run("init", checkpoint("c1"))
        for lost, new in ("n2", "n5"), ("n1", "n6"), ("n3", "n7"):
            job.lose(lost)
            job.replace(lost, new)
            other = {node: {"SCR_CACHE_BASE": job.node(node) / "other"} for node in job.nodes()}
            run = job.run("init", restart("c1"), of_node=other)
            run.says("REBUILD_COMPLETE", "dataset 1", times=1)
            for node in job.nodes():
                stores = tree.read(job.control(node) / "prefix.scriinfo")["STORE"]
                assert stores and all(job.node(node) in pathlib.Path(store).parents for store in stores), (node, stores)
        job.run("init", restart("c1"), checkpoint("c2"), of_node=other)
        for node in job.nodes():
            assert ids(job.node(node) / "other" / USER / f"scr.{JOB}") == [1, 2], node


def test_purge_takes_all():
    with Stores("STORE=$old\nCKPT=0 STORE=$old\n", "old", "new") as job:
        job.run("init", checkpoint("c1"))
        job.configure("STORE=$new\nCKPT=0 STORE=$new\n")
        job.run("init", "have => 0", SCR_CACHE_PURGE=1)
        assert job.held("old") == [] and job.held("new") == []


def test_not_enabled():
    """A store that is disabled also disables the descriptors that name it."""
    with Stores(THREE.replace("STORE=$slow COUNT=1", "STORE=$slow COUNT=1 ENABLED=0"), "fast", "slow", "out") as job:
        job.run("init", "config:CKPT=1 ENABLED => 1 =0", [checkpoint(f"c{number}") for number in (1, 2, 3)])
        assert job.held("fast") == [2, 3] and not (job.root / "nodes" / "slow").exists()
        job.configure(THREE.replace("STORE=$fast COUNT=2", "STORE=$fast COUNT=2 ENABLED=0"))
        run = job.run("init => CONFIG")
        run.says("CONFIG_MISTAKE", "no enabled descriptor with an enabled STORE has INTERVAL=1", times=1)
        job.configure("STORE=$fast ENABLED=0\n")
        run = job.run("init => CONFIG", of_node={node: {"SCR_CACHE_BASE": job.root / "nodes" / "fast"}
                                                 for node in job.nodes()})
        run.says("CONFIG_MISTAKE", "STORE=.*/fast is not enabled, and no CKPT names another one", times=1)


def test_not_to_be_made():
    with Stores("STORE=$slow MKDIR=0\nCKPT=0 STORE=$slow\n", "slow") as job:
        run = job.run("init => CACHE")
        run.says("CACHE_NOT_OPENED", "node n1: STORE=.*/slow is not there, and is not to be made", times=1)
        assert not (job.root / "nodes" / "slow").exists()
        (job.root / "nodes" / "slow").mkdir()
        job.run("init", checkpoint("c1"))
        assert job.held("slow") == [1]


def test_transfer_type():
    """The method of copying files from a store; also by its older name."""
    for field, said in (("TYPE=PTHREAD", "pthread"), ("FLUSH=sync", "sync"), ("", "pthread")):
        with Stores(f"STORE=$slow {field}\nCKPT=0 STORE=$slow\n", "slow", SCR_LOG_ENABLE=1,
                    SCR_LOG_SYSLOG_ENABLE=0, SCR_LOG_JSON_ENABLE=1) as job:
            job.run("init", checkpoint("c1"), SCR_FLUSH=1)
            log = (job.prefix / ".scr" / "log.jsonl").read_text()
            assert f'"{said}"' in log, log
    with Stores("STORE=$slow TYPE=BBAPI\nCKPT=0 STORE=$slow\n", "slow") as job:
        run = job.run("init", checkpoint("c1"), "finalize")
        run.says("CONFIG_FORMER", "STORE=.*/slow TYPE=BBAPI is not in this build, and PTHREAD is used instead", times=1)


def test_shared_by_all():
    """All nodes share one directory: files stay where they are when ranks move."""
    with Stores("STORE=$all GROUP=WORLD\nCKPT=0 STORE=$all TYPE=XOR\n", "all", per_node=2) as job:
        job.run("init", "config:STORE=$all VIEW => ANY", checkpoint("c1"), checkpoint("c2"), checkpoint("c3"))
        assert job.held("all") == [2, 3]
        inodes = {path: path.stat().st_ino for path in (job.root / "nodes" / "all").glob("**/c3/rank_*")}
        job.layout = job.layout[2:] + job.layout[:2]
        job.run("init", restart("c3"))
        assert len(inodes) == 8
        for path, number in inodes.items():
            assert path.stat().st_ino == number, path


def test_shared_and_all_nodes_lost():
    """Files in a shared store survive the nodes and their records, without any
    redundancy."""
    for scheme, lost in (("SINGLE", ["n1", "n2", "n3", "n4"]), ("SINGLE", ["n2"]), ("XOR", ["n1", "n3"])):
        with Stores(f"STORE=$all GROUP=WORLD\nCKPT=0 STORE=$all TYPE={scheme}\n", "all", per_node=2) as job:
            job.run("init", checkpoint("c1"), checkpoint("c2"), "start:c3:c", "put:c3/rank_%r:1000")
            job.lose(*lost)
            for node in lost:
                job.replace(node, node + "b")
            run = job.run("init", restart("c2"), checkpoint("c4"))
            run.says("REBUILD_COMPLETE", times=0)
            assert job.held("all") == [2, 3], job.held("all")
            job.run("init", restart("c4"), "finalize", SCR_FETCH=0)


def test_shared_and_damaged():
    """Data that is found is trusted only as far as it can be verified."""
    with Stores("STORE=$all GROUP=WORLD\nCKPT=0 STORE=$all TYPE=XOR\n", "all", per_node=2) as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        job.lose(*job.nodes())
        folder = job.root / "nodes" / "all"
        next(folder.glob("**/scr.dataset.2/1_of_4_in_0.xor")).write_bytes(b"nothing")
        next(folder.glob("**/scr.dataset.2/c2/rank_1")).unlink()
        run = job.run("init", restart("c2"))
        run.says("REBUILD_COMPLETE", "dataset 2 .c2.", "2 of 8 ranks", times=1)
        job.lose(*job.nodes())
        for path in folder.glob("**/scr.dataset.2/*.xor"):
            path.write_bytes(b"nothing")
        job.run("init", restart("c1"))


def test_shared_by_some():
    """The nodes of a group share a directory, which is made and removed once."""
    with Stores("""\
GROUPS=n1 RACK=r1
GROUPS=n2 RACK=r1
GROUPS=n3 RACK=r2
GROUPS=n4 RACK=r2
STORE=$all GROUP=RACK COUNT=1
CKPT=0 STORE=$all GROUP=RACK TYPE=XOR
""", "all") as job:
        job.run("init", checkpoint("c1"), checkpoint("c2"))
        assert job.held("all") == [2]
        job.run("init", restart("c2"))
        job.configure("GROUPS=n1 RACK=r1\nSTORE=$all GROUP=RACK\nCKPT=0 STORE=$all\n")
        run = job.run("init => CACHE")
        run.says("CACHE_NOT_OPENED", "rank 1: node n2 has no value for the group RACK in GROUPS", times=1)


def test_described_on_some_nodes():
    """A STORE that is the cache base of some nodes only: all nodes keep the same datasets."""
    for node in ("n1", "n2"):
        with Stores("") as job:
            job.configure(f"STORE={job.node(node) / 'cache'} COUNT=5\n")
            job.run("init", [checkpoint(f"c{number}", flags="co") for number in range(1, 5)])
            held = [ids(job.node(each) / "cache" / USER / f"scr.{JOB}") for each in job.nodes()]
            assert held == [[3, 4]] * 4, held
            job.run("init", restart("c4"))
            job.configure(f"STORE={job.node(node) / 'cache'} GROUP=WORLD\n")
            run = job.run("init => CACHE")
            run.says("CACHE_NOT_OPENED", "node n2: STORE=.* has GROUP=.* but .* GROUP=", times=1)
    with Stores("", "all") as job:
        job.configure(f"STORE={job.node('n2') / 'cache'} ENABLED=0\nSTORE=$all\nCKPT=0 STORE=$all\nCKPT=1 INTERVAL=2\n")
        run = job.run("init => CACHE")
        run.says("CACHE_NOT_OPENED", "node n2: CKPT=1, or its STORE=.*, is not enabled, unlike", times=1)


def test_planted():
    """A store that others can change is refused before anything is written."""
    with Stores("STORE=$slow\nCKPT=0 STORE=$slow\n", "slow") as job:
        store = job.root / "nodes" / "slow"
        (store / "elsewhere").mkdir(parents=True)
        (store / USER).symlink_to(store / "elsewhere")
        run = job.run("init => CACHE")
        run.says("CACHE_NOT_OPENED", "STORE=.*/slow: ", times=1)
        assert not os.listdir(store / "elsewhere")


if __name__ == "__main__":
    main(globals())
