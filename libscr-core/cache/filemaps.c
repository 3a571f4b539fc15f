/* SPDX-License-Identifier: BSD-3-Clause */
/* Filemaps: each process records the files that it is responsible for, for people and
 * commands (SCR Developer Guide 1.2, section 2.26.4). A run reads those of earlier runs
 * for the files of ranks whose redundancy file is lost (cache/catalog.c). */
#include "cache/cache.h"

#include "cache/catalog.h"

#include "base/path.h"
#include "base/transient.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ---- */

/* A damaged file counts as lost, which is no failure. One that cannot be read just now
 * is. */
static int judge(const scr_cache *cache, int rc, const char *err)
{
    if (rc && scr_is_transient(rc)) return rc;
    if (rc && rc != -ENOENT) scr_control_warn(cache, err);
    return 0;
}

/* Without a usable master file all filemaps in the folder are read. */
int scr_filemaps_read(const scr_cache *cache, scr_filemap *all, char *err)
{
    kvtree *names = kvtree_new();
    int found = names ? scr_filemap_names(cache->control_fd, 0, names, err)
                      : err_set(err, -ENOMEM, "no memory");
    int rc = judge(cache, found, err);
    if (!rc && found) rc = scr_filemap_names(cache->control_fd, 1, names, err);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        rc = judge(cache,
                   scr_filemap_read(cache->control_fd, name, cache->job->owner, all, err),
                   err);
    }
    kvtree_delete(&names);
    return rc;
}

/* 1 when some rank has it there, complete. */
static int is_checkpoint(const scr_filemap *map, int id)
{
    scr_dataset d;
    int count, *ranks, is = 0;
    if (scr_filemap_list_ranks_of(map, id, &count, &ranks) != 0) return 0;
    for (int i = 0; i < count && !is; i++)
        is = scr_dataset_from_tree(scr_filemap_get_dataset(map, id, ranks[i]), &d,
                                   NULL) == 0 &&
             d.ckpt && d.complete;
    free(ranks);
    return is;
}

int scr_filemaps_newest(const scr_cache *cache)
{
    char err[SCR_ERR_TEXT] = "";
    int count, *ids, newest = 0;
    scr_filemap *map = kvtree_new();
    if (map && scr_filemaps_read(cache, map, err) == 0 &&
        scr_filemap_list_datasets(map, &count, &ids) == 0) {
        while (count > 0 && !is_checkpoint(map, ids[count - 1]))
            count--;
        newest = count > 0 ? ids[count - 1] : 0;
        free(ids);
    }
    kvtree_delete(&map);
    return newest;
}

/* The master file names filemaps by full path. */
static int write_master(const scr_cache *cache, char *err)
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
    rc = rc ? rc : kvtree_file_write(cache->control_fd, SCR_FILEMAP_MASTER, master, err);
    kvtree_delete(&master);
    return rc;
}

/* Removes filemaps of more processes than there are now, and unfinished files. */
static void remove_if_old(const scr_cache *cache, const char *name)
{
    int i;
    size_t n = strlen(name);
    int old = sscanf(name, "filemap_%d.scriinfo", &i) == 1 && i >= cache->job->node_ranks;
    int temporary = name[0] == '.' && n > 4 && strcmp(name + n - 4, ".tmp") == 0;
    if (old || temporary) unlinkat(cache->control_fd, name, 0);
}

static void remove_old(const scr_cache *cache)
{
    DIR *stream = beneath_list(cache->control_fd);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        remove_if_old(cache, item->d_name);
    if (stream) closedir(stream);
}

int scr_filemaps_write(const scr_cache *cache, char *err)
{
    int rc = scr_filemap_write(cache->control_fd, cache->map_name, cache->map, err);
    return rc ? err_wrap(err, rc, "node %s: %s", cache->job->node_name, cache->control)
              : 0;
}

int scr_filemaps_begin(scr_cache *cache, char *err)
{
    int rc = scr_filemaps_write(cache, err);
    if (rc == 0 && cache->job->node_rank == 0) {
        rc = write_master(cache, err);
        rc = rc ? rc : scr_job_lock_record_stores(cache, err);
        if (rc) err_wrap(err, rc, "node %s: %s", cache->job->node_name, cache->control);
    }
    rc = agree(cache->job->world, rc, err);
    if (!rc && cache->job->node_rank == 0) remove_old(cache);
    return rc;
}
