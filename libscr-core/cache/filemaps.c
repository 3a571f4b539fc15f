/* SPDX-License-Identifier: BSD-3-Clause */
/* Filemaps: each process records the files that it is responsible for, for people and
 * commands (SCR Developer Guide 1.2, section 2.26.4). A run reads those of earlier runs
 * for the files of ranks whose redundancy file is lost (cache/catalog.c). */
#include "cache/cache.h"

#include "base/path.h"
#include "base/transient.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/record_size.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ---- */

/* Ignores a damaged file, which counts as lost, and reports it. A file that cannot be
 * read now is an error. */
static int filemaps_skip_damaged(const scr_cache *cache, int rc, const char *err)
{
    if (rc && scr_is_transient(rc)) return rc;
    if (rc && rc != -ENOENT) scr_control_warn(cache, err);
    return 0;
}

/* Reads all filemaps in the directory if there is no usable master file. */
int scr_filemaps_read(const scr_cache *cache, scr_filemap *all, kvtree_error *err)
{
    kvtree *names = kvtree_new();
    int found = names ? scr_filemap_names(cache->control_fd, 0, names, err)
                      : err_set(err, -ENOMEM, "no memory");
    int rc = filemaps_skip_damaged(cache, found, err->text);
    if (!rc && found) rc = scr_filemap_names(cache->control_fd, 1, names, err);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        rc = filemaps_skip_damaged(
            cache, scr_filemap_read(cache->control_fd, name, cache->job->owner, all, err),
            err->text);
    }
    kvtree_delete(&names);
    return rc;
}

/* Whether some rank has the dataset as a complete checkpoint. */
static bool filemaps_has_checkpoint(const scr_filemap *map, int id)
{
    const kvtree_elem *r = scr_filemap_ranks_of(map, id);
    for (; r; r = kvtree_elem_next(r)) {
        scr_dataset d;
        const kvtree *tree = scr_filemap_get_dataset(map, id, kvtree_elem_key_int(r));
        if (scr_dataset_from_tree(tree, &d, NULL) == 0 && d.ckpt && d.complete)
            return true;
    }
    return false;
}

int scr_filemaps_newest(const scr_cache *cache)
{
    kvtree_error err = {""};
    int newest = 0;
    scr_filemap *map = kvtree_new();
    if (!map || scr_filemaps_read(cache, map, &err) != 0) kvtree_unset_all(map);
    for (const kvtree_elem *d = scr_filemap_datasets(map); d; d = kvtree_elem_next(d)) {
        const int id = kvtree_elem_key_int(d);
        if (id > newest && filemaps_has_checkpoint(map, id)) newest = id;
    }
    kvtree_delete(&map);
    return newest;
}

/* Writes the master file, which names filemaps by full path. */
static int filemaps_write_master(const scr_cache *cache, kvtree_error *err)
{
    kvtree *master = kvtree_new();
    int rc = 0;
    for (int i = 0; i < cache->job->node_ranks; i++) {
        char name[64];
        snprintf(name, sizeof name, "filemap_%d.scriinfo", i);
        char *path = scr_path_join(cache->control, name);
        if (!path || !kvtree_set_kv(master, "Filemap", path))
            rc = err_set(err, -ENOMEM, "no memory");
        free(path);
    }
    rc = rc ? rc
            : kvtree_file_write(cache->control_fd, SCR_FILEMAP_MASTER, RECORD_SIZE_SMALL,
                                master, err);
    kvtree_delete(&master);
    return rc;
}

/* Removes filemaps of processes that this run does not have, and temporary files. */
static void filemaps_remove_if_old(const scr_cache *cache, const char *name)
{
    int i;
    size_t n = strlen(name);
    int old = sscanf(name, "filemap_%d.scriinfo", &i) == 1 && i >= cache->job->node_ranks;
    int temporary = name[0] == '.' && n > 4 && strcmp(name + n - 4, ".tmp") == 0;
    if (old || temporary) unlinkat(cache->control_fd, name, 0);
}

static void filemaps_remove_old(const scr_cache *cache)
{
    DIR *stream = beneath_list(cache->control_fd);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        filemaps_remove_if_old(cache, item->d_name);
    if (stream) closedir(stream);
}

