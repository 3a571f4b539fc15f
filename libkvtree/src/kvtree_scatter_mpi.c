/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of all ranks are read: rank 0 reads the root, and from level to level each
 * item travels to the rank that its key names, modulo the number of ranks at hand; there
 * a pointer is read, and, at the end, a tree is kept.
 *
 * Files may come from anyone. What bounds the work: levels fall by one from file to file,
 * no key may turn up twice in a level (the ranks that meet at one reader show that), and
 * the RANKS of each level add up to those of the root. */
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

typedef struct reading {
    const kvtree_gather *from;
    kvtree_gather_place place; /* the same, of one file */
    MPI_Comm comm;             /* the private one */
    int rank, size;
    int level;       /* of the files that were read last */
    int64_t writers; /* as the root tells */
    int64_t told;    /* by the files of this level that this rank read */
    int64_t away;    /* items in them that are for other ranks */
    kvtree *items;   /* in them; later those for this rank */
    char text[ERRTEXT_SIZE];
} reading;

/* ---- the items of one level ---- */

/* Moves items, found in the file name, to those that this rank has. */
static int take_items(reading *r, kvtree *items, const char *name)
{
    kvtree_elem *e;
    while ((e = kvtree_elem_first(items)) != NULL) {
        char key[16];
        int rank = kvtree_elem_key_int(e);
        snprintf(key, sizeof key, "%d", rank);
        int rc = kvtree_gather_check_rank(name, rank, r->writers, r->text);
        if (rc) return rc;
        if (kvtree_get(r->items, key))
            return kvtree_gather_listed_twice(name, rank, r->text);
        kvtree *item = kvtree_extract(items, key);
        if (!kvtree_set(r->items, key, item)) {
            kvtree_delete(&item);
            return err_sys(r->text, -ENOMEM, "read %s", name);
        }
        if (rank % r->size != r->rank) r->away++;
    }
    return 0;
}

/* Moves each item into the tree for the rank that reads or gets it, or keeps it. */
static int address_items(const reading *r, kvtree *items, kvtree *send, kvtree *keep)
{
    kvtree_elem *e;
    while ((e = kvtree_elem_first(items)) != NULL) {
        char key[16], target[16];
        int rank = kvtree_elem_key_int(e);
        snprintf(key, sizeof key, "%d", rank);
        snprintf(target, sizeof target, "%d", rank % r->size);
        kvtree *bundle = rank % r->size == r->rank ? keep : kvtree_get(send, target);
        if (!bundle) bundle = kvtree_set(send, target, NULL);
        kvtree *item = kvtree_extract(items, key);
        if (kvtree_set(bundle, key, item)) continue;
        kvtree_delete(&item);
        return -ENOMEM;
    }
    return 0;
}

/* Collective; the result is this rank's own. Brings the items of a level to their readers
 * or owners. */
static int route_items(reading *r)
{
    kvtree *found = r->items, *send = kvtree_new(), *received = kvtree_new();
    r->items = kvtree_new();
    r->away = 0;
    int addressed =
        send && received && r->items ? address_items(r, found, send, r->items) : -ENOMEM;
    kvtree_delete(&found);
    int rc = kvtree_exchange(send, received, r->from->comm);
    kvtree_delete(&send);
    if (rc == 0) rc = addressed;
    if (rc) err_sys(r->text, rc, "pass on level %d of %s", r->level, r->from->name);
    for (kvtree_elem *e = kvtree_elem_first(received); e && rc == 0;
         e = kvtree_elem_next(e))
        rc = take_items(r, kvtree_elem_hash(e), r->from->name);
    kvtree_delete(&received);
    return rc;
}

/* ---- from the root to the trees ---- */

static int read_pointer(reading *r, const kvtree *pointer)
{
    kvtree_gather_part part;
    const char *name = kvtree_gather_pointed(pointer);
    int rc = kvtree_gather_file_read(&r->place, name, r->level, &part, r->text);
    if (rc) return rc;
    r->told += part.ranks;
    rc = take_items(r, part.items, name);
    kvtree_delete(&part.items);
    return rc;
}

/* Reads the files that the items of this rank point to; their items take the place. */
static int read_level(reading *r)
{
    kvtree *pointers = r->items;
    r->items = kvtree_new();
    r->told = r->away = 0;
    int rc = r->items ? 0 : err_sys(r->text, -ENOMEM, "read %s", r->from->name);
    for (kvtree_elem *e = kvtree_elem_first(pointers); e && rc == 0;
         e = kvtree_elem_next(e))
        rc = read_pointer(r, kvtree_elem_hash(e));
    kvtree_delete(&pointers);
    return rc;
}

static int check_told(reading *r, int64_t told)
{
    return kvtree_gather_check_told(r->from->name, r->writers, r->level, told, r->text);
}

static int read_root(reading *r)
{
    kvtree_gather_part root;
    int rc = kvtree_gather_file_read(&r->place, r->from->name, -1, &root, r->text);
    if (rc) return rc;
    r->level = root.level;
    r->writers = root.ranks;
    rc = take_items(r, root.items, r->from->name);
    kvtree_delete(&root.items);
    return rc;
}

/* Rank 0: the root, and what is below it as long as all of it is for this rank to read:
 * a root with one pointer needs no other rank. */
