/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport within one process, for all members of a set. There is no other process to
 * agree with, and a message is copied into the buffer of its posted receive. */
#include "src/set/transport.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A posted receive. */
typedef struct local_receive {
    redset_link link;
    uint64_t order;
    void *buf; /* NULL: none */
} local_receive;

typedef struct local_transport {
    redset_transport base;
    int count;
    local_receive *receives;
    uint64_t posted;
    int peers[];
} local_transport;

static int local_agree(redset_transport *t, int code, int count, int64_t sums[],
                       redset_error *err)
{
    return code;
}

static int local_greatest(redset_transport *t, int count, int64_t values[],
                          redset_error *err)
{
    return 0;
}

static int local_gather(redset_transport *t, void *blocks, size_t size, redset_error *err)
{
    return 0;
}

static int local_broadcast(redset_transport *t, int peer, void *block, size_t size,
                           redset_error *err)
{
    return 0;
}

static int local_exchange(redset_transport *t, kvtree *const out[], kvtree *const in[])
{
    int rc = 0;
    for (int i = 0; i < t->size; i++)
        for (kvtree_elem *e = kvtree_elem_first(out[i]); e && !rc;
             e = kvtree_elem_next(e)) {
            kvtree *copy = kvtree_setf(in[kvtree_elem_key_int(e)], NULL, "%d", i);
            rc = copy ? kvtree_merge(copy, kvtree_elem_hash(e)) : -ENOMEM;
        }
    return rc;
}

static int local_shift(redset_transport *t, int distance, kvtree *const out[],
                       kvtree *const in[])
{
    int rc = 0;
    for (int i = 0; i < t->size && !rc; i++)
        if (in[(i + distance) % t->size])
            rc = kvtree_merge(in[(i + distance) % t->size], out[i]);
    return rc;
}

static int local_reserve(redset_transport *t, int transfers)
{
    local_transport *local = (local_transport *)t;
    free(local->receives);
    local->receives = calloc((size_t)transfers + 1, sizeof *local->receives);
    local->count = local->receives ? transfers : 0;
    return local->receives ? 0 : -ENOMEM;
}

static int local_post(redset_transport *t, redset_link link, void *buf, size_t size,
                      redset_error *err)
{
    local_transport *local = (local_transport *)t;
    local->receives[link.transfer] = (local_receive){link, local->posted++, buf};
    return 0;
}

/* Completes the oldest receive of the message. */
static int local_send(redset_transport *t, redset_link link, const void *buf, size_t size,
                      redset_error *err)
{
    local_transport *local = (local_transport *)t;
    local_receive *oldest = NULL;
    for (local_receive *r = local->receives; r < local->receives + local->count; r++)
        if (r->buf && r->link.peer == link.other && r->link.other == link.peer &&
            (!oldest || r->order < oldest->order))
            oldest = r;
    if (!oldest) return err_set(err, -ECOMM, "no receive from member %d", link.peer);
    memcpy(oldest->buf, buf, size);
    oldest->buf = NULL;
    return 0;
}

static int local_wait(redset_transport *t, int transfer, redset_error *err)
{
    return 0;
}

redset_transport *redset_transport_local(int size)
{
    local_transport *t = calloc(1, sizeof *t + (size_t)size * sizeof *t->peers);
    if (!t) return NULL;
    for (int i = 0; i < size; i++)
        t->peers[i] = i;
    t->base = (redset_transport){.size = size,
                                 .count = size,
                                 .local = t->peers,
                                 .busiest = size,
                                 .agree_result = local_agree,
                                 .greatest = local_greatest,
                                 .gather = local_gather,
                                 .broadcast = local_broadcast,
                                 .exchange = local_exchange,
                                 .shift = local_shift,
                                 .reserve = local_reserve,
                                 .receive = local_post,
                                 .send = local_send,
                                 .wait = local_wait};
    return &t->base;
}

redset_transport *redset_transport_local_free(redset_transport *t)
{
    local_transport *local = (local_transport *)t;
    if (local) free(local->receives);
    free(local);
    return NULL;
}
