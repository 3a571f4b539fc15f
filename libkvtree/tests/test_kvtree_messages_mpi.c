/* SPDX-License-Identifier: BSD-3-Clause */
/* What the collective functions send, counted between libkvtree and MPI (its profiling
 * interface) for 2 to 32 ranks: an exchange sends one message to each partner, whatever
 * the number of ranks is; all else is a fixed number of MPI's own collective calls, of
 * O(log P) messages each; and all that the communicator of the application sees is that
 * it is duplicated once.
 *
 * The table that it prints also has the messages that MPI hands to UCX, where it does:
 * there those within MPI's collective calls are counted, too. */
#include "build_tree.h"
#include "check.h"

#include <dlfcn.h>
#include <kvtree/kvtree_mpi.h>
#include <stdint.h>
#include <time.h>

/* ---- the counters ---- */

enum kind {
    SENDS,       /* messages to one rank that were started, */
    RECEIVES,    /* and received */
    COLLECTIVES, /* calls that all ranks take part in */
    DUPLICATES,  /* of communicators */
    SEEN,        /* sends, receives and probes on the application's communicator */
    SHARED,      /* collective calls on it */
    WIRE,        /* messages that MPI sent through UCX */
    KINDS
};

static long counts[KINDS];
static MPI_Comm application = MPI_COMM_NULL;

static void note(enum kind kind, MPI_Comm comm)
{
    counts[kind]++;
    if (comm != application || kind == DUPLICATES) return;
    counts[kind == COLLECTIVES ? SHARED : SEEN]++;
}

#define COUNTED(kind, name, params, args)                                                \
    int MPI_##name params                                                                \
    {                                                                                    \
        note(kind, comm);                                                                \
        return PMPI_##name args;                                                         \
    }

#define PEER const void *buf, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm
#define FROM void *buf, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm

COUNTED(SENDS, Send, (PEER), (buf, n, type, peer, tag, comm))
COUNTED(SENDS, Ssend, (PEER), (buf, n, type, peer, tag, comm))
COUNTED(SENDS, Bsend, (PEER), (buf, n, type, peer, tag, comm))
COUNTED(SENDS, Rsend, (PEER), (buf, n, type, peer, tag, comm))
COUNTED(SENDS, Isend, (PEER, MPI_Request *request),
        (buf, n, type, peer, tag, comm, request))
COUNTED(SENDS, Issend, (PEER, MPI_Request *request),
        (buf, n, type, peer, tag, comm, request))
COUNTED(SENDS, Ibsend, (PEER, MPI_Request *request),
        (buf, n, type, peer, tag, comm, request))
COUNTED(SENDS, Irsend, (PEER, MPI_Request *request),
        (buf, n, type, peer, tag, comm, request))
COUNTED(RECEIVES, Recv, (FROM, MPI_Status *status),
        (buf, n, type, peer, tag, comm, status))
COUNTED(RECEIVES, Irecv, (FROM, MPI_Request *request),
        (buf, n, type, peer, tag, comm, request))

/* A message that was matched before has no communicator any more; the probe had. */
int MPI_Mrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message,
              MPI_Status *status)
{
    note(RECEIVES, MPI_COMM_NULL);
    return PMPI_Mrecv(buf, n, type, message, status);
}

int MPI_Imrecv(void *buf, int n, MPI_Datatype type, MPI_Message *message,
               MPI_Request *request)
{
    note(RECEIVES, MPI_COMM_NULL);
    return PMPI_Imrecv(buf, n, type, message, request);
}

#define PROBED(name, params, args)                                                       \
    int MPI_##name params                                                                \
    {                                                                                    \
        if (comm == application) counts[SEEN]++;                                         \
        return PMPI_##name args;                                                         \
    }

PROBED(Probe, (int peer, int tag, MPI_Comm comm, MPI_Status *status),
       (peer, tag, comm, status))
