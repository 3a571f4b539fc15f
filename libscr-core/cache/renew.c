/* SPDX-License-Identifier: BSD-3-Clause */
/* Recreates directories of the run that a cleanup has removed, or leaves them to another
 * run that uses them now. */
#include "cache/cache.h"

#include "cache/base.h"
#include "cache/removal.h"
#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <errno.h>

bool scr_cache_is_gone(const scr_cache *cache)
{
    int gone = cache->lost || scr_job_lock_is_lost(cache);
    for (int i = 0; i < cache->store_count; i++)
        gone = gone || scr_is_removed(cache->stores[i].fd);
    return gone;
}

int scr_cache_renew(scr_cache *cache, kvtree_error *err)
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
    cache->lost = 1;
    kvtree_unset_all(cache->map);
    cache->count = 0;
}
