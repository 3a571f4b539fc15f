/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_PRIVATE_MPI_H
#define REDSET_PRIVATE_MPI_H

/* What the sources of the MPI part share. */

#include "src/redset_private.h"
#include <mpi.h>
#include <redset/redset_mpi.h>

struct redset {
    MPI_Comm comm; /* duplicate of the caller's */
    MPI_Comm set;  /* the members of this process's set, in their order */
    int rank;      /* in comm */
    redset_layout layout;
    size_t piece;
};

/* ---- redset_mpi.c ---- */

/* Copies text to err, if there is one and rc is not 0; returns rc. */
int redset_report(char *err, const char *text, int rc);

/* A set over a duplicate of comm, still without members; collective. */
int redset_start(MPI_Comm comm, redset **set, char *text);

/* ---- pieces_mpi.c: buffers on their way ---- */

/* Two buffers for each direction, so that one travels while the other is filled. All data
 * goes from the left neighbour to the right one. */
typedef struct redset_pieces {
    MPI_Comm comm;
    int left, right;
    size_t size; /* of each buffer */
    unsigned char *memory;
    unsigned char *out[2], *in[2];
    MPI_Request sending[2], receiving[2];
} redset_pieces;

/* Buffers for data that comes in pieces of at most piece out of chunk bytes. */
int redset_pieces_init(redset_pieces *pieces, const redset *set, uint64_t chunk,
                       char *err);
void redset_pieces_done(redset_pieces *pieces);

/* Number of pieces in a chunk, and the bytes of number i of them. */
uint64_t redset_pieces_count(const redset_pieces *pieces, uint64_t chunk);
size_t redset_pieces_bytes(const redset_pieces *pieces, uint64_t chunk, uint64_t i);

/* Start and end of one transfer with buffer 0 or 1. */
void redset_pieces_send(redset_pieces *pieces, int buffer, size_t bytes);
void redset_pieces_sent(redset_pieces *pieces, int buffer);
void redset_pieces_receive(redset_pieces *pieces, int buffer, size_t bytes);
void redset_pieces_received(redset_pieces *pieces, int buffer);

/* ---- encode_xor_mpi.c, rebuild_xor_mpi.c ---- */

/* Reduce-scatter over the set: reads all of logical, appends this member's chunk of
 * parity to store. Collective over the set. A process that fails goes on with zeros, and
 * returns its error at the end; the others notice nothing. */
int redset_encode_xor(const redset *set, redset_pieces *pieces, uint64_t chunk,
                      redset_logical *logical, redset_store *store, char *err);

/* One end of the chain that rebuilds a member. */
typedef struct redset_chain {
    int root;                /* the lost member */
    uint64_t chunk;          /* bytes */
    redset_logical *logical; /* the files: read by survivors, written by the root */
    int parity;              /* survivors: descriptor of the redundancy file ... */
    uint64_t parity_offset;  /* ... where its data starts ... */
    uint32_t parity_crc;     /* ... and its checksum, as read on the way */
    redset_store *store;     /* root: the new redundancy file */
} redset_chain;

/* Reduction along the ring to the lost member. Collective over the set; errors as in
 * redset_encode_xor. */
int redset_rebuild_xor(const redset *set, redset_pieces *pieces, redset_chain *chain,
                       char *err);

#endif
