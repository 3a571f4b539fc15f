/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of many ranks in files, from one tree and back; see kvtree.h. */
#include "src/kvtree_gather_private.h"

#include "common/folder.h"
#include "common/io.h"
#include "common/number.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Opens the directory of path. */
static int gather_tree_open(const char *path, kvtree_gather_place *place)
{
    return path ? folder_of(AT_FDCWD, path, 0, &place->dir, &place->name, NULL) : -EINVAL;
}

/* ---- writing ---- */

/* After sorting by rank, a key in another spelling ("01") is not at its own position. */
static int gather_tree_check(const kvtree *data, int ranks)
{
    char key[NUMBER_TEXT_SIZE];
    const kvtree_elem *e = kvtree_elem_first(data);
    if (ranks < 1 || kvtree_size(data) != ranks) return -EINVAL;
    for (int rank = 0; rank < ranks; rank++, e = kvtree_elem_next(e))
        if (strcmp(kvtree_elem_key(e), number_text_int64(key, rank)) != 0) return -EINVAL;
    return 0;
}

/* Passes on the trees in turn. */
static int gather_tree_give(void *arg, int rank, kvtree *tree, kvtree_error *err)
{
    const kvtree_elem **next = arg;
    const kvtree *value = kvtree_elem_hash(*next);
    (void)rank;
    (void)err;
    *next = kvtree_elem_next(*next);
    return kvtree_merge(tree, value);
}

int kvtree_write_to_gather(const char *path, kvtree *data, int ranks)
{
    kvtree_gather_place to = {.dir = -1};
    int rc = kvtree_sort_int(data, KVTREE_SORT_ASCENDING);
    if (!rc) rc = gather_tree_check(data, ranks);
    if (!rc) rc = gather_tree_open(path, &to);
    if (rc) return rc;
    const kvtree_elem *next = kvtree_elem_first(data);
    rc = kvtree_gather_write_all(&to, ranks, gather_tree_give, &next, NULL);
    io_close(&to.dir);
    return rc;
}

/* ---- reading ---- */

static int gather_tree_take(void *arg, int rank, kvtree *tree, kvtree_error *err)
{
    char key[NUMBER_TEXT_SIZE];
    kvtree *all = arg, *value = kvtree_set(all, number_text_int64(key, rank), NULL);
    (void)err;
    if (!value) return -ENOMEM;
    kvtree_replace(value, tree);
    return 0;
}

int kvtree_read_scatter_single(const char *path, kvtree *data)
{
    kvtree_gather_place from = {.dir = -1};
    if (!data) return -EINVAL;
    int rc = gather_tree_open(path, &from);
    if (rc) return rc;
    kvtree *all = kvtree_new();
    rc = all ? kvtree_gather_read_all(&from, NULL, gather_tree_take, all, NULL) : -ENOMEM;
    io_close(&from.dir);
    if (!rc) rc = kvtree_sort_int(all, KVTREE_SORT_ASCENDING);
    if (!rc) rc = kvtree_merge(data, all);
    kvtree_delete(&all);
    return rc;
}
