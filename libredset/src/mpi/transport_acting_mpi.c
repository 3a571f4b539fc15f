/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport in which several peers may be on one rank of a communicator. Messages of
 * each pair of peers have their own tag, so that messages between two ranks cannot be
 * confused. A message between peers on the same rank is sent to this rank itself. */
#include "src/mpi/transport_acting_mpi.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdlib.h>
#include <string.h>

typedef struct acting_transport {
    redset_transport base;
    MPI_Comm comm;
    MPI_Request *request;
    int *local;  /* numbers of the local peers */
    int *actor;  /* rank of each peer */
    int *number; /* of each peer among the peers of its rank */
} acting_transport;

static acting_transport *acting_of(redset_transport *t)
{
    return (acting_transport *)t;
}

static int acting_agree(redset_transport *t, int code, int count, int64_t sums[],
                        redset_error *err)
{
    MPI_Comm comm = acting_of(t)->comm;
    return count ? agree_sum(comm, code, err, count, sums) : agree(comm, code, err);
}

static int acting_greatest(redset_transport *t, int count, int64_t values[],
                           redset_error *err)
{
    return agree_mpi_check(MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_INT64_T,
                                         MPI_MAX, acting_of(t)->comm),
                           err);
}

/* Clears the blocks of other ranks, and combines all blocks by OR. */
static int acting_gather(redset_transport *t, void *blocks, size_t size,
                         redset_error *err)
{
    unsigned char *bytes = blocks;
    for (int peer = 0; peer < t->size; peer++)
        if (redset_transport_index(t, peer) < 0)
            memset(bytes + (size_t)peer * size, 0, size);
    return agree_mpi_check(MPI_Allreduce(MPI_IN_PLACE, blocks, (int)size * t->size,
                                         MPI_BYTE, MPI_BOR, acting_of(t)->comm),
                           err);
}

static int acting_broadcast(redset_transport *t, int peer, void *block, size_t size,
                            redset_error *err)
{
    const acting_transport *a = acting_of(t);
    return agree_mpi_check(MPI_Bcast(block, (int)size, MPI_BYTE, a->actor[peer], a->comm),
                           err);
}

/* ---- trees ---- */

/* Makes <rank> / <receiver> / <sender> -> tree from <receiver> -> tree of each local
 * peer. */
static int acting_address(const acting_transport *a, kvtree *const out[], kvtree *all)
{
    for (int i = 0; i < a->base.count; i++)
        for (kvtree_elem *e = kvtree_elem_first(out[i]); e; e = kvtree_elem_next(e)) {
            int to = kvtree_elem_key_int(e);
            kvtree *copy =
                kvtree_setf(all, NULL, "%d %d %d", a->actor[to], to, a->base.local[i]);
            if (!copy || kvtree_merge(copy, kvtree_elem_hash(e)) != 0) return -ENOMEM;
        }
    return 0;
}

static int acting_deliver(const acting_transport *a, const kvtree *all,
                          kvtree *const in[])
{
    int rc = 0;
    for (kvtree_elem *from = kvtree_elem_first(all); from; from = kvtree_elem_next(from))
        for (kvtree_elem *e = kvtree_elem_first(kvtree_elem_hash(from)); e && !rc;
             e = kvtree_elem_next(e)) {
            int i = redset_transport_index(&a->base, kvtree_elem_key_int(e));
            rc = i < 0 ? -EBADMSG : kvtree_merge(in[i], kvtree_elem_hash(e));
        }
    return rc;
}

static int acting_exchange(redset_transport *t, kvtree *const out[], kvtree *const in[])
{
    const acting_transport *a = acting_of(t);
    kvtree *sent = kvtree_new(), *received = kvtree_new();
    int addressed = sent && received ? acting_address(a, out, sent) : -ENOMEM;
    int rc = kvtree_exchange(sent, received, a->comm);
    if (!rc) rc = addressed;
    if (!rc) rc = acting_deliver(a, received, in);
    kvtree_delete(&sent);
    kvtree_delete(&received);
    return rc;
}

/* ---- bytes ---- */

static int acting_reserve(redset_transport *t, int transfers)
{
    acting_transport *a = acting_of(t);
    free(a->request);
    a->request = calloc((size_t)transfers + 1, sizeof(MPI_Request));
    if (!a->request) return -ENOMEM;
    for (int i = 0; i < transfers; i++)
        a->request[i] = MPI_REQUEST_NULL;
    return 0;
}

/* Tag of messages from one peer to another. Tags must differ only among the peers of two
 * ranks. */
static int acting_tag(const acting_transport *a, int from, int to)
{
    return a->number[from] * a->base.busiest + a->number[to];
}

static int acting_receive(redset_transport *t, redset_link link, void *buf, size_t size,
                          redset_error *err)
{
    const acting_transport *a = acting_of(t);
    return agree_mpi_check(MPI_Irecv(buf, (int)size, MPI_BYTE, a->actor[link.other],
                                     acting_tag(a, link.other, link.peer), a->comm,
                                     &a->request[link.transfer]),
                           err);
}

static int acting_send(redset_transport *t, redset_link link, const void *buf,
                       size_t size, redset_error *err)
{
    const acting_transport *a = acting_of(t);
    return agree_mpi_check(MPI_Isend(buf, (int)size, MPI_BYTE, a->actor[link.other],
                                     acting_tag(a, link.peer, link.other), a->comm,
                                     &a->request[link.transfer]),
                           err);
}

static int acting_wait(redset_transport *t, int transfer, redset_error *err)
{
    MPI_Request *request = &acting_of(t)->request[transfer];
    if (*request == MPI_REQUEST_NULL) return 0;
    return agree_mpi_check(MPI_Wait(request, MPI_STATUS_IGNORE), err);
}

/* ---- creating and freeing ---- */

/* Numbers the peers of each rank. */
static void acting_number(acting_transport *a, int rank)
{
    for (int peer = 0; peer < a->base.size; peer++) {
        for (int before = 0; before < peer; before++)
            a->number[peer] += a->actor[before] == a->actor[peer];
        if (a->number[peer] >= a->base.busiest) a->base.busiest = a->number[peer] + 1;
        if (a->actor[peer] == rank) a->local[a->base.count++] = peer;
    }
}

redset_transport *redset_transport_acting(MPI_Comm comm, int size, const int actor[])
{
    int rank;
    acting_transport *a = calloc(1, sizeof *a);
    int *numbers = calloc(3 * (size_t)size, sizeof *numbers);
    if (!a || !numbers) {
        free(a);
        free(numbers);
        return NULL;
    }
    *a = (acting_transport){.base = {.size = size,
                                     .local = numbers,
                                     .agree_result = acting_agree,
                                     .greatest = acting_greatest,
                                     .gather = acting_gather,
                                     .broadcast = acting_broadcast,
                                     .exchange = acting_exchange,
                                     .reserve = acting_reserve,
                                     .receive = acting_receive,
                                     .send = acting_send,
                                     .wait = acting_wait},
                            .comm = comm,
                            .local = numbers,
                            .actor = numbers + size,
                            .number = numbers + 2 * size};
    memcpy(a->actor, actor, (size_t)size * sizeof *actor);
    MPI_Comm_rank(comm, &rank);
    acting_number(a, rank);
    return &a->base;
}

redset_transport *redset_transport_acting_free(redset_transport *t)
{
    acting_transport *a = acting_of(t);
    if (!a) return NULL;
    MPI_Comm_free(&a->comm);
    free(a->request);
    free(a->local);
    free(a);
    return NULL;
}
