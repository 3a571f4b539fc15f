#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mutations.py [--to WORLDS | --limit N | --points losses|kills] [--jobs N] [--state FILE] [--only NAME]... FOLDER: which defects the simulator finds.

Copies the sources to FOLDER, builds the simulator there, and plays worlds 0, 1, 2, ... against each mutation of the product until
one fails. With --limit, crash_states plays its stories instead; with --points, that program plays one of --of points. FILE, by default FOLDER/results, has the results so far; a mutation that is in it is not tried again. Prints a table."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = ["-Dsimulation=true", "-Dtests=false", "-Dmariadb=disabled", "-Dfortran=disabled", "-Db_lundef=false"]
SIMULATE, CRASH_STATES = "tests/simulation/simulate", "tests/simulation/crash_states"

# name: file, text, its replacement; repeated if there is a second line of defense
MUTATIONS = {
    "flushed files are not synced": (
        "libaxl-lite/src/axl_place.c", "    rc = io_fsync(*fd);\n", "    rc = 0;\n"),
    "the directory of a flushed dataset is not synced": (
        "libfilo/src/filo_commit_mpi.c", "    rc = io_fsync(job->dir);\n", "    rc = 0;\n"),
    "records are renamed before they are synced": (
        "common/batch.c", "int rc = syncs ? batch_sync(b, err) : 0;", "int rc = syncs ? 0 : 0;"),
    "directories of records are not synced": (
        "common/batch.c", "if (!rc && syncs && (rc = io_fsync(parent)) != 0)",
        "if (!rc && syncs && 0 && (rc = io_fsync(parent)) != 0)"),
    "a short write counts as whole": (
        "common/io.c", "            done += (size_t)n;\n        else if (n == 0)\n            return -EIO;",
        "            done = size;\n        else if (n == 0)\n            return -EIO;"),
    "a short read counts as whole": (
        "common/io.c", "        if (n > 0)\n            done += (size_t)n;\n        else if (errno != EINTR)\n            return -errno;\n    }\n"
        "    return (ssize_t)done;", "        if (n > 0)\n            done = size;\n        else if (errno != EINTR)\n            return -errno;\n"
        "    }\n    return (ssize_t)done;"),
    "an interrupted write fails": (
        "common/io.c", "            return -EIO;\n        else if (errno != EINTR)\n", "            return -EIO;\n        else\n"),
    "write errors of a flush are ignored": (
        "libaxl-lite/src/axl_piece.c", '    return rc ? err_sys(err, rc, "write %s", p->item->file.destination) : 0;',
        "    (void)err;\n    return rc > 0;"),
    "ranks do not agree whether files are valid": (
        "libscr-core/ops/output_stats.c", "if (all.failed) return agree(scr->job.world, rc, err);", "if (rc) return rc;"),
    "a failure of one rank ends its call before the others": (
        "libscr-core/ops/output.c", "    rc = rc ? rc : scr_routed_check(scr, valid, err);\n",
        "    rc = rc ? rc : scr_routed_check(scr, valid, err);\n    if (rc) return code;\n"),
    "cached files are not compared with checksums": (
        "libscr-core/ops/recover.c", "int lost, rc = glance ? 0 : redset_verify(set, folder, &lost, err);",
        "int lost = 0, rc = lost;"),
    "fetched files are not compared with checksums": (
        "libfilo/src/filo_fetch_mpi.c", "moved->crc == known->crc) return 0;", "1) return 0;"),
    "the newest dataset leaves the cache first": (
        "libscr-core/plan/evict.c", "        if (oldest < 0 || ",
        "        if (oldest >= 0 && scr_age_is_older(row->age, f->rows[oldest].age)) continue;\n        oldest = i;\n        if (0 && "),
    "the newest checkpoint leaves before its flush": (
        "libscr-core/plan/evict.c", "if (!needed || row->saved) return SCR_EVICT_REMOVE;", "return SCR_EVICT_REMOVE;"),
    "the summary is missing": (
        "libscr-core/prefix/index_store.c", "    rc = scr_summary_write(folder, d, err);\n", "    rc = 0;\n"),
    "a dataset that was refused stays the newest": (
        "libscr-core/ops/restart.c", "    restart_mark_failed(scr, &scr->lifecycle.open, !direct);\n    if (!direct)\n", "    if (0)\n"),
    "files of different datasets with one id are mixed": (
        "libredset/src/set/set_recovery.c", "    if (rc || equal) return rc;\n    return err_set(err, REDSET_UNRECOVERABLE,",
        "    return rc;\n    return err_set(err, REDSET_UNRECOVERABLE,",
        "libscr-core/cache/copies.c", "    if (!scr_dataset_is_same(scr_filemap_get_dataset(cache->map, id, rank), dataset) ||\n        rank", "    if (rank",
        "libredset/src/set/plan.c",
        "        if (!plan_is_list_same(shape, states, m) ||\n            !plan_is_layout_same(shape, states, m))",
        "        if (0 && plan_is_list_same(shape, states, m) && plan_is_layout_same(shape, states, m))"),
    "the oldest description of an id counts": (
        "libscr-core/ops/recover.c", "    return d->created + (", "    return ((int64_t)1 << 60) - d->created + ("),
    "a refused checkpoint is flushed to the end": (
        "libscr-core/ops/restart.c", "    scr_flush_stop(scr, scr->lifecycle.open.id); /* or it would become valid again */\n", "",
        "libscr-core/prefix/index.c", "    if (!refused) index_unset_failed(e);\n", "    (void)refused;\n    index_unset_failed(e);\n"),
    "a run does not lock its caches": (
        "libscr-core/cache/job_lock.c", "    rc = lock_try(cache->lock_fd, holder);\n", "    (void)lock_try;\n    rc = 0;\n"),
    "retention deletes one too many": (
        "libscr-core/plan/retain.c", "newer >= keep", "newer + 1 >= keep"),
    "retention deletes the newest": (
        "libscr-core/plan/retain.c", "for (int i = count - 1; i >= 0; i--) {", "for (int i = 0; i < count; i++) {"),
    "a copy lies on the node itself": (
        "libredset/src/codec/flow.c", "        int holder = redset_shape_member(shape, member, j);\n        if (!lost || lost[holder]) flow_add",
        "        int holder = redset_shape_member(shape, member, j - 1);\n        if (!lost || lost[holder]) flow_add"),
    "a copy is read where the holder has its own data": (
        "libredset/src/codec/flow.c", "    int copy = redset_shape_member(shape, from, -member);", "    int copy = 0;"),
    "the end does not flush the newest checkpoint": (
        "libscr-core/ops/finalize.c", "newest = scr->set.flush > 0 ? scr_flush_newest(scr) : SCR_SUCCESS;", "newest = SCR_SUCCESS;"),
    "the end empties the cache before the flush": (
        "libscr-core/ops/finalize.c", "    if (newest && !scr_cache_is_saved(scr, newest)) {", "    if (0) {",
        "libscr-core/ops/finalize.c", "    if (newest && !finalize_is_complete_on_prefix(scr, newest)) return;\n",
        "    (void)finalize_is_complete_on_prefix;\n"),
    "files that moved to other ranks are not brought there": (
        "libscr-core/ops/recover.c", "int rc = whole ? 0 : recover_distribute(scr, dataset, &moved, err);",
        "(void)recover_distribute;\n    int rc = 0;"),
    "an interrupted flush leaves its stage": (
        "libscr-core/ops/flush_recovery.c", "        scr_stages_clean(&scr->prefix, &r->stages, r->facts.flushes);\n", ""),
    "the code of a set rebuilds one member less": (
        "libredset/src/codec/flow.c", "count <= shape->failures;", "count < shape->failures;"),
    "a dataset leaves the cache too early": (
        "libscr-core/plan/evict.c", "if (f->count - held < f->capacity)", "if (f->count - held < f->capacity - 1)"),
    "directories of flushed files are not synced": (
        "libfilo/src/filo_folders_mpi.c", "        rc = io_fsync(fd);\n", "        rc = 0;\n"),
    "new directories are not synced": (
        "common/beneath.c", "        rc = beneath_sync_parent(dir, part, err);\n", "        (void)beneath_sync_parent;\n"),
    "no process acts for the last rank": (
        "libscr-core/cache/adopt.c", "        if (actor[i] == cache->job->rank)\n            own->list[own->count++] =",
        "        if (actor[i] == cache->job->rank && i + 1 < d->ranks)\n            own->list[own->count++] ="),
    "another file is brought": (
        "libscr-core/ops/bring.c", ".file = (uint64_t)home << 32 | (uint32_t)number,", ".file = (uint64_t)home << 32 | (uint32_t)number / 2,"),
    "ranks are in the wrong order in the map of a flush": (
        "libscr-core/ops/flush_files.c", "list[n].rank = kvtree_elem_key_int(walk.rank);",
        "list[n].rank = d->ranks - 1 - kvtree_elem_key_int(walk.rank);"),
    "cached files of other ranks are not compared with checksums": (
        "libredset/src/set/adopt_rank.c", "    int rc = redset_member_verify(&r->member, err);\n    if (rc) return rc;\n    r->lost =",
        "    (void)redset_member_verify;\n    r->lost ="),
    "remains in the cache are taken for files in containers": (
        "libscr-core/ops/bring.c", "    return scr->prefix.direct.dataset.id == id ? 0 : scr_route_has(scr, id, name);\n",
        "    return scr_route_has(scr, id, name);\n"),
    "an older checkpoint takes the place of one of other ranks": (
        "libscr-core/ops/restart.c", "scr_fetch_dataset(scr, d, leaves);", "scr_fetch_dataset(scr, d, false && leaves);"),
    "a flush is resumed with another number of ranks": (
        "libscr-core/ops/flush.c", ": (uint64_t)scr->job.ranks,\n", ": (uint64_t)0,\n",
        "libscr-core/ops/flush_recovery.c", ": (uint64_t)r->scr->job.ranks, identity", ": (uint64_t)0, identity"),
    "bytes of a part are joined from its begin": (
        "libscr-core/ops/bring_parts.c", "parts_copy(in, from - have->offset, out,", "parts_copy(in, 0, out,"),
    "parts are flushed a byte too early": (
        "libscr-core/plan/part_name.c", "(filo_segment){strndup(file->name, n), offset, file->size};",
        "(filo_segment){strndup(file->name, n), offset - (offset > 0), file->size};"),
    "ranks do not agree on errors": (
        "common/agree_mpi.c", "    if (worst.class == IS_FINE) return 0;\n", "    if (worst.class == IS_FINE || code == 0) return code;\n"),
}