int scr_filemaps_write(const scr_cache *cache, kvtree_error *err)
{
    int rc = scr_filemap_write(cache->control_fd, cache->map_name, cache->map, err);
    return rc ? err_wrap(err, rc, "node %s: %s", cache->job->node_name, cache->control)
              : 0;
}

int scr_filemaps_begin(scr_cache *cache, kvtree_error *err)
{
    int rc = scr_filemaps_write(cache, err);
    if (rc == 0 && cache->job->node_rank == 0) {
        rc = filemaps_write_master(cache, err);
        rc = rc ? rc : scr_record_update(cache, err);
        if (rc) err_wrap(err, rc, "node %s: %s", cache->job->node_name, cache->control);
    }
    rc = agree(cache->job->world, rc, err);
    if (!rc && cache->job->node_rank == 0) filemaps_remove_old(cache);
    return rc;
}

/* ---- entries ---- */

/* Enters the descriptor of a rank as applied in this run: with the actual scheme, and its
 * location. */
static int filemaps_enter_reddesc(scr_cache *cache, int id, const redset_manifest *m)
{
    const redset_place *place = &m->place;
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
    rc = rc ? rc : scr_filemap_set_reddesc(cache->map, id, m->rank, tree);
    kvtree_delete(&tree);
    return rc;
}

/* The files of one rank in a dataset. */
struct filemaps_entry {
    scr_filemap *map;
    int id, rank;
    const char *folder;
};

static kvtree *filemaps_enter_file(const struct filemaps_entry *r, const char *name,
                                   const char *type, int ranks, unsigned long size)
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

static int filemaps_enter_files(const struct filemaps_entry *r,
                                const scr_dataset *dataset,
                                const redset_manifest *manifest)
{
    static const char *const kept[] = {SCR_META_ORIG, SCR_META_PATH, SCR_META_NAME};
    const char *scheme = redset_scheme_name(manifest->place.scheme);
    int bad = 0;
    for (int i = 0; i < manifest->count && !bad; i++) {
        const redset_file *f = &manifest->files[i];
        kvtree *meta =
            filemaps_enter_file(r, f->name, SCR_META_FULL, dataset->ranks, f->size);
        bad = !meta || (manifest->checksums &&
                        kvtree_util_set_crc32(meta, SCR_META_CRC, f->crc) != 0);
        for (size_t k = 0; !bad && k < sizeof kept / sizeof *kept; k++) {
            const char *text = kvtree_get_val(f->meta, kept[k]);
            if (text) bad = kvtree_util_set_str(meta, kept[k], text) != 0;
        }
    }
    return bad || !filemaps_enter_file(r, manifest->file, scheme, dataset->ranks,
                                       manifest->file_size)
               ? -ENOMEM
               : 0;
}

int scr_map_record_found(scr_filemap *map, const scr_dataset *dataset, const char *folder,
                         const redset_manifest *manifest)
{
    const struct filemaps_entry r = {map, dataset->id, manifest->rank, folder};
    kvtree *tree = kvtree_new();
    int rc = filemaps_enter_files(&r, dataset, manifest);
    rc = rc ? rc : tree ? scr_dataset_to_tree(dataset, tree) : -ENOMEM;
    rc = rc ? rc : scr_filemap_set_dataset(map, r.id, r.rank, tree);
    rc = rc ? rc : scr_filemap_set_expected(map, r.id, r.rank, manifest->count + 1);
    if (rc) scr_filemap_remove_rank(map, r.id, r.rank);
    kvtree_delete(&tree);
    return rc;
}

int scr_map_record(scr_cache *cache, const scr_dataset *dataset,
                   const redset_manifest *manifest, kvtree_error *err)
{
    char *folder = scr_dataset_folder(cache, dataset->id);
    scr_filemap_remove_rank(cache->map, dataset->id, manifest->rank);
    int rc =
        folder ? scr_map_record_found(cache->map, dataset, folder, manifest) : -ENOMEM;
    rc = rc ? rc : filemaps_enter_reddesc(cache, dataset->id, manifest);
    free(folder);
    if (rc) return err_set(err, rc, "no memory for the filemap");
    scr_cached *cached = scr_cached_find(cache, dataset->id);
    cached->d = *dataset;
    cached->state = SCR_CACHED_GOOD;
    return 0;
}
