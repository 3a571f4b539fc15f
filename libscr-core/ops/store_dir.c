/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores in use, and which dataset lies in which. There is one for each store that a
 * redundancy descriptor in force names, in the same order on every rank; behind them come
 * those that only an earlier run used, as long as datasets of it are there. The path of a
 * store may differ between nodes (SCR_CACHE_BASE), its number never does. */
#include "ops/context.h"

#include "base/path.h"
#include "cache/base.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/split_mpi.h"
#include "ops/async_eviction.h"
#include "ops/folders.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

int scr_open_private(const scr_private *where, char **path, int *fd, char *err)
{
    const char *what = where->what, *base = where->base;
    char below[SCR_BASE_NAME];
    int made = -1, rc = -ENOENT;
    if (base[0] != '/')
        return err_set(err, -EINVAL, "%s=%s is not an absolute path", what, base);
    /* paths of cached files are compared as text later, so the base is reduced first */
    char *reduced = scr_path_strdup_reduce_str(base);
    if (!reduced) return err_set(err, -ENOMEM, "no memory");
    /* a run that ends well may remove what is empty of it just now */
    for (int i = 0; i < 3 && rc == -ENOENT; i++) {
        rc = where->make ? folder_make(reduced, 0700, &made, err) : 0;
        io_close(&made);
        if (!rc && scr_base_name(reduced, where->name, below) < 0)
            rc = err_sys(err, -ENAMETOOLONG, "%s", where->name);
        rc = rc ? rc : beneath_private_folder(reduced, below, fd, err);
    }
    if (rc)
        err_wrap(err, rc, "%s=%s", what, base);
    else if (!(*path = scr_path_join(reduced, below)))
        rc = err_set(err, -ENOMEM, "no memory");
    free(reduced);
    return rc;
}

void scr_remove_private(const char *base, const char *name)
{
    char part[SCR_BASE_NAME];
    int dir, rc = 0;
    if (scr_base_name(base, name, part) < 0 || beneath_open_folder(base, &dir, NULL) != 0)
        return;
    while (!rc && part[0]) {
        char *slash = strrchr(part, '/');
        rc = beneath_rmdir(dir, part, NULL);
        *(slash ? slash : part) = 0;
    }
    io_close(&dir);
}

/* A new one at the end of the list. */
static scr_store_dir *append(struct scr *scr)
{
    size_t size = ((size_t)scr->cache.store_count + 1) * sizeof *scr->cache.stores;
    scr_store_dir *list = realloc(scr->cache.stores, size);
    if (!list) return NULL;
    scr->cache.stores = list;
    list += scr->cache.store_count;
    *list = (scr_store_dir){.fd = -1, .comm = MPI_COMM_NULL};
    return list;
}

static void close_cache(scr_store_dir *cache, MPI_Comm node, MPI_Comm world)
{
    io_close(&cache->fd);
    free(cache->folder);
    if (cache->comm != MPI_COMM_NULL && cache->comm != node && cache->comm != world)
        MPI_Comm_free(&cache->comm);
}

/* Collective, agreed. The processes that share a store: they see the same folder, and the
 * first of them makes and removes what is in it. */
static int find_sharers(struct scr *scr, const scr_store *store, scr_store_dir *cache,
                        char *err)
{
    int world = strcmp(store->group, "WORLD") == 0, rc = 0;
    int node = strcmp(store->group, "NODE") == 0;
    cache->global = strcmp(store->view, "GLOBAL") == 0;
    if (world || (node && cache->global)) {
        cache->comm = scr->job.world;
    } else if (node) {
        cache->comm = scr->job.node;
    } else {
        const char *value =
            scr_groups_value(&scr->descs.groups, store->group, scr->job.node_name);
        if (!value)
            rc = err_set(err, -EINVAL, "node %s has no value for the group %s in GROUPS",
                         scr->job.node_name, store->group);
        rc = agree(scr->job.world, rc, err);
        if (!rc && split_by_string(scr->job.world, value, &cache->comm) != MPI_SUCCESS)
            rc = err_set(err, -EIO, "the group %s cannot be formed", store->group);
        rc = agree(scr->job.world, rc, err);
    }
    if (!rc) MPI_Comm_rank(cache->comm, &cache->rank);
    return rc;
}

