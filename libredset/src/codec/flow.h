/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_CODEC_FLOW_H
#define REDSET_CODEC_FLOW_H

/* Which bytes of a set are computed from which other bytes. Pure functions, shared by all
 * schemes, by encode and rebuild, with and without MPI.
 *
 * The members of a set form a ring 0 .. N-1, and the set survives `failures` losses. Each
 * member has streams of bytes:
 *
 * 0 .. D-1 data: its files one after the other, in D chunks D .. D+failures-1 redundancy
 * data, in its redundancy file
 *
 * A flow computes some streams (targets) from others (sources):
 *
 * target t = sum over sources s of coef(t, s) * source s in GF(2^8)
 *
 * Encodes and rebuilds have N flows each. Flows are independent of each other, and so are
 * the pieces of a flow.
 *
 * XOR and RS. D = N - failures, and every stream has the same length. There are N
 * positions. The column x = (m - p) mod N selects the stream of member m at position p:
 * redundancy stream x if x < failures, else its next data chunk. Redundancy stream j at a
 * position is the sum over the data columns x of c(j, x) * data, c(j, x) = x / (x ^ j): a
 * Cauchy matrix with columns scaled so that its first row is ones. Every square submatrix
 * of a Cauchy matrix is regular, scaled or not, so any `failures` losses can be solved.
 * The first redundancy stream is the XOR, and XOR is RS with one failure.
 *
 * PARTNER. D = 1, and redundancy stream j of member m is a copy of the data of member
 * m-1-j. Flow m copies the data of member m. */

#include "src/codec/gf.h"
#include <redset/redset.h>
#include <stdbool.h>

/* ---- shapes ---- */

typedef struct redset_shape {
    redset_scheme scheme;
    int members;
    int failures; /* 0: SINGLE, 1: XOR, k: RS, number of copies: PARTNER */
} redset_shape;

/* -EINVAL for an impossible shape. */
int redset_shape_check(const redset_shape *shape);

redset_shape redset_place_shape(const redset_place *place);

/* The member `distance` places to the right of member, to the left if negative. */
int redset_shape_member(const redset_shape *shape, int member, int distance);

/* Whether data is split into chunks and redundancy is computed (XOR, RS). */
bool redset_shape_is_coded(const redset_shape *shape);

/* D: the number of data streams. */
int redset_shape_data_streams(const redset_shape *shape);

/* Bytes of a chunk such that D chunks hold largest bytes; 0 if data is not split (SINGLE,
 * PARTNER). */
uint64_t redset_shape_chunk(const redset_shape *shape, uint64_t largest);

/* The stream of member at a position (XOR, RS). */
int redset_shape_stream(const redset_shape *shape, int member, int position);

/* Whether all streams of the lost members (lost[m] != 0) can be rebuilt. */
bool redset_shape_can_rebuild(const redset_shape *shape, const uint8_t lost[]);

/* Every member keeps its list of files and those of its `failures` left neighbors.
 * Returns the nearest surviving member that keeps the list of member: itself, or one to
 * the right; -1 if there is none. */
int redset_shape_holder(const redset_shape *shape, const uint8_t lost[], int member);

/* ---- flows ---- */

typedef struct redset_flow_end {
    int member, stream;
} redset_flow_end;

typedef struct redset_flow {
    redset_shape shape;
    int sources, targets;
    redset_flow_end *source; /* in the order in which partial sums travel */
    redset_flow_end *target;
    uint8_t *coefs; /* see redset_flow_coef */
    uint8_t *code;  /* c(j, x) */
    /* scratch while a flow is filled in: */
    const uint8_t *lost;
    int position, unknowns;
    int *unknown;   /* lost data columns ... */
    int *used;      /* ... and the same number of redundancy columns that solve them */
    uint8_t *solve; /* inverse of the code from unknown to used columns, by rows */
    uint8_t *part;  /* factors of one source in the unknown columns */
} redset_flow;

/* Allocates a flow for sets of that shape; NULL without memory. */
redset_flow *redset_flow_new(const redset_shape *shape);
redset_flow *redset_flow_free(redset_flow *flow);

static inline uint8_t redset_flow_coef(const redset_flow *flow, int target, int source)
{
    return flow->coefs[target * flow->shape.members + source];
}

/* Fills in flow i (0 .. members-1): of an encode if lost is NULL, else of the rebuild of
 * all streams of the lost members, which must be possible (redset_shape_can_rebuild). A
 * flow without targets has nothing to do. */
void redset_flow_plan(redset_flow *flow, const uint8_t lost[], int i);

#endif
