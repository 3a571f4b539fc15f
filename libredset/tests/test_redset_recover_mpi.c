/* SPDX-License-Identifier: BSD-3-Clause */
/* Recover: the sets of an encode are located from the surviving files, and contradictions
 * are refused everywhere. */
#include "fault.h"
#include "job_mpi.h"

static void check_same_place(const redset *a, const redset *b)
{
    CHECK(memcmp(redset_get_place(a), redset_get_place(b), sizeof(redset_place)) == 0);
}

/* This rank loses everything, or not. The sets are located, and the files rebuilt. */
static void recover_and_rebuild(const job *j, const redset *old, int lost)
{
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    redset *set = NULL;
    redset_manifest *m = NULL;
    int rebuilt = -1;
    if (lost) job_lose(j);
    int rc =
        redset_recover(j->comm, j->folder, lost ? NULL : job_name(old, name), &set, &err);
    CHECK_INT(rc, 0);
    CHECK_STR(err.text, "");
    if (!set) return;
    check_same_place(set, old);
    CHECK_INT(redset_rebuild(set, j->folder, &m, &rebuilt, &err), 0);
    CHECK_INT(rebuilt, lost);
    CHECK(job_intact(j));
    redset_manifest_free(m);
    redset_free(set);
}

static void test_recover(job *j, int set_size, int together)
{
    redset_error err = {""};
    redset *set = NULL;
    CHECK_INT(job_create(j, REDSET_XOR, set_size, together, &set, &err), 0);
    CHECK_INT(job_encode(j, set, &err), 0);
    recover_and_rebuild(j, set, 0);
    for (int node = 0; j->ranks >= 2 * together && node < j->ranks / together; node++)
        recover_and_rebuild(j, set, j->rank / together == node);
    redset_free(set);
}

static void expect_refused(const job *j, MPI_Comm comm, const char *file,
                           const char *text)
{
    redset_error err = {""};
    redset *set = NULL;
    uint64_t before = job_fingerprint(j);
    int rc = redset_recover(comm, j->folder, file, &set, &err);
    CHECK_INT(rc, REDSET_UNRECOVERABLE);
    if (!strstr(err.text, text)) CHECK_STR(err.text, text);
    CHECK(set == NULL);
    CHECK(job_fingerprint(j) == before);
}

static void test_nothing_left(job *j)
{
    expect_refused(j, j->comm, NULL, "no survivor knows its place");
    expect_refused(j, j->comm, "1_of_2_in_0.xor", "is missing");
}

/* A damaged or foreign redundancy file counts as lost. */
static void test_damaged(job *j, redset *set)
{
    char name[REDSET_NAME_SIZE], path[1200];
    redset_error err = {""};
    redset *found = NULL;
    size_t size;
    job_name(set, name);
    unsigned char *whole = scratch_read(j->folder, name, &size);
    if (j->rank == 0) scratch_flip(j->folder, name, 100);
    int rc = redset_recover(j->comm, j->folder, name, &found, &err);
    CHECK_INT(rc, j->ranks > 1 ? 0 : REDSET_UNRECOVERABLE);
    if (found) check_same_place(found, set);
    redset_free(found);
    scratch_path(path, j->folder, name);
    scratch_put(path, whole, size);
    free(whole);
}

static void test_foreign(job *j, redset *set)
{
    char name[REDSET_NAME_SIZE], theirs[REDSET_NAME_SIZE];
    redset_error err = {""};
    char folder[100];
    redset *found = NULL;
    if (j->ranks < 2) return;
    /* rank 0 names the file of rank 1 */
    job_name(set, name);
    strcpy(theirs, name);
    MPI_Bcast(theirs, sizeof theirs, MPI_CHAR, 1, j->comm);
    snprintf(folder, sizeof folder, "%s/%d", j->root, j->rank == 0 ? 1 : j->rank);
    int rc = redset_recover(j->comm, folder, j->rank == 0 ? theirs : name, &found, &err);
    CHECK_INT(rc, 0);
    if (found) check_same_place(found, set);
    redset_free(found);
}

/* Rank 0 passes its redundancy file as lost. A file of an earlier encode has its name:
 * this file is ignored, and the right one replaces it. */
