/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in the cache: listing, making room, removing, and the records of it. */
#include "ops/catalog.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/number.h"
#include "ops/async_eviction.h"
#include "prefix/flush_file.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

int scr_cached_get(const struct scr *scr, int id, scr_dataset *dataset)
{
    const kvtree *tree = scr_filemap_get_dataset(scr->cache.map, id, scr->job.rank);
    return scr_dataset_from_tree(tree, dataset, NULL) == 0 ? 0 : -ENOENT;
}

/* 1 when this run can use it; fills in what is to be known of it then. */
static int is_usable(const struct scr *scr, int id, scr_cached *cached)
{
    scr_dataset d;
    if (scr_cached_get(scr, id, &d) != 0) return 0;
    /* an entry of our own rank may be a leftover of an earlier dataset of that id */
    if (d.ranks != scr->job.ranks || kvtree_get_kv_int(scr->cache.aside, "ID", d.id) ||
        kvtree_get_kv_int(scr->cache.aside, "OTHER", d.id))
        return 0;
    *cached = (scr_cached){.id = d.id,
                           .ckpt = d.ckpt,
                           .output = d.output,
                           .flushing = d.id == scr_flush_id(scr)};
    return 1;
}

static int list_own(const struct scr *scr, int *count, scr_cached **list)
{
    int n = 0, *ids = NULL;
    int rc = scr_filemap_list_datasets(scr->cache.map, &n, &ids);
    scr_cached *all = rc ? NULL : calloc((size_t)n + 1, sizeof *all);
    for (int i = 0; all && i < n; i++)
        *count += is_usable(scr, ids[i], &all[*count]);
    free(ids);
    *list = all;
    return all ? 0 : -ENOMEM;
}

scr_cached *scr_cached_list(const struct scr *scr, int *count)
{
    scr_cached *list = NULL;
    *count = 0;
    int failed = list_own(scr, count, &list) != 0;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (!failed) return list;
    scr_say(&scr->report, 0, "warning: no memory to list the cache; it counts as empty");
    free(list);
    *count = 0;
    return NULL;
}

/* Local: fills scr->cache.listed with those of a store; -1: of all. What is in the cache
 * is kept note of. */
static int list_kept(struct scr *scr, int cache)
{
    int count = 0;
    for (int i = 0; i < scr->cache.kept_count; i++)
        if (cache < 0 || (scr->cache.kept[i].store == cache && !scr->cache.kept[i].held))
            count += is_usable(scr, scr->cache.kept[i].id, &scr->cache.listed[count]);
    return count;
}

int scr_cached_newest(struct scr *scr)
{
    int newest = scr_decide_newest(scr->cache.listed, list_kept(scr, -1));
    return newest < 0 ? 0 : scr->cache.listed[newest].id;
}

int scr_map_write(const struct scr *scr, char *err)
{
    int rc = scr_filemap_write(scr->cache.control_fd, scr->cache.map_name, scr->cache.map,
                               err);
    return rc ? err_wrap(err, rc, "node %s: %s", scr->job.node_name, scr->cache.control)
              : 0;
}

/* ---- records ---- */

/* The descriptor, with what is of this run: the scheme that was applied in the end, and
 * where. */
static int record_reddesc(struct scr *scr, int id, const redset_place *place)
{
    const scr_kept *kept = scr_kept_find(scr, id);
    const scr_store_dir *cache = &scr->cache.stores[kept->store];
    scr_reddesc desc = kept->desc;
    scr_reddesc_place here = {.groups = place->sets,
                              .group_id = place->id,
                              .group_size = place->members,
                              .group_rank = place->member};
    kvtree *tree = kvtree_new();
    snprintf(desc.type, sizeof desc.type, "%s", redset_scheme_name(place->scheme));
    snprintf(desc.store, sizeof desc.store, "%s", cache->path);
    int n = snprintf(here.directory, sizeof here.directory, "%s", cache->folder);
    int rc = !tree ? -ENOMEM : n >= (int)sizeof here.directory ? -ENAMETOOLONG : 0;
    rc = rc ? rc : scr_reddesc_to_tree(&desc, &here, tree);
    rc = rc ? rc : scr_filemap_set_reddesc(scr->cache.map, id, scr->job.rank, tree);
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

int scr_map_record(struct scr *scr, const scr_dataset *dataset,
                   const redset_manifest *manifest, char *err)
{
    redset_manifest own = *manifest;
    char *folder = scr_dataset_folder(scr, dataset->id);
    own.rank = scr->job.rank;
    scr_filemap_remove_rank(scr->cache.map, dataset->id, scr->job.rank);
    int rc =
        folder ? scr_map_record_found(scr->cache.map, dataset, folder, &own) : -ENOMEM;
    rc = rc ? rc : record_reddesc(scr, dataset->id, &manifest->place);
    free(folder);
    return rc ? err_set(err, rc, "no memory for the filemap") : 0;
}

void scr_location(struct scr *scr, const scr_dataset *dataset, const char *location,
                  int on)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr->job.rank != 0) return;
    int rc = scr_flush_file_set(scr->prefix.flush_file, dataset->id, dataset->name,
                                location, on);
    rc = rc ? err_set(err, rc, "no memory")
            : scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err);
    if (rc)
        scr_say(&scr->report, 0, "warning: the flush file could not be written: %s", err);
}