/* Local. */
static int open_cache(struct scr *scr, const scr_store *store, const char *path,
                      scr_store_dir *cache, char *err)
{
    const scr_private where = {.what =
                                   !store || store->implied ? "SCR_CACHE_BASE" : "STORE",
                               .base = path,
                               .name = scr->job.owner,
                               .make = !store || store->mkdir};
    snprintf(cache->path, sizeof cache->path, "%s", path);
    int rc = scr_open_private(&where, &cache->folder, &cache->fd, err);
    if (!rc && cache->rank == 0) scr_removal_sweep(scr, cache);
    if (rc == -ENOENT && !where.make)
        err_set(err, rc, "STORE=%s is not there, and is not to be made (MKDIR=0)", path);
    return rc ? err_wrap(err, rc, "node %s", scr->job.node_name) : 0;
}

/* Collective, agreed. */
static int open_store(struct scr *scr, const scr_reddesc *desc, char *err)
{
    const scr_store *store = scr_stores_find(&scr->descs.stores, desc->store);
    scr_store_dir *cache = append(scr);
    int rc = cache && store ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc : find_sharers(scr, store, cache, err);
    if (rc) return rc;
    scr->cache.store_count++;
    cache->capacity = store->count;
    cache->method = store->implied ? scr->set.flush_method
                                   : scr_flush_method(store->type, scr->set.flush_async);
    return agree(scr->job.world, open_cache(scr, store, desc->store, cache, err), err);
}

/* Which descriptors share a store is what rank 0 sees: elsewhere two paths may happen to
 * be the same. of[i]: the first descriptor with the store of number i; -1: it needs none.
 */
static void share_stores(struct scr *scr, int *of)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    for (int i = 0; i < r->count; i++) {
        of[i] = -1;
        if (!r->list[i].enabled || r->list[i].bypass) continue;
        for (int k = 0; k <= i && of[i] < 0; k++)
            if (r->list[k].enabled && !r->list[k].bypass &&
                strcmp(r->list[k].store, r->list[i].store) == 0)
                of[i] = k;
    }
    MPI_Bcast(of, r->count, MPI_INT, 0, scr->job.world);
}

int scr_stores_open(struct scr *scr, char *err)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    int *of = calloc((size_t)r->count, sizeof *of), rc = 0;
    scr->cache.store_of_desc = calloc((size_t)r->count, sizeof *scr->cache.store_of_desc);
    if (!of || !scr->cache.store_of_desc) rc = err_set(err, -ENOMEM, "no memory");
    rc = agree(scr->job.world, rc, err);
    if (!rc) share_stores(scr, of);
    for (int i = 0; i < r->count && !rc; i++) {
        scr->cache.store_of_desc[i] = -1;
        if (of[i] == i) {
            scr->cache.store_of_desc[i] = scr->cache.store_count;
            rc = open_store(scr, &r->list[i], err);
        } else if (of[i] >= 0) {
            scr->cache.store_of_desc[i] = scr->cache.store_of_desc[of[i]];
        }
    }
    free(of);
    return rc;
}

int scr_stores_open_late(struct scr *scr, const scr_reddesc *desc, char *err)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    int number = -1, count = scr->cache.store_count, rc = 0;
    for (int i = 0; i < r->count && number < 0; i++)
        if (strcmp(r->list[i].store, desc->store) == 0)
            number = scr->cache.store_of_desc[i];
    MPI_Bcast(&number, 1, MPI_INT, 0, scr->job.world);
    if (number < 0) {
        number = count;
        rc = open_store(scr, desc, err);
    }
    if (!rc)
        scr->cache.store_of_desc[desc->index] = number;
    else if (scr->cache.store_count > count)
        close_cache(&scr->cache.stores[--scr->cache.store_count], scr->job.node,
                    scr->job.world);
    return rc;
}

void scr_stores_close(struct scr *scr)
{
    scr_removal_settle(scr);
    for (int i = 0; scr->cache.clean && i < scr->cache.store_count; i++)
        if (scr->cache.stores[i].rank == 0)
            scr_remove_private(scr->cache.stores[i].path, scr->job.owner);
    for (int i = 0; i < scr->cache.store_count; i++)
        close_cache(&scr->cache.stores[i], scr->job.node, scr->job.world);
    free(scr->cache.stores);
    free(scr->cache.store_of_desc);
    free(scr->cache.kept);
    free(scr->cache.listed);
    scr->cache.stores = NULL;
    scr->cache.store_of_desc = NULL;
    scr->cache.kept = NULL;
    scr->cache.listed = NULL;
    scr->cache.store_count = scr->cache.kept_count = 0;
}