PROBED(Iprobe, (int peer, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
       (peer, tag, comm, flag, status))
PROBED(Mprobe,
       (int peer, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
       (peer, tag, comm, message, status))
PROBED(Improbe,
       (int peer, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
        MPI_Status *status),
       (peer, tag, comm, flag, message, status))

#define REDUCE const void *in, void *out, int n, MPI_Datatype type, MPI_Op op
#define MOVE const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to
#define NONBLOCKING MPI_Comm comm, MPI_Request *request

COUNTED(COLLECTIVES, Barrier, (MPI_Comm comm), (comm))
COUNTED(COLLECTIVES, Ibarrier, (NONBLOCKING), (comm, request))
COUNTED(COLLECTIVES, Bcast,
        (void *buf, int n, MPI_Datatype type, int root, MPI_Comm comm),
        (buf, n, type, root, comm))
COUNTED(COLLECTIVES, Ibcast, (void *buf, int n, MPI_Datatype type, int root, NONBLOCKING),
        (buf, n, type, root, comm, request))
COUNTED(COLLECTIVES, Reduce, (REDUCE, int root, MPI_Comm comm),
        (in, out, n, type, op, root, comm))
COUNTED(COLLECTIVES, Allreduce, (REDUCE, MPI_Comm comm), (in, out, n, type, op, comm))
COUNTED(COLLECTIVES, Iallreduce, (REDUCE, NONBLOCKING),
        (in, out, n, type, op, comm, request))
COUNTED(COLLECTIVES, Scan, (REDUCE, MPI_Comm comm), (in, out, n, type, op, comm))
COUNTED(COLLECTIVES, Exscan, (REDUCE, MPI_Comm comm), (in, out, n, type, op, comm))
COUNTED(COLLECTIVES, Gather, (MOVE, int root, MPI_Comm comm),
        (in, n, type, out, m, to, root, comm))
COUNTED(COLLECTIVES, Scatter, (MOVE, int root, MPI_Comm comm),
        (in, n, type, out, m, to, root, comm))
COUNTED(COLLECTIVES, Allgather, (MOVE, MPI_Comm comm), (in, n, type, out, m, to, comm))
COUNTED(COLLECTIVES, Alltoall, (MOVE, MPI_Comm comm), (in, n, type, out, m, to, comm))
COUNTED(COLLECTIVES, Alltoallv,
        (const void *in, const int *n, const int *at, MPI_Datatype type, void *out,
         const int *m, const int *to_at, MPI_Datatype to, MPI_Comm comm),
        (in, n, at, type, out, m, to_at, to, comm))
COUNTED(COLLECTIVES, Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made),
        (comm, color, key, made))
COUNTED(DUPLICATES, Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))

/* Below MPI: the two calls by which MPICH over UCX sends messages to ranks. */
typedef void *(*ucx_send)(void *to, const void *buf, size_t n, uint64_t tag,
                          const void *how);
void *ucp_tag_send_nbx(void *to, const void *buf, size_t n, uint64_t tag,
                       const void *how);
void *ucp_tag_send_sync_nbx(void *to, const void *buf, size_t n, uint64_t tag,
                            const void *how);

static ucx_send next_function(const char *name)
{
    ucx_send function;
    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function;
}

void *ucp_tag_send_nbx(void *to, const void *buf, size_t n, uint64_t tag, const void *how)
{
    static ucx_send next;
    if (!next) next = next_function("ucp_tag_send_nbx");
    counts[WIRE]++;
    return next(to, buf, n, tag, how);
}

void *ucp_tag_send_sync_nbx(void *to, const void *buf, size_t n, uint64_t tag,
                            const void *how)
{
    static ucx_send next;
    if (!next) next = next_function("ucp_tag_send_sync_nbx");
    counts[WIRE]++;
    return next(to, buf, n, tag, how);
}

/* ---- what is counted; the functions of MPI that the test itself uses are not ---- */

typedef struct job {
    MPI_Comm comm;
    int rank, ranks, log; /* log: 2^log ranks */
    char path[96];        /* where gather writes */
} job;

/* Who sends to whom. At two ranks both neighbours are the same one. */
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

/* What one rank did in one call, and the most that any did. */
typedef struct tally {
    long own[KINDS], most[KINDS];
} tally;

static void begin_counting(const job *j)
{
    PMPI_Barrier(j->comm);
    memset(counts, 0, sizeof counts);
}

static tally end_counting(const job *j)
{
    tally t;
    memcpy(t.own, counts, sizeof counts);
    PMPI_Allreduce(t.own, t.most, KINDS, MPI_LONG, MPI_MAX, j->comm);
    return t;
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
    begin_counting(j);
    CHECK_INT(function(send, got, j->comm), 0);
    tally t = end_counting(j);
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
    begin_counting(j);
    CHECK_INT(kvtree_bcast(tree, 0, j->comm), 0);
    tally t = end_counting(j);
    CHECK_INT(kvtree_size(tree), 1);
    CHECK_INT(t.own[SENDS], 0);
    CHECK_INT(t.own[RECEIVES], 0);
    CHECK(t.own[COLLECTIVES] <= 3);
    kvtree_delete(&tree);
    return t;
}

