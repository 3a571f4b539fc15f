/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that travel along the ring of a set. */
#include "src/redset_private_mpi.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>

enum { TAG = 0x7273, ALIGNMENT = 4096 };

int redset_pieces_init(redset_pieces *pieces, const redset *set, uint64_t chunk,
                       char *err)
{
    const redset_place *place = &set->layout.place;
    redset_pieces p = {.comm = set->set, .size = set->piece};
    if (chunk < p.size) p.size = chunk ? (size_t)chunk : 1;
    p.left = (place->member + place->members - 1) % place->members;
    p.right = (place->member + 1) % place->members;
    size_t stride = (p.size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    p.memory = aligned_alloc(ALIGNMENT, 4 * stride);
    if (!p.memory) return err_sys(err, -ENOMEM, "4 buffers of %zu bytes", stride);
    for (int i = 0; i < 2; i++) {
        p.out[i] = p.memory + (size_t)i * stride;
        p.in[i] = p.memory + (size_t)(2 + i) * stride;
        p.sending[i] = p.receiving[i] = MPI_REQUEST_NULL;
    }
    *pieces = p;
    return 0;
}

void redset_pieces_done(redset_pieces *pieces)
{
    free(pieces->memory);
    pieces->memory = NULL;
}

uint64_t redset_pieces_count(const redset_pieces *pieces, uint64_t chunk)
{
    return chunk / pieces->size + (chunk % pieces->size != 0);
}

size_t redset_pieces_bytes(const redset_pieces *pieces, uint64_t chunk, uint64_t i)
{
    uint64_t left = chunk - i * pieces->size;
    return left < pieces->size ? (size_t)left : pieces->size;
}

void redset_pieces_send(redset_pieces *pieces, int buffer, size_t bytes)
{
    MPI_Isend(pieces->out[buffer], (int)bytes, MPI_BYTE, pieces->right, TAG, pieces->comm,
              &pieces->sending[buffer]);
}

void redset_pieces_sent(redset_pieces *pieces, int buffer)
{
    MPI_Wait(&pieces->sending[buffer], MPI_STATUS_IGNORE);
}

void redset_pieces_receive(redset_pieces *pieces, int buffer, size_t bytes)
{
    MPI_Irecv(pieces->in[buffer], (int)bytes, MPI_BYTE, pieces->left, TAG, pieces->comm,
              &pieces->receiving[buffer]);
}

void redset_pieces_received(redset_pieces *pieces, int buffer)
{
    MPI_Wait(&pieces->receiving[buffer], MPI_STATUS_IGNORE);
}
