/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: flushes datasets that are only in the cache. A run that ended without
 * errors leaves nothing on the nodes. */
#include "ops/folders.h"

#include "halt/halt.h"
#include "ops/fetch.h"
#include "report/wait.h"

/* ---- to the prefix directory ---- */

int scr_flush_newest(struct scr *scr)
{
    int id = scr_cached_newest(&scr->cache);
    if (!id || scr_cache_is_saved(scr, id)) return SCR_SUCCESS;
    return scr_flush_dataset(scr, id);
}

/* Flushes outputs that could not be flushed when they were written. */
static int finalize_flush_outputs(struct scr *scr)
{
    int result = SCR_SUCCESS, id = 0;
    for (const scr_cached *c; (c = scr_cached_next(&scr->cache, id)) != NULL;) {
        id = c->d.id;
        if (!c->d.output || scr_cache_is_saved(scr, id)) continue;
        int rc = scr_flush_dataset(scr, id);
        result = result ? result : rc;
    }
    return result;
}

static void finalize_delete_all(struct scr *scr)
{
    int id = 0;
    for (const scr_cached *c; (c = scr_cached_next(&scr->cache, id)) != NULL;) {
        id = c->d.id;
        scr_cache_delete(scr, id);
    }
}

void scr_leave_cache(struct scr *scr)
{
    if (!scr->set.fetch) {
        scr_say(&scr->report, SCR_MSG_CONFIG_GLOBAL_RESTART_UNUSED,
                "SCR_GLOBAL_RESTART=1 has no effect with SCR_FETCH=0: the run could not "
                "restart from the prefix directory");
        return;
    }
    int rc = finalize_flush_outputs(scr), newest = scr_flush_newest(scr);
    if (rc || newest)
        scr_say(
            &scr->report, SCR_MSG_CACHE_KEPT_NOT_FLUSHED,
            "SCR_GLOBAL_RESTART: a dataset could not be flushed, so the cache is kept");
    else
        finalize_delete_all(scr);
}

/* Removes datasets that this run could not rebuild and that are not newer than its own
 * checkpoint. */
static void finalize_delete_older(struct scr *scr, int newest)
{
    int id = 0;
    for (const scr_cached *c; (c = scr_cached_next_unusable(&scr->cache, id)) != NULL;) {
        id = c->d.id;
        if (id <= newest) scr_cache_delete(scr, id);
    }
}

/* Collective. Removes datasets that other numbers of ranks wrote, if they are on the
 * prefix directory: a checkpoint of this run does not replace them. */
static void finalize_delete_of_other_ranks(struct scr *scr)
{
    for (int i = scr->cache.count - 1; i >= 0; i--) {
        if (scr->cache.list[i].state != SCR_CACHED_OTHER_RANKS) continue;
        const scr_dataset d = scr->cache.list[i].d;
        if (scr_job_first(&scr->job, scr->job.rank == 0 && scr_fetch_finds(scr, &d)))
            scr_cache_delete(scr, d.id);
        else
            scr_say(&scr->report, SCR_MSG_CACHE_KEPT_OTHER_RANKS,
                    "dataset %d (%s) of %d ranks is in the cache only, which is kept; "
                    "start with %d ranks on these nodes to use it, or with "
                    "SCR_RESTART_RANKS=any, or with SCR_CACHE_PURGE=1 to delete it",
                    d.id, d.name, d.ranks, d.ranks);
    }
}

/* Collective. Whether the prefix directory still has a flushed dataset. */
static int finalize_is_complete_on_prefix(struct scr *scr, int id)
{
    scr_dataset d;
    bool there = scr->job.rank == 0 && scr_cached_get(&scr->cache, id, &d) == 0 &&
                 scr_fetch_finds(scr, &d);
    there = scr_job_first(&scr->job, there);
    if (!there)
        scr_say(&scr->report, SCR_MSG_PREFIX_CHECKPOINT_LOST,
                "checkpoint %d was flushed, but is no longer complete in %s; the cache "
                "is kept for the next run on these nodes",
                id, scr->prefix.path);
    return there;
}

