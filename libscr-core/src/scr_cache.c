/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in the cache: listing, making room, removing, and the records of it. */
#include "scr_context.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include "records/scr_flush_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int scr_cached_get(const struct scr *scr, int id, scr_dataset *dataset)
{
    const kvtree *tree = scr_filemap_get_dataset(scr->map, id, scr->rank);
    return scr_dataset_from_tree(tree, dataset, NULL) == 0 ? 0 : -ENOENT;
}

static int list_own(const struct scr *scr, int *count, scr_cached **list)
{
    int n = 0, *ids = NULL;
    int rc = scr_filemap_list_datasets(scr->map, &n, &ids);
    scr_cached *all = rc ? NULL : calloc((size_t)n + 1, sizeof *all);
    for (int i = 0; all && i < n; i++) {
        scr_dataset d;
        if (scr_cached_get(scr, ids[i], &d) != 0) continue;
        /* an entry of our own rank may be a leftover of an earlier dataset of that id */
        if (d.ranks != scr->ranks || kvtree_get_kv_int(scr->aside, "ID", d.id) ||
            kvtree_get_kv_int(scr->aside, "OTHER", d.id))
            continue;
        all[(*count)++] = (scr_cached){.id = d.id,
                                       .ckpt = d.ckpt,
                                       .output = d.output,
                                       .flushing = d.id == scr_flush_id(scr)};
    }
    free(ids);
    *list = all;
    return all ? 0 : -ENOMEM;
}

scr_cached *scr_cached_list(const struct scr *scr, int *count)
{
    scr_cached *list = NULL;
    *count = 0;
    int failed = list_own(scr, count, &list) != 0;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, scr->world);
    if (!failed) return list;
    scr_say(scr, 0, "warning: no memory to list the cache; it counts as empty");
    free(list);
    *count = 0;
    return NULL;
}

int scr_cached_newest(const struct scr *scr)
{
    int count;
    scr_cached *list = scr_cached_list(scr, &count);
    int newest = scr_decide_newest(list, count);
    int id = newest < 0 ? 0 : list[newest].id;
    free(list);
    return id;
}

int scr_map_write(const struct scr *scr, char *err)
{
    int rc = scr_filemap_write(scr->control_fd, scr->map_name, scr->map, err);
    return rc ? err_wrap(err, rc, "node %s: %s", scr->node_name, scr->control) : 0;
}

/* ---- records ---- */

static int record_reddesc(struct scr *scr, int id, const redset_place *place)
{
    kvtree *desc = kvtree_new();
    int rc = kvtree_util_set_int(desc, "ENABLED", 1);
    rc = rc ? rc : kvtree_util_set_int(desc, "INDEX", 0);
    rc = rc ? rc : kvtree_util_set_int(desc, "INTERVAL", 1);
    rc = rc ? rc : kvtree_util_set_str(desc, "BASE", scr->set.cache_base);
    rc = rc ? rc : kvtree_util_set_str(desc, "DIRECTORY", scr->cache);
    rc = rc ? rc : kvtree_util_set_str(desc, "TYPE", redset_scheme_name(place->scheme));
    rc = rc ? rc : kvtree_util_set_int(desc, "SET_SIZE", scr->set.set_size);
    rc = rc ? rc : kvtree_util_set_int(desc, "SET_FAILURES", place->failures);
    rc = rc ? rc : kvtree_util_set_int(desc, "GROUPS", place->sets);
    rc = rc ? rc : kvtree_util_set_int(desc, "GROUP_ID", place->id);
    rc = rc ? rc : kvtree_util_set_int(desc, "GROUP_SIZE", place->members);
    rc = rc ? rc : kvtree_util_set_int(desc, "GROUP_RANK", place->member);
    rc = rc ? rc : scr_filemap_set_reddesc(scr->map, id, scr->rank, desc);
    kvtree_delete(&desc);
    return rc;
}

static kvtree *record_file(struct scr *scr, int id, const char *name, const char *type,
                           unsigned long size)
{
    char *folder = scr_dataset_folder(scr, id), *path = NULL;
    if (folder && asprintf(&path, "%s/%s", folder, name) < 0) path = NULL;
    kvtree *meta = path ? scr_filemap_add_file(scr->map, id, scr->rank, path) : NULL;
    int rc = kvtree_util_set_str(meta, SCR_META_FILE, name);
    rc = rc ? rc : kvtree_util_set_str(meta, SCR_META_TYPE, type);
    rc = rc ? rc : kvtree_util_set_int(meta, SCR_META_RANKS, scr->ranks);
    rc = rc ? rc : kvtree_util_set_int(meta, SCR_META_COMPLETE, 1);
    rc = rc ? rc : kvtree_util_set_bytecount(meta, SCR_META_SIZE, size);
    free(folder);
    free(path);
    return rc ? NULL : meta;
}

int scr_map_record(struct scr *scr, const scr_dataset *dataset,
                   const redset_manifest *manifest, char *err)
{
    int id = dataset->id, bad = 0;
    kvtree *tree = kvtree_new();
    scr_filemap_remove_rank(scr->map, id, scr->rank);
    for (int i = 0; i < manifest->count; i++) {
        const redset_file *f = &manifest->files[i];
        kvtree *meta = record_file(scr, id, f->name, SCR_META_FULL, f->size);
        bad = bad || !meta || kvtree_util_set_crc32(meta, SCR_META_CRC, f->crc) != 0;
        static const char *const kept[] = {SCR_META_ORIG, SCR_META_PATH, SCR_META_NAME};
        for (size_t k = 0; !bad && k < sizeof kept / sizeof *kept; k++) {
            const char *text = kvtree_get_val(f->meta, kept[k]);
            if (text) bad = kvtree_util_set_str(meta, kept[k], text) != 0;
        }
    }
    bad = bad ||
          !record_file(scr, id, manifest->file,
                       redset_scheme_name(manifest->place.scheme), manifest->file_size);
    bad = bad || record_reddesc(scr, id, &manifest->place) != 0 || !tree ||
          scr_dataset_to_tree(dataset, tree) != 0 ||
          scr_filemap_set_dataset(scr->map, id, scr->rank, tree) != 0 ||
          scr_filemap_set_expected(scr->map, id, scr->rank, manifest->count + 1) != 0;
    kvtree_delete(&tree);
    return bad ? err_set(err, -ENOMEM, "no memory for the filemap") : 0;
}

