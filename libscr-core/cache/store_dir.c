/* SPDX-License-Identifier: BSD-3-Clause */
/* The stores in use, and the store of each dataset. The list has each store that a
 * redundancy descriptor in use names, in the same order on every rank, followed by stores
 * of earlier runs that still hold datasets. The path of a store may differ between nodes
 * (SCR_CACHE_BASE), its number does not. */

#include "base/path.h"
#include "cache/base.h"
#include "cache/cache.h"
#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/split_mpi.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

/* A new store at the end of the list. */
static scr_store_dir *store_append(scr_cache *cache)
{
    size_t size = ((size_t)cache->store_count + 1) * sizeof *cache->stores;
    scr_store_dir *list = realloc(cache->stores, size);
    if (!list) return NULL;
    cache->stores = list;
    list += cache->store_count;
    *list = (scr_store_dir){.fd = -1, .comm = MPI_COMM_NULL};
    return list;
}

static void store_close(scr_store_dir *dir, MPI_Comm node, MPI_Comm world)
{
    io_close(&dir->fd);
    free(dir->folder);
    if (dir->comm != MPI_COMM_NULL && dir->comm != node && dir->comm != world)
        MPI_Comm_free(&dir->comm);
}

/* Collective, agreed. Finds the processes that share a store: they see the same
 * directory, and the first of them creates and removes files in it. */
static int store_find_sharers(scr_cache *cache, const scr_store *store,
                              scr_store_dir *dir, kvtree_error *err)
{
    int world = strcmp(store->group, "WORLD") == 0, rc = 0;
    int node = strcmp(store->group, "NODE") == 0;
    dir->global = strcmp(store->view, "GLOBAL") == 0;
    if (world || (node && dir->global)) {
        dir->comm = cache->job->world;
    } else if (node) {
        dir->comm = cache->job->node;
    } else {
        const char *value =
            scr_groups_value(&cache->descs->groups, store->group, cache->job->node_name);
        if (!value)
            rc = err_set(err, -EINVAL, "node %s has no value for the group %s in GROUPS",
                         cache->job->node_name, store->group);
        rc = agree(cache->job->world, rc, err);
        if (!rc) rc = split_by_string(cache->job->world, value, &dir->comm, err);
    }
    if (!rc) MPI_Comm_rank(dir->comm, &dir->rank);
    return rc;
}

/* Whether the store is the control directory, which is the default. */
static bool store_is_control(const scr_cache *cache, const char *path)
{
    return strcmp(path, cache->set->cntl_base) == 0 && !cache->job->simulated_node &&
           !scr_is_removed(cache->control_fd);
}

static int store_share_control(const scr_cache *cache, scr_store_dir *dir,
                               kvtree_error *err)
{
    dir->fd = fcntl(cache->control_fd, F_DUPFD_CLOEXEC, 0);
    if (dir->fd < 0) return err_sys(err, -errno, "open directory %s", cache->control);
    dir->folder = strdup(cache->control);
    return dir->folder ? 0 : err_set(err, -ENOMEM, "no memory");
}

/* Local. */
static int store_open_folder(scr_cache *cache, const scr_store *store, const char *path,
                             scr_store_dir *dir, kvtree_error *err)
{
    const scr_private where = {.what =
                                   !store || store->implied ? "SCR_CACHE_BASE" : "STORE",
                               .base = path,
                               .name = cache->job->owner,
                               .make = !store || store->mkdir};
    snprintf(dir->path, sizeof dir->path, "%s", path);
    int rc = store_is_control(cache, path)
                 ? store_share_control(cache, dir, err)
                 : scr_open_private(&where, &dir->folder, &dir->fd, err);
    if (!rc && dir->rank == 0) scr_removal_sweep(cache, dir);
    if (rc == -ENOENT && !where.make)
        err_set(err, rc, "STORE=%s is not there, and is not to be made (MKDIR=0)", path);
    return rc ? err_wrap(err, rc, "node %s", cache->job->node_name) : 0;
}

/* Collective. Makes the store the same on all ranks: SCR_CACHE_BASE may name another one
 * on each node, with a STORE of its own or without. */
static int store_share(const scr_cache *cache, scr_store *store, kvtree_error *err)
{
    const scr_store own = *store;
    scr_job_share(cache->job, store, sizeof *store);
    store->count = scr_job_min(cache->job, own.count);
    if (strcmp(store->group, own.group) == 0 && strcmp(store->view, own.view) == 0)
        return 0;
    return err_set(err, -EINVAL,
                   "node %s: STORE=%.200s has GROUP=%s VIEW=%s, but that of the first "
                   "node has GROUP=%s VIEW=%s",
                   cache->job->node_name, own.path, own.group, own.view, store->group,
                   store->view);
}

