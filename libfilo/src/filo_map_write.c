/* SPDX-License-Identifier: BSD-3-Clause */
/* The map is written (SCR Developer Guide 1.2, sections 2.32.10 and 2.32.11).
 *
 * Level by level, the ranks that have an item (at level 0 every rank its own files, above
 * the writers of the level below a pointer to their file) are cut into groups of
 * neighbours whose items fit into one file; the first rank of a group gets them all and
 * writes. When a level above 0 has one group, its file is the root. No rank ever holds
 * more than one file's worth of items. */
#include "src/filo_private.h"

#include "common/agree_mpi.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <string.h>

typedef struct writing {
    int level;
    kvtree *item;    /* of this rank, at this level; or NULL */
    int ranks;       /* below it */
    int writer;      /* who writes it */
    int files;       /* of this level, on all ranks */
    kvtree *group;   /* at a writer: the items of its group ... */
    int group_ranks; /* ... and the ranks below them */
} writing;

/* Bytes of the item in a file; 0 if there is none. */
static uint64_t item_size(const filo_job *job, const writing *w)
{
    char key[16];
    if (!w->item) return 0;
    return (uint64_t)snprintf(key, sizeof key, "%d", job->rank) + 1 +
           kvtree_pack_size(w->item);
}

/* Items are laid end to end, and the groups are those that begin in the same `width`
 * bytes. With no item in a group larger than width, twice width is never exceeded, so
 * half of the room in a file is the width. Above level 0 a width takes two pointers at
 * least, whatever the limit: each level has at most half of the files of the one below,
 * and the tree ends. */
static uint64_t group_width(const filo_job *job, int level)
{
    uint64_t limit = job->map_limit;
    uint64_t width = limit > FILO_MAP_OVERHEAD ? (limit - FILO_MAP_OVERHEAD) / 2 : 0;
    uint64_t least = level > 0 ? 2 * filo_map_pointer_max(job->map) : 0;
    return width > least ? width : least;
}

/* Collective. The rank that writes this rank's item: the first of its group, or, with an
 * item that is larger than a group's width, the rank itself. */
static int choose_writer(const filo_job *job, uint64_t size, uint64_t width)
{
    int shares = size > 0 && size <= width, first, writer;
    uint64_t mine = shares ? size : 0, offset = 0, before = 0;
    MPI_Exscan(&mine, &offset, 1, MPI_UINT64_T, MPI_SUM, job->comm);
    if (job->rank == 0) offset = 0;
    uint64_t group = shares ? offset / width + 1 : 0;
    MPI_Exscan(&group, &before, 1, MPI_UINT64_T, MPI_MAX, job->comm);
    if (job->rank == 0) before = 0;
    first = group > before ? job->rank : 0;
    MPI_Scan(&first, &writer, 1, MPI_INT, MPI_MAX, job->comm);
    return shares ? writer : job->rank;
}

/* The item and its number of ranks, addressed to the writer. Takes the item over. */
static int pack_item(writing *w, kvtree *send)
{
    if (!w->item) return 0;
    kvtree *message = kvtree_new();
    int rc = message ? kvtree_util_set_int(message, "RANKS", w->ranks) : -ENOMEM;
    if (rc == 0 && !kvtree_set(message, "ITEM", w->item)) rc = -ENOMEM;
    if (rc == 0) w->item = NULL;
    char key[16];
    snprintf(key, sizeof key, "%d", w->writer);
    if (rc == 0 && kvtree_set(send, key, message)) return 0;
    kvtree_delete(&message);
    return -ENOMEM;
}

/* Puts the items that arrived under the ranks that sent them. */
static int unpack_group(writing *w, kvtree *received)
{
    if (kvtree_size(received) == 0) return 0;
    w->group = kvtree_new();
    w->group_ranks = 0;
    for (kvtree_elem *e = kvtree_elem_first(received); e; e = kvtree_elem_next(e)) {
        int ranks;
        kvtree *message = kvtree_elem_hash(e), *item = kvtree_extract(message, "ITEM");
        int rc = kvtree_util_get_int(message, "RANKS", &ranks);
        if (rc || !kvtree_set(w->group, kvtree_elem_key(e), item)) {
            kvtree_delete(&item);
            return rc ? rc : -ENOMEM;
        }
        w->group_ranks += ranks;
    }
    return kvtree_sort_int(w->group, KVTREE_SORT_ASCENDING);
}

/* Collective; the result is this rank's own. Brings the items of each group to its
 * writer. */
static int gather_groups(filo_job *job, writing *w)
{
    w->writer = choose_writer(job, item_size(job, w), group_width(job, w->level));
    int writes = w->item && w->writer == job->rank;
    MPI_Allreduce(&writes, &w->files, 1, MPI_INT, MPI_SUM, job->comm);
    kvtree *send = kvtree_new(), *received = kvtree_new();
    int packed = send && received ? pack_item(w, send) : -ENOMEM;
    int rc = kvtree_exchange(send, received, job->comm);
    if (rc == 0) rc = packed;
    if (rc == 0) rc = unpack_group(w, received);
    kvtree_delete(&send);
    kvtree_delete(&received);
    return rc ? err_sys(job->text, rc, "gather level %d of the map", w->level) : 0;
}

/* Writes the group's file; the pointer to it is this rank's item at the next level. */
static int write_group(filo_job *job, writing *w, int is_root)
{
    char name[BENEATH_NAME_MAX];
    if (!w->group) return 0;
    int rc = filo_map_name(job->map, w->level, job->rank, name);
    if (rc) return err_sys(job->text, rc, "name a file of the map %s", job->map);
    if (is_root) snprintf(name, sizeof name, "%s", job->map);
    kvtree *tree = filo_map_make(w->level, w->group_ranks, w->group);
    w->group = NULL;
    w->item = filo_map_pointer(name);
    w->ranks = w->group_ranks;
    if (!tree || !w->item)
        rc = err_sys(job->text, -ENOMEM, "make %s/%s", job->folder, name);
    else if ((rc = kvtree_file_write(job->dir, name, tree, job->text)) != 0)
        err_wrap(job->text, rc, "map in %s", job->folder);
    kvtree_delete(&tree);
    return rc;
}

int filo_map_write(filo_job *job, int count, const filo_file files[])
{
    writing w = {.ranks = 1, .item = filo_map_entry(count, files)};
    int done = 0;
    int rc = w.item ? 0 : err_sys(job->text, -ENOMEM, "make the map");
    rc = agree(job->comm, rc, job->text);
    for (; rc == 0 && !done; w.level++) {
        rc = gather_groups(job, &w);
        done = w.level > 0 && w.files == 1;
        /* the root must not come before a failure anywhere is known */
        rc = agree(job->comm, rc, job->text);
        if (rc == 0) rc = agree(job->comm, write_group(job, &w, done), job->text);
    }
    kvtree_delete(&w.item);
    kvtree_delete(&w.group);
    return rc;
}
