/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI returns an error, at its first, second, ... call of a kind, on all ranks, and, for
 * calls that create communicators, on one rank only. Each call of the library ends with
 * an error, without a crash or an endless wait, although the application's communicator
 * would end the program; and the protected files still exist. */
#include "job_mpi.h"

#include <errno.h>
#include <stdbool.h>

enum kind {
    NONE,
    ALLREDUCE,
    ALLGATHER,
    BCAST,
    EXSCAN,
    SPLIT,
    DUP,
    SEND, /* messages with data of flows */
    RECEIVE,
    KINDS
};

enum { DATA_TAG = 0x7273, MANY = 200 };

static enum kind failing;
static int left; /* number of calls until the one that fails; 0: it has failed */

/* The call is made, so that no rank blocks, but returns an error. */
static int result(enum kind kind, int rc)
{
    return failing == kind && left > 0 && --left == 0 ? MPI_ERR_INTERN : rc;
}

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    return result(ALLREDUCE, PMPI_Allreduce(in, out, n, type, op, comm));
}

int MPI_Allgather(const void *in, int n, MPI_Datatype type, void *out, int m,
                  MPI_Datatype to, MPI_Comm comm)
{
    return result(ALLGATHER, PMPI_Allgather(in, n, type, out, m, to, comm));
}

int MPI_Bcast(void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    return result(BCAST, PMPI_Bcast(buf, n, type, root, comm));
}

int MPI_Exscan(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm)
{
    return result(EXSCAN, PMPI_Exscan(in, out, n, type, op, comm));
}

/* Frees the communicator, which the caller does not get. The call is made even if it
 * fails on one rank only, because other ranks wait for it. */
static int result_made(enum kind kind, int rc, MPI_Comm *made)
{
    int failed = rc == MPI_SUCCESS ? result(kind, rc) : rc;
    if (rc == MPI_SUCCESS && failed != MPI_SUCCESS) PMPI_Comm_free(made);
    return failed;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    return result_made(SPLIT, PMPI_Comm_split(comm, color, key, made), made);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return result_made(DUP, PMPI_Comm_dup(comm, made), made);
}

int MPI_Isend(const void *buf, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    int rc = PMPI_Isend(buf, n, type, to, tag, comm, request);
    return tag == DATA_TAG ? result(SEND, rc) : rc;
}

int MPI_Irecv(void *buf, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    int rc = PMPI_Irecv(buf, n, type, from, tag, comm, request);
    return tag == DATA_TAG ? result(RECEIVE, rc) : rc;
}

/* Verifies and rebuilds. */
static int restart(job *j, const char *name, redset_error *err)
{
    redset *set = NULL;
    redset_manifest *manifest = NULL;
    int rebuilt, lost;
    int rc = redset_recover(j->comm, j->folder, j->rank ? name : NULL, &set, err);
    if (!rc) rc = redset_verify(set, j->folder, &lost, err);
    if (rc >= 0) err->text[0] = 0;
    if (rc >= 0) rc = redset_rebuild(set, j->folder, &manifest, &rebuilt, err);
    redset_manifest_free(manifest);
    redset_free(set);
    return rc;
}

/* Protects files, removes those of rank 0, and rebuilds them. All ranks are in one set,
 * and so make the same calls. */
static int run(job *j, redset_error *err)
{
    char name[REDSET_NAME_SIZE] = "";
    redset *set = NULL;
    int rc = job_create(j, j->scheme, j->ranks, 1, &set, err);
    if (!rc) rc = job_encode(j, set, err);
    if (!rc) job_name(set, name);
    redset_free(set);
    if (rc) return rc;
    if (j->rank == 0) job_lose(j);
    rc = restart(j, name, err);
    if (!rc) CHECK(job_intact(j));
    return rc;
}

/* Returns the number of failed calls. */
static int fail_calls(job *j, enum kind kind, bool here)
{
    for (int n = 1; n < MANY; n++) {
        redset_error err = {""};
        failing = kind;
        left = here ? n : 0;
        int rc = run(j, &err), fired = here && left == 0;
        failing = NONE;
        fired = job_any(j, fired);
        CHECK(job_agreed(j, rc < 0));
        CHECK_INT(rc != 0, fired);
        CHECK_INT(err.text[0] != 0, fired);
        if (rc && rc != -ECOMM && rc != -EIO) CHECK_INT(rc, -ECOMM);
        if (j->rank) CHECK(job_intact(j));
        job_lose(j);
        job_write(j, 0);
        MPI_Barrier(j->comm);
        if (!fired) return n - 1;
    }
    return MANY;
}

/* Checks that a failure does not affect the next try. */
static void all_is_well(job *j)
{
    redset_error err = {""};
    CHECK_INT(run(j, &err), 0);
    CHECK_STR(err.text, "");
    job_lose(j);
    job_write(j, 0);
    MPI_Barrier(j->comm);
}

/* here: the call fails on this rank. */
static void fail_kind(job *j, enum kind kind, bool here)
{
    int failures = fail_calls(j, kind, here);
    if (check_rank == 0) printf("kind %d: %d calls failed\n", (int)kind, failures);
    CHECK(failures > 0 && failures < MANY);
    all_is_well(j);
}

static void refuse(MPI_Comm comm, const char *text)
{
    redset_error err = {""};
    const redset_config config = {.scheme = REDSET_XOR};
    redset *set = NULL;
    CHECK_INT(redset_create(comm, &config, &set, &err), -EINVAL);
    CHECK(strstr(err.text, text) && !set);
    CHECK_INT(redset_recover(comm, ".", NULL, &set, &err), -EINVAL);
    CHECK(strstr(err.text, text) && !set);
}

static void no_communicator(void)
{
    MPI_Comm half, inter;
    int side = check_rank % 2;
    refuse(MPI_COMM_NULL, "MPI_COMM_NULL");
    if (check_ranks < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 1, &inter);
    refuse(inter, "an intercommunicator");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    no_communicator();
    job_begin(&j, MPI_COMM_WORLD);
    for (int kind = NONE + 1; kind < KINDS; kind++) {
        fail_kind(&j, (enum kind)kind, true);
        for (int one = 0; one < j.ranks && (kind == SPLIT || kind == DUP); one++)
            fail_kind(&j, (enum kind)kind, one == j.rank);
    }
    job_end(&j);
    return check_end();
}
