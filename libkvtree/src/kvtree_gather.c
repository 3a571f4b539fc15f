/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the trees of many ranks by one process, to the same files as many processes
 * write (kvtree_gather_mpi.c).
 *
 * Level by level, items are laid end to end, and items that begin within the same width
 * go into one file: first the trees, then pointers to the files of level 0, and so on,
 * until one file of a level above 0 has all ranks below it: the root. Only the list of
 * files of a level stays in memory. */
#include "src/kvtree_gather_private.h"

#include "common/errtext.h"
#include "common/number.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct gather_writer {
    const kvtree_gather_place *to;
    int ranks;
    int level;
    uint64_t width;
    uint64_t laid;             /* bytes of the items so far that share files */
    kvtree_gather_group group; /* items of the next file */
    uint64_t number;           /* number of this group: widths before it */
    int rank;                  /* first rank of this group */
    kvtree *files;             /* files of this level: rank -> ranks at and below it */
    kvtree_error *err;
} gather_writer;

static int gather_no_memory(const gather_writer *w)
{
    return err_sys(w->err, -ENOMEM, "write %s", w->to->name);
}

/* Writes the file of rank. An earlier root is removed before the first file that it names
 * is replaced. */
static int gather_write_file(gather_writer *w, kvtree_gather_group *group, int rank)
{
    char key[NUMBER_TEXT_SIZE];
    int ranks = group->ranks, rc = 0;
    bool is_first = w->level == 0 && kvtree_size(w->files) == 0;
    if (is_first) rc = beneath_unlink_durable(w->to->dir, w->to->name, w->err);
    if (rc) return rc;
    if (!kvtree_set_kv_int(w->files, number_text_int64(key, rank), ranks))
        return gather_no_memory(w);
    return kvtree_gather_group_write(group, w->to, w->level, rank,
                                     w->level > 0 && ranks == w->ranks, w->err);
}

static int gather_write_group(gather_writer *w)
{
    return w->group.count ? gather_write_file(w, &w->group, w->rank) : 0;
}

/* An item that is larger than a width gets its own file, before its neighbors. */
static int gather_write_alone(gather_writer *w, int rank, kvtree_gather_item item)
{
    kvtree_gather_group alone = {0};
    int rc = kvtree_gather_group_add(&alone, rank, item);
    rc = rc ? gather_no_memory(w) : gather_write_file(w, &alone, rank);
    kvtree_gather_group_free(&alone);
    return rc;
}

/* Takes over the item, which needs room bytes. */
static int gather_add(gather_writer *w, int rank, kvtree_gather_item item, uint64_t room)
{
    if (room > w->width) return gather_write_alone(w, rank, item);
    uint64_t number = w->laid / w->width;
    int rc = number != w->number ? gather_write_group(w) : 0;
    if (rc) {
        free(item.bytes);
        return rc;
    }
    if (!w->group.count) {
        w->number = number;
        w->rank = rank;
    }
    w->laid += room;
    return kvtree_gather_group_add(&w->group, rank, item) ? gather_no_memory(w) : 0;
}

static int gather_add_tree(gather_writer *w, int rank, kvtree_gather_give *give,
                           void *arg)
{
    kvtree_gather_item item;
    uint64_t room;
    kvtree *tree = kvtree_new();
    int rc = tree ? give(arg, rank, tree, w->err) : gather_no_memory(w);
    if (!rc) {
        rc = kvtree_gather_pack(w->to, rank, 1, tree, &item, &room, w->err);
        if (rc && rc != -ENOMEM) err_wrap(w->err, rc, "rank %d", rank);
    }
    kvtree_delete(&tree);
    return rc ? rc : gather_add(w, rank, item, room);
}

static int gather_begin_level(gather_writer *w, int level)
{
    w->level = level;
    w->width = kvtree_gather_width(w->to, level);
    w->laid = w->number = 0;
    w->files = kvtree_new();
    return w->files ? 0 : gather_no_memory(w);
}

static int gather_write_trees(gather_writer *w, kvtree_gather_give *give, void *arg)
{
    int rc = gather_begin_level(w, 0);
    for (int rank = 0; rank < w->ranks && rc == 0; rank++)
        rc = gather_add_tree(w, rank, give, arg);
    return rc ? rc : gather_write_group(w);
}

/* Adds the pointer to a file of the level below. */
static int gather_add_pointer(gather_writer *w, const kvtree_elem *file)
{
    kvtree_gather_item item;
    uint64_t room;
    int rank = kvtree_elem_key_int(file);
    int ranks = kvtree_elem_key_int(kvtree_elem_first(kvtree_elem_hash(file)));
    int rc = kvtree_gather_pack_pointer(w->to, w->level - 1, rank, ranks, &item, &room,
                                        w->err);
    return rc ? rc : gather_add(w, rank, item, room);
}

/* Adds pointers in the order of ranks: files of large items come before those of their
 * neighbors. */
static int gather_write_pointers(gather_writer *w)
{
    kvtree *below = w->files;
    int rc = gather_begin_level(w, w->level + 1);
    if (rc == 0 && kvtree_sort_int(below, KVTREE_SORT_ASCENDING) != 0)
        rc = gather_no_memory(w);
    for (kvtree_elem *e = kvtree_elem_first(below); e && rc == 0; e = kvtree_elem_next(e))
        rc = gather_add_pointer(w, e);
    kvtree_delete(&below);
    return rc ? rc : gather_write_group(w);
}

int kvtree_gather_write_all(const kvtree_gather_place *to, int ranks,
                            kvtree_gather_give *give, void *arg, kvtree_error *err)
{
    gather_writer w = {.to = to, .ranks = ranks, .err = err};
    if (!to || !give) return err_set(err, -EINVAL, "write: nothing, or nowhere");
    if (ranks < 1) return err_set(err, -EINVAL, "write the trees of %d ranks", ranks);
    int rc = kvtree_gather_check_root(to->name, err);
    if (rc == 0) rc = gather_write_trees(&w, give, arg);
    do
        rc = rc ? rc : gather_write_pointers(&w);
    while (rc == 0 && kvtree_size(w.files) > 1);
    kvtree_gather_group_free(&w.group);
    kvtree_delete(&w.files);
    return rc;
}

int kvtree_gather_owns(const char *root, const char *name)
{
    if (!root || !name) return 0;
    size_t stem = kvtree_gather_stem(root);
    return strcmp(name, root) == 0 ||
           (strncmp(name, root, stem) == 0 && name[stem] == '.');
}
