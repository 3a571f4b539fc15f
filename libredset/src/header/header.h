/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_HEADER_HEADER_H
#define REDSET_HEADER_HEADER_H

/* The header of a redundancy file (docs/formats/redset.md; SCR Developer Guide 1.2,
 * section 2.11.2): built, checked, read. */

#include "src/codec/flow.h"
#include "src/header/layout.h"
#include "src/header/list.h"

typedef struct redset_header {
    kvtree *tree; /* the whole header; owns all strings in the lists */
    redset_layout layout;
    redset_shape shape;
    uint64_t chunk;    /* bytes of a chunk; 0 where data is not split (SINGLE, PARTNER) */
    uint64_t encode;   /* identifies the encode: sum over all processes of the checksums
                          of their lists, or of random numbers */
    uint64_t data;     /* bytes of redundancy data */
    uint32_t crc;      /* their CRC32, or 0 without checksums */
    redset_list *list; /* files of this process, and of shape.failures left neighbors, the
                          nearest one first */
    uint64_t size;     /* bytes of the header in its file; 0: not from a file */
} redset_header;

/* Returns the list of the left neighbor at a distance, 0 for the process itself; NULL:
 * none. */
kvtree *redset_header_list(const kvtree *header, int distance);

/* Builds a header, with keys in a fixed order. lists has failures + 1 trees, in the order
 * of redset_header.list. They and about are copied. NULL without memory. */
kvtree *redset_header_build(const redset_layout *layout, uint64_t chunk, uint64_t encode,
                            const kvtree *about, kvtree *const lists[]);

/* Stores the number of an encode in a tree, with a fixed number of digits; reads it from
 * a tree, -EBADMSG. */
int redset_encode_to_tree(uint64_t encode, kvtree *tree);
int redset_encode_from_tree(const kvtree *tree, uint64_t *encode, redset_error *err);

/* Takes ownership of tree, also on failure, and checks everything in it; -EBADMSG. */
int redset_header_parse(kvtree *tree, redset_header **header, redset_error *err);

/* Reads and checks the header of the redundancy file name below dir, and checks the name
 * and length of the file. */
int redset_header_read(int dir, const char *name, redset_header **header,
                       redset_error *err);

/* Returns the bytes of redundancy stream number part. */
uint64_t redset_header_part(const redset_header *header, int part);

/* Sets length[i] to the bytes that flow i moves of each stream, for all flows that
 * involve the member of header; other elements are unchanged. */
void redset_header_lengths(const redset_header *header, uint64_t length[]);

redset_header *redset_header_free(redset_header *header);

/* A copy of a header in its public form; NULL without memory. */
redset_manifest *redset_manifest_new(const redset_header *header);

#endif
