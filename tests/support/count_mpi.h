/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_COUNT_MPI_H
#define TESTS_COUNT_MPI_H

/* Counts the calls of MPI by a library, through MPI's profiling interface: a test program
 * that includes this file defines the MPI functions itself. The test itself calls
 * PMPI_... functions, which are not counted. Include it in one source file only.
 *
 *     application = comm;
 *     begin_counting(comm);
 *     rc = redset_encode(...);
 *     tally t = end_counting(comm);
 *     CHECK_INT(t.own[SEEN], 0); */

#include "check.h"

#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

enum kind {
    SENDS,       /* started messages to one rank, */
    RECEIVES,    /* and received messages */
    COLLECTIVES, /* calls in which all ranks take part */
    DUPLICATES,  /* of communicators */
    SEEN,        /* sends, receives and probes on the application's communicator, */
    SHARED,      /* collective calls on it, */
    DUPLICATED,  /* and duplicates of it */
    BYTES,       /* bytes of the sent messages, */
    LARGE_BYTES, /* bytes in messages of LARGE_MESSAGE bytes or more, */
    LARGE,       /* and the number of these */
    WIRE,        /* messages that MPI sent through UCX */
    KINDS
};

enum { LARGE_MESSAGE = 4096 };

static long counts[KINDS];
static MPI_Comm application = MPI_COMM_NULL;

static void note(enum kind kind, MPI_Comm comm)
{
    counts[kind]++;
    if (comm != application) return;
    counts[kind == DUPLICATES ? DUPLICATED : kind == COLLECTIVES ? SHARED : SEEN]++;
}

static void note_send(int n, MPI_Datatype type, MPI_Comm comm)
{
    int size;
    PMPI_Type_size(type, &size);
    long bytes = (long)n * size;
    note(SENDS, comm);
    counts[BYTES] += bytes;
    if (bytes < LARGE_MESSAGE) return;
    counts[LARGE_BYTES] += bytes;
    counts[LARGE]++;
}

#define COUNTED(kind, name, params, args)                                                \
    int MPI_##name params                                                                \
    {                                                                                    \
        note(kind, comm);                                                                \
        return PMPI_##name args;                                                         \
    }

#define SENT(name, params, args)                                                         \
    int MPI_##name params                                                                \
    {                                                                                    \
        note_send(n, type, comm);                                                        \
        return PMPI_##name args;                                                         \
    }

#define PEER const void *buf, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm
#define FROM void *buf, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm

SENT(Send, (PEER), (buf, n, type, peer, tag, comm))
SENT(Ssend, (PEER), (buf, n, type, peer, tag, comm))
SENT(Bsend, (PEER), (buf, n, type, peer, tag, comm))
SENT(Rsend, (PEER), (buf, n, type, peer, tag, comm))
SENT(Isend, (PEER, MPI_Request *request), (buf, n, type, peer, tag, comm, request))
SENT(Issend, (PEER, MPI_Request *request), (buf, n, type, peer, tag, comm, request))
SENT(Ibsend, (PEER, MPI_Request *request), (buf, n, type, peer, tag, comm, request))
SENT(Irsend, (PEER, MPI_Request *request), (buf, n, type, peer, tag, comm, request))
COUNTED(RECEIVES, Recv, (FROM, MPI_Status *status),
        (buf, n, type, peer, tag, comm, status))
COUNTED(RECEIVES, Irecv, (FROM, MPI_Request *request),
        (buf, n, type, peer, tag, comm, request))

int MPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in,
                 int m, MPI_Datatype into, int from, int got_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    note_send(n, type, comm);
    note(RECEIVES, comm);
    return PMPI_Sendrecv(out, n, type, to, tag, in, m, into, from, got_tag, comm, status);
}

/* A matched message has no communicator any more; its probe had one. */
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
COUNTED(COLLECTIVES, Comm_split_type,
        (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
        (comm, type, key, info, made))
COUNTED(DUPLICATES, Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))

/* Below MPI: the two calls by which MPICH over UCX sends messages. */
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

/* ---- point to point ---- */

/* Counts of one rank, the maximum over all ranks, and the sum. */
typedef struct tally {
    long own[KINDS], most[KINDS], sum[KINDS];
} tally;

static inline void begin_counting(MPI_Comm comm)
{
    PMPI_Barrier(comm);
    memset(counts, 0, sizeof counts);
}

static inline tally end_counting(MPI_Comm comm)
{
    tally t;
    memcpy(t.own, counts, sizeof counts);
    PMPI_Allreduce(t.own, t.most, KINDS, MPI_LONG, MPI_MAX, comm);
    PMPI_Allreduce(t.own, t.sum, KINDS, MPI_LONG, MPI_SUM, comm);
    return t;
}

/* Checks that the number of collective calls is the same on all ranks and with any number
 * of ranks; rank 0 keeps the first number in expected. */
static inline void same_collectives(MPI_Comm comm, const tally *t, long *expected)
{
    if (*expected < 0) *expected = t->own[COLLECTIVES];
    PMPI_Bcast(expected, 1, MPI_LONG, 0, comm);
    CHECK_INT(t->own[COLLECTIVES], *expected);
}

/* Starts a receive of the application for any message; it must still wait at the end. */
static inline MPI_Request watch(MPI_Comm comm, int *into)
{
    MPI_Request request;
    PMPI_Irecv(into, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
    return request;
}

static inline void nothing_was_seen(MPI_Comm comm, MPI_Request *request)
{
    MPI_Status status;
    int done = 1, cancelled = 0, found = 1;
    PMPI_Barrier(comm);
    PMPI_Test(request, &done, &status);
    CHECK(!done);
    if (done) return;
    PMPI_Cancel(request);
    PMPI_Wait(request, &status);
    PMPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status);
    CHECK(!found);
}

/* Waits for all ranks without taking processor time from working ranks. */
static inline void rest(void)
{
    const struct timespec nap = {0, 5000000};
    MPI_Request request;
    int done = 0;
    PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (PMPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         PMPI_Test(&request, &done, MPI_STATUS_IGNORE))
        nanosleep(&nap, NULL);
}

#endif