/* Local. After an error nothing has changed. */
static int renew(struct scr *scr, scr_store_dir *cache, char *err)
{
    char *folder = cache->folder, path[SCR_DESC_PATH_SIZE], line[SCR_ERR_TEXT + 400];
    int fd = cache->fd;
    cache->fd = -1;
    memcpy(path, cache->path, sizeof path);
    const scr_store *store = scr_stores_find(&scr->descs.stores, path);
    int rc = open_cache(scr, store, path, cache, err);
    if (rc) {
        io_close(&cache->fd);
        cache->fd = fd;
        cache->folder = folder;
        return rc;
    }
    io_close(&fd);
    free(folder);
    snprintf(
        line, sizeof line,
        "warning: node %s: somebody has removed %s of this run, which is made again; "
        "the datasets in it are lost%s",
        scr->job.node_name, cache->folder, cache->global ? "" : " on this node");
    if (cache->rank == 0) scr_event_local(&scr->report, 0, line);
    return 0;
}

int scr_stores_renew(struct scr *scr, char *err)
{
    int rc = 0;
    for (int i = 0; i < scr->cache.store_count && !rc; i++)
        if (scr_is_removed(scr->cache.stores[i].fd))
            rc = renew(scr, &scr->cache.stores[i], err);
    return rc;
}

/* ---- which dataset lies where ---- */

scr_kept *scr_kept_find(const struct scr *scr, int id)
{
    for (int i = 0; i < scr->cache.kept_count; i++)
        if (scr->cache.kept[i].id == id) return &scr->cache.kept[i];
    return NULL;
}

int scr_keep(struct scr *scr, int id, int cache, const scr_reddesc *desc)
{
    scr_forget(scr, id);
    size_t size = ((size_t)scr->cache.kept_count + 1) * sizeof *scr->cache.kept;
    scr_kept *list = realloc(scr->cache.kept, size);
    if (!list) return -ENOMEM;
    scr->cache.kept = list;
    scr_cached *listed =
        realloc(scr->cache.listed, ((size_t)scr->cache.kept_count + 1) * sizeof *listed);
    if (!listed) return -ENOMEM;
    scr->cache.listed = listed;
    list[scr->cache.kept_count++] = (scr_kept){.id = id, .store = cache, .desc = *desc};
    return 0;
}

void scr_forget(struct scr *scr, int id)
{
    for (int i = 0; i < scr->cache.kept_count; i++)
        if (scr->cache.kept[i].id == id)
            scr->cache.kept[i--] = scr->cache.kept[--scr->cache.kept_count];
}

scr_store_dir *scr_cache_of(const struct scr *scr, int id)
{
    const scr_kept *kept = scr_kept_find(scr, id);
    return kept ? &scr->cache.stores[kept->store] : NULL;
}

const char *scr_cache_path(const struct scr *scr, int id)
{
    const scr_store_dir *cache = scr_cache_of(scr, id);
    return cache ? cache->folder : "";
}

/* ---- datasets of earlier runs ---- */

/* The store in which this process has files of the dataset; 0: it has none. */
static int own_store(const struct scr *scr, const scr_filemap *map, int id,
                     char path[SCR_DESC_PATH_SIZE])
{
    int count = 0, *ranks = NULL;
    char tail[SCR_OWNER_SIZE + 64];
    size_t behind =
        (size_t)snprintf(tail, sizeof tail, "/%s/scr.dataset.%d/", scr->job.owner, id);
    path[0] = 0;
    if (scr_filemap_list_ranks_of(map, id, &count, &ranks) != 0) return 0;
    for (int i = 0; i < count && !path[0]; i++) {
        const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(map, id, ranks[i]));
        const char *full = f ? kvtree_elem_key(f) : NULL;
        const char *name = full ? scr_filemap_name_of(full, scr->job.owner, id) : NULL;
        size_t n = name ? (size_t)(name - full) : 0;
        n = n > behind ? scr_base_length(full, n - behind, scr->job.owner) : 0;
        if (n > 0 && n < SCR_DESC_PATH_SIZE)
            snprintf(path, SCR_DESC_PATH_SIZE, "%.*s", (int)n, full);
    }
    free(ranks);
    return path[0] != 0;
}

/* Collective. The number of the store on which all agree that have files; -1: none. */
static int agree_on_cache(const struct scr *scr, int has, const char *path)
{
    int here = -1;
    for (int i = 0; i < scr->cache.store_count && has && here < 0; i++)
        if (strcmp(scr->cache.stores[i].path, path) == 0) here = i;
    int least[2] = {has ? here : INT_MAX, has ? -here : INT_MAX};
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, scr->job.world);
    return least[0] == -least[1] ? least[0] : -1;
}

