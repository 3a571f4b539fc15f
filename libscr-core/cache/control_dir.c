/* SPDX-License-Identifier: BSD-3-Clause */
/* The control directory. Like the stores it is in a world-writable place: it is created
 * private, opened without following links, and refused if another user owns it. */
#include "cache/cache.h"

#include "base/path.h"
#include "cache/base.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/record_size.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The name of the control directory below its base. Simulated nodes (SCR_NODE_NAME) may
 * share the control base of one machine, so it includes the name of the node. */
static int control_name(const scr_cache *cache, const char *owner, char name[700],
                        kvtree_error *err)
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

int scr_control_open(scr_cache *cache, kvtree_error *err)
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
    scr_fail_local(cache->job->report, SCR_MSG_CONTROL_FILE_LOST, 0,
                   "node %s: a control file in %s counts as lost: %s",
                   cache->job->node_name, cache->control, reason);
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

/* Reports what other users can do, or have done, to the files of this job in a base. */
static void control_warn_of_base(const scr_cache *cache, const char *base)
{
    char below[SCR_BASE_NAME];
    const int unsafe = cache->job->rank == 0 ? scr_base_is_unsafe(base) : 0;
    if (unsafe == 2)
        scr_say(cache->job->report, SCR_MSG_CACHE_BASE_UNSAFE,
                "%s belongs to another user, who may rename and remove files in it; "
                "choose another directory",
                base);
    if (unsafe == 1)
        scr_say(
            cache->job->report, SCR_MSG_CACHE_BASE_UNSAFE,
            "all users may rename and remove files in %s; set its sticky bit (chmod +t)",
            base);
    if (cache->job->node_rank != 0 || scr_base_name(base, cache->job->owner, below) != 1)
        return;
    scr_fail_local(
        cache->job->report, SCR_MSG_CACHE_BASE_OF_OTHERS, 0,
        "node %s: %s/%s belongs to another user; files of this job are in %s/%s",
        cache->job->node_name, base, cache->job->user, base, below);
}

/* Whether an earlier store has the same path on this node. */
static bool control_is_repeated(const scr_cache *cache, int store)
{
    for (int i = 0; i < store; i++)
        if (strcmp(cache->stores[i].path, cache->stores[store].path) == 0) return true;
    return false;
}

void scr_control_warn_of_bases(const scr_cache *cache)
{
    control_warn_of_base(cache, cache->set->cntl_base);
    for (int i = 0; i < cache->store_count; i++)
        if (strcmp(cache->stores[i].path, cache->set->cntl_base) != 0 &&
            !control_is_repeated(cache, i))
            control_warn_of_base(cache, cache->stores[i].path);
}

/* ---- the record of the prefix directory ---- */

/* Keeps the stores that the record names: they may have datasets of earlier runs. */
static int control_keep_stores(scr_cache *cache, const kvtree *record)
{
    kvtree_delete(&cache->recorded);
    cache->recorded = kvtree_new();
    return cache->recorded ? kvtree_merge(cache->recorded, record) : -ENOMEM;
}

int scr_record_read(scr_cache *cache, scr_record_owner *owner, kvtree_error *err)
{
    char *prefix;
    kvtree *record = kvtree_new();
    int rc = record ? kvtree_file_read(cache->control_fd, SCR_RECORD_NAME,
                                       RECORD_SIZE_SMALL, record, err)
                    : err_set(err, -ENOMEM, "no memory");
    *owner = rc == -EBADMSG ? SCR_RECORD_DAMAGED : SCR_RECORD_NONE;
    if (rc == -ENOENT || rc == -EBADMSG)
        rc = 0;
    else if (!rc && kvtree_util_get_str(record, "PREFIX", &prefix) == 0)
        *owner = strcmp(prefix, cache->prefix) == 0 ? SCR_RECORD_OURS : SCR_RECORD_THEIRS;
    if (!rc && control_keep_stores(cache, *owner == SCR_RECORD_OURS ? record : NULL) != 0)
        rc = err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&record);
    return rc;
}

int scr_record_write(const scr_cache *cache, kvtree_error *err)
{
    kvtree *record = kvtree_new();
    int rc = kvtree_util_set_str(record, "PREFIX", cache->prefix);
    for (int i = 0; !rc && i < cache->store_count; i++)
        if (!kvtree_set_kv(record, "STORE", cache->stores[i].path)) rc = -ENOMEM;
    rc = rc ? err_set(err, rc, "no memory")
            : kvtree_file_write(cache->control_fd, SCR_RECORD_NAME, RECORD_SIZE_SMALL,
                                record, err);
    kvtree_delete(&record);
    return rc;
}

int scr_record_update(const scr_cache *cache, kvtree_error *err)
{
    int missing = 0, count = 0;
    for (int i = 0; i < cache->store_count; i++) {
        missing += !kvtree_get_kv(cache->recorded, "STORE", cache->stores[i].path);
        count += !control_is_repeated(cache, i);
    }
    return !missing && kvtree_size(kvtree_get(cache->recorded, "STORE")) == count
               ? 0
               : scr_record_write(cache, err);
}