int scr_location_has(struct scr *scr, int id, const char *location)
{
    int has =
        scr->job.rank == 0 && scr_flush_file_has(scr->prefix.flush_file, id, location);
    MPI_Bcast(&has, 1, MPI_INT, 0, scr->job.world);
    return has;
}

/* ---- removing ---- */

void scr_cache_delete(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "";
    scr_flush_stop(scr, id);
    scr_cache_verify(scr, id);
    scr_filemap_remove_dataset(scr->cache.map, id);
    /* the map first: files that no map knows are swept away at the next start */
    if (scr_map_write(scr, err) != 0) scr_event_local(&scr->report, 0, err);
    scr_dataset_folder_remove(scr, id);
    if (scr->job.rank == 0) {
        scr_flush_file_remove(scr->prefix.flush_file, id);
        if (scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err) != 0)
            scr_event_local(&scr->report, 0, err);
    }
}

void scr_cached_sums(const struct scr *scr, int id, unsigned long sums[2])
{
    const kvtree_elem *f =
        kvtree_elem_first(scr_filemap_files(scr->cache.map, id, scr->job.rank));
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

void scr_cache_set_aside(struct scr *scr, int id, const char *why)
{
    kvtree *entry = kvtree_set_kv_int(scr->cache.aside, "ID", id);
    kvtree_set(entry, why, NULL);
}

int scr_cache_is_aside(const struct scr *scr, int id, const char *why)
{
    return kvtree_get(kvtree_get_kv_int(scr->cache.aside, "ID", id), why) != NULL;
}

int scr_cache_has_aside(const struct scr *scr, const char *why)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(scr->cache.aside, "ID"));
    while (e && !kvtree_get(kvtree_elem_hash(e), why))
        e = kvtree_elem_next(e);
    return e != NULL;
}

void scr_cache_delete_aside(struct scr *scr, int above, const char *why)
{
    const kvtree_elem *next, *e = kvtree_elem_first(kvtree_get(scr->cache.aside, "ID"));
    for (; e; e = next) {
        int id = kvtree_elem_key_int(e);
        next = kvtree_elem_next(e);
        if (id <= above || (why && !kvtree_get(kvtree_elem_hash(e), why))) continue;
        scr_cache_delete(scr, id);
        kvtree_unset_kv_int(scr->cache.aside, "ID", id);
    }
}

/* Keeps one more than the store should have, but not more than twice as many. */
static int hold(struct scr *scr, int cache, int id)
{
    int held = 0, most = scr->cache.stores[cache].capacity;
    for (int i = 0; i < scr->cache.kept_count; i++)
        held += scr->cache.kept[i].store == cache && scr->cache.kept[i].held;
    if (held >= (most > 1 ? most : 1)) return 0;
    scr_kept_find(scr, id)->held = 1;
    return 1;
}

/* Collective. An output that could not be flushed when it was written gets another
 * chance; and the only checkpoint is not given up for something that nobody can restart
 * from. 0: it stays. */
static int can_leave(struct scr *scr, const scr_cached *cached, int needed, int cache)
{
    const scr_store_dir *c = &scr->cache.stores[cache];
    if (!cached->output && !needed) return 1;
    if (scr_location_has(scr, cached->id, SCR_LOCATION_PFS)) return 1;
    if (scr_flush_dataset(scr, cached->id) == SCR_SUCCESS) return 1;
    if (!scr_kept_find(scr, cached->id)) return 0; /* it was lost, as the flush found */
    if (hold(scr, cache, cached->id)) {
        scr_say(&scr->report, 0,
                "warning: dataset %d cannot be flushed, so it stays in %s, which holds "
                "more than %d datasets now",
                cached->id, c->folder, c->capacity);
        return 0;
    }
    scr_say(&scr->report, 0,
            "warning: dataset %d leaves the cache, and is lost, because it cannot be "
            "flushed, and %s has too many others that cannot",
            cached->id, c->folder);
    return 1;
}

/* Collective. The dataset that has to leave a store so that there are less than capacity,
 * when nothing needs it any more; 0: none, or none but spare. */
static int next_victim(struct scr *scr, int cache, int capacity, int spare)
{
    for (;;) {
        int newest = scr_cached_newest(scr), count = list_kept(scr, cache);
        if (scr_decide_wait(scr->cache.listed, count, capacity)) {
            scr_flush_wait(scr);
            continue;
        }
        int out = scr_decide_evict(scr->cache.listed, count, capacity);
        if (out < 0 || scr->cache.listed[out].id == spare) return 0;
        scr_cached victim = scr->cache.listed[out];
        if (!can_leave(scr, &victim, victim.id == newest && !scr->lifecycle.open.ckpt,
                       cache))
            continue;
        scr_say(&scr->report, 2, "dataset %d leaves the cache", victim.id);
        return victim.id;
    }
}

