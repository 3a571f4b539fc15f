/* SPDX-License-Identifier: BSD-3-Clause */
/* The map is read: rank 0 reads the root, and from level to level each item travels to
 * the rank that its key names, modulo the number of ranks at hand; there a pointer is
 * read, and, at the end, an entry is kept.
 *
 * A map may come from anyone. What bounds the work: levels fall by one from file to file,
 * no key may turn up twice in a level (the ranks that meet at one reader show that), and
 * the RANKS of each level add up to those of the root. */
#include "src/filo_private.h"

#include "common/agree_mpi.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    int level;     /* of the files that were read last */
    int all_ranks; /* as the root tells */
    int64_t ranks; /* told by the files of this level that this rank read */
    kvtree *items; /* in them */
} reading;

/* ---- one file ---- */

/* Errors that come from what lies in the folder are a verdict on it; others (no memory,
 * no permission, a failing disk) stay errors. */
static int is_verdict(int rc)
{
    return rc == -EBADMSG || rc == -EINVAL || rc == -ELOOP || rc == -ENOTDIR ||
           rc == -EISDIR;
}

static int load(filo_job *job, const char *name, kvtree *tree)
{
    struct stat st;
    int rc = beneath_stat(job->dir, name, &st, job->text);
    if (rc == 0 && st.st_size > FILO_MAP_FILE_MAX)
        rc = err_set(job->text, -EBADMSG, "%s has %lld bytes, too many for a map", name,
                     (long long)st.st_size);
    if (rc == 0) rc = kvtree_file_read(job->dir, name, tree, job->text);
    return is_verdict(rc) ? FILO_DAMAGED : rc;
}

/* Reads a file of the map at level, or a root: -1. */
static int read_part(filo_job *job, const char *name, int level, filo_map_part *part)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? load(job, name, tree) : err_sys(job->text, -ENOMEM, "read %s", name);
    if (rc == 0) {
        rc = filo_map_take(tree, level, part, job->text);
        if (rc) err_wrap(job->text, rc, "%s", name);
    }
    kvtree_delete(&tree);
    return rc ? err_wrap(job->text, rc, "map in %s", job->folder) : 0;
}

/* ---- the items of one level ---- */

/* Moves items, found in the file name, to those that this rank has. */
static int take_items(filo_job *job, reading *r, kvtree *items, const char *name)
{
    kvtree_elem *e;
    while ((e = kvtree_elem_first(items)) != NULL) {
        char key[16];
        int rank = kvtree_elem_key_int(e);
        snprintf(key, sizeof key, "%d", rank);
        if (rank >= r->all_ranks)
            return err_set(job->text, FILO_DAMAGED,
                           "map in %s: %s: rank %d of only %d is listed", job->folder,
                           name, rank, r->all_ranks);
        if (kvtree_get(r->items, key))
            return err_set(job->text, FILO_DAMAGED,
                           "map in %s: %s: rank %d is listed twice", job->folder, name,
                           rank);
        kvtree *item = kvtree_extract(items, key);
        /* nobody here needs the names, but the key must still meet its double */
        if (r->level == 0 && rank >= job->size) kvtree_unset_all(item);
        if (!kvtree_set(r->items, key, item)) {
            kvtree_delete(&item);
            return err_sys(job->text, -ENOMEM, "read %s", name);
        }
    }
    return 0;
}

/* Moves each item into a tree for the rank that reads or owns it. */
static int address_items(const filo_job *job, kvtree *items, kvtree *send)
{
    kvtree_elem *e;
    while ((e = kvtree_elem_first(items)) != NULL) {
        char key[16], target[16];
        int rank = kvtree_elem_key_int(e);
        snprintf(key, sizeof key, "%d", rank);
        snprintf(target, sizeof target, "%d", rank % job->size);
        kvtree *bundle = kvtree_get(send, target);
        if (!bundle) bundle = kvtree_set(send, target, NULL);
        kvtree *item = kvtree_extract(items, key);
        if (kvtree_set(bundle, key, item)) continue;
        kvtree_delete(&item);
        return -ENOMEM;
    }
    return 0;
}

