/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the collective functions, counted between libkvtree and MPI (its
 * profiling interface) for 2 to 32 ranks. An exchange sends one message to each partner,
 * whatever the number of ranks. Everything else is a fixed number of MPI's own collective
 * calls, of O(log P) messages each. The communicator of the application is only
 * duplicated, once.
 *
 * The printed table also has the messages that MPI passes to UCX, if it uses UCX: these
 * include the messages within MPI's collective calls. */
#include "build_tree.h"
#include "count_mpi.h"
#include "src/kvtree_mpi_private.h"

#include <kvtree/kvtree_mpi.h>

/* ---- what is counted ---- */

typedef struct job {
    MPI_Comm comm;
    int rank, ranks, log; /* log: 2^log ranks */
    char path[96];        /* where gather writes */
} job;

/* The partners of each rank. With two ranks both neighbors are the same rank. */
static int empty(const job *j, int from, int to)
{
    return 0;
}

static int ring(const job *j, int from, int to)
{
    return to == (from + 1) % j->ranks || from == (to + 1) % j->ranks;
}

static int one_to_all(const job *j, int from, int to)
{
    return from == 0;
}

typedef int pattern(const job *j, int from, int to);
typedef int exchange(const kvtree *send, kvtree *recv, MPI_Comm comm);

static int to_the_left(const kvtree *send, kvtree *recv, MPI_Comm comm)
{
    return kvtree_exchange_direction(send, recv, comm, KVTREE_EXCHANGE_LEFT);
}

static tally count_exchange(const job *j, exchange *function, pattern *sends)
{
    char key[16];
    int partners = 0, senders = 0;
    kvtree *send = kvtree_new(), *got = kvtree_new();
    for (int other = 0; other < j->ranks; other++) {
        snprintf(key, sizeof key, "%d", other);
        senders += sends(j, other, j->rank);
        if (!sends(j, j->rank, other)) continue;
        partners++;
        kvtree_util_set_int(kvtree_set(send, key, NULL), "FROM", j->rank);
    }
    begin_counting(j->comm);
    CHECK_INT(function(send, got, j->comm), 0);
    tally t = end_counting(j->comm);
    CHECK_INT(kvtree_size(got), senders);
    CHECK_INT(t.own[SENDS], partners);
    CHECK_INT(t.own[RECEIVES], senders);
    CHECK(t.own[SENDS] + j->log * t.own[COLLECTIVES] <= partners + 3 * j->log);
    kvtree_delete(&send);
    kvtree_delete(&got);
    return t;
}

static tally count_bcast(const job *j)
{
    kvtree *tree = j->rank ? kvtree_new() : sample_tree();
    begin_counting(j->comm);
    CHECK_INT(kvtree_bcast(tree, 0, j->comm), 0);
    tally t = end_counting(j->comm);
    CHECK_INT(kvtree_size(tree), 1);
    CHECK_INT(t.own[SENDS], 0);
    CHECK_INT(t.own[RECEIVES], 0);
    CHECK(t.own[COLLECTIVES] <= 3);
    kvtree_delete(&tree);
    return t;
}

/* A large broadcast is a beginning, an agreement, all the rest, and an agreement. */
static void count_large_bcast(const job *j)
{
    kvtree *wide = wide_tree(50000), *tree = j->rank ? kvtree_new() : wide;
    CHECK(kvtree_pack_size(wide) > 4 * MESSAGE_LIMIT);
    begin_counting(j->comm);
    CHECK_INT(kvtree_bcast(tree, 0, j->comm), 0);
    tally t = end_counting(j->comm);
    CHECK_INT(kvtree_size(tree), 50000);
    CHECK_INT(t.own[COLLECTIVES], 4);
    if (j->rank) kvtree_delete(&tree);
    kvtree_delete(&wide);
}

/* Small trees fit into one file, whose writer gets one message from each rank, ... */
static tally count_gather(const job *j)
{
    kvtree *tree = sample_tree();
    begin_counting(j->comm);
    CHECK_INT(kvtree_write_gather(j->path, tree, j->comm), 0);
    tally t = end_counting(j->comm);
    CHECK(t.own[SENDS] <= 1);
    CHECK(t.own[RECEIVES] <= (j->rank ? 1 : j->ranks));
    kvtree_delete(&tree);
    return t;
}

