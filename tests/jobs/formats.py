#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The examples in docs/formats/scr.md are what a job writes, and every key is
explained."""
import pathlib
import re

from job import JOB, USER, Job, checkpoint, main
import tree

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/formats/scr.md"
NODE, PROCESS = "n2", 1  # the node and the process on it whose filemaps are shown


def text_of(content, indent=""):
    return "".join(f"{indent}{key}\n{text_of(value, indent + '  ')}" for key, value in content.items())


def redundancy_header(path):
    """The tree at the start of a larger file."""
    return tree.unpacked(path.read_bytes(), tree.HEADER.size)[0]


def records(job):
    """The records of a job, by the names of the examples."""
    control, hidden = job.control(NODE), job.prefix / ".scr"
    filemap = tree.read(control / f"filemap_{PROCESS}.scriinfo")
    return {
        "dataset": tree.read(job.prefix / "ckpt.2/.scr/summary.scr")["DSET"],
        "filemap": filemap,
        "master": tree.read(control / "filemap.scriinfo"),
        "index": tree.read(hidden / "index.scr"),
        "summary": tree.read(job.prefix / "ckpt.2/.scr/summary.scr"),
        "flush": tree.read(hidden / "flush.scr"),
        "halt": tree.read(hidden / "halt.scr"),
        "nodes": tree.read(hidden / "nodes.scr"),
    }


def run_job(job):
    (job.prefix / ".scr").mkdir()
    tree.write(job.prefix / ".scr/halt.scr", {
        "CheckpointsLeft": {"9": {}}, "ExitAfter": {"4102444800": {}}, "ExitBefore": {"4102448400": {}}})
    job.run("init", checkpoint("ckpt.1"), checkpoint("ckpt.2"), "finalize", SCR_CACHE_KEEP=1, SCR_JOB_NAME="heat",
            SCR_CLUSTER_NAME="atlas", SCR_HALT_SECONDS="20min")


def as_documented(job, text):
    """Replaces directories by those of the document, and times."""
    text = text.replace(f"{job.control(NODE)}", f"/dev/shm/{USER}/scr.{JOB}")
    text = text.replace(f"{job.node(NODE)}/cache", "/dev/shm").replace(f"{job.prefix}", "/p/simulation")
    return without_times(text)


def without_times(text):
    text = re.sub(r"\b1[0-9]{15}\b", "<microseconds>", text)
    return re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\b", "<time>", text)


def examples():
    """The blocks of the document by name."""
    found = re.findall(r"^<!-- example: (\w+) -->\n\n```\n(.*?)^```$", DOCUMENT.read_text(), re.M | re.S)
    return dict(found)


def keys_of(content):
    for key, value in content.items():
        yield key
        yield from keys_of(value)


def test_examples_are_real():
    with Job(4, 2) as job:
        run_job(job)
        real = {name: as_documented(job, text_of(content)) for name, content in records(job).items()}
    shown = examples()
    assert shown.keys() == real.keys(), f"examples: {sorted(shown)}, records: {sorted(real)}"
    for name, text in real.items():
        assert without_times(shown[name]) == text, f"example {name} should read\n{text}"


def test_keys_are_explained():
    rows = "\n".join(re.findall(r"^\| ([^|]*) \|", DOCUMENT.read_text(), re.M))
    explained = set(re.findall(r"\b[A-Z][A-Za-z_]+\b", rows))
    with Job(4, 2) as job:
        run_job(job)
        used = {key for content in records(job).values() for key in keys_of(content)
                if re.fullmatch("[A-Z][A-Za-z_]+", key)}
    values = {"FULL", "XOR", "NODE", "SCR_FINALIZE_CALLED"}
    assert len(used) > 40 and not used - explained - values, f"not explained: {used - explained - values}"


def test_one_description_everywhere():
    """Filemap, redundancy header, index and summary describe a dataset in the same words."""
    with Job(4, 2) as job:
        run_job(job)
        found = records(job)
        entry = found["index"]["DSET"]["2"]["DIR"]["ckpt.2"]["DSET"]
        assert entry == found["dataset"]
        of_rank = found["filemap"]["RANK"]["3"]["DSET"]["2"]
        assert of_rank["DATADESC"] == found["dataset"]
        files = list(job.cache(NODE).glob("scr.dataset.2/*.xor"))
        assert len(files) == 2
        for path in files:
            assert redundancy_header(path)["DSET"] == found["dataset"]


if __name__ == "__main__":
    main(globals())