/* Empties the cache, unless it has the only copy of the newest checkpoint. */
static void finalize_empty_cache(struct scr *scr)
{
    int newest = scr_cached_newest(&scr->cache);
    if (scr->set.cache_keep || !scr->set.fetch || scr->cache.lost) return;
    if (newest && !scr_cache_is_saved(scr, newest)) {
        scr_say(&scr->report, SCR_MSG_CACHE_KEPT,
                "checkpoint %d is in the cache only, which is kept for the next run on "
                "these nodes",
                newest);
        return;
    }
    if (newest && !finalize_is_complete_on_prefix(scr, newest)) return;
    finalize_delete_older(scr, newest);
    finalize_delete_of_other_ranks(scr);
    finalize_delete_all(scr);
    scr->cache.clean = scr->cache.count == 0;
}

/* ---- a program without SCR_Finalize ---- */

/* Reports the missing SCR_Finalize: MPI_Finalize deletes the attributes of MPI_COMM_SELF
 * before anything else. */
static int finalize_warn(MPI_Comm comm, int keyval, void *value, void *unused)
{
    const struct scr *scr = value;
    (void)comm;
    (void)keyval;
    (void)unused;
    if (scr->lifecycle.watching)
        scr_say(&scr->report, SCR_MSG_RUN_NOT_FINALIZED,
                "SCR_Finalize was not called before MPI_Finalize: datasets that are only "
                "in the cache are not copied to %s; the next run on these nodes finds "
                "them, and scr_postrun saves them",
                scr->prefix.path);
    return MPI_SUCCESS;
}

void scr_finalize_watch(struct scr *scr)
{
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalize_warn,
                               &scr->lifecycle.keyval, NULL) != MPI_SUCCESS)
        return;
    scr->lifecycle.watching =
        MPI_Comm_set_attr(MPI_COMM_SELF, scr->lifecycle.keyval, scr) == MPI_SUCCESS;
    if (!scr->lifecycle.watching) MPI_Comm_free_keyval(&scr->lifecycle.keyval);
}

void scr_finalize_unwatch(struct scr *scr)
{
    if (!scr->lifecycle.watching) return;
    scr->lifecycle.watching = 0;
    MPI_Comm_delete_attr(MPI_COMM_SELF, scr->lifecycle.keyval);
    MPI_Comm_free_keyval(&scr->lifecycle.keyval);
}

/* ---- SCR_Finalize ---- */

int scr_finish(struct scr *scr)
{
    scr_wait wait;
    if (scr->job.rank == 0) scr_halt_run_record(&scr->halt, SCR_HALT_FINALIZED);
    scr_bypass_forget(scr);
    scr_flush_wait(scr);
    scr_folders_ensure(scr);
    scr_wait_begin(&scr->report, &wait, SCR_MSG_FLUSH_WAIT,
                   "waits for the copy of the cache to %.400s", scr->prefix.path);
    int rc = finalize_flush_outputs(scr);
    int newest = scr->set.flush > 0 ? scr_flush_newest(scr) : SCR_SUCCESS;
    scr_wait_end(&wait);
    rc = rc ? rc : newest ? newest : scr_flush_result(scr);
    if (scr->cache.unsaved && rc == SCR_SUCCESS)
        rc = scr_fail(&scr->report, SCR_MSG_CACHE_TAKEN_OVER, SCR_ERR_CACHE,
                      "SCR_Finalize: the newest checkpoint, or an output, was only in "
                      "the cache, which another run uses now");
    if (rc == SCR_SUCCESS) finalize_empty_cache(scr);
    scr_summary_print(&scr->report, scr->flush.waited);
    scr_logging_end(scr, rc);
    return rc;
}
