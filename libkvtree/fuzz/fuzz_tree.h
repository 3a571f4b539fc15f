/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_TREE_H
#define FUZZ_TREE_H

/* Code shared by the fuzz targets of libkvtree: a reader of packed trees that was written
 * from docs/formats/kvtree.md and shares no code with the library, and comparisons. */

#include "fuzz.h"

#include <errno.h>
#include <kvtree/kvtree.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Unpacking may allocate this number of bytes in total per byte of input, plus a
 * constant. The worst case is trees of one-letter keys: 6 bytes packed, an element of
 * about 70 bytes, and up to three slots of 16 bytes in the index, which had half the size
 * before. */
#define UNPACK_BYTES_PER_BYTE 32
#define UNPACK_BYTES_MORE 4096

/* ---- the reader ---- */

struct reference_elem {
    const char *key;
    size_t before; /* the element before it in its tree, counted from 1; 0: none */
};

struct reference_tree {
    size_t pending; /* elements not read yet */
    size_t last;    /* the last element read, counted as above */
};

struct reference {
    const unsigned char *bytes;
    size_t size, at, owed;
    struct reference_elem *elems;
    struct reference_tree *trees; /* the incomplete trees */
    size_t elem_count, depth;
};

static inline int reference_count(struct reference *r)
{
    const unsigned char *p = r->bytes + r->at;
    if (r->size - r->at < 4) return 0;
    size_t count = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    size_t left = r->size - r->at - 4;
    if (count > INT_MAX || (count && 5 * (r->owed + count) > left)) return 0;
    r->owed += count;
    r->at += 4;
    r->trees[r->depth++] = (struct reference_tree){count, 0};
    return 1;
}

static inline int reference_elem(struct reference *r)
{
    struct reference_tree *tree = &r->trees[r->depth - 1];
    const char *key = (const char *)r->bytes + r->at;
    size_t len = strnlen(key, r->size - r->at);
    if (len == r->size - r->at) return 0;
    for (size_t e = tree->last; e; e = r->elems[e - 1].before)
        if (strcmp(r->elems[e - 1].key, key) == 0) return 0;
    r->elems[r->elem_count++] = (struct reference_elem){key, tree->last};
    tree->last = r->elem_count;
    tree->pending--;
    r->owed--;
    r->at += len + 1;
    return reference_count(r);
}

/* Returns the bytes of the packed tree at the start of bytes, or -1 if there is none;
 * then *noticed is the byte where this shows. */
static inline ssize_t reference_unpack(const void *bytes, size_t size, size_t *noticed)
{
    size_t most = size / 5 + 1;
    struct reference r = {.bytes = bytes, .size = size};
    r.elems = malloc(most * sizeof *r.elems);
    r.trees = malloc((most + 1) * sizeof *r.trees);
    REQUIRE(r.elems && r.trees);
    int good = reference_count(&r);
    while (good && r.depth) {
        if (r.trees[r.depth - 1].pending)
            good = reference_elem(&r);
        else
            r.depth--;
    }
    free(r.elems);
    free(r.trees);
    *noticed = r.at;
    return good ? (ssize_t)r.at : -1;
}

/* ---- trees ---- */

/* Returns the packed bytes of tree, which the caller frees. */
static inline char *packed(const kvtree *tree, size_t *size)
{
    *size = kvtree_pack_size(tree);
    char *bytes = malloc(*size);
    REQUIRE(bytes != NULL);
    REQUIRE(kvtree_pack(bytes, tree) == *size);
    return bytes;
}

static inline int packs_to(const kvtree *tree, const char *bytes, size_t size)
{
    size_t n;
    char *own = packed(tree, &n);
    int same = n == size && memcmp(own, bytes, n) == 0;
    free(own);
    return same;
}

/* Unpacks a tree that is known to be valid. */
static inline kvtree *unpacked(const char *bytes, size_t size)
{
    kvtree *tree = kvtree_new();
    REQUIRE(tree && kvtree_unpack_n(bytes, size, tree) == (ssize_t)size);
    return tree;
}

/* Every refusal of bytes has a code, and a text of the right length. */
static inline void require_refusal(int code, const char *err)
{
    REQUIRE(code == -EBADMSG);
    REQUIRE(err[0] != 0 && strnlen(err, sizeof(kvtree_error)) < sizeof(kvtree_error));
}

#endif
