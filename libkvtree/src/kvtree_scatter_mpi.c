/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the trees of all ranks. Rank 0 reads the root. From level to level, each item
 * is sent to the rank that its key names, modulo the number of current ranks; that rank
 * reads the file of a pointer or, at the end, keeps the tree.
 *
 * Files may come from anyone. The work is bounded: levels decrease by one from file to
 * file, no key may occur twice in a level (equal keys meet at one reader, which detects
 * them), and the RANKS of each level add up to those of the root. */
#include <kvtree/kvtree_mpi.h>

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "src/kvtree_gather_private.h"
#include "src/kvtree_mpi_private.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

typedef struct scatter_mpi {
    const kvtree_gather *from;
    kvtree_gather_place place; /* the same place, for one file */
    MPI_Comm comm;             /* the private duplicate */
    int rank, size;
    int level;       /* level of the files read last */
    int64_t writers; /* RANKS of the root */
    int64_t sum;     /* ranks in the files of level 0 that this rank read */
    int64_t away;    /* items in these files that are for other ranks */
    kvtree *items;   /* items in these files; later: the items for this rank */
    kvtree_error err;
} scatter_mpi;

/* ---- the items of one level ---- */

/* Moves the item of rank from one tree to another. */
static int scatter_mpi_move(kvtree *items, int rank, kvtree *to)
{
    char key[16];
    snprintf(key, sizeof key, "%d", rank);
    kvtree *item = kvtree_extract(items, key);
    if (kvtree_set(to, key, item)) return 0;
    kvtree_delete(&item);
    return -ENOMEM;
}

/* Moves the items found in the file name to the items of this rank. */
static int scatter_mpi_take(scatter_mpi *r, kvtree *items, const char *name)
{
    kvtree_elem *e;
    while ((e = kvtree_elem_first(items)) != NULL) {
        int rank = kvtree_elem_key_int(e);
        int rc = kvtree_gather_check_rank(name, rank, r->writers, &r->err);
        if (rc) return rc;
        if (kvtree_get(r->items, kvtree_elem_key(e)))
            return kvtree_gather_listed_twice(name, rank, &r->err);
        rc = scatter_mpi_move(items, rank, r->items);
        if (rc) return err_sys(&r->err, rc, "read %s", name);
        if (rank % r->size != r->rank) r->away++;
    }
    return 0;
}

/* Moves each item into the tree for the rank that reads or gets it, or into keep. */
static int scatter_mpi_address(const scatter_mpi *r, kvtree *items, kvtree *send,
                               kvtree *keep)
{
    int rc = 0;
    for (kvtree_elem *e; !rc && (e = kvtree_elem_first(items)) != NULL;) {
        char target[16];
        int rank = kvtree_elem_key_int(e);
        snprintf(target, sizeof target, "%d", rank % r->size);
        kvtree *bundle = rank % r->size == r->rank ? keep : kvtree_get(send, target);
        if (!bundle) bundle = kvtree_set(send, target, NULL);
        rc = scatter_mpi_move(items, rank, bundle);
    }
    return rc;
}

/* Collective; returns this rank's own result. Sends the items of a level to their readers
 * or owners. */
static int scatter_mpi_route(scatter_mpi *r)
{
    kvtree *found = r->items, *send = kvtree_new(), *received = kvtree_new();
    r->items = kvtree_new();
    r->away = 0;
    int addressed = send && received && r->items
                        ? scatter_mpi_address(r, found, send, r->items)
                        : -ENOMEM;
    kvtree_delete(&found);
    int rc = kvtree_exchange(send, received, r->from->comm);
    kvtree_delete(&send);
    if (rc == 0) rc = addressed;
    if (rc) err_sys(&r->err, rc, "pass on level %d of %s", r->level, r->from->name);
    for (kvtree_elem *e = kvtree_elem_first(received); e && rc == 0;
         e = kvtree_elem_next(e))
        rc = scatter_mpi_take(r, kvtree_elem_hash(e), r->from->name);
    kvtree_delete(&received);
    return rc;
}

