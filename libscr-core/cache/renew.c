/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of the run that a cleanup has removed are recreated, or left to another run
 * that has them now. */
#include "cache/cache.h"

#include "cache/base.h"
#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>

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