/* Collective. Where nobody on a node has files, path becomes that of another node. */
static void fill_in_path(const struct scr *scr, int has, char path[SCR_DESC_PATH_SIZE])
{
    int here = has ? scr->job.node_rank : INT_MAX, first = has ? scr->job.rank : INT_MAX;
    char other[SCR_DESC_PATH_SIZE];
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, scr->job.node);
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, scr->job.world);
    if (first == INT_MAX) return;
    memcpy(other, path, sizeof other);
    MPI_Bcast(other, sizeof other, MPI_CHAR, first, scr->job.world);
    if (here < INT_MAX)
        MPI_Bcast(path, SCR_DESC_PATH_SIZE, MPI_CHAR, here, scr->job.node);
    else
        memcpy(path, other, sizeof other);
}

/* Collective, agreed. Adds a store that this configuration does not have. */
static int adopt(struct scr *scr, int has, char path[SCR_DESC_PATH_SIZE], char *err)
{
    fill_in_path(scr, has, path);
    scr_store_dir *cache = append(scr);
    int rc = cache ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc && !path[0]) rc = err_set(err, -ENOENT, "no rank has a file of it");
    rc = agree(scr->job.world, rc, err);
    if (rc) return rc;
    cache->method = scr->set.flush_method;
    cache->comm = scr->job.node;
    cache->rank = scr->job.node_rank;
    rc = agree(scr->job.world, open_cache(scr, NULL, path, cache, err), err);
    if (rc)
        close_cache(cache, scr->job.node, scr->job.world);
    else
        scr->cache.store_count++;
    return rc;
}

int scr_stores_locate(struct scr *scr, const scr_filemap *map, int id,
                      const scr_reddesc *desc, char *err)
{
    char path[SCR_DESC_PATH_SIZE];
    int has = own_store(scr, map, id, path), cache = agree_on_cache(scr, has, path),
        rc = 0;
    if (cache < 0) {
        cache = scr->cache.store_count;
        rc = adopt(scr, has, path, err);
    }
    if (!rc && scr_keep(scr, id, cache, desc) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    rc = agree(scr->job.world, rc, err);
    if (rc) scr_forget(scr, id);
    return rc;
}

/* ---- folders of datasets ---- */

void scr_dataset_folder_name(int id, char name[SCR_FOLDER_SIZE])
{
    snprintf(name, SCR_FOLDER_SIZE, "scr.dataset.%d", id);
}

void scr_cached_name(int id, const char *name, char path[SCR_CACHED_NAME_SIZE])
{
    snprintf(path, SCR_CACHED_NAME_SIZE, "scr.dataset.%d/%s", id, name);
}

char *scr_dataset_folder(const struct scr *scr, int id)
{
    char name[SCR_FOLDER_SIZE];
    const scr_store_dir *cache = scr_cache_of(scr, id);
    scr_dataset_folder_name(id, name);
    return cache ? scr_path_join(cache->folder, name) : NULL;
}

int scr_dataset_folder_make(struct scr *scr, int id, char *err)
{
    char name[SCR_FOLDER_SIZE];
    const scr_store_dir *cache = scr_cache_of(scr, id);
    scr_dataset_folder_name(id, name);
    if (cache->rank != 0) return 0;
    int rc = beneath_mkdirs(cache->fd, name, 0700, err);
    if (rc == -ENOTDIR || rc == -ELOOP) {
        /* a file, or a link, which is not followed: all here is ours to remove */
        rc = beneath_unlink(cache->fd, name, err);
        rc = rc ? rc : beneath_mkdirs(cache->fd, name, 0700, err);
    }
    return rc ? err_wrap(err, rc, "node %s: %s", scr->job.node_name, cache->folder) : 0;
}

/* Local. */
static void remove_folder(const struct scr *scr, const scr_store_dir *cache, int id)
{
    char err[SCR_ERR_TEXT] = "", name[SCR_FOLDER_SIZE];
    scr_dataset_folder_name(id, name);
    if (cache->rank == 0 && beneath_remove_tree(cache->fd, name, err) != 0)
        scr_event_local(&scr->report, 0, err);
}

void scr_dataset_folder_remove(struct scr *scr, int id)
{
    const scr_store_dir *cache = scr_cache_of(scr, id);
    for (int i = 0; i < scr->cache.store_count; i++) {
        if (cache && cache != &scr->cache.stores[i]) continue;
        MPI_Barrier(scr->cache.stores[i].comm);
        remove_folder(scr, &scr->cache.stores[i], id);
        MPI_Barrier(scr->cache.stores[i].comm);
    }
    scr_forget(scr, id);
}
