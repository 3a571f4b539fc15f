/* SPDX-License-Identifier: BSD-3-Clause */
/* The datasets of the cache: the list, the filemap, and room. */
#include "cache/catalog.h"

#include "base/path.h"
#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/number.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

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
                    char *err)
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
    int newest = 0;
    for (int i = 0; i < cache->count; i++) {
        const scr_cached *c = &cache->list[i];
        if (c->state == SCR_CACHED_GOOD && c->d.ckpt > 0 && c->d.id > newest)
            newest = c->d.id;
    }
    return newest;
}

int scr_cached_get(const scr_cache *cache, int id, scr_dataset *dataset)
{
    const scr_cached *cached = scr_cached_find(cache, id);
    if (!cached || cached->state == SCR_CACHED_INCOMPLETE || !cached->d.complete)
        return -ENOENT;
    *dataset = cached->d;
    return 0;
}

/* ---- records ---- */

/* The descriptor, with what is of this run: the scheme that was applied in the end, and
 * where. */
static int record_reddesc(scr_cache *cache, int id, const redset_place *place)
{
    const scr_cached *kept = scr_cached_find(cache, id);
    const scr_store_dir *store = &cache->stores[kept->store];
    scr_reddesc desc = kept->desc;
    scr_reddesc_place here = {.groups = place->sets,
                              .group_id = place->id,
                              .group_size = place->members,
                              .group_rank = place->member};
    kvtree *tree = kvtree_new();
    snprintf(desc.type, sizeof desc.type, "%s", redset_scheme_name(place->scheme));
    snprintf(desc.store, sizeof desc.store, "%s", store->path);
    int n = snprintf(here.directory, sizeof here.directory, "%s", store->folder);
    int rc = !tree ? -ENOMEM : n >= (int)sizeof here.directory ? -ENAMETOOLONG : 0;
    rc = rc ? rc : scr_reddesc_to_tree(&desc, &here, tree);
    rc = rc ? rc : scr_filemap_set_reddesc(cache->map, id, cache->job->rank, tree);
    kvtree_delete(&tree);
    return rc;
}

/* A dataset's files of one rank. */
struct records {
    scr_filemap *map;
    int id, rank;
    const char *folder;
};

static kvtree *record_file(const struct records *r, const char *name, const char *type,
                           int ranks, unsigned long size)
{
    char *path = scr_path_join(r->folder, name);
    kvtree *meta = path ? scr_filemap_add_file(r->map, r->id, r->rank, path) : NULL;
    int rc = kvtree_util_set_str(meta, SCR_META_FILE, name);
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_TYPE, type);
    rc = rc ? rc : kvtree_util_set_int(meta, SCR_META_RANKS, ranks);
    rc = rc ? rc : kvtree_util_set_int(meta, SCR_META_COMPLETE, 1);
    rc = rc ? rc : kvtree_util_set_bytecount(meta, SCR_META_SIZE, size);
    free(path);
    return rc ? NULL : meta;
}

static int record_files(const struct records *r, const scr_dataset *dataset,
                        const redset_manifest *manifest)
{
    static const char *const kept[] = {SCR_META_ORIG, SCR_META_PATH, SCR_META_NAME};
    const char *scheme = redset_scheme_name(manifest->place.scheme);
    int bad = 0;
    for (int i = 0; i < manifest->count && !bad; i++) {
        const redset_file *f = &manifest->files[i];
        kvtree *meta = record_file(r, f->name, SCR_META_FULL, dataset->ranks, f->size);
        bad = !meta || (manifest->checksums &&
                        kvtree_util_set_crc32(meta, SCR_META_CRC, f->crc) != 0);
        for (size_t k = 0; !bad && k < sizeof kept / sizeof *kept; k++) {
            const char *text = kvtree_get_val(f->meta, kept[k]);
            if (text) bad = kvtree_util_set_str(meta, kept[k], text) != 0;
        }
    }
    return bad || !record_file(r, manifest->file, scheme, dataset->ranks,
                               manifest->file_size)
               ? -ENOMEM
               : 0;
}

int scr_map_record_found(scr_filemap *map, const scr_dataset *dataset, const char *folder,
                         const redset_manifest *manifest)
{
    const struct records r = {map, dataset->id, manifest->rank, folder};
    kvtree *tree = kvtree_new();
    int rc = record_files(&r, dataset, manifest);
    rc = rc ? rc : tree ? scr_dataset_to_tree(dataset, tree) : -ENOMEM;
    rc = rc ? rc : scr_filemap_set_dataset(map, r.id, r.rank, tree);
    rc = rc ? rc : scr_filemap_set_expected(map, r.id, r.rank, manifest->count + 1);
    if (rc) scr_filemap_remove_rank(map, r.id, r.rank);
    kvtree_delete(&tree);
    return rc;
}

