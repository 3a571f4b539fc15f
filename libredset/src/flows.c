/* SPDX-License-Identifier: BSD-3-Clause */
/* The flows of a rebuild where all members are at hand: one flow after the other, piece
 * by piece. flows_mpi.c does the same with one member per process. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include "src/gf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct mover {
    redset_group *group;
    redset_flow *flow;
    redset_factors factors;
    unsigned char *memory, *own; /* a piece of one source */
    unsigned char **sum;         /* one for each target */
    uint8_t *coefs;              /* of one source in each sum */
    bool stopped;                /* a survivor turned out to be lost */
} mover;

/* ---- one piece ---- */

/* Reads the next bytes of a source, and adds them to all sums. */
static int add_source(mover *v, int source, size_t size, char *err)
{
    const redset_flow *flow = v->flow;
    const redset_end *end = &flow->source[source];
    redset_salvage *s = &v->group->member[end->member];
    int rc = redset_streams_read(&s->streams, end->stream, v->own, size, s->lost);
    if (rc) {
        v->stopped = true;
        return redset_salvage_lose(s, rc, err);
    }
    for (int t = 0; t < flow->targets; t++)
        v->coefs[t] = redset_coef(flow, t, source);
    redset_factors_set(&v->factors, flow->targets, v->coefs);
    redset_add_product(&v->factors, v->sum, v->own, size);
    return 0;
}

static int move_piece(mover *v, size_t size, char *err)
{
    const redset_flow *flow = v->flow;
    int rc = 0;
    for (int t = 0; t < flow->targets; t++)
        memset(v->sum[t], 0, size);
    for (int i = 0; i < flow->sources && !rc && !v->stopped; i++)
        rc = add_source(v, i, size, err);
    for (int t = 0; t < flow->targets && !rc && !v->stopped; t++) {
        const redset_end *end = &flow->target[t];
        rc = redset_streams_write(&v->group->member[end->member].streams, end->stream,
                                  v->sum[t], size, err);
    }
    return rc;
}

/* ---- all of them ---- */

static uint64_t length_of(const redset_group *g, int flow)
{
    const redset_header *h = g->member[flow].header;
    return redset_is_coded(&g->shape) ? h->chunk : h->list[0].size;
}

static int move_flow(mover *v, int i, char *err)
{
    int rc = 0;
    redset_flow_rebuild(v->flow, v->group->lost, i);
    uint64_t left = v->flow->targets ? length_of(v->group, i) : 0;
    while (left && !rc && !v->stopped) {
        size_t size = left < REDSET_PIECE ? (size_t)left : REDSET_PIECE;
        rc = move_piece(v, size, err);
        left -= size;
    }
    return rc;
}

static int prepare(mover *v)
{
    size_t sums = (size_t)v->group->plan.lost;
    v->flow = redset_flow_new(&v->group->shape);
    v->memory = malloc((sums + 1) * REDSET_PIECE);
    v->sum = calloc(sums, sizeof *v->sum);
    v->coefs = calloc(sums, 1);
    if (!v->flow || !v->memory || !v->sum || !v->coefs) return -ENOMEM;
    v->own = v->memory + sums * REDSET_PIECE;
    for (size_t t = 0; t < sums; t++)
        v->sum[t] = v->memory + t * REDSET_PIECE;
    return redset_factors_init(&v->factors, (int)sums);
}

int redset_group_flow(redset_group *group, char *err)
{
    mover v = {.group = group};
    int rc = prepare(&v);
    if (rc) err_sys(err, rc, "buffers");
    for (int i = 0; i < group->shape.members && !rc && !v.stopped; i++)
        rc = move_flow(&v, i, err);
    redset_factors_done(&v.factors);
    redset_flow_free(v.flow);
    free(v.memory);
    free(v.sum);
    free(v.coefs);
    return rc;
}