/* Collective, agreed. Brings the items of a level to their readers or owners. */
static int route_items(filo_job *job, reading *r)
{
    kvtree *send = kvtree_new(), *received = kvtree_new();
    int addressed = send && received ? address_items(job, r->items, send) : -ENOMEM;
    int rc = kvtree_exchange(send, received, job->comm);
    if (rc == 0) rc = addressed;
    if (rc) err_sys(job->text, rc, "pass on level %d of the map", r->level);
    for (kvtree_elem *e = kvtree_elem_first(received); e && rc == 0;
         e = kvtree_elem_next(e))
        rc = take_items(job, r, kvtree_elem_hash(e), job->map);
    kvtree_delete(&send);
    kvtree_delete(&received);
    return agree(job->comm, rc, job->text);
}

/* ---- from the root to the entries ---- */

static int read_pointer(filo_job *job, reading *r, const kvtree *pointer)
{
    filo_map_part part;
    const char *name = filo_map_lower(pointer);
    int rc = read_part(job, name, r->level, &part);
    if (rc) return rc == -ENOENT ? FILO_DAMAGED : rc; /* the level above names it */
    r->ranks += part.ranks;
    rc = take_items(job, r, part.items, name);
    kvtree_delete(&part.items);
    return rc;
}

/* Reads the files that the items of this rank point to; their items take the place. */
static int read_level(filo_job *job, reading *r)
{
    kvtree *pointers = r->items;
    r->items = kvtree_new();
    r->ranks = 0;
    int rc = r->items ? 0 : err_sys(job->text, -ENOMEM, "read the map");
    for (kvtree_elem *e = kvtree_elem_first(pointers); e && rc == 0;
         e = kvtree_elem_next(e))
        rc = read_pointer(job, r, kvtree_elem_hash(e));
    kvtree_delete(&pointers);
    return rc;
}

/* Collective, agreed. */
static int compare_ranks(filo_job *job, const reading *r)
{
    int64_t all = 0;
    MPI_Allreduce(&r->ranks, &all, 1, MPI_INT64_T, MPI_SUM, job->comm);
    if (all == r->all_ranks) return 0;
    return err_set(job->text, FILO_DAMAGED,
                   "map %s/%s is of %d ranks, but its files of level %d of %lld",
                   job->folder, job->map, r->all_ranks, r->level, (long long)all);
}

static int read_root(filo_job *job, reading *r)
{
    filo_map_part root;
    int rc = read_part(job, job->map, -1, &root);
    if (rc) return rc;
    r->level = root.level;
    r->all_ranks = root.ranks;
    rc = take_items(job, r, root.items, job->map);
    kvtree_delete(&root.items);
    return rc;
}

/* Collective, agreed. */
static int read_tree(filo_job *job, reading *r)
{
    r->items = kvtree_new();
    int rc = r->items ? 0 : err_sys(job->text, -ENOMEM, "read the map");
    if (rc == 0 && job->rank == 0) rc = read_root(job, r);
    rc = agree(job->comm, rc, job->text);
    int head[] = {r->level, r->all_ranks};
    MPI_Bcast(head, 2, MPI_INT, 0, job->comm);
    r->level = head[0];
    r->all_ranks = head[1];
    while (rc == 0 && r->level > 0) {
        rc = route_items(job, r);
        r->level--;
        if (rc == 0) rc = agree(job->comm, read_level(job, r), job->text);
        if (rc == 0) rc = compare_ranks(job, r);
    }
    return rc ? rc : route_items(job, r);
}

static int own_files(filo_job *job, const reading *r, int *count, filo_file **files)
{
    char key[16];
    snprintf(key, sizeof key, "%d", job->rank);
    int rc = filo_map_files(kvtree_get(r->items, key), count, files);
    return rc ? err_sys(job->text, rc, "list the files of the map") : 0;
}

int filo_read_map(MPI_Comm comm, const char *folder, const char *map, int *ranks,
                  int *count, filo_file **files, const filo_options *options, char *err)
{
    filo_job job;
    reading r = {0};
    int own_count = 0;
    filo_file *own = NULL;
    int rc = filo_job_begin(&job, comm, folder, map, options);
    if (rc == 0) rc = filo_job_open(&job);
    rc = agree(comm, rc, job.text);
    if (rc == 0) rc = read_tree(&job, &r);
    if (rc == 0) rc = agree(comm, own_files(&job, &r, &own_count, &own), job.text);
    kvtree_delete(&r.items);
    if (rc == 0) {
        *ranks = r.all_ranks;
        *count = own_count;
        *files = own;
    } else {
        filo_files_free(own_count, own);
    }
    return filo_job_end(&job, rc, err);
}
