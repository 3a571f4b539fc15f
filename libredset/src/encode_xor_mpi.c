/* SPDX-License-Identifier: BSD-3-Clause */
/* XOR encode: a pipelined reduce-scatter along the ring (SCR Developer Guide 1.2, section
 * 2.11.1).
 *
 * Chunks are worked on one piece of each at a time. For each piece a member makes N-1
 * steps. In a step it reads its own data at one position, adds what the left neighbour
 * sent in the step before, and sends the sum to the right. What arrives after the last
 * step has been through all other members: it is this member's parity. Steps of
 * consecutive pieces follow each other without a pause, and a message travels while the
 * next data is read. */
#include "src/gf.h"
#include "src/redset_private_mpi.h"

#include <string.h>

typedef struct encoder {
    redset_pieces *pieces;
    uint64_t chunk;
    redset_logical *logical;
    redset_store *store;
    int member, members;
    int rc; /* the first error of this process */
    char *err;
} encoder;

/* Bytes of the piece that is worked on in a step. */
static size_t bytes_of(const encoder *e, uint64_t step)
{
    return redset_pieces_bytes(e->pieces, e->chunk, step / (uint64_t)(e->members - 1));
}

static void read_own(encoder *e, uint64_t step, unsigned char *buf, size_t bytes)
{
    int turn = (int)(step % (uint64_t)(e->members - 1));
    int position = redset_xor_position(e->member, e->members, turn);
    int chunk = redset_xor_chunk_at(e->member, position);
    if (!e->rc) e->rc = redset_logical_read(e->logical, chunk, buf, bytes, e->err);
    if (e->rc) memset(buf, 0, bytes);
}

/* Awaits what the left neighbour sent in a step: parity after the last one of a piece,
 * otherwise something to add to sum. */
static void take(encoder *e, uint64_t step, unsigned char *sum)
{
    int buffer = (int)(step % 2);
    size_t bytes = bytes_of(e, step);
    redset_pieces_received(e->pieces, buffer);
    if ((step + 1) % (uint64_t)(e->members - 1) != 0)
        redset_xor(sum, e->pieces->in[buffer], bytes);
    else if (!e->rc)
        e->rc = redset_store_add(e->store, e->pieces->in[buffer], bytes, e->err);
}

int redset_encode_xor(const redset *set, redset_pieces *pieces, uint64_t chunk,
                      redset_logical *logical, redset_store *store, char *err)
{
    const redset_place *place = &set->layout.place;
    encoder e = {pieces, chunk, logical, store, place->member, place->members, 0, err};
    uint64_t per_piece = (uint64_t)place->members - 1;
    uint64_t steps = redset_pieces_count(pieces, chunk) * per_piece;
    for (uint64_t step = 0; step < steps; step++) {
        int buffer = (int)(step % 2);
        size_t bytes = bytes_of(&e, step);
        redset_pieces_sent(pieces, buffer); /* two steps ago */
        redset_pieces_receive(pieces, buffer, bytes);
        read_own(&e, step, pieces->out[buffer], bytes);
        if (step > 0) take(&e, step - 1, pieces->out[buffer]);
        redset_pieces_send(pieces, buffer, bytes);
    }
    if (steps > 0) take(&e, steps - 1, NULL);
    redset_pieces_sent(pieces, 0);
    redset_pieces_sent(pieces, 1);
    return e.rc;
}