void scr_cache_try_again(struct scr *scr)
{
    for (int i = 0; i < scr->cache.kept_count; i++)
        scr->cache.kept[i].held = 0;
}

void scr_cache_make_room(struct scr *scr, int cache, int capacity, int spare_newest)
{
    int spare = spare_newest ? scr_cached_newest(scr) : 0, id, last = 0;
    /* a victim that is still listed could not be removed, for lack of memory */
    while ((id = next_victim(scr, cache, capacity, spare)) != 0 && id != last) {
        scr_cache_delete(scr, id);
        last = id;
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
static int is_tight(const struct scr *scr, int cache, int id)
{
    unsigned long own[2];
    scr_cached_sums(scr, id, own);
    return lacks_room(&scr->cache.stores[cache], own[1]);
}

/* Bytes of this process in the largest dataset that is known. */
static unsigned long largest(const struct scr *scr)
{
    int count = 0, *ids = NULL;
    unsigned long most = 0, own[2];
    if (scr_filemap_list_datasets(scr->cache.map, &count, &ids) != 0) count = 0;
    for (int i = 0; i < count; i++) {
        scr_cached_sums(scr, ids[i], own);
        if (own[1] > most) most = own[1];
    }
    free(ids);
    return most;
}

void scr_cache_relieve(struct scr *scr, int cache)
{
    const scr_store_dir *c = &scr->cache.stores[cache];
    if (!scr_cache_has_aside(scr, SCR_ASIDE_USELESS)) return;
    int tight = lacks_room(c, largest(scr));
    MPI_Allreduce(MPI_IN_PLACE, &tight, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (!tight) return;
    scr_say(&scr->report, 0,
            "warning: %s has no room for a new dataset beside the remains of lost ones, "
            "which are removed now",
            c->folder);
    scr_cache_delete_aside(scr, 0, SCR_ASIDE_USELESS);
}

int scr_cache_leave(struct scr *scr, int cache, int capacity, int64_t *tight)
{
    int id = next_victim(scr, cache, capacity, 0);
    *tight = id ? is_tight(scr, cache, id) : 0;
    if (!id) return 0;
    scr_cache_verify(scr, id);
    /* both are written when the new dataset is complete: till then they name one too many
     */
    scr_filemap_remove_dataset(scr->cache.map, id);
    if (scr->job.rank == 0) scr_flush_file_remove(scr->prefix.flush_file, id);
    scr_forget(scr, id);
    return id;
}

void scr_cache_outdate(struct scr *scr)
{
    scr_cache_delete_aside(scr, 0, NULL);
    for (int i = 0; i < scr->cache.store_count; i++)
        if (scr->cache.stores[i].capacity == 0) scr_cache_make_room(scr, i, 1, 0);
}

static int knows(const scr_filemap *map, int id)
{
    int count = 0, *ranks = NULL;
    if (scr_filemap_list_ranks_of(map, id, &count, &ranks) != 0) count = 1;
    free(ranks);
    return count > 0;
}

int scr_next_folder(const scr_store_dir *cache, int last)
{
    int least = INT_MAX;
    DIR *stream = beneath_list(cache->fd);
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

static int next_folder(const struct scr *scr, int last)
{
    int least = INT_MAX;
    for (int i = 0; i < scr->cache.store_count; i++) {
        int id = scr->cache.stores[i].rank == 0
                     ? scr_next_folder(&scr->cache.stores[i], last)
                     : INT_MAX;
        if (id < least) least = id;
    }
    return least;
}

/* Collective. A folder of which no header tells anything: remains of a checkpoint that
 * was not complete, or of one whose headers cannot be used. */
static void judge_folder(struct scr *scr, int id)
{
    enum { KNOWN, REMAINS, ALL };
    int is[ALL] = {knows(scr->cache.map, id) ||
                       kvtree_get_kv_int(scr->cache.aside, "ID", id),
                   knows(scr->cache.hints, id) || scr_catalog_has_redundancy(scr, id)};
    MPI_Allreduce(MPI_IN_PLACE, is, ALL, MPI_INT, MPI_MAX, scr->job.world);
    if (is[KNOWN]) return;
    if (!is[REMAINS]) {
        scr_say(&scr->report, 1,
                "removing what a run that was interrupted left of dataset %d", id);
        scr_dataset_folder_remove(scr, id);
        return;
    }
    if (id > scr->lifecycle.dataset_id) scr->lifecycle.dataset_id = id;
    scr_say(&scr->report, 0,
            "warning: dataset %d is lost from the cache; what is left of it stays there "
            "until a newer checkpoint is complete: none of its redundancy files can be "
            "used",
            id);
    scr_cache_set_aside(scr, id, SCR_ASIDE_USELESS);
}

void scr_cache_sweep(struct scr *scr)
{
    for (int last = 0;;) {
        last = next_folder(scr, last);
        MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT, MPI_MIN, scr->job.world);
        if (last == INT_MAX) break;
        judge_folder(scr, last);
    }
}