/* ---- from the root to the trees ---- */

/* Reads a file at r->level, or the root: -1. */
static int scatter_mpi_read_file(scatter_mpi *r, const char *name, int level)
{
    kvtree_gather_part part;
    int rc = 0;
    if (r->place.dir < 0 && r->from->open)
        rc = r->from->open(r->from->arg, &r->place.dir, &r->err);
    if (rc == 0) rc = kvtree_gather_file_read(&r->place, name, level, &part, &r->err);
    if (rc) return rc;
    if (level < 0) {
        r->level = part.level;
        r->writers = part.ranks;
    }
    if (r->level == 0) r->sum += part.ranks;
    rc = scatter_mpi_take(r, part.items, name);
    kvtree_delete(&part.items);
    return rc;
}

/* Reads the files that the items of this rank point to, and replaces these items by those
 * of the files. */
static int scatter_mpi_read_level(scatter_mpi *r)
{
    kvtree *pointers = r->items;
    r->items = kvtree_new();
    r->away = 0;
    int rc = r->items ? 0 : err_sys(&r->err, -ENOMEM, "read %s", r->from->name);
    for (kvtree_elem *e = kvtree_elem_first(pointers); e && rc == 0;
         e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_get_first_val(kvtree_elem_hash(e), "FILE");
        rc = scatter_mpi_read_file(r, name, r->level);
    }
    kvtree_delete(&pointers);
    return rc;
}

static int scatter_mpi_check_sum(scatter_mpi *r, int64_t sum)
{
    if (r->level > 0) return 0;
    return kvtree_gather_check_sum(r->from->name, r->writers, sum, &r->err);
}

/* Rank 0 reads the root, and lower files while this rank must read all of them: a root
 * with one pointer needs no other rank. */
static int scatter_mpi_start(scatter_mpi *r)
{
    int rc = beneath_check_name(r->from->name, &r->err);
    if (rc) return rc;
    r->items = kvtree_new();
    if (!r->items) return err_sys(&r->err, -ENOMEM, "read %s", r->from->name);
    if (r->rank != 0) return 0;
    rc = scatter_mpi_read_file(r, r->from->name, -1);
    while (rc == 0 && r->level > 0 && r->away == 0) {
        r->level--;
        rc = scatter_mpi_read_level(r);
        if (rc == 0) rc = scatter_mpi_check_sum(r, r->sum);
    }
    return rc;
}

/* Collective, agreed. rc and the text are this rank's result so far. At the end the trees
 * are on the ranks that read them. */
static int scatter_mpi_read_levels(scatter_mpi *r, int rc)
{
    enum { AWAY, RANKS, LEVEL };
    if (rc == 0) rc = scatter_mpi_start(r);
    int64_t sum[] = {[AWAY] = r->away, [RANKS] = r->writers, [LEVEL] = r->level};
    rc = agree_sum(r->comm, rc, &r->err, 3, sum); /* nonzero only on rank 0 */
    r->writers = sum[RANKS];
    r->level = (int)sum[LEVEL];
    while (rc == 0 && r->level > 0) {
        rc = sum[AWAY] ? scatter_mpi_route(r) : 0;
        r->level--;
        if (rc == 0) rc = scatter_mpi_read_level(r);
        sum[AWAY] = r->away;
        sum[RANKS] = r->sum;
        rc = agree_sum(r->comm, rc, &r->err, 2, sum);
        if (rc == 0) rc = scatter_mpi_check_sum(r, sum[RANKS]);
    }
    r->away = sum[AWAY];
    return rc;
}

/* ---- public functions ---- */

/* The form of the result: each tree below the rank that wrote it, or all trees in one. */
enum scatter_form { SCATTER_APART, SCATTER_TOGETHER };

