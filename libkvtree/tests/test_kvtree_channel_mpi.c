/* SPDX-License-Identifier: BSD-3-Clause */
/* The private communicator: it is created on first use, also by two threads at once, and
 * when MPI fails on one rank. Only its creation, and an agreement on this, touch the
 * application's communicator. An error of MPI on it is the result of the call. */
#include "gather.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* ---- between libkvtree and MPI ---- */

static MPI_Comm application = MPI_COMM_NULL;
static int shared; /* collective calls on it */
static int left;   /* number of collective calls until the failing one; 0: none fails */
static atomic_int duplicates, keyvals_wanted;
static int no_keyval, no_duplicate, threads_meet;

/* After a failure the content of out is undefined. */
static int result(MPI_Comm comm, int rc, void *out, size_t size)
{
    if (comm == application) shared++;
    if (!left || --left > 0) return rc;
    memset(out, 0x5a, size);
    return MPI_ERR_OTHER;
}

static size_t bytes_of(int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (size_t)count * (size_t)size;
}

#define REDUCE                                                                           \
    const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define REDUCING(name)                                                                   \
    int MPI_##name(REDUCE)                                                               \
    {                                                                                    \
        int rc = PMPI_##name(in, out, n, type, op, comm);                                \
        return result(comm, rc, out, bytes_of(n, type));                                 \
    }

REDUCING(Allreduce)
REDUCING(Scan)
REDUCING(Exscan)

int MPI_Bcast(void *out, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    int rank, rc = PMPI_Bcast(out, n, type, root, comm);
    PMPI_Comm_rank(comm, &rank);
    return result(comm, rc, out, rank == root ? 0 : bytes_of(n, type));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    return result(comm, PMPI_Ibarrier(comm, request), request, 0);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    int rc = PMPI_Comm_dup(comm, made);
    duplicates++;
    if (!no_duplicate) return rc;
    PMPI_Comm_free(made); /* other ranks wait for this rank, so the call is made */
    return MPI_ERR_OTHER;
}

/* Two threads wait for each other here, for a second at most. */
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy,
                           MPI_Comm_delete_attr_function *del, int *key, void *extra)
{
    const struct timespec nap = {0, 1000000};
    keyvals_wanted++;
    if (no_keyval) return MPI_ERR_OTHER;
    for (int i = 0; threads_meet && keyvals_wanted < 2 && i < 1000; i++)
        nanosleep(&nap, NULL);
    return PMPI_Comm_create_keyval(copy, del, key, extra);
}

/* ---- first use ---- */

static int bcast_sample(MPI_Comm comm)
{
    kvtree *tree = check_rank ? kvtree_new() : sample_tree();
    int rc = kvtree_bcast(tree, 0, comm);
    if (check_rank || !rc) CHECK_INT(kvtree_size(tree), rc == 0);
    kvtree_delete(&tree);
    return rc;
}

/* No rank waits for a rank that gets no attribute key from MPI. */
static void without_a_keyval(void)
{
    no_keyval = check_rank == check_ranks - 1;
    CHECK_INT(bcast_sample(MPI_COMM_WORLD), -EIO);
    CHECK_INT(keyvals_wanted, 1);
    no_keyval = 0;
}

/* No rank waits for a rank that gets no duplicate. */
static void without_a_duplicate(void)
{
    for (int one = 0; one < check_ranks; one++) {
        no_duplicate = check_rank == one;
        CHECK_INT(bcast_sample(MPI_COMM_WORLD), -EIO);
    }
    no_duplicate = 0;
}

static void *bcast_in_thread(void *comm)
{
    return bcast_sample(*(MPI_Comm *)comm) == 0 ? NULL : comm;
}

/* Each thread has its own communicator: both are found again. Only on the last rank there
 * was no attribute key yet. */
static void two_threads_at_once(void)
{
    int level;
    void *failed;
    pthread_t thread;
    MPI_Comm comms[2];
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) return;
    PMPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    PMPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    threads_meet = check_rank == check_ranks - 1;
    keyvals_wanted = duplicates = 0;
    CHECK_INT(pthread_create(&thread, NULL, bcast_in_thread, &comms[0]), 0);
    CHECK(bcast_in_thread(&comms[1]) == NULL);
    CHECK_INT(pthread_join(thread, &failed), 0);
    CHECK(failed == NULL);
    CHECK_INT(keyvals_wanted, threads_meet ? 2 : 0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(bcast_sample(comms[i]), 0);
    CHECK_INT(duplicates, 2);
    threads_meet = 0;
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

/* ---- failures, and whose communicator is used ---- */

enum { BCAST, EXCHANGE, GATHER, SCATTER, TASKS };

static int run(int task, const kvtree_gather *set, kvtree_error *err)
{
    char next[16];
    kvtree *tree = kvtree_new(), *got = kvtree_new();
    int rc = 0;
    snprintf(next, sizeof next, "%d", (check_rank + 1) % check_ranks);
    kvtree_util_set_int(tree, task == EXCHANGE ? next : "FROM", check_rank);
    if (task == BCAST) rc = bcast_sample(set->comm);
    if (task == EXCHANGE) rc = kvtree_exchange(tree, got, set->comm);
    if (task == GATHER) rc = kvtree_gather_write(set, tree, err);
    if (task == SCATTER) rc = kvtree_scatter_read(set, NULL, got, err);
    CHECK_INT(kvtree_size(got), !rc && (task == EXCHANGE || task == SCATTER));
    kvtree_delete(&tree);
    kvtree_delete(&got);
    return rc;
}

/* MPI's first, second, ... collective call fails on all ranks, until there is no further
 * call; each time the next call works normally. Returns the number of calls. */
static int sweep(int task, const kvtree_gather *set)
{
    kvtree_error err = {""};
    for (int n = 1;; n++) {
        CHECK_INT(run(GATHER, set, &err), 0);
        left = n;
        int rc = run(task, set, &err), fired = left == 0;
        left = 0;
        if (!fired) CHECK_INT(rc, 0);
        if (fired) CHECK_INT(rc, -EIO);
        if (fired && task >= GATHER) CHECK(err.text[0] != 0);
        CHECK_INT(run(task, set, &err), 0);
        if (!fired || n > 100) return n - 1;
        err.text[0] = 0;
    }
}

static void every_collective_call_fails(void)
{
    char path[128];
    kvtree_gather set;
    gather_begin(&set, path, "set");
    set.limit = 1; /* a file for each rank, in levels */
    PMPI_Comm_dup(MPI_COMM_WORLD, &set.comm);
    application = set.comm;
    shared = 0;
    for (int task = BCAST; task < TASKS; task++)
        CHECK(sweep(task, &set) >= 2);
    CHECK_INT(shared, 1); /* all know that all have a duplicate */
    application = MPI_COMM_NULL;
    MPI_Comm_free(&set.comm);
    gather_finish(&set);
}

int main(int argc, char **argv)
{
    setenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL", "MPI_THREAD_MULTIPLE", 1);
    check_begin(&argc, &argv);
    check_folder(gather_base);
    without_a_keyval();
    two_threads_at_once();
    without_a_duplicate();
    every_collective_call_fails();
    check_remove(gather_base);
    return check_end();
}