/* ... and whose reader sends one to each. */
static tally count_scatter(const job *j)
{
    kvtree *tree = kvtree_new(), *sample = sample_tree();
    begin_counting(j->comm);
    CHECK_INT(kvtree_read_scatter(j->path, tree, j->comm), 0);
    tally t = end_counting(j->comm);
    CHECK(same_tree(tree, sample));
    CHECK(t.own[SENDS] <= (j->rank ? 1 : j->ranks));
    CHECK(t.own[RECEIVES] <= 1);
    kvtree_delete(&tree);
    kvtree_delete(&sample);
    return t;
}

/* ---- one number of ranks ---- */

enum { EMPTY, RING, ONE_TO_ALL, RING_LEFT, BCAST, GATHER, SCATTER, CALLS };

static const char *const names[CALLS] = {"exchange, nothing to send",
                                         "exchange, ring",
                                         "exchange, one to all",
                                         "exchange_direction, ring",
                                         "bcast",
                                         "write_gather",
                                         "read_scatter"};

static void print_row(const job *j, const char *name, const tally *t)
{
    char wire[16] = "-";
    if (next_function("ucp_tag_send_nbx"))
        snprintf(wire, sizeof wire, "%ld", t->most[WIRE]);
    printf("| %5d | %-25s | %8ld | %11ld | %6ld | %8s |\n", j->ranks, name,
           t->most[SENDS], t->most[COLLECTIVES], t->most[COLLECTIVES] * j->log, wire);
}

static void count_all(const job *j, tally t[CALLS])
{
    t[EMPTY] = count_exchange(j, kvtree_exchange, empty);
    t[RING] = count_exchange(j, kvtree_exchange, ring);
    t[ONE_TO_ALL] = count_exchange(j, kvtree_exchange, one_to_all);
    t[RING_LEFT] = count_exchange(j, to_the_left, ring);
    t[BCAST] = count_bcast(j);
    count_large_bcast(j);
    t[GATHER] = count_gather(j);
    t[SCATTER] = count_scatter(j);
}

static void with_ranks(job *j, long expected[CALLS])
{
    int into;
    tally t[CALLS];
    application = j->comm;
    MPI_Request request = watch(j->comm, &into);
    tally first = count_exchange(j, kvtree_exchange, empty);
    CHECK_INT(first.own[DUPLICATES], 1);
    CHECK_INT(first.own[DUPLICATED], 1);
    CHECK_INT(first.own[SEEN], 0);
    CHECK_INT(first.own[SHARED], 1); /* all ranks agree on having it */
    count_all(j, t);
    nothing_was_seen(j->comm, &request);
    application = MPI_COMM_NULL;
    for (int i = 0; i < CALLS; i++) {
        CHECK_INT(t[i].own[DUPLICATES], 0);
        CHECK_INT(t[i].own[SEEN], 0);
        CHECK_INT(t[i].own[SHARED], 0);
        same_collectives(j->comm, &t[i], &expected[i]);
        if (j->rank == 0) print_row(j, names[i], &t[i]);
    }
}

int main(int argc, char **argv)
{
    long expected[CALLS];
    char folder[64];
    check_begin(&argc, &argv);
    check_folder(folder);
    for (int i = 0; i < CALLS; i++)
        expected[i] = -1;
    if (check_rank == 0)
        printf(
            "| ranks | call                      | messages | collectives | rounds | "
            "with UCX |\n| ----: | ------------------------- | -------: | ----------: | "
            "-----: | -------: |\n");
    for (int log = 1; 1 << log <= check_ranks; log++) {
        job j = {.ranks = 1 << log, .rank = check_rank, .log = log};
        snprintf(j.path, sizeof j.path, "%s/%d", folder, j.ranks);
        PMPI_Comm_split(MPI_COMM_WORLD, j.rank < j.ranks, j.rank, &j.comm);
        if (j.rank < j.ranks) with_ranks(&j, expected);
        PMPI_Comm_free(&j.comm);
        rest();
    }
    check_remove(folder);
    return check_end();
}