/* Collective, agreed. Opens the store of a descriptor. */
static int store_open(scr_cache *cache, const scr_reddesc *desc, kvtree_error *err)
{
    const scr_store *store = scr_stores_find(&cache->descs->stores, desc->store);
    scr_store_dir *dir = store_append(cache);
    int rc = dir && store ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = agree(cache->job->world, rc, err);
    if (rc) return rc;
    scr_store shared = *store;
    rc = agree(cache->job->world, store_share(cache, &shared, err), err);
    rc = rc ? rc : store_find_sharers(cache, &shared, dir, err);
    if (rc) return rc;
    cache->store_count++;
    dir->capacity = shared.count;
    dir->method = shared.implied ? cache->set->flush_method
                                 : scr_flush_method(shared.type, cache->set->flush_async);
    return agree(cache->job->world,
                 store_open_folder(cache, store, desc->store, dir, err), err);
}

/* Rank 0 decides which descriptors share a store: on other nodes two paths may be equal
 * by chance. of[i]: the first descriptor with the store of descriptor i; -1: i needs no
 * store; -2: i is not enabled. A descriptor must be enabled on all nodes or on none. */
static int store_share_numbers(scr_cache *cache, int *of, kvtree_error *err)
{
    const scr_reddescs *r = &cache->descs->reddescs;
    for (int i = 0; i < r->count; i++) {
        of[i] = r->list[i].enabled ? -1 : -2;
        if (!r->list[i].enabled || r->list[i].bypass) continue;
        for (int k = 0; k <= i && of[i] < 0; k++)
            if (r->list[k].enabled && !r->list[k].bypass &&
                strcmp(r->list[k].store, r->list[i].store) == 0)
                of[i] = k;
    }
    scr_job_share(cache->job, of, (size_t)r->count * sizeof *of);
    for (int i = 0; i < r->count; i++)
        if ((of[i] > -2) != (r->list[i].enabled != 0))
            return err_set(err, -EINVAL,
                           "node %s: CKPT=%d, or its STORE=%.200s, is%s enabled, unlike "
                           "on the first node",
                           cache->job->node_name, r->list[i].index, r->list[i].store,
                           r->list[i].enabled ? "" : " not");
    return 0;
}

int scr_stores_open(scr_cache *cache, kvtree_error *err)
{
    const scr_reddescs *r = &cache->descs->reddescs;
    int *of = calloc((size_t)r->count, sizeof *of), rc = 0;
    cache->store_of_desc = calloc((size_t)r->count, sizeof *cache->store_of_desc);
    if (!of || !cache->store_of_desc) rc = err_set(err, -ENOMEM, "no memory");
    rc = agree(cache->job->world, rc, err);
    if (!rc) rc = agree(cache->job->world, store_share_numbers(cache, of, err), err);
    for (int i = 0; i < r->count && !rc; i++) {
        cache->store_of_desc[i] = -1;
        if (of[i] == i) {
            cache->store_of_desc[i] = cache->store_count;
            rc = store_open(cache, &r->list[i], err);
        } else if (of[i] >= 0) {
            cache->store_of_desc[i] = cache->store_of_desc[of[i]];
        }
    }
    free(of);
    return rc;
}

int scr_stores_open_late(scr_cache *cache, const scr_reddesc *desc, kvtree_error *err)
{
    const scr_reddescs *r = &cache->descs->reddescs;
    int number = -1, count = cache->store_count, rc = 0;
    for (int i = 0; i < r->count && number < 0; i++)
        if (strcmp(r->list[i].store, desc->store) == 0) number = cache->store_of_desc[i];
    number = scr_job_first(cache->job, number);
    if (number < 0) {
        number = count;
        rc = store_open(cache, desc, err);
    }
    if (!rc)
        cache->store_of_desc[desc->index] = number;
    else if (cache->store_count > count)
        store_close(&cache->stores[--cache->store_count], cache->job->node,
                    cache->job->world);
    return rc;
}