def run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def must(*command):
    done = run(*command)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-4000:]}\n{' '.join(map(str, command))}: exit status {done.returncode}")


def changes_of(name):
    texts = MUTATIONS[name]
    return [texts[i:i + 3] for i in range(0, len(texts), 3)]


def check():
    """Each text is in its file once."""
    for name in MUTATIONS:
        for path, old, _ in changes_of(name):
            count = (SOURCE / path).read_text().count(old)
            if count != 1:
                sys.exit(f"{name}: the text is {count} times in {path}")


def prepare(folder, target):
    tree, build = folder / "tree", folder / "build"
    files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True)
    for name in files.stdout.split("\n"):
        source, copy = SOURCE / name, tree / name
        if not name or not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)
    if not (build / "build.ninja").exists():
        must("meson", "setup", build, tree, *OPTIONS)
    must("ninja", "-C", build, target)
    return tree, build


def play_stories(build, limit, jobs):
    """The first story that failed, and why."""
    done = run(build / CRASH_STATES, "--limit", limit, "--jobs", jobs, "--until-failure")
    failed = re.search(r"^(\S+, \S+): moment .*: (run \d: .*)$", done.stdout, re.M)
    return failed.groups() if failed else (None, "NOT FOUND")


def play_points(build, arguments):
    """The first point that failed, and why."""
    done = run(build / target_of(arguments), "--part", f"1/{arguments.of}", "--jobs", arguments.jobs, "--until-failure")
    failed = re.search(r"^FAILED ([^:]*): (.*)$", done.stdout, re.M)
    return failed.groups() if failed else (None, "NOT FOUND")


