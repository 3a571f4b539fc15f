/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of many ranks are written by one process, to the same files as those of many
 * processes (kvtree_gather_mpi.c).
 *
 * Level by level, items are laid end to end, and those that begin within the same width
 * go into one file: the trees, then pointers to the files of level 0, and so on, until
 * one file of a level above 0 has all ranks below it: the root. Of a level only the files
 * are remembered, from which its pointers follow. */
#include "src/kvtree_gather_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A file that was written: by which rank, were there many, and the ranks below it. */
typedef struct written {
    int rank, ranks;
} written;

typedef struct writing {
    const kvtree_gather_place *to;
    int ranks;
    int level;
    uint64_t width;
    uint64_t laid;      /* bytes of the items so far that share files */
    kvtree *group;      /* items of the file to come; NULL: none */
    uint64_t number;    /* of this group: widths before it */
    int rank;           /* the first one in it */
    int group_ranks;    /* below it */
    written *files;     /* of this level */
    size_t count, room; /* of them */
    char *err;
} writing;

/* ---- files ---- */

static int remember_file(writing *w, int rank, int ranks)
{
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 64;
        written *larger = realloc(w->files, room * sizeof *larger);
        if (!larger) return err_sys(w->err, -ENOMEM, "write %s", w->to->name);
        w->files = larger;
        w->room = room;
    }
    w->files[w->count++] = (written){rank, ranks};
    return 0;
}

/* Writes items, which it takes over. */
static int write_file(writing *w, int rank, int ranks, kvtree *items)
{
    const kvtree_gather_place *to = w->to;
    char lower[BENEATH_NAME_MAX];
    const char *name = w->level > 0 && ranks == w->ranks ? to->name : lower;
    kvtree_gather_file_name(to->name, w->level, rank, lower);
    kvtree *tree = kvtree_gather_file_make(to->top, w->level, ranks, items);
    int is_first = w->level == 0 && w->count == 0;
    int rc =
        tree ? remember_file(w, rank, ranks) : err_sys(w->err, -ENOMEM, "write %s", name);
    /* an earlier root goes before the first file is replaced that it names */
    if (rc == 0 && is_first) rc = kvtree_gather_remove_root(to->dir, to->name, w->err);
    if (rc == 0) rc = kvtree_file_write(to->dir, name, tree, w->err);
    kvtree_delete(&tree);
    return rc;
}

static int write_group(writing *w)
{
    kvtree *items = w->group;
    w->group = NULL;
    return items ? write_file(w, w->rank, w->group_ranks, items) : 0;
}

/* ---- items ---- */

/* Puts an item, which it takes over, into a tree of items. */
static int put_item(writing *w, kvtree *items, int rank, kvtree *item)
{
    char key[16];
    snprintf(key, sizeof key, "%d", rank);
    if (kvtree_set(items, key, item)) return 0;
    kvtree_delete(&item);
    return err_sys(w->err, -ENOMEM, "write %s", w->to->name);
}

/* One that is larger than a width goes over the heads of its neighbours. */
static int write_alone(writing *w, int rank, int ranks, kvtree *item)
{
    kvtree *items = kvtree_new();
    int rc = put_item(w, items, rank, item);
    if (rc == 0) return write_file(w, rank, ranks, items);
    kvtree_delete(&items);
    return rc;
}

/* Takes an item over, with so many ranks below it. */
static int add_item(writing *w, int rank, int ranks, kvtree *item)
{
    uint64_t bytes = kvtree_gather_item_size(rank, item);
    if (bytes > w->width) return write_alone(w, rank, ranks, item);
    uint64_t number = w->laid / w->width;
    int rc = number != w->number ? write_group(w) : 0;
    if (rc) {
        kvtree_delete(&item);
        return rc;
    }
    if (!w->group) {
        w->group = kvtree_new();
        w->number = number;
        w->rank = rank;
        w->group_ranks = 0;
    }
    w->laid += bytes;
    w->group_ranks += ranks;
    return put_item(w, w->group, rank, item);
}

/* ---- levels ---- */

static void begin_level(writing *w, int level)
{
    w->level = level;
    w->width = kvtree_gather_width(w->to->name, w->to->top, w->to->limit, level);
    w->laid = 0;
    w->files = NULL;
    w->count = w->room = 0;
}

static int add_tree(writing *w, int rank, kvtree_gather_give *give, void *arg)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? give(arg, rank, tree, w->err)
                  : err_sys(w->err, -ENOMEM, "write %s", w->to->name);
    if (rc == 0) {
        uint64_t bytes = kvtree_gather_item_size(rank, tree);
        rc = kvtree_gather_check_size(w->to->top, bytes, w->err);
        if (rc) err_wrap(w->err, rc, "rank %d", rank);
    }
    if (rc == 0) return add_item(w, rank, 1, tree);
    kvtree_delete(&tree);
    return rc;
}

static int write_lowest(writing *w, kvtree_gather_give *give, void *arg)
{
    int rc = 0;
    begin_level(w, 0);
    for (int rank = 0; rank < w->ranks && rc == 0; rank++)
        rc = add_tree(w, rank, give, arg);
    return rc ? rc : write_group(w);
}

static int compare_ranks(const void *a, const void *b)
{
    const written *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Writes the pointers to these files. */
static int write_pointers(writing *w, int level, const written *below, size_t count)
{
    int rc = 0;
    begin_level(w, level);
    for (size_t i = 0; i < count && rc == 0; i++) {
        char name[BENEATH_NAME_MAX];
        kvtree_gather_file_name(w->to->name, level - 1, below[i].rank, name);
        kvtree *pointer = kvtree_gather_pointer(name);
        rc = pointer ? add_item(w, below[i].rank, below[i].ranks, pointer)
                     : err_sys(w->err, -ENOMEM, "write %s", w->to->name);
    }
    return rc ? rc : write_group(w);
}

static int write_levels(writing *w, kvtree_gather_give *give, void *arg)
{
    int rc = write_lowest(w, give, arg), level = 1;
    do {
        written *below = w->files;
        size_t count = w->count;
        if (rc) break;
        qsort(below, count, sizeof *below, compare_ranks); /* large items came first */
        rc = write_pointers(w, level++, below, count);
        free(below);
    } while (w->count > 1);
    return rc;
}

int kvtree_gather_write_all(const kvtree_gather_place *to, int ranks,
                            kvtree_gather_give *give, void *arg, char *err)
{
    writing w = {.to = to, .ranks = ranks, .err = err};
    if (!to || !give) return err_set(err, -EINVAL, "write: nothing, or nowhere");
    if (ranks < 1) return err_set(err, -EINVAL, "write the trees of %d ranks", ranks);
    int rc = kvtree_gather_check_root(to->name, err);
    if (rc == 0) rc = write_levels(&w, give, arg);
    kvtree_delete(&w.group);
    free(w.files);
    return rc;
}