int scr_map_record(scr_cache *cache, const scr_dataset *dataset,
                   const redset_manifest *manifest, char *err)
{
    redset_manifest own = *manifest;
    char *folder = scr_dataset_folder(cache, dataset->id);
    own.rank = cache->job->rank;
    scr_filemap_remove_rank(cache->map, dataset->id, cache->job->rank);
    int rc = folder ? scr_map_record_found(cache->map, dataset, folder, &own) : -ENOMEM;
    rc = rc ? rc : record_reddesc(cache, dataset->id, &manifest->place);
    free(folder);
    if (rc) return err_set(err, rc, "no memory for the filemap");
    scr_cached *cached = scr_cached_find(cache, dataset->id);
    cached->d = *dataset;
    cached->state = SCR_CACHED_GOOD;
    return 0;
}

void scr_cached_sums(const scr_cache *cache, int id, unsigned long sums[2])
{
    const kvtree_elem *f =
        kvtree_elem_first(scr_filemap_files(cache->map, id, cache->job->rank));
    sums[0] = sums[1] = 0;
    for (; f; f = kvtree_elem_next(f)) {
        const char *type = kvtree_get_val(kvtree_elem_hash(f), SCR_META_TYPE);
        unsigned long size = 0;
        if (!type || strcmp(type, SCR_META_FULL) != 0) continue;
        kvtree_util_get_bytecount(kvtree_elem_hash(f), SCR_META_SIZE, &size);
        sums[0]++;
        sums[1] += size;
    }
}

/* On the first of a store: whether it could become full when a dataset is written of
 * which this process has so many bytes, twice its bytes with redundancy. Where files are
 * of different sizes this is a guess. */
static int lacks_room(const scr_store_dir *c, unsigned long bytes)
{
    struct statvfs fs;
    int sharers;
    if (c->rank != 0) return 0;
    MPI_Comm_size(c->comm, &sharers);
    return fstatvfs(c->fd, &fs) != 0 ||
           (double)fs.f_bavail * (double)fs.f_frsize < 2.0 * (double)bytes * sharers;
}

/* The same for one like this, while it is still there. */
int scr_cached_is_tight(const scr_cache *cache, int store, int id)
{
    unsigned long own[2];
    scr_cached_sums(cache, id, own);
    return lacks_room(&cache->stores[store], own[1]);
}

/* Bytes of this process in the largest dataset that is known. */
static unsigned long largest(const scr_cache *cache)
{
    int count = 0, *ids = NULL;
    unsigned long most = 0, own[2];
    if (scr_filemap_list_datasets(cache->map, &count, &ids) != 0) count = 0;
    for (int i = 0; i < count; i++) {
        scr_cached_sums(cache, ids[i], own);
        if (own[1] > most) most = own[1];
    }
    free(ids);
    return most;
}

int scr_cached_lacks_room(const scr_cache *cache, int store)
{
    return lacks_room(&cache->stores[store], largest(cache));
}

static int knows(const scr_filemap *map, int id)
{
    int count = 0, *ranks = NULL;
    if (scr_filemap_list_ranks_of(map, id, &count, &ranks) != 0) count = 1;
    free(ranks);
    return count > 0;
}

int scr_next_folder(const scr_store_dir *store, int last, int *next)
{
    const struct dirent *item;
    DIR *stream = beneath_list(store->fd);
    *next = INT_MAX;
    if (!stream) return -errno;
    while ((errno = 0, item = readdir(stream)) != NULL) {
        int64_t id;
        if (strncmp(item->d_name, "scr.dataset.", 12) == 0 &&
            number_int64(item->d_name + 12, &id) == 0 && id > last && id < *next)
            *next = (int)id;
    }
    int rc = -errno;
    closedir(stream);
    return rc;
}

static int next_folder(const scr_cache *cache, int last)
{
    int least = INT_MAX;
    for (int i = 0; i < cache->store_count; i++) {
        int id;
        if (cache->stores[i].rank == 0 &&
            scr_next_folder(&cache->stores[i], last, &id) == 0 && id < least)
            least = id;
    }
    return least;
}

/* Collective. A folder of which no header tells anything: remains of a checkpoint that
 * was not complete, or of one whose headers cannot be used. */
static int judge_folder(scr_cache *cache, int id, int *highest, char *err)
{
    enum { KNOWN, REMAINS, ALL };
    const scr_dataset unknown = {.id = id};
    int is[ALL] = {knows(cache->map, id) || scr_cached_find(cache, id) != NULL,
                   scr_catalog_has_redundancy(cache, id)};
    MPI_Allreduce(MPI_IN_PLACE, is, ALL, MPI_INT, MPI_MAX, cache->job->world);
    if (is[KNOWN]) return 0;
    if (!is[REMAINS]) {
        scr_say(cache->job->report, 1,
                "removing what a run that was interrupted left of dataset %d", id);
        scr_dataset_folder_remove(cache, id);
        return 0;
    }
    if (id > *highest) *highest = id;
    scr_say(cache->job->report, 0,
            "warning: dataset %d is lost from the cache; what is left of it stays there "
            "until a newer checkpoint is complete: none of its redundancy files can be "
            "used",
            id);
    return scr_cached_note(cache, &unknown, SCR_CACHED_USELESS, err);
}

int scr_cache_sweep(scr_cache *cache, int *highest, char *err)
{
    for (int last = 0;;) {
        last = next_folder(cache, last);
        MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT, MPI_MIN, cache->job->world);
        if (last == INT_MAX) return 0;
        int rc = judge_folder(cache, last, highest, err);
        if (rc) return rc;
    }
}
