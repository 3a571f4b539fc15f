/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FLOW_H
#define REDSET_FLOW_H

/* Which bytes of a set follow from which others: pure functions, the same for all
 * schemes, for encoding and rebuilding, under MPI and without.
 *
 * The members of a set are a ring 0 .. N-1, and the set survives `failures` losses. Each
 * member has streams of bytes:
 *
 *     0 .. D-1             data: its files one after the other, in D chunks
 *     D .. D+failures-1    redundancy data, in its redundancy file
 *
 * A flow makes the bytes of some streams (targets) from those of others (sources):
 *
 *     target t = sum over sources s of coef(t, s) * source s      in GF(2^8)
 *
 * There are N flows to encode, and N to rebuild; each can be worked on alone, piece by
 * piece.
 *
 * XOR and RS. D = N - failures, and every stream has the same length. There are N
 * positions. What member m has at position p is told by its column x = (m - p) mod N:
 * redundancy number x if x < failures, else its next data chunk. Redundancy number j at a
 * position is the sum over the data columns x of c(j, x) * data, c(j, x) = x / (x ^ j): a
 * Cauchy matrix with columns scaled so that its first row is ones. So any `failures`
 * losses can be solved (every square part of a Cauchy matrix is regular, whatever its
 * columns are scaled by), the first redundancy is the XOR, and XOR is RS with one.
 *
 * PARTNER. D = 1, and redundancy number j of member m is a copy of the data of member
 * m - 1 - j. Flow m moves the data of member m. */

#include "src/gf.h"
#include "src/redset_names_private.h"
#include <redset/redset.h>
#include <stdbool.h>

typedef struct redset_shape {
    redset_scheme scheme;
    int members;
    int failures; /* 0 for SINGLE, 1 for XOR, k for RS, the number of copies for PARTNER
                   */
} redset_shape;

/* -EINVAL for shapes that cannot be. */
int redset_shape_check(const redset_shape *shape);

/* The set of a place. */
redset_shape redset_shape_of(const redset_place *place);

/* Whether data is cut into chunks, and redundancy is computed (XOR, RS). */
bool redset_is_coded(const redset_shape *shape);

/* D: the number of data streams. */
int redset_data_streams(const redset_shape *shape);

/* Bytes of a chunk such that D chunks hold largest bytes; 0 where data is not cut
 * (SINGLE, PARTNER). */
uint64_t redset_chunk_size(const redset_shape *shape, uint64_t largest);

/* The stream of member at a position (not for PARTNER). */
int redset_stream_at(const redset_shape *shape, int member, int position);

/* ---- flows ---- */

typedef struct redset_end {
    int member, stream;
} redset_end;

typedef struct redset_flow {
    redset_shape shape;
    int sources, targets;
    redset_end *source; /* in the order in which partial sums travel */
    redset_end *target;
    uint8_t *coefs; /* see redset_coef */
    /* to find these: */
    uint8_t *code;       /* c(j, x) */
    int *unknown, *used; /* columns that are lost, and redundancies to find them with */
    uint8_t *solve;      /* equations */
    uint8_t *part;       /* of a source in each of the unknown columns */
} redset_flow;

/* Room for the flows of a set; NULL without memory. */
redset_flow *redset_flow_new(const redset_shape *shape);
redset_flow *redset_flow_free(redset_flow *flow);

static inline uint8_t redset_coef(const redset_flow *flow, int target, int source)
{
    return flow->coefs[target * flow->shape.members + source];
}

/* Flow number i (0 .. members-1) to encode. */
void redset_flow_encode(redset_flow *flow, int i);

/* Flow number i to rebuild all streams of the lost members (lost[m] != 0), which
 * redset_can_rebuild. No targets: there is nothing to do. */
void redset_flow_rebuild(redset_flow *flow, const uint8_t lost[], int i);

/* ---- losses ---- */

/* Whether all streams of the lost members can be rebuilt. */
bool redset_can_rebuild(const redset_shape *shape, const uint8_t lost[]);

/* Every member keeps the list of its files and those of its `failures` left neighbours.
 * The surviving member that has member's list: itself, or the next one to the right; -1
 * if there is none. */
int redset_list_holder(const redset_shape *shape, const uint8_t lost[], int member);

#endif
