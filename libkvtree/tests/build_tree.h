/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BUILD_TREE_H
#define BUILD_TREE_H

/* Trees that several tests of libkvtree use, and a comparison. */

#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The example of SCR Developer Guide 1.2, section 2.3.1. */
static inline kvtree *guide_tree(void)
{
    static const struct {
        int rank, files;
        const char *name;
        unsigned long size;
    } files[] = {
        {0, 2, "foo_0.txt", 1024}, {0, 2, "bar_0.txt", 2048}, {1, 1, "foo_1.txt", 3072}};
    kvtree *tree = kvtree_new();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        kvtree *rank = kvtree_set_kv_int(tree, "RANK", files[i].rank);
        if (!kvtree_get(rank, "FILES"))
            kvtree_util_set_int(rank, "FILES", files[i].files);
        kvtree *file = kvtree_set_kv(rank, "FILE", files[i].name);
        kvtree_util_set_bytecount(file, "SIZE", files[i].size);
        kvtree_util_set_int(file, "COMPLETE", 1);
    }
    return tree;
}

/* A smaller example of that kind. */
static inline kvtree *sample_tree(void)
{
    kvtree *tree = kvtree_new();
    for (int rank = 0; rank < 2; rank++) {
        char name[32];
        snprintf(name, sizeof name, "foo_%d.txt", rank);
        kvtree *files = kvtree_set_kv_int(tree, "RANK", rank);
        kvtree_util_set_int(files, "FILES", 1);
        kvtree *file = kvtree_set_kv(files, "FILE", name);
        kvtree_util_set_bytecount(file, "SIZE", 1024UL * (unsigned long)(rank + 1));
        kvtree_util_set_int(file, "COMPLETE", 1);
    }
    return tree;
}

/* A chain of the given depth: each tree holds one element. */
static inline kvtree *deep_tree(int depth)
{
    kvtree *root = kvtree_new(), *tree = root;
    for (int i = 0; i < depth && tree; i++)
        tree = kvtree_set(tree, "x", NULL);
    return root;
}

static inline kvtree *wide_tree(int width)
{
    kvtree *tree = kvtree_new();
    for (int i = 0; i < width; i++) {
        char key[32];
        snprintf(key, sizeof key, "key %d", i);
        kvtree_set(tree, key, NULL);
    }
    return tree;
}

/* Returns a tree of rank that no other rank has; it packs to about size bytes. */
static inline kvtree *gather_tree(int rank, int size)
{
    kvtree *tree = kvtree_new();
    for (int i = 0, used = 0; used < size; i++) {
        char key[32];
        used += snprintf(key, sizeof key, "entry %d of rank %d", i, rank) + 5 + 12;
        kvtree_util_set_int(tree, key, 1000000 + i);
    }
    return tree;
}

/* Returns 1 if both have the same keys in the same order at all levels, that is, if they
 * pack to the same bytes. */
static inline int same_tree(const kvtree *a, const kvtree *b)
{
    size_t size = kvtree_pack_size(a);
    if (size != kvtree_pack_size(b)) return 0;
    char *x = malloc(size), *y = malloc(size);
    int same = x && y && kvtree_pack(x, a) == size && kvtree_pack(y, b) == size &&
               memcmp(x, y, size) == 0;
    free(x);
    free(y);
    return same;
}

#endif