static void test_disowned(job *j, redset *set)
{
    char name[REDSET_NAME_SIZE], path[1200];
    redset_error err = {""};
    redset *found = NULL;
    redset_manifest *m = NULL;
    size_t size;
    int rebuilt = -1, lost = j->rank == 0;
    if (j->ranks < 2) return;
    unsigned char *earlier = scratch_read(j->folder, job_name(set, name), &size);
    CHECK_INT(job_encode(j, set, &err), 0);
    scratch_path(path, j->folder, name);
    if (lost) scratch_put(path, earlier, size);
    free(earlier);
    CHECK_INT(redset_recover(j->comm, j->folder, lost ? NULL : name, &found, &err), 0);
    CHECK_INT(redset_rebuild(found, j->folder, &m, &rebuilt, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(rebuilt, lost);
    CHECK(job_intact(j));
    redset_manifest_free(m);
    CHECK_INT(redset_rebuild(found, j->folder, &m, &rebuilt, &err), 0);
    CHECK_INT(rebuilt, 0);
    redset_manifest_free(m);
    redset_free(found);
}

/* Half as many ranks as in the encode. */
static void test_other_size(job *j, redset *set)
{
    char name[REDSET_NAME_SIZE];
    MPI_Comm half;
    if (j->ranks < 2) return;
    MPI_Comm_split(j->comm, j->rank < j->ranks / 2, j->rank, &half);
    expect_refused(j, half, job_name(set, name), "ranks, not");
    MPI_Comm_free(&half);
}

static void test_out_of_descriptors(job *j, redset *set)
{
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    redset *found = NULL;
    if (j->rank == j->ranks - 1) fault_arm(FAULT_OPEN, 1, EMFILE);
    int rc = redset_recover(j->comm, j->folder, job_name(set, name), &found, &err);
    CHECK(job_any(j, fault_disarm()));
    CHECK_INT(rc, -EMFILE);
    CHECK(found == NULL);
}

static void claim_set_0(kvtree *group)
{
    kvtree_util_set_int(group, "INDEX", 0);
}

/* A survivor's header has, with valid checksums, another order of members, or another
 * set. Its own file name must fit, so rank 2 or 3 is changed. */
static void test_contradiction(job *j)
{
    char name[REDSET_NAME_SIZE];
    redset_error err = {""};
    redset *set = NULL;
    if (j->ranks < 4) return;
    CHECK_INT(job_create(j, REDSET_XOR, j->ranks, 1, &set, &err), 0);
    CHECK_INT(job_encode(j, set, &err), 0);
    job_name(set, name);
    if (j->rank == 3) job_forge(j, name, job_swap_members);
    MPI_Barrier(j->comm);
    expect_refused(j, j->comm, name, "contradict");
    expect_refused(j, j->comm, j->rank == 0 ? NULL : name, "contradict");
    redset_free(set);

    CHECK_INT(job_create(j, REDSET_XOR, j->ranks / 2, 1, &set, &err), 0);
    CHECK_INT(job_encode(j, set, &err), 0);
    job_name(set, name);
    if (j->rank == 3) job_forge(j, name, claim_set_0);
    MPI_Barrier(j->comm);
    expect_refused(j, j->comm, name, "contradict");
    /* all members of one set claim this: the set would be mixed with the other */
    if (j->rank % 2 == 1 && j->rank != 3) job_forge(j, name, claim_set_0);
    MPI_Barrier(j->comm);
    expect_refused(j, j->comm, name, "claim a place");
    redset_free(set);
}

int main(int argc, char **argv)
{
    job j;
    redset_error err = {""};
    redset *set = NULL;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    test_nothing_left(&j);
    test_recover(&j, 2, 1);
    test_recover(&j, 4, 1);
    test_recover(&j, 2, 2);
    CHECK_INT(job_create(&j, REDSET_XOR, 4, 1, &set, &err), 0);
    CHECK_INT(job_encode(&j, set, &err), 0);
    test_damaged(&j, set);
    test_foreign(&j, set);
    test_disowned(&j, set);
    test_other_size(&j, set);
    test_out_of_descriptors(&j, set);
    redset_free(set);
    test_contradiction(&j);
    job_end(&j);
    return check_end();
}
