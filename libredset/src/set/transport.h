/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_SET_TRANSPORT_H
#define REDSET_SET_TRANSPORT_H

/* Communication among a group of peers 0 .. size-1: the members of a set, or all ranks of
 * an encode. A process acts for some of them, its local peers. Implementations:
 *
 *     transport_local.c       all peers are local: one process works on a whole set
 *     transport_mpi.c         each rank of a communicator is one peer
 *     transport_acting_mpi.c  each rank of a communicator acts for one or more peers
 *
 * A collective call is made by all processes of the group, in the same order. Arrays
 * named out and in have one tree for each local peer. All calls return 0 or -errno, with
 * a text in err (not NULL). A call that fails because the transport is broken (-ECOMM,
 * -EIO) may fail on some processes only; no agreement is possible then. */

#include "src/names_private.h"
#include <kvtree/kvtree.h>
#include <redset/redset.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct redset_transport redset_transport;

/* A transfer between a local peer and another peer. */
typedef struct redset_link {
    int transfer; /* number of the transfer */
    int peer, other;
} redset_link;

struct redset_transport {
    int size;
    int count;        /* of local peers, at least 1 */
    const int *local; /* their numbers, ascending */
    int busiest;      /* maximum number of local peers of any process */

    /* Collective. Agrees on one result for all processes; code is the result of this
     * process (0, negative error, positive verdict). If all codes are 0, each of count
     * sums becomes the total over all processes. Otherwise all processes get one of the
     * codes, errors before verdicts, with its text, and sums are unchanged. */
    int (*agree_result)(redset_transport *t, int code, int count, int64_t sums[],
                        redset_error *err);

    /* Collective. Each value becomes the maximum over all processes. */
    int (*greatest)(redset_transport *t, int count, int64_t values[], redset_error *err);

    /* Collective. blocks has one block of size bytes for each peer. The blocks of local
     * peers are input; the others are filled in. */
    int (*gather)(redset_transport *t, void *blocks, size_t size, redset_error *err);

    /* Collective. All processes get the block of the process of peer. */
    int (*broadcast)(redset_transport *t, int peer, void *block, size_t size,
                     redset_error *err);

    /* Collective. out holds <peer> -> tree for each receiver; in gets <peer> -> tree from
     * each sender. */
    int (*exchange)(redset_transport *t, kvtree *const out[], kvtree *const in[]);

    /* Collective. Each local peer sends a tree to the peer that is distance places to the
     * right, and receives a tree from the left, which is dropped if in[] is NULL. NULL in
     * transport_acting_mpi.c: only an encode needs it. */
    int (*shift)(redset_transport *t, int distance, kvtree *const out[],
                 kvtree *const in[]);

    /* Reserves numbers for transfers that run at the same time; drops earlier ones. */
    int (*reserve)(redset_transport *t, int transfers);

    /* Starts a transfer of bytes. Between two peers, messages arrive in the order in
     * which they are sent. A receive from a local peer is started before the send. err
     * may be NULL, here and in wait. */
    int (*receive)(redset_transport *t, redset_link link, void *buf, size_t size,
                   redset_error *err);
    int (*send)(redset_transport *t, redset_link link, const void *buf, size_t size,
                redset_error *err);

    /* Waits for the transfer of that number, if there is one. */
    int (*wait)(redset_transport *t, int transfer, redset_error *err);
};

/* Returns the index of a peer among the local peers; -1 if it is not local. */
static inline int redset_transport_index(const redset_transport *t, int peer)
{
    for (int i = 0; i < t->count; i++)
        if (t->local[i] == peer) return i;
    return -1;
}

/* agree_result without sums. */
static inline int redset_transport_agree(redset_transport *t, int code, redset_error *err)
{
    return t->agree_result(t, code, 0, NULL, err);
}

/* Collective. Agrees on code without sums, and sets *equal, if the result is 0, to
 * whether all processes that have values (NULL: none) have the same values. */
enum { REDSET_VALUES = 6 };
int redset_transport_compare(redset_transport *t, int code,
                             const int64_t values[REDSET_VALUES], bool *equal,
                             redset_error *err);

/* Creates a transport among that number of peers, all local; NULL without memory. */
redset_transport *redset_transport_local(int size);
redset_transport *redset_transport_local_free(redset_transport *t);

#endif
