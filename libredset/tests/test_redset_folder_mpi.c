/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory that all ranks share: the files that one process rebuilds there equal, byte
 * for byte, those that the ranks rebuild together, and those of the encode. */
#include "snapshot_mpi.h"
#include "src/codec/flow.h"
#include <fcntl.h>

/* Moves all files of this rank below its own directory in a directory that all ranks
 * share. */
static void share_folder(job *j)
{
    char name[24];
    scratch_remove(j->folder);
    snprintf(j->folder, sizeof j->folder, "%s", j->root);
    for (int i = 0; i < j->count; i++) {
        snprintf(name, sizeof name, "r%d/%.*s", j->rank, 20, j->names[i]);
        memcpy(j->names[i], name, sizeof name);
    }
    job_write(j, 0);
    MPI_Barrier(j->comm);
}

/* Removes the redundancy file of this rank, or everything. */
static void lose(const job *j, const snapshot *s, int all)
{
    char path[1200], name[24];
    scratch_path(path, j->folder, s->name);
    unlink(path);
    snprintf(name, sizeof name, "r%d", j->rank);
    scratch_path(path, j->folder, name);
    if (all) scratch_remove(path);
}

static void give_back(const job *j, const snapshot *s)
{
    char path[1200];
    scratch_path(path, j->folder, s->name);
    scratch_put(path, s->file, s->size);
    job_write(j, 0);
}

static void check_found(const job *j, const redset_found *found, unsigned pattern,
                        int verdict)
{
    CHECK_INT(found->ranks, j->ranks);
    CHECK_INT(found->count, 1);
    const redset_found_set *set = &found->sets[0];
    CHECK_INT(set->place.scheme, j->scheme);
    CHECK_INT(set->place.members, j->ranks);
    CHECK_INT(set->verdict, verdict);
    for (int m = 0; m < j->ranks; m++) {
        CHECK_INT(set->members[m].rank, m);
        CHECK_INT(set->members[m].lost, pattern >> m & 1);
        CHECK_INT(set->members[m].reason != NULL, pattern >> m & 1);
        if (verdict == REDSET_UNRECOVERABLE) continue;
        CHECK_INT(set->members[m].manifest->rank, m);
    }
}

static int alone(const job *j, int verify, unsigned pattern)
{
    redset_error err = {""};
    redset_found *found = NULL;
    int rc =
        verify ? redset_verify_folder(AT_FDCWD, j->folder, NULL, REDSET_ALL, &found, &err)
               : redset_rebuild_folder(AT_FDCWD, j->folder, NULL, 0, &found, &err);
    CHECK(rc >= 0 && found);
    CHECK_INT(rc == 0, err.text[0] == 0);
    if (found) check_found(j, found, pattern, rc);
    redset_found_free(found);
    return rc;
}

/* The ranks of the pattern are lost, and one process rebuilds them. */
static void rebuild_alone(const job *j, const snapshot *s, unsigned pattern, int entries)
{
    if (pattern >> j->rank & 1) lose(j, s, 1);
    MPI_Barrier(j->comm);
    if (j->rank == 0) {
        CHECK_INT(alone(j, 1, pattern), REDSET_RECOVERABLE);
        CHECK_INT(alone(j, 0, pattern), 0);
        CHECK_INT(alone(j, 1, 0), 0);
    }
    MPI_Barrier(j->comm);
    check_restored(j, s, entries);
    MPI_Barrier(j->comm);
}

static void lose_too_much(const job *j, const snapshot *s, unsigned pattern)
{
    if (pattern >> j->rank & 1) lose(j, s, 0);
    MPI_Barrier(j->comm);
    uint64_t before = j->rank == 0 ? job_fingerprint(j) : 0;
    if (j->rank == 0) {
        CHECK_INT(alone(j, 1, pattern), REDSET_UNRECOVERABLE);
        CHECK_INT(alone(j, 0, pattern), REDSET_UNRECOVERABLE);
        CHECK(job_fingerprint(j) == before);
    }
    MPI_Barrier(j->comm);
    if (pattern >> j->rank & 1) give_back(j, s);
    MPI_Barrier(j->comm);
}

static void try_losses(job *j, redset_scheme scheme, int failures, unsigned step)
{
    snapshot s;
    uint8_t lost[32];
    const redset_shape shape = {scheme, j->ranks, failures};
    unsigned all = (1u << j->ranks) - 1; /* then the set is unknown */
    j->scheme = scheme;
    j->failures = failures;
    encode(j, &s, j->ranks, 1);
    MPI_Barrier(j->comm);
    int entries = scratch_count(j->folder);
    MPI_Barrier(j->comm);
    for (unsigned pattern = 1; pattern < all; pattern += step) {
        for (int m = 0; m < j->ranks; m++)
            lost[m] = pattern >> m & 1;
        if (redset_shape_can_rebuild(&shape, lost))
            rebuild_alone(j, &s, pattern, entries);
        else
            lose_too_much(j, &s, pattern);
    }
    MPI_Barrier(j->comm);
    lose(j, &s, 1);
    redset_free(s.set);
    free(s.file);
    job_write(j, 0);
    MPI_Barrier(j->comm);
}

/* Two lost ranks have their files in one directory, which was replaced by a link. */
static void try_common_way(job *j)
{
    enum { ONE = 2, OTHER = 3, TIMES = 5 };
    snapshot s;
    char path[1200], name[24];
    redset_error err = {""};
    int lost = j->rank == ONE || j->rank == OTHER;
    for (int i = 0; i < j->count && lost; i++) {
        snprintf(name, sizeof name, "w/%.*s", 20, j->names[i]);
        memcpy(j->names[i], name, sizeof name);
    }
    job_write(j, 0);
    j->scheme = REDSET_RS;
    j->failures = 2;
    encode(j, &s, j->ranks, 1);
    for (int i = 0; i < TIMES; i++) {
        redset_manifest *m = NULL;
        int rebuilt = -1;
        MPI_Barrier(j->comm);
        scratch_path(path, j->folder, "w");
        if (j->rank == ONE) scratch_remove(path);
        if (j->rank == ONE) CHECK_INT(symlink("/nowhere", path), 0);
        scratch_path(path, j->folder, s.name);
        if (lost) unlink(path);
        MPI_Barrier(j->comm);
        CHECK_INT(redset_rebuild(s.set, j->folder, &m, &rebuilt, &err), 0);
        CHECK_STR(err.text, "");
        CHECK_INT(rebuilt, lost);
        CHECK(job_intact(j));
        redset_manifest_free(m);
    }
    redset_free(s.set);
    free(s.file);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    share_folder(&j);
    /* with eight ranks not each of the 255 losses */
    unsigned step = j.ranks < 6 ? 1 : 7;
    try_losses(&j, REDSET_XOR, 1, step);
    for (int failures = 1; failures < j.ranks && failures < 5; failures++) {
        try_losses(&j, REDSET_RS, failures, step);
        try_losses(&j, REDSET_PARTNER, failures, step);
    }
    j.no_checksums = 1;
    try_losses(&j, REDSET_XOR, 1, step);
    if (j.ranks > 2) try_losses(&j, REDSET_RS, 2, step);
    j.no_checksums = 0;
    if (j.ranks > 4) try_common_way(&j);
    job_end(&j);
    return check_end();
}
