/* SPDX-License-Identifier: BSD-3-Clause */
/* The datasets of the cache: their list, and their sizes. */
#include "cache/cache.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

/* ---- names ---- */

void scr_dataset_folder_name(int id, char name[SCR_FOLDER_SIZE])
{
    snprintf(name, SCR_FOLDER_SIZE, "scr.dataset.%d", id);
}

void scr_cached_name(int id, const char *name, char path[SCR_CACHED_NAME_SIZE])
{
    snprintf(path, SCR_CACHED_NAME_SIZE, "scr.dataset.%d/%s", id, name);
}

/* ---- the list ---- */

scr_cached *scr_cached_find(const scr_cache *cache, int id)
{
    for (int i = 0; i < cache->count; i++)
        if (cache->list[i].d.id == id) return &cache->list[i];
    return NULL;
}

int scr_cached_add(scr_cache *cache, const scr_dataset *dataset, int store,
                   const scr_reddesc *desc)
{
    scr_cached_remove(cache, dataset->id);
    size_t count = (size_t)cache->count + 1;
    scr_cached *list = realloc(cache->list, count * sizeof *list);
    if (!list) return -ENOMEM;
    cache->list = list;
    scr_evict_row *rows = realloc(cache->rows, count * sizeof *rows);
    if (!rows) return -ENOMEM;
    cache->rows = rows;
    list[cache->count] = (scr_cached){.d = *dataset, .store = store};
    if (desc) list[cache->count].desc = *desc;
    cache->count++;
    return 0;
}

void scr_cached_remove(scr_cache *cache, int id)
{
    scr_cached *cached = scr_cached_find(cache, id);
    if (cached) *cached = cache->list[--cache->count];
}

void scr_cached_set_state(scr_cache *cache, int id, scr_cached_state state)
{
    scr_cached *cached = scr_cached_find(cache, id);
    if (cached) cached->state = state;
}

int scr_cached_note(scr_cache *cache, const scr_dataset *dataset, scr_cached_state state,
                    kvtree_error *err)
{
    if (!scr_cached_find(cache, dataset->id)) {
        int rc = scr_cached_add(cache, dataset, -1, NULL);
        if (rc) err_set(err, rc, "no memory for the list of cached datasets");
        rc = agree(cache->job->world, rc, err);
        if (rc) {
            scr_cached_remove(cache, dataset->id);
            return rc;
        }
    }
    scr_cached *cached = scr_cached_find(cache, dataset->id);
    cached->d = *dataset;
    cached->state = state;
    return 0;
}

bool scr_cached_is_unusable(const scr_cached *cached)
{
    return cached->state == SCR_CACHED_UNREADABLE || cached->state == SCR_CACHED_USELESS;
}

static scr_cached *cached_next(const scr_cache *cache, int above, bool usable)
{
    scr_cached *next = NULL;
    for (int i = 0; i < cache->count; i++) {
        scr_cached *c = &cache->list[i];
        if (usable ? c->state == SCR_CACHED_GOOD : scr_cached_is_unusable(c))
            if (c->d.id > above && (!next || c->d.id < next->d.id)) next = c;
    }
    return next;
}

scr_cached *scr_cached_next(const scr_cache *cache, int above)
{
    return cached_next(cache, above, true);
}

scr_cached *scr_cached_next_unusable(const scr_cache *cache, int above)
{
    return cached_next(cache, above, false);
}

int scr_cached_newest(const scr_cache *cache)
{
    const scr_cached *newest = NULL;
    for (int i = 0; i < cache->count; i++) {
        const scr_cached *c = &cache->list[i];
        if (c->state == SCR_CACHED_GOOD && c->d.ckpt > 0 &&
            (!newest || scr_dataset_is_newer(&c->d, &newest->d)))
            newest = c;
    }
    return newest ? newest->d.id : 0;
}

int scr_cached_get(const scr_cache *cache, int id, scr_dataset *dataset)
{
    const scr_cached *cached = scr_cached_find(cache, id);
    if (!cached || cached->state == SCR_CACHED_INCOMPLETE || !cached->d.complete)
        return -ENOENT;
    *dataset = cached->d;
    return 0;
}

const char *scr_cached_redundancy(const scr_cache *cache, int id, int rank)
{
    const kvtree_elem *f = scr_filemap_redundancy(cache->map, id, rank);
    return f ? scr_filemap_name_of(kvtree_elem_key(f), cache->job->owner, id) : NULL;
}

/* ---- sizes ---- */

void scr_cached_sums(const scr_cache *cache, int id, unsigned long sums[2])
{
    scr_filemap_walk walk = {NULL, NULL};
    sums[0] = sums[1] = 0;
    while (scr_filemap_next(cache->map, id, &walk)) {
        unsigned long size = 0;
        kvtree_util_get_bytecount(kvtree_elem_hash(walk.file), SCR_META_SIZE, &size);
        sums[0]++;
        sums[1] += size;
    }
}

/* On the first process of a store: whether the store could become full when a dataset is
 * written that has this number of bytes on this process, twice as many with redundancy.
 * An estimate if the files of ranks differ in size. */
static int cached_store_lacks_room(const scr_store_dir *c, unsigned long bytes)
{
    struct statvfs fs;
    int sharers;
    if (c->rank != 0) return 0;
    MPI_Comm_size(c->comm, &sharers);
    return fstatvfs(c->fd, &fs) != 0 ||
           (double)fs.f_bavail * (double)fs.f_frsize < 2.0 * (double)bytes * sharers;
}

/* The same for a dataset as large as dataset id, which is still in the store. */
int scr_cached_is_tight(const scr_cache *cache, int store, int id)
{
    unsigned long own[2];
    scr_cached_sums(cache, id, own);
    return cached_store_lacks_room(&cache->stores[store], own[1]);
}

/* Bytes of this process in the largest known dataset. */
static unsigned long cached_largest(const scr_cache *cache)
{
    unsigned long most = 0, own[2];
    const kvtree_elem *d = scr_filemap_datasets(cache->map);
    for (; d; d = kvtree_elem_next(d)) {
        scr_cached_sums(cache, kvtree_elem_key_int(d), own);
        if (own[1] > most) most = own[1];
    }
    return most;
}

int scr_cached_lacks_room(const scr_cache *cache, int store)
{
    return cached_store_lacks_room(&cache->stores[store], cached_largest(cache));
}