/* Moves the trees of this rank into the empty tree fresh. The first tree, usually the
 * only one, is not copied. */
static int scatter_mpi_collect(scatter_mpi *r, enum scatter_form form, kvtree *fresh)
{
    int rc = fresh ? kvtree_sort_int(r->items, KVTREE_SORT_ASCENDING) : -ENOMEM;
    for (kvtree_elem *e; rc == 0 && (e = kvtree_elem_first(r->items)) != NULL;) {
        if (form == SCATTER_APART) {
            rc = scatter_mpi_move(r->items, kvtree_elem_key_int(e), fresh);
        } else {
            kvtree *item = kvtree_elem_hash(e);
            if (kvtree_size(fresh) == 0)
                kvtree_replace(fresh, item);
            else
                rc = kvtree_merge(fresh, item);
            kvtree_unset(r->items, kvtree_elem_key(e));
        }
    }
    return rc ? err_sys(&r->err, rc, "read %s", r->from->name) : 0;
}

/* Collective, agreed. Sends the trees to their ranks and, on success, moves them into
 * tree. A tree that is not empty needs a merge, which may run out of memory and therefore
 * needs another agreement. */
static int scatter_mpi_give(scatter_mpi *r, enum scatter_form form, kvtree *tree,
                            kvtree *fresh)
{
    int rc = r->away ? scatter_mpi_route(r) : 0;
    if (rc == 0) rc = scatter_mpi_collect(r, form, fresh);
    bool merges = tree && fresh != tree;
    int64_t any = merges;
    rc = agree_sum(r->comm, rc, &r->err, 1, &any);
    if (rc || !any) return rc;
    if (merges && (rc = kvtree_merge(tree, fresh)) != 0)
        err_sys(&r->err, rc, "read %s", r->from->name);
    return agree(r->comm, rc, &r->err);
}

/* Collective, agreed. rc and r->err are this rank's result so far. */
static int scatter_mpi_read(scatter_mpi *r, int rc, enum scatter_form form, kvtree *tree)
{
    const struct channel *ch;
    const kvtree_gather *from = r->from;
    if (agree_possible(from->comm, &r->err) != 0)
        return err_wrap(&r->err, -EINVAL, "read");
    int opened = channel_of(from->comm, &ch);
    if (opened) return err_sys(&r->err, opened, "duplicate the communicator");
    r->comm = ch->comm;
    r->place = (kvtree_gather_place){from->dir, from->name, from->top, 0, 0};
    MPI_Comm_rank(r->comm, &r->rank);
    MPI_Comm_size(r->comm, &r->size);
    kvtree *fresh = tree && kvtree_size(tree) == 0 ? tree : kvtree_new();
    rc = scatter_mpi_read_levels(r, rc);
    if (rc == 0) rc = scatter_mpi_give(r, form, tree, fresh);
    kvtree_delete(&r->items);
    if (fresh != tree)
        kvtree_delete(&fresh);
    else if (rc)
        kvtree_unset_all(tree);
    return rc;
}

int kvtree_scatter_read(const kvtree_gather *from, int *ranks, kvtree *trees,
                        kvtree_error *err)
{
    scatter_mpi r = {.from = from};
    if (!from) return err_set(err, -EINVAL, "read: from nowhere");
    int rc = scatter_mpi_read(&r, 0, SCATTER_APART, trees);
    if (rc) return err_set(err, rc, "%s", r.err.text);
    if (ranks) *ranks = (int)r.writers;
    return KVTREE_SUCCESS;
}

int kvtree_read_scatter(const char *path, kvtree *tree, MPI_Comm comm)
{
    kvtree_gather from = {.comm = comm, .dir = -1};
    scatter_mpi r = {.from = &from};
    int rc = folder_of(AT_FDCWD, path, 0, &from.dir, &from.name, &r.err);
    rc = scatter_mpi_read(&r, rc, SCATTER_TOGETHER, tree);
    io_close(&from.dir);
    return rc;
}