void scr_stores_close(scr_cache *cache)
{
    scr_removal_settle(cache);
    for (int i = 0; cache->clean && i < cache->store_count; i++)
        if (cache->stores[i].rank == 0)
            scr_remove_private(cache->stores[i].path, cache->job->owner);
    for (int i = 0; i < cache->store_count; i++)
        store_close(&cache->stores[i], cache->job->node, cache->job->world);
    free(cache->stores);
    free(cache->store_of_desc);
    free(cache->list);
    free(cache->rows);
    cache->stores = NULL;
    cache->store_of_desc = NULL;
    cache->list = NULL;
    cache->rows = NULL;
    cache->store_count = cache->count = 0;
}

/* Local. Recreates a store; after an error it is unchanged. */
static int store_renew(scr_cache *cache, scr_store_dir *dir, kvtree_error *err)
{
    char *folder = dir->folder, path[SCR_DESC_PATH_SIZE];
    int fd = dir->fd;
    dir->fd = -1;
    memcpy(path, dir->path, sizeof path);
    const scr_store *store = scr_stores_find(&cache->descs->stores, path);
    int rc = store_open_folder(cache, store, path, dir, err);
    if (rc) {
        io_close(&dir->fd);
        dir->fd = fd;
        dir->folder = folder;
        return rc;
    }
    io_close(&fd);
    free(folder);
    if (dir->rank == 0)
        scr_fail_local(cache->job->report, SCR_MSG_CACHE_DIRECTORY_RECREATED, 0,
                       "node %s: %s of this run was removed; it is recreated, and the "
                       "datasets in it are lost%s",
                       cache->job->node_name, dir->folder,
                       dir->global ? "" : " on this node");
    return 0;
}

int scr_stores_renew(scr_cache *cache, kvtree_error *err)
{
    int rc = 0;
    for (int i = 0; i < cache->store_count && !rc; i++)
        if (scr_is_removed(cache->stores[i].fd))
            rc = store_renew(cache, &cache->stores[i], err);
    return rc;
}

scr_store_dir *scr_cache_of(const scr_cache *cache, int id)
{
    const scr_cached *cached = scr_cached_find(cache, id);
    return cached && cached->store >= 0 ? &cache->stores[cached->store] : NULL;
}

const char *scr_cache_path(const scr_cache *cache, int id)
{
    const scr_store_dir *dir = scr_cache_of(cache, id);
    return dir ? dir->folder : "";
}

/* ---- datasets of earlier runs ---- */

/* The path of the store of a rank's files in the map; "" if there are none. */
static void store_path_of_rank(const scr_cache *cache, int id, int rank,
                               char path[SCR_DESC_PATH_SIZE])
{
    char tail[SCR_OWNER_SIZE + 64];
    size_t behind =
        (size_t)snprintf(tail, sizeof tail, "/%s/scr.dataset.%d/", cache->job->owner, id);
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    const char *full = f ? kvtree_elem_key(f) : NULL;
    const char *name = full ? scr_filemap_name_of(full, cache->job->owner, id) : NULL;
    size_t n = name ? (size_t)(name - full) : 0;
    n = n > behind ? scr_base_length(full, n - behind, cache->job->owner) : 0;
    path[0] = 0;
    if (n > 0 && n < SCR_DESC_PATH_SIZE)
        snprintf(path, SCR_DESC_PATH_SIZE, "%.*s", (int)n, full);
}

/* The path of the store in which this process has files of the dataset, preferably of its
 * own rank; false: it has none. */
static bool store_has_files(const scr_cache *cache, int id, char path[SCR_DESC_PATH_SIZE])
{
    const kvtree_elem *r = scr_filemap_ranks_of(cache->map, id);
    store_path_of_rank(cache, id, cache->job->rank, path);
    for (; r && !path[0]; r = kvtree_elem_next(r))
        store_path_of_rank(cache, id, kvtree_elem_key_int(r), path);
    return path[0] != 0;
}

/* Collective. The number of the store if it is the same on all ranks with files,
 * otherwise -1. */
static int store_agree_on_number(const scr_cache *cache, int has, const char *path)
{
    int here = -1;
    for (int i = 0; i < cache->store_count && has && here < 0; i++)
        if (strcmp(cache->stores[i].path, path) == 0) here = i;
    const int least = scr_job_min(cache->job, has ? here : INT_MAX);
    return scr_job_max(cache->job, has ? here : -1) == least ? least : -1;
}

/* Collective. Sets path on nodes without files of the dataset to the store that this run
 * would use for it. The path of another node may be unusable here or, with simulated
 * nodes, be the directory of that node; it is used only if this run has no such store. */
