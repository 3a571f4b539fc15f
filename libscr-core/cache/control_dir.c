/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefix and the control folder. Control folder and caches lie in world-writable
 * places: they are created private, opened without following links, and refused when
 * somebody else owns them. */
#include "cache/cache.h"

#include "base/path.h"
#include "cache/base.h"
#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A node that only plays its part (SCR_NODE_NAME) may share the control base with others
 * on the same machine; its own name keeps their records apart. */
static int control_name(const scr_cache *cache, const char *owner, char name[700],
                        char *err)
{
    const char *simulated = cache->job->simulated_node;
    if (simulated && strlen(simulated) >= sizeof cache->job->node_name)
        return err_set(err, -EINVAL, "SCR_NODE_NAME=%.60s... is too long", simulated);
    if (simulated && strchr(simulated, '/'))
        return err_set(err, -EINVAL, "SCR_NODE_NAME=%s has a slash", simulated);
    snprintf(name, 700, "%s%s%s", owner, simulated ? "/" : "",
             simulated ? simulated : "");
    return 0;
}

int scr_control_open(scr_cache *cache, char *err)
{
    char name[700];
    const scr_private where = {
        .what = "SCR_CNTL_BASE", .base = cache->set->cntl_base, .make = 1, .name = name};
    int rc = control_name(cache, cache->job->owner, name, err);
    return rc ? rc : scr_open_private(&where, &cache->control, &cache->control_fd, err);
}

void scr_control_remove(const scr_cache *cache)
{
    char name[700];
    if (control_name(cache, cache->job->owner, name, NULL) == 0)
        scr_remove_private(cache->set->cntl_base, name);
}

void scr_control_close(scr_cache *cache)
{
    io_close(&cache->control_fd);
    free(cache->control);
    cache->control = NULL;
}

void scr_control_warn(const scr_cache *cache, const char *reason)
{
    char line[SCR_ERR_TEXT + 400];
    snprintf(line, sizeof line,
             "warning: node %s: a control file in %s counts as lost: %s",
             cache->job->node_name, cache->control, reason);
    scr_event_local(cache->job->report, 0, line);
}

bool scr_control_exists(const scr_cache *cache, const char *owner)
{
    char name[700], below[SCR_BASE_NAME];
    struct stat st;
    if (control_name(cache, owner, name, NULL) != 0 ||
        scr_base_name(cache->set->cntl_base, name, below) < 0)
        return 0;
    char *path = scr_path_join(cache->set->cntl_base, below);
    int exists = path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return exists;
}

/* What others can do, or have done, where this job keeps its files. */
static void warn_of_base(const scr_cache *cache, const char *base)
{
    char line[SCR_ERR_TEXT + 2 * SCR_DESC_PATH_SIZE], below[SCR_BASE_NAME];
    if (cache->job->rank == 0 && scr_base_is_unsafe(base))
        scr_say(cache->job->report, 0,
                "warning: everybody may rename and remove what is in %s; set its sticky "
                "bit (chmod +t), or choose another place",
                base);
    if (cache->job->node_rank != 0 || scr_base_name(base, cache->job->owner, below) != 1)
        return;
    snprintf(line, sizeof line,
             "warning: node %s: %s/%s belongs to somebody else; files of this job are in "
             "%s/%s",
             cache->job->node_name, base, cache->job->user, base, below);
    scr_event_local(cache->job->report, 0, line);
}

void scr_control_warn_of_bases(const scr_cache *cache)
{
    warn_of_base(cache, cache->set->cntl_base);
    for (int i = 0; i < cache->store_count; i++) {
        int known = strcmp(cache->stores[i].path, cache->set->cntl_base) == 0;
        for (int k = 0; k < i; k++)
            known |= strcmp(cache->stores[i].path, cache->stores[k].path) == 0;
        if (!known) warn_of_base(cache, cache->stores[i].path);
    }
}

bool scr_is_removed(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 ? errno == ESTALE : st.st_nlink == 0;
}

bool scr_cache_is_gone(const scr_cache *cache)
{
    int gone = cache->lost || scr_job_lock_is_lost(cache);
    for (int i = 0; i < cache->store_count; i++)
        gone = gone || scr_is_removed(cache->stores[i].fd);
    return gone;
}

int scr_cache_renew(scr_cache *cache, char *err)
{
    if (cache->lost)
        return err_set(err, -EBUSY,
                       "the directories of this run on some nodes belong to another run "
                       "now; end this one, and start it with a job id of its own "
                       "(SCR_JOB_ID)");
    scr_removal_settle(cache);
    int rc = scr_job_lock_renew(cache, err);
    if (rc) return rc;
    rc = scr_stores_renew(cache, err);
    for (int i = 0; i < cache->count; i++)
        cache->list[i].unread = true;
    rc = rc ? rc : scr_filemaps_write(cache, err);
    return agree(cache->job->world, rc, err);
}

void scr_cache_abandon(scr_cache *cache)
{
    int count = 0, *ids = NULL;
    cache->lost = 1;
    if (scr_filemap_list_datasets(cache->map, &count, &ids) != 0) count = 0;
    for (int i = 0; i < count; i++)
        scr_filemap_remove_dataset(cache->map, ids[i]);
    free(ids);
    cache->count = 0;
}
