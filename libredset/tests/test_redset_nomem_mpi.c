/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank has no memory, at each allocation of a set's life: creating, encoding,
 * locating, verifying and rebuilding, with every scheme. All ranks get an error,
 * protected files stay protected, and the next try succeeds. */
#include "job_mpi.h"
#include "nth_each_mpi.h"

#include <errno.h>

/* Protects the files, once more. */
static int do_encode(void *arg)
{
    job *j = arg;
    redset_error *err = &nth_text;
    redset *set = NULL;
    int rc = job_create(j, j->scheme, j->ranks, 1, &set, err);
    if (!rc) rc = job_encode(j, set, err);
    redset_free(set);
    int held = nth_hold();
    CHECK_INT(err->text[0] != 0, rc != 0);
    CHECK(job_intact(j));
    countdown = held;
    return rc;
}

/* Locates the set, verifies it, and rebuilds the files that rank 0 lost. */
static int do_rebuild(void *arg)
{
    job *j = arg;
    char name[REDSET_NAME_SIZE] = "";
    redset_error *err = &nth_text;
    redset *set = NULL;
    redset_manifest *manifest = NULL;
    int held = nth_hold(), rebuilt = 0, lost = 0;
    CHECK_INT(job_create(j, j->scheme, j->ranks, 1, &set, err), 0);
    job_name(set, name);
    redset_free(set);
    set = NULL;
    if (j->rank == 0) job_lose(j);
    MPI_Barrier(j->comm);
    countdown = held;
    int rc = redset_recover(j->comm, j->folder, j->rank ? name : NULL, &set, err);
    if (!rc) rc = redset_verify(set, j->folder, &lost, err);
    if (rc >= 0) rc = redset_rebuild(set, j->folder, &manifest, &rebuilt, err);
    redset_manifest_free(manifest);
    redset_free(set);
    held = nth_hold();
    if (rc)
        CHECK(err->text[0] && strncmp(err->text + strlen(err->text) - 2, ": ", 2) != 0);
    CHECK(rc || job_intact(j));
    if (j->rank) CHECK(job_intact(j));
    countdown = held;
    return rc;
}

/* Moves the files that the last rank rebuilt for rank 0 back to the directory of rank 0.
 */
static void take_back(const job *j, const char *name)
{
    char from[1200], to[1200], folder[80];
    snprintf(folder, sizeof folder, "%s/%d", j->root, j->ranks - 1);
    scratch_path(from, folder, name);
    scratch_path(to, j->folder, name);
    CHECK(rename(from, to) == 0);
}

/* The last rank also acts for rank 0, which lost everything. */
static int do_adopt(void *arg)
{
    job *j = arg;
    char name[REDSET_NAME_SIZE] = "";
    redset_error *err = &nth_text;
    redset *set = NULL;
    int held = nth_hold(), count = j->rank > 0;
    CHECK_INT(job_create(j, j->scheme, j->ranks, 1, &set, err), 0);
    job_name(set, name);
    redset_free(set);
    if (j->rank == 0) job_lose(j);
    redset_acted list[2] = {{.rank = j->rank, .file = name}};
    if (j->rank == j->ranks - 1) list[count++] = (redset_acted){.rank = 0};
    MPI_Barrier(j->comm);
    countdown = held;
    int rc = redset_adopt(j->comm, j->folder, j->ranks, count, list, err);
    held = nth_hold();
    if (rc) CHECK(err->text[0] && !list[0].manifest);
    for (int i = 0; i < count; i++)
        redset_manifest_free(list[i].manifest);
    MPI_Barrier(j->comm);
    if (!rc && j->rank == 0) {
        take_back(j, name);
        take_back(j, j->files[0].name);
    }
    CHECK((rc && j->rank == 0) || job_intact(j));
    MPI_Barrier(j->comm);
    countdown = held;
    return rc;
}

int main(int argc, char **argv)
{
    static const redset_scheme schemes[] = {REDSET_PARTNER, REDSET_XOR, REDSET_RS};
    job j;
    char name[32];
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        j.scheme = schemes[i];
        j.failures = j.scheme == REDSET_RS ? j.ranks / 2 : 1;
        snprintf(name, sizeof name, "%s, encode", redset_scheme_name(j.scheme));
        nth_each(name, do_encode, &j, 15);
        snprintf(name, sizeof name, "%s, rebuild", redset_scheme_name(j.scheme));
        nth_each(name, do_rebuild, &j, 15);
        snprintf(name, sizeof name, "%s, adopt", redset_scheme_name(j.scheme));
        nth_each(name, do_adopt, &j, 15);
        job_lose(&j);
        job_write(&j, 0);
        MPI_Barrier(j.comm);
    }
    job_end(&j);
    return check_end();
}
