/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_SET_H
#define KVTREE_SET_H

/* A set of files of gathered trees as KVTree writes it (docs/formats/gather.md): names
 * are suffixes, and only the RANKS of the root counts. Rank r has the tree VALUE / r. */

#include <kvtree/kvtree_util.h>
#include <stdbool.h>
#include <stdio.h>

static inline bool kvtree_set_put(const char *root, const char *suffix, int level,
                                  int ranks, kvtree *tree)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", root, suffix);
    kvtree_util_set_int(tree, "LEVEL", level);
    kvtree_util_set_int(tree, "RANKS", ranks);
    bool good = kvtree_write_file(path, tree) == 0;
    kvtree_delete(&tree);
    return good;
}

static inline bool kvtree_set_put_ranks(const char *root, int first, int count, int ranks)
{
    char suffix[32];
    kvtree *tree = kvtree_new();
    snprintf(suffix, sizeof suffix, ".0.%d", first);
    for (int rank = first; rank < first + count; rank++)
        kvtree_util_set_int(kvtree_set_kv_int(tree, "RANK", rank), "VALUE", rank);
    return kvtree_set_put(root, suffix, 0, ranks, tree);
}

static inline void kvtree_set_point(kvtree *tree, int level, int rank)
{
    char suffix[32];
    kvtree *pointer = kvtree_set_kv_int(tree, "RANK", rank);
    snprintf(suffix, sizeof suffix, ".%d.%d", level, rank);
    kvtree_util_set_str(pointer, "FILE", suffix);
    kvtree_util_set_bytecount(pointer, "OFFSET", 0);
}

/* One file for each rank below a root of level 1, as kvtree_write_to_gather does. */
static inline bool kvtree_set_flat(const char *root, int ranks)
{
    bool good = true;
    kvtree *tree = kvtree_new();
    for (int rank = 0; rank < ranks; rank++) {
        good = kvtree_set_put_ranks(root, rank, 1, ranks) && good;
        kvtree_set_point(tree, 0, rank);
    }
    return kvtree_set_put(root, "", 1, ranks, tree) && good;
}

/* Pairs of ranks in files, and pairs of these files below a file of level 1 each, as
 * kvtree_write_gather does. The lower files have the RANKS of the last file of their
 * level. */
static inline bool kvtree_set_deep(const char *root, int ranks)
{
    bool good = true;
    kvtree *top = kvtree_new();
    for (int first = 0; first < ranks; first += 4) {
        char suffix[32];
        kvtree *tree = kvtree_new();
        for (int i = first; i < first + 4 && i < ranks; i += 2) {
            good = kvtree_set_put_ranks(root, i, i + 1 < ranks ? 2 : 1, 1) && good;
            kvtree_set_point(tree, 0, i);
        }
        snprintf(suffix, sizeof suffix, ".1.%d", first);
        good = kvtree_set_put(root, suffix, 1, 1, tree) && good;
        kvtree_set_point(top, 1, first);
    }
    return kvtree_set_put(root, "", 2, ranks, top) && good;
}

#endif
