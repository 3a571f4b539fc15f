/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_PRIVATE_H
#define KVTREE_PRIVATE_H

/* How a tree lies in memory, for the sources of libkvtree.
 *
 * One allocation per element: it holds its key and, in `own`, its value. Only a value
 * that came in through kvtree_set lies elsewhere, because callers keep the address they
 * gave. The owner and tree pointers lead from any value back up, so that no walk needs a
 * stack or recursion, however deep the tree is. */

#include <kvtree/kvtree.h>
#include <stdint.h>

/* Up to this many elements a tree is searched from its first element to its last; beyond,
 * it has an index. */
#define KVTREE_NARROW 8

struct kvtree_index;

struct kvtree {
    kvtree_elem *first;         /* first->prev is the last element, whose next is NULL */
    struct kvtree_index *index; /* NULL while the tree is narrow */
    kvtree_elem *owner;         /* the element whose value this is; NULL: the caller's */
    unsigned count;
    unsigned pending : 31; /* while unpacking: elements that are still to come */
    unsigned inside : 1;   /* this is the `own` of an element, and freed with it */
};

struct kvtree_elem {
    kvtree_elem *next, *prev;
    kvtree *tree;  /* the tree that holds this element; NULL once it was extracted */
    kvtree *value; /* &own, or a tree that came from the caller */
    kvtree own;
    char key[];
};

/* ---- kvtree_tree.c ---- */

/* The element of key, appended if missing; NULL without memory. */
kvtree_elem *kvtree_elem_ensure(kvtree *tree, const char *key);

/* Appends an element whose key is known to be missing. NULL without memory. */
kvtree_elem *kvtree_elem_append(kvtree *tree, const char *key);

/* The element after elem in preorder below root (NULL: the first one), NULL after the
 * last. *depth, where given, starts at 0 and follows the level. */
kvtree_elem *kvtree_walk(const kvtree *root, const kvtree_elem *elem, size_t *depth);

/* ---- kvtree_index.c: finding an element of a wide tree ---- */

kvtree_elem *kvtree_index_find(const struct kvtree_index *index, const char *key);

/* Enters elem, which its tree does not hold yet; makes or widens the index. */
int kvtree_index_add(kvtree *tree, kvtree_elem *elem);

void kvtree_index_remove(struct kvtree_index *index, const kvtree_elem *elem);

/* ---- kvtree_kv.c ---- */

/* Sign, ten digits, NUL. */
#define KVTREE_INT_SIZE 12

const char *kvtree_int_text(char text[KVTREE_INT_SIZE], int value);

/* ---- kvtree_format.c ---- */

/* Longest "%f": a sign, 309 digits, a point, six digits, NUL. */
#define KVTREE_DOUBLE_SIZE 320

/* "%f" and its inverse, with a decimal point whatever the locale of the program is. */
void kvtree_double_text(char text[KVTREE_DOUBLE_SIZE], double value);
int kvtree_text_double(const char *text, double *value);

/* ---- big-endian numbers ---- */

static inline char *kvtree_put32(char *p, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (char)(v >> shift & 0xff);
    return p;
}

static inline uint32_t kvtree_get32(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

#endif
