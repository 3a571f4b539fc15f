/* SPDX-License-Identifier: BSD-3-Clause */
/* The directories of a run: opening, renewal and closing. */
#include "ops/folders.h"

#include "common/agree_mpi.h"
#include <errno.h>

int scr_folders_open(struct scr *scr)
{
    kvtree_error err = {""};
    int rc = scr_prefix_open(&scr->prefix, &scr->config, &err);
    if (agree(scr->job.world, rc, &err))
        return scr_fail(&scr->report, SCR_MSG_PREFIX_NOT_OPENED, SCR_ERR_PREFIX, "%s",
                        err.text);
    rc = scr_job_find_names(&scr->job, &scr->config, scr->prefix.real, &err);
    if (agree(scr->job.world, rc, &err))
        return scr_fail(&scr->report, SCR_MSG_RUN_NAME_INVALID, SCR_ERR_CONFIG, "%s",
                        err.text);
    scr->cache.prefix = scr->prefix.real;
    if (scr_job_lock_take(&scr->cache, &scr->restart.elsewhere, &err))
        return scr_fail(&scr->report, SCR_MSG_CACHE_NOT_LOCKED, SCR_ERR_CACHE, "%s",
                        err.text);
    if (scr_stores_open(&scr->cache, &err))
        return scr_fail(&scr->report, SCR_MSG_CACHE_NOT_OPENED, SCR_ERR_CACHE, "%s",
                        err.text);
    scr_control_warn_of_bases(&scr->cache);
    return SCR_SUCCESS;
}

/* Collective. Whether the newest checkpoint, or an output, is only in the cache. */
static bool folders_have_unsaved(struct scr *scr)
{
    const int newest = scr_cached_newest(&scr->cache);
    const scr_cached *c = scr_cached_next(&scr->cache, 0);
    bool unsaved = false;
    for (; c && !unsaved; c = scr_cached_next(&scr->cache, c->d.id))
        unsaved = (c->d.id == newest || c->d.output) && !scr_cache_is_saved(scr, c->d.id);
    return unsaved;
}

/* Collective. Abandons the directories, which another run uses now: their contents belong
 * to that run, and this run's records of them are void. */
static void folders_abandon(struct scr *scr)
{
    scr_flush_stop(scr, 0);
    scr->cache.unsaved = folders_have_unsaved(scr);
    scr_cache_abandon(&scr->cache);
}

int scr_folders_renew(struct scr *scr, kvtree_error *err)
{
    int rc = scr_cache_renew(&scr->cache, err);
    if (rc == -EBUSY && !scr->cache.lost) folders_abandon(scr);
    return rc;
}

void scr_folders_ensure(struct scr *scr)
{
    kvtree_error err = {""};
    int gone = scr_cache_is_gone(&scr->cache);
    MPI_Allreduce(MPI_IN_PLACE, &gone, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (gone && scr_folders_renew(scr, &err) != 0)
        scr_say(&scr->report, SCR_MSG_CACHE_NOT_RECREATED,
                "removed directories of this run could not be recreated: %s", err.text);
}

void scr_folders_close(struct scr *scr)
{
    if (scr->cache.clean)
        MPI_Barrier(scr->job.node); /* no process has a file open there now */
    if (scr->cache.clean && scr->job.node_rank == 0) scr_job_lock_remove(&scr->cache);
    scr_stores_close(&scr->cache);
    scr_job_lock_release(&scr->cache);
    scr_control_close(&scr->cache);
    scr_prefix_close(&scr->prefix);
}