static void store_share_path(const scr_cache *cache, int has, const scr_reddesc *desc,
                             char path[SCR_DESC_PATH_SIZE])
{
    int here = has ? cache->job->node_rank : INT_MAX;
    const int first = scr_job_min(cache->job, has ? cache->job->rank : INT_MAX);
    const int own = desc ? cache->store_of_desc[desc->index] : -1;
    char other[SCR_DESC_PATH_SIZE];
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, cache->job->node);
    if (first == INT_MAX) return;
    memcpy(other, path, sizeof other);
    MPI_Bcast(other, sizeof other, MPI_CHAR, first, cache->job->world);
    if (here < INT_MAX)
        MPI_Bcast(path, SCR_DESC_PATH_SIZE, MPI_CHAR, here, cache->job->node);
    else
        memcpy(path, own < 0 ? other : cache->stores[own].path, sizeof other);
}

/* Collective, agreed. Adds a store that is not in the configuration. */
static int store_adopt(scr_cache *cache, int has, const scr_reddesc *desc,
                       char path[SCR_DESC_PATH_SIZE], kvtree_error *err)
{
    store_share_path(cache, has, desc, path);
    scr_store_dir *dir = store_append(cache);
    int rc = dir ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc && !path[0]) rc = err_set(err, -ENOENT, "no rank has a file of it");
    rc = agree(cache->job->world, rc, err);
    if (rc) return rc;
    dir->method = cache->set->flush_method;
    dir->comm = cache->job->node;
    dir->rank = cache->job->node_rank;
    rc = agree(cache->job->world, store_open_folder(cache, NULL, path, dir, err), err);
    if (rc)
        store_close(dir, cache->job->node, cache->job->world);
    else
        cache->store_count++;
    return rc;
}

int scr_stores_locate(scr_cache *cache, const scr_dataset *dataset,
                      const scr_reddesc *desc, kvtree_error *err)
{
    const int id = dataset->id;
    char path[SCR_DESC_PATH_SIZE];
    int has = store_has_files(cache, id, path),
        dir = store_agree_on_number(cache, has, path), rc = 0;
    if (dir < 0) {
        dir = cache->store_count;
        rc = store_adopt(cache, has, desc, path, err);
    }
    if (!rc && scr_cached_add(cache, dataset, dir, desc) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    rc = agree(cache->job->world, rc, err);
    if (rc) scr_cached_remove(cache, id);
    return rc;
}

/* ---- directories of datasets ---- */

char *scr_dataset_folder(const scr_cache *cache, int id)
{
    char name[SCR_FOLDER_SIZE];
    const scr_store_dir *dir = scr_cache_of(cache, id);
    scr_dataset_folder_name(id, name);
    return dir ? scr_path_join(dir->folder, name) : NULL;
}

int scr_dataset_folder_make(scr_cache *cache, int id, kvtree_error *err)
{
    char name[SCR_FOLDER_SIZE];
    const scr_store_dir *dir = scr_cache_of(cache, id);
    scr_dataset_folder_name(id, name);
    if (dir->rank != 0) return 0;
    int rc = beneath_mkdirs(dir->fd, name, 0700, err);
    if (rc == -ENOTDIR || rc == -ELOOP) {
        /* a file or a link, which is not followed: everything here is ours to remove */
        rc = beneath_unlink(dir->fd, name, err);
        rc = rc ? rc : beneath_mkdirs(dir->fd, name, 0700, err);
    }
    return rc ? err_wrap(err, rc, "node %s: %s", cache->job->node_name, dir->folder) : 0;
}

/* Local. */
static void store_remove_folder(const scr_cache *cache, const scr_store_dir *dir, int id)
{
    char name[SCR_FOLDER_SIZE];
    kvtree_error err = {""};
    scr_dataset_folder_name(id, name);
    if (dir->rank == 0 && beneath_remove_tree(dir->fd, name, &err) != 0)
        scr_removal_report(cache, dir, name, &err);
}

void scr_dataset_folder_remove(scr_cache *cache, int id)
{
    const scr_store_dir *dir = scr_cache_of(cache, id);
    for (int i = 0; i < cache->store_count; i++) {
        if (dir && dir != &cache->stores[i]) continue;
        MPI_Barrier(cache->stores[i].comm);
        store_remove_folder(cache, &cache->stores[i], id);
        MPI_Barrier(cache->stores[i].comm);
    }
    scr_cached_remove(cache, id);
}