static int read_start(reading *r)
{
    int rc = beneath_check_name(r->from->name, r->text);
    if (rc) return rc;
    r->items = kvtree_new();
    if (!r->items) return err_sys(r->text, -ENOMEM, "read %s", r->from->name);
    if (r->rank != 0) return 0;
    rc = read_root(r);
    while (rc == 0 && r->level > 0 && r->away == 0) {
        r->level--;
        rc = read_level(r);
        if (rc == 0) rc = check_told(r, r->told);
    }
    return rc;
}

/* Collective, agreed. rc and text are of this rank so far. At the end the trees are
 * there, on the ranks that read them. */
static int read_levels(reading *r, int rc)
{
    enum { AWAY, TOLD, LEVEL };
    if (rc == 0) rc = read_start(r);
    int64_t sum[] = {[AWAY] = r->away, [TOLD] = r->writers, [LEVEL] = r->level};
    rc = agree_sum(r->comm, rc, r->text, 3, sum); /* rank 0 tells what it read */
    r->writers = sum[TOLD];
    r->level = (int)sum[LEVEL];
    while (rc == 0 && r->level > 0) {
        rc = sum[AWAY] ? route_items(r) : 0;
        r->level--;
        if (rc == 0) rc = read_level(r);
        sum[AWAY] = r->away;
        sum[TOLD] = r->told;
        rc = agree_sum(r->comm, rc, r->text, 2, sum);
        if (rc == 0) rc = check_told(r, sum[TOLD]);
    }
    r->away = sum[AWAY];
    return rc;
}

/* ---- public functions ---- */

/* What callers want: each tree below the rank that wrote it, or all in one. */
enum form { APART, TOGETHER };

/* Moves the trees that came to this rank into the empty tree fresh. */
static int collect(reading *r, enum form form, kvtree *fresh)
{
    kvtree_elem *e;
    int rc = fresh ? kvtree_sort_int(r->items, KVTREE_SORT_ASCENDING) : -ENOMEM;
    while (rc == 0 && (e = kvtree_elem_first(r->items)) != NULL) {
        char writer[16];
        snprintf(writer, sizeof writer, "%s", kvtree_elem_key(e));
        kvtree *item = kvtree_extract(r->items, writer);
        if (form == APART && kvtree_set(fresh, writer, item)) continue;
        rc = form == APART ? -ENOMEM : kvtree_merge(fresh, item);
        kvtree_delete(&item);
    }
    return rc ? err_sys(r->text, rc, "read %s", r->from->name) : 0;
}

/* Collective, agreed. Brings the trees to their ranks, and, when all went well, into
 * tree. Only where that held something before, it takes a merge, which has to be agreed
 * on again, as memory may end. */
static int give(reading *r, enum form form, kvtree *tree, kvtree *fresh)
{
    int rc = r->away ? route_items(r) : 0;
    if (rc == 0) rc = collect(r, form, fresh);
    int merges = tree && fresh != tree;
    int64_t any = merges;
    rc = agree_sum(r->comm, rc, r->text, 1, &any);
    if (rc || !any) return rc;
    if (merges && (rc = kvtree_merge(tree, fresh)) != 0)
        err_sys(r->text, rc, "read %s", r->from->name);
    return agree(r->comm, rc, r->text);
}

/* Collective, agreed. rc and r->text are of this rank so far. */
static int scatter(reading *r, int rc, enum form form, kvtree *tree)
{
    const struct channel *ch;
    if (agree_possible(r->from->comm, r->text) != 0)
        return err_wrap(r->text, -EINVAL, "read");
    int opened = channel_of(r->from->comm, &ch);
    if (opened) return err_sys(r->text, opened, "duplicate the communicator");
    r->comm = ch->comm;
    r->place = (kvtree_gather_place){
        .dir = r->from->dir, .name = r->from->name, .top = r->from->top};
    MPI_Comm_rank(r->comm, &r->rank);
    MPI_Comm_size(r->comm, &r->size);
    kvtree *fresh = tree && kvtree_size(tree) == 0 ? tree : kvtree_new();
    rc = read_levels(r, rc);
    if (rc == 0) rc = give(r, form, tree, fresh);
    kvtree_delete(&r->items);
    if (fresh != tree)
        kvtree_delete(&fresh);
    else if (rc)
        kvtree_unset_all(tree);
    return rc;
}

int kvtree_scatter_read(const kvtree_gather *from, int *ranks, kvtree *trees, char *err)
{
    reading r = {.from = from};
    if (!from) return err_set(err, -EINVAL, "read: from nowhere");
    int rc = scatter(&r, 0, APART, trees);
    if (rc) return err_set(err, rc, "%s", r.text);
    if (ranks) *ranks = (int)r.writers;
    return KVTREE_SUCCESS;
}

int kvtree_read_scatter(const char *path, kvtree *tree, MPI_Comm comm)
{
    kvtree_gather from = {.comm = comm, .dir = -1};
    reading r = {.from = &from};
    int rc = folder_of(AT_FDCWD, path, 0, &from.dir, &from.name, r.text);
    rc = scatter(&r, rc, TOGETHER, tree);
    io_close(&from.dir);
    return rc;
}