def play(build, worlds, jobs):
    """The lowest seed that failed, and why."""
    done = run(build / SIMULATE, "--from", 0, "--to", worlds, "--jobs", jobs, "--until-failure")
    failed = re.findall(r"^seed (\d+): (?:FAILED: )?(.*?)(?: \(\d+ calls.*)?$", done.stdout, re.M)
    return min(((int(seed), why) for seed, why in failed), default=(None, "NOT FOUND"))


def target_of(arguments):
    return f"tests/simulation/{arguments.points}" if arguments.points else CRASH_STATES if arguments.limit else SIMULATE


def attempt(name, tree, build, arguments):
    originals = {path: (tree / path).read_text() for path, _, _ in changes_of(name)}
    for path, old, new in changes_of(name):
        (tree / path).write_text((tree / path).read_text().replace(old, new))
    try:
        must("ninja", "-C", build, target_of(arguments))
        if arguments.points:
            return play_points(build, arguments)
        if arguments.limit:
            return play_stories(build, arguments.limit, arguments.jobs)
        return play(build, arguments.to, arguments.jobs)
    finally:
        for path, original in originals.items():
            (tree / path).write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=int, default=1000)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--points", choices=["losses", "kills"])
    parser.add_argument("--of", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--state", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    check()
    tree, build = prepare(arguments.folder, target_of(arguments))
    state = arguments.state or arguments.folder / "results"
    done = {line.split("\t")[0] for line in state.read_text().splitlines()} if state.exists() else set()
    for name in arguments.only or MUTATIONS:
        if name in done:
            continue
        seed, why = attempt(name, tree, build, arguments)
        with state.open("a") as out:
            out.write(f"{name}\t{'-' if seed is None else seed}\t{why}\n")
    print("| mutation | first failing seed or story | verdict |\n| --- | --- | --- |")
    rows = [line.split("\t") for line in state.read_text().splitlines()]
    for name, seed, why in rows:
        print(f"| {name} | {seed} | {why} |")
    sys.exit(any(seed == "-" for _, seed, _ in rows))


if __name__ == "__main__":
    main()
