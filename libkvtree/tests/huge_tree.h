/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HUGE_TREE_H
#define HUGE_TREE_H

/* A tree of any packed size, made of a few very long keys, so that it takes hardly more
 * memory than its packed bytes, and of small elements before, between and after them.
 * Every byte is known, so a copy is checked without the original. */

#include <kvtree/kvtree.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One key of half the size, so that 4 GiB of tree need a key beyond 2 GiB. */
#define HUGE_LONG 5
#define HUGE_SMALL 1000

static inline size_t huge_key_size(size_t bytes, int which)
{
    return (which == 0 ? bytes / 2 : bytes / 8) + 1;
}

/* All keys consist of this block, each started at another offset. Its period is a prime
 * number of bytes, so that data displaced by a power of two is detected. */
#define HUGE_PERIOD 251
#define HUGE_BLOCK (HUGE_PERIOD * 4096)

static inline const char *huge_block(int which)
{
    static char block[HUGE_BLOCK + HUGE_PERIOD];
    for (size_t at = 0; !block[sizeof block - 1] && at < sizeof block; at++)
        block[at] = (char)(1 + at % HUGE_PERIOD);
    return block + 31 * which % HUGE_PERIOD;
}

static inline size_t huge_part(size_t size, size_t at)
{
    return size - at < HUGE_BLOCK ? size - at : HUGE_BLOCK;
}

/* Returns the bytes of the packed tree. */
static inline size_t huge_tree_size(size_t bytes)
{
    size_t size = 4 + (6 + 4) + (5 + 4) + (4 + 4); /* "SMALL", "LONG", "END" */
    for (int i = 0; i < HUGE_SMALL; i++)
        size += (size_t)snprintf(NULL, 0, "%d", i) + 1 + 4;
    for (int i = 0; i < HUGE_LONG; i++)
        size += huge_key_size(bytes, i) + 1 + 4 + (2 + 4); /* "v" below it */
    return size;
}

static inline int huge_tree_add(kvtree *tree, size_t bytes, int which)
{
    size_t size = huge_key_size(bytes, which);
    char *key = malloc(size + 1);
    if (!key) return 0;
    for (size_t at = 0; at < size; at += HUGE_BLOCK)
        memcpy(key + at, huge_block(which), huge_part(size, at));
    key[size] = 0;
    kvtree *value = kvtree_set(tree, key, NULL);
    free(key);
    return kvtree_set(value, "v", NULL) != NULL;
}

/* NULL without memory. */
static inline kvtree *huge_tree(size_t bytes)
{
    kvtree *tree = kvtree_new();
    int good = 1;
    for (int i = 0; i < HUGE_SMALL && good; i++)
        good = kvtree_set_kv_int(tree, "SMALL", i) != NULL;
    kvtree *keys = kvtree_set(tree, "LONG", NULL);
    for (int i = 0; i < HUGE_LONG && good; i++)
        good = huge_tree_add(keys, bytes, i);
    if (!good || !kvtree_set(tree, "END", NULL)) kvtree_delete(&tree);
    return tree;
}

static inline int is_huge_key(const char *key, size_t bytes, int which)
{
    size_t size = huge_key_size(bytes, which);
    if (!key || strlen(key) != size) return 0;
    for (size_t at = 0; at < size; at += HUGE_BLOCK)
        if (memcmp(key + at, huge_block(which), huge_part(size, at)) != 0) return 0;
    return 1;
}

/* Returns 1 if tree equals huge_tree(bytes). */
static inline int is_huge_tree(const kvtree *tree, size_t bytes)
{
    char key[16];
    const kvtree *small = kvtree_get(tree, "SMALL"), *keys = kvtree_get(tree, "LONG");
    if (kvtree_size(tree) != 3 || kvtree_size(small) != HUGE_SMALL) return 0;
    for (int i = 0; i < HUGE_SMALL; i++) {
        snprintf(key, sizeof key, "%d", i);
        if (!kvtree_get(small, key)) return 0;
    }
    if (kvtree_size(keys) != HUGE_LONG || !kvtree_get(tree, "END")) return 0;
    kvtree_elem *e = kvtree_elem_first(keys);
    for (int i = 0; i < HUGE_LONG; i++, e = kvtree_elem_next(e))
        if (!is_huge_key(kvtree_elem_key(e), bytes, i) ||
            !kvtree_get(kvtree_elem_hash(e), "v"))
            return 0;
    return kvtree_pack_size(tree) == huge_tree_size(bytes);
}

#endif