/* Small trees fit into one file, whose writer gets one message from each rank, ... */
static tally count_gather(const job *j)
{
    kvtree *tree = sample_tree();
    begin_counting(j);
    CHECK_INT(kvtree_write_gather(j->path, tree, j->comm), 0);
    tally t = end_counting(j);
    CHECK(t.own[SENDS] <= 1);
    CHECK(t.own[RECEIVES] <= (j->rank ? 1 : j->ranks));
    kvtree_delete(&tree);
    return t;
}

/* ... and whose reader sends one to each. */
static tally count_scatter(const job *j)
{
    kvtree *tree = kvtree_new(), *sample = sample_tree();
    begin_counting(j);
    CHECK_INT(kvtree_read_scatter(j->path, tree, j->comm), 0);
    tally t = end_counting(j);
    CHECK(same_tree(tree, sample));
    CHECK(t.own[SENDS] <= (j->rank ? 1 : j->ranks));
    CHECK(t.own[RECEIVES] <= 1);
    kvtree_delete(&tree);
    kvtree_delete(&sample);
    return t;
}

/* ---- one number of ranks ---- */

enum { EMPTY, RING, ONE_TO_ALL, RING_LEFT, RING_QUEUED, BCAST, GATHER, SCATTER, CALLS };

static const char *const names[CALLS] = {"exchange, nothing to send",
                                         "exchange, ring",
                                         "exchange, one to all",
                                         "exchange_direction, ring",
                                         "exchange_sendq, ring",
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

/* The number of collective calls is the same on all ranks, and at any number of ranks;
 * expected has it once there was one, on rank 0. */
static void same_collectives(const job *j, const tally *t, long *expected)
{
    if (*expected < 0) *expected = t->own[COLLECTIVES];
    PMPI_Bcast(expected, 1, MPI_LONG, 0, j->comm);
    CHECK_INT(t->own[COLLECTIVES], *expected);
}

/* A receive of the application for any message whatever: it must still wait in the end.
 */
static MPI_Request watch(const job *j, int *into)
{
    MPI_Request request;
    PMPI_Irecv(into, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, j->comm, &request);
    return request;
}

static void nothing_was_seen(const job *j, MPI_Request *request)
{
    MPI_Status status;
    int done = 1, cancelled = 0, found = 1;
    PMPI_Barrier(j->comm);
    PMPI_Test(request, &done, &status);
    CHECK(!done);
    if (done) return;
    PMPI_Cancel(request);
    PMPI_Wait(request, &status);
    PMPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, j->comm, &found, &status);
    CHECK(!found);
}

static void count_all(const job *j, tally t[CALLS])
{
    t[EMPTY] = count_exchange(j, kvtree_exchange, empty);
    t[RING] = count_exchange(j, kvtree_exchange, ring);
    t[ONE_TO_ALL] = count_exchange(j, kvtree_exchange, one_to_all);
    t[RING_LEFT] = count_exchange(j, to_the_left, ring);
    t[RING_QUEUED] = count_exchange(j, kvtree_exchange_sendq, ring);
    t[BCAST] = count_bcast(j);
    t[GATHER] = count_gather(j);
    t[SCATTER] = count_scatter(j);
}

static void with_ranks(job *j, long expected[CALLS])
{
    int into;
    tally t[CALLS];
    application = j->comm;
    MPI_Request request = watch(j, &into);
    tally first = count_exchange(j, kvtree_exchange, empty);
    CHECK_INT(first.own[DUPLICATES], 1);
    CHECK_INT(first.own[SEEN], 0);
    CHECK_INT(first.own[SHARED], 0);
    count_all(j, t);
    nothing_was_seen(j, &request);
    application = MPI_COMM_NULL;
    for (int i = 0; i < CALLS; i++) {
        CHECK_INT(t[i].own[DUPLICATES], 0);
        CHECK_INT(t[i].own[SEEN], 0);
        CHECK_INT(t[i].own[SHARED], 0);
        same_collectives(j, &t[i], &expected[i]);
        if (j->rank == 0) print_row(j, names[i], &t[i]);
    }
}

/* Waits for all ranks without taking the processor from those that work. */
static void rest(void)
{
    const struct timespec nap = {0, 5000000};
    MPI_Request request;
    int done = 0;
    PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (PMPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         PMPI_Test(&request, &done, MPI_STATUS_IGNORE))
        nanosleep(&nap, NULL);
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
