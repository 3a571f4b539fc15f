/* SPDX-License-Identifier: BSD-3-Clause */
/* The datasets in the cache: listing, records, and what this run cannot use. */
#include "cache/catalog.h"

#include "base/path.h"
#include "cache/removal.h"
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

int scr_cached_get(const scr_cache *cache, int id, scr_dataset *dataset)
{
    const kvtree *tree = scr_filemap_get_dataset(cache->map, id, cache->job->rank);
    return scr_dataset_from_tree(tree, dataset, NULL) == 0 ? 0 : -ENOENT;
}

/* 1 when this run can use it; fills in what is to be known of it then. */
static int is_usable(const scr_cache *cache, int id, scr_cached *cached)
{
    scr_dataset d;
    const scr_kept *kept = scr_kept_find(cache, id);
    int held = kept && kept->held;
    if (scr_cached_get(cache, id, &d) != 0) return 0;
    /* an entry of our own rank may be a leftover of an earlier dataset of that id */
    if (d.ranks != cache->job->ranks || kvtree_get_kv_int(cache->aside, "ID", d.id) ||
        kvtree_get_kv_int(cache->aside, "OTHER", d.id))
        return 0;
    *cached = (scr_cached){.id = d.id,
                           .ckpt = d.ckpt,
                           .output = d.output,
                           .flushing = d.id == cache->flushing,
                           .held = held};
    return 1;
}

static int list_own(const scr_cache *cache, int *count, scr_cached **list)
{
    int n = 0, *ids = NULL;
    int rc = scr_filemap_list_datasets(cache->map, &n, &ids);
    scr_cached *all = rc ? NULL : calloc((size_t)n + 1, sizeof *all);
    for (int i = 0; all && i < n; i++)
        *count += is_usable(cache, ids[i], &all[*count]);
    free(ids);
    *list = all;
    return all ? 0 : -ENOMEM;
}

scr_cached *scr_cached_list(const scr_cache *cache, int *count)
{
    scr_cached *list = NULL;
    *count = 0;
    int failed = list_own(cache, count, &list) != 0;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, cache->job->world);
    if (!failed) return list;
    scr_say(cache->job->report, 0,
            "warning: no memory to list the cache; it counts as empty");
    free(list);
    *count = 0;
    return NULL;
}

int scr_cached_in_store(scr_cache *cache, int store)
{
    int count = 0;
    for (int i = 0; i < cache->kept_count; i++)
        if (store < 0 || cache->kept[i].store == store)
            count += is_usable(cache, cache->kept[i].id, &cache->listed[count]);
    return count;
}

int scr_cached_newest(scr_cache *cache)
{
    int newest = scr_decide_newest(cache->listed, scr_cached_in_store(cache, -1));
    return newest < 0 ? 0 : cache->listed[newest].id;
}

/* ---- records ---- */

/* The descriptor, with what is of this run: the scheme that was applied in the end, and
 * where. */
static int record_reddesc(scr_cache *cache, int id, const redset_place *place)
{
    const scr_kept *kept = scr_kept_find(cache, id);
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
    return rc ? err_set(err, rc, "no memory for the filemap") : 0;
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

void scr_cache_set_aside(scr_cache *cache, int id, const char *why)
{
    kvtree *entry = kvtree_set_kv_int(cache->aside, "ID", id);
    kvtree_set(entry, why, NULL);
}

bool scr_cache_is_aside(const scr_cache *cache, int id, const char *why)
{
    return kvtree_get(kvtree_get_kv_int(cache->aside, "ID", id), why) != NULL;
}

bool scr_cache_has_aside(const scr_cache *cache, const char *why)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(cache->aside, "ID"));
    while (e && !kvtree_get(kvtree_elem_hash(e), why))
        e = kvtree_elem_next(e);
    return e != NULL;
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

int scr_next_folder(const scr_store_dir *store, int last)
{
    int least = INT_MAX;
    DIR *stream = beneath_list(store->fd);
    if (!stream) return least;
    const struct dirent *item;
    while ((item = readdir(stream)) != NULL) {
        int64_t id;
        if (strncmp(item->d_name, "scr.dataset.", 12) == 0 &&
            number_int64(item->d_name + 12, &id) == 0 && id > last && id < least)
            least = (int)id;
    }
    closedir(stream);
    return least;
}

static int next_folder(const scr_cache *cache, int last)
{
    int least = INT_MAX;
    for (int i = 0; i < cache->store_count; i++) {
        int id = cache->stores[i].rank == 0 ? scr_next_folder(&cache->stores[i], last)
                                            : INT_MAX;
        if (id < least) least = id;
    }
    return least;
}

/* Collective. A folder of which no header tells anything: remains of a checkpoint that
 * was not complete, or of one whose headers cannot be used. */
static void judge_folder(scr_cache *cache, int id, int *highest)
{
    enum { KNOWN, REMAINS, ALL };
    int is[ALL] = {knows(cache->map, id) || kvtree_get_kv_int(cache->aside, "ID", id),
                   scr_catalog_has_redundancy(cache, id)};
    MPI_Allreduce(MPI_IN_PLACE, is, ALL, MPI_INT, MPI_MAX, cache->job->world);
    if (is[KNOWN]) return;
    if (!is[REMAINS]) {
        scr_say(cache->job->report, 1,
                "removing what a run that was interrupted left of dataset %d", id);
        scr_dataset_folder_remove(cache, id);
        return;
    }
    if (id > *highest) *highest = id;
    scr_say(cache->job->report, 0,
            "warning: dataset %d is lost from the cache; what is left of it stays there "
            "until a newer checkpoint is complete: none of its redundancy files can be "
            "used",
            id);
    scr_cache_set_aside(cache, id, SCR_ASIDE_USELESS);
}

void scr_cache_sweep(scr_cache *cache, int *highest)
{
    for (int last = 0;;) {
        last = next_folder(cache, last);
        MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT, MPI_MIN, cache->job->world);
        if (last == INT_MAX) break;
        judge_folder(cache, last, highest);
    }
}