void scr_location(struct scr *scr, const scr_dataset *dataset, const char *location,
                  int on)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr->rank != 0) return;
    if (scr_flush_file_set(scr->flush, dataset->id, dataset->name, location, on) != 0 ||
        scr_flush_file_write(scr->prefix_fd, scr->flush, err) != 0)
        scr_say(scr, 0, "warning: the flush file could not be written: %s", err);
}

int scr_location_has(struct scr *scr, int id, const char *location)
{
    int has = scr->rank == 0 && scr_flush_file_has(scr->flush, id, location);
    MPI_Bcast(&has, 1, MPI_INT, 0, scr->world);
    return has;
}

/* ---- removing ---- */

void scr_cache_delete(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "", name[64];
    scr_flush_stop(scr, id);
    scr_filemap_remove_dataset(scr->map, id);
    /* the map first: files that no map knows are swept away at the next start */
    if (scr_map_write(scr, err) != 0) scr_event_local(scr, 0, err);
    MPI_Barrier(scr->node);
    snprintf(name, sizeof name, "scr.dataset.%d", id);
    if (scr->node_rank == 0 && beneath_remove_tree(scr->cache_fd, name, err) != 0)
        scr_event_local(scr, 0, err);
    if (scr->rank == 0) {
        scr_flush_file_remove(scr->flush, id);
        if (scr_flush_file_write(scr->prefix_fd, scr->flush, err) != 0)
            scr_event_local(scr, 0, err);
    }
    MPI_Barrier(scr->node);
}

void scr_cached_sums(const struct scr *scr, int id, unsigned long sums[2])
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(scr->map, id, scr->rank));
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

void scr_cache_delete_aside(struct scr *scr, int above)
{
    const kvtree_elem *next, *e = kvtree_elem_first(kvtree_get(scr->aside, "ID"));
    for (; e; e = next) {
        int id = kvtree_elem_key_int(e);
        next = kvtree_elem_next(e);
        if (id <= above) continue;
        scr_cache_delete(scr, id);
        kvtree_unset_kv_int(scr->aside, "ID", id);
    }
}

/* An output that could not be flushed when it was written gets another chance. */
static void flush_before_leaving(struct scr *scr, const scr_cached *cached)
{
    if (!cached->output || scr_location_has(scr, cached->id, SCR_LOCATION_PFS)) return;
    if (scr_flush_dataset(scr, cached->id) != SCR_SUCCESS)
        scr_say(
            scr, 0,
            "warning: output dataset %d leaves the cache, and is lost, because the cache "
            "holds %d datasets and it cannot be flushed",
            cached->id, scr->set.cache_size);
}

void scr_cache_make_room(struct scr *scr, int capacity, int spare_newest)
{
    /* a victim that is still listed could not be removed, for lack of memory */
    for (int last = 0;;) {
        int count;
        scr_cached *list = scr_cached_list(scr, &count);
        int out = scr_decide_evict(list, count, capacity);
        int wait = scr_decide_wait(list, count, capacity);
        scr_cached victim = {.id = 0};
        if (out >= 0 && !(spare_newest && out == scr_decide_newest(list, count)))
            victim = list[out];
        free(list);
        if (wait) {
            scr_flush_wait(scr);
            continue;
        }
        if (!victim.id || victim.id == last) return;
        last = victim.id;
        flush_before_leaving(scr, &victim);
        scr_say(scr, 2, "dataset %d leaves the cache", victim.id);
        scr_cache_delete(scr, victim.id);
    }
}

/* 1 when any rank's map has the dataset; ids come in ascending order, the same on every
 * rank. */
static int known(const struct scr *scr, const int *mine, int count, int id)
{
    int has = 0;
    for (int i = 0; i < count; i++)
        has = has || mine[i] == id;
    MPI_Allreduce(MPI_IN_PLACE, &has, 1, MPI_INT, MPI_MAX, scr->world);
    return has;
}

/* The smallest id above last for which this node has a folder; INT_MAX if there is none.
 */
static int next_folder(const struct scr *scr, int last)
{
    int least = INT_MAX,
        copy = openat(scr->cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        io_close(&copy);
        return least;
    }
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

void scr_cache_sweep(struct scr *scr)
{
    int count = 0, *mine = NULL, last = 0;
    char err[SCR_ERR_TEXT] = "", name[64];
    if (scr_filemap_list_datasets(scr->map, &count, &mine) != 0) count = 0;
    for (;;) {
        int id = scr->node_rank == 0 ? next_folder(scr, last) : INT_MAX;
        MPI_Allreduce(MPI_IN_PLACE, &id, 1, MPI_INT, MPI_MIN, scr->world);
        if (id == INT_MAX) break;
        last = id;
        if (known(scr, mine, count, id)) continue;
        snprintf(name, sizeof name, "scr.dataset.%d", id);
        scr_say(scr, 1, "removing what a run that was interrupted left of dataset %d",
                id);
        if (scr->node_rank == 0 && beneath_remove_tree(scr->cache_fd, name, err) != 0)
            scr_event_local(scr, 0, err);
        MPI_Barrier(scr->world);
    }
    free(mine);
}
