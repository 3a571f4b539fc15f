/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: what is only in the cache goes to the prefix folder, and nothing of a
 * run that ended well is left on the nodes. */
#include "ops/folders.h"

#include "halt/halt.h"
#include "ops/fetch.h"
#include "ops/stop.h"
#include "prefix/flush_file.h"
#include "report/wait.h"
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- to the prefix folder ---- */

int scr_flush_newest(struct scr *scr)
{
    int id = scr_cached_newest(&scr->cache);
    if (!id || scr_cache_is_saved(scr, id)) return SCR_SUCCESS;
    return scr_flush_dataset(scr, id);
}

/* Outputs whose flush failed when they were written. */
static int flush_outputs(struct scr *scr)
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

static void delete_cached(struct scr *scr)
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
        scr_say(&scr->report, 0,
                "warning: SCR_GLOBAL_RESTART=1 has no effect with SCR_FETCH=0: the run "
                "could not restart from what leaves the cache");
        return;
    }
    int rc = flush_outputs(scr), newest = scr_flush_newest(scr);
    if (rc || newest)
        scr_say(
            &scr->report, 0,
            "warning: SCR_GLOBAL_RESTART: not all could be flushed, so the cache stays "
            "as it is");
    else
        delete_cached(scr);
}

/* What this run could not rebuild is older than its own checkpoint now. */
static void delete_older(struct scr *scr, int newest)
{
    int id = 0;
    for (const scr_cached *c; (c = scr_cached_next_unusable(&scr->cache, id)) != NULL;) {
        id = c->d.id;
        if (id <= newest) scr_cache_delete(scr, id);
    }
}

/* Collective. What another number of ranks wrote is of no use to this run, but no
 * checkpoint of this run replaces it: it leaves only if the prefix folder has it. */
static void delete_others(struct scr *scr)
{
    for (int i = scr->cache.count - 1; i >= 0; i--) {
        if (scr->cache.list[i].state != SCR_CACHED_OTHER_RANKS) continue;
        const scr_dataset d = scr->cache.list[i].d;
        int there = scr->job.rank == 0 && scr_fetch_finds(scr, &d);
        MPI_Bcast(&there, 1, MPI_INT, 0, scr->job.world);
        if (there)
            scr_cache_delete(scr, d.id);
        else
            scr_say(&scr->report, 0,
                    "warning: dataset %d (%s) of %d ranks is in the cache only, where it "
                    "stays; start with %d ranks on these nodes to use it, or with "
                    "SCR_CACHE_PURGE=1 to give it up",
                    d.id, d.name, d.ranks, d.ranks);
    }
}

/* Collective. Somebody may have removed it there since it was flushed. */
static int is_there(struct scr *scr, int id)
{
    scr_dataset d;
    int there = scr->job.rank == 0 && scr_cached_get(&scr->cache, id, &d) == 0 &&
                scr_fetch_finds(scr, &d);
    MPI_Bcast(&there, 1, MPI_INT, 0, scr->job.world);
    if (!there)
        scr_say(&scr->report, 0,
                "warning: checkpoint %d was flushed, but is not whole in %s any more; "
                "the cache stays as it is for the next run on these nodes",
                id, scr->prefix.path);
    return there;
}

/* The newest checkpoint is on the prefix folder, so nobody needs any of the cache. */
static void empty_cache(struct scr *scr)
{
    int newest = scr_cached_newest(&scr->cache);
    if (scr->set.cache_keep || !scr->set.fetch || scr->cache.lost) return;
    if (newest && !scr_cache_is_saved(scr, newest)) {
        scr_say(&scr->report, 1,
                "checkpoint %d is in the cache only, which stays as it is for the next "
                "run on these nodes",
                newest);
        return;
    }
    if (newest && !is_there(scr, newest)) return;
    delete_older(scr, newest);
    delete_others(scr);
    delete_cached(scr);
    scr->cache.clean = scr->cache.count == 0;
}

/* ---- a program that forgets SCR_Finalize ---- */

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first of all. */
static int at_delete(MPI_Comm comm, int keyval, void *value, void *unused)
{
    const struct scr *scr = value;
    (void)comm;
    (void)keyval;
    (void)unused;
    if (scr->lifecycle.watching)
        scr_say(
            &scr->report, 0,
            "warning: SCR_Finalize was not called before MPI_Finalize: what is only in "
            "the cache is not copied to %s; the next run on these nodes finds it, and "
            "scr_postrun saves it",
            scr->prefix.path);
    return MPI_SUCCESS;
}

void scr_finalize_watch(struct scr *scr)
{
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_delete, &scr->lifecycle.keyval,
                               NULL) != MPI_SUCCESS)
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

static void tell_never_needed(const struct scr *scr)
{
    const struct scr_settings *set = &scr->set;
    if (!scr->pace.need_calls || scr->pace.need_given || set->interval ||
        set->interval_auto || set->seconds || set->overhead > 0)
        return;
    scr_say(
        &scr->report, 0,
        "warning: SCR_Need_checkpoint was called %lld times and never asked for a "
        "checkpoint, as none of SCR_CHECKPOINT_INTERVAL, SCR_CHECKPOINT_SECONDS and "
        "SCR_CHECKPOINT_OVERHEAD is set; SCR_CHECKPOINT_INTERVAL=auto chooses by itself",
        (long long)scr->pace.need_calls);
}

int scr_finish(struct scr *scr)
{
    scr_wait wait;
    tell_never_needed(scr);
    if (scr->job.rank == 0) scr_halt_run_record(&scr->halt, SCR_HALT_FINALIZED);
    scr_flush_wait(scr);
    scr_folders_ensure(scr);
    scr_wait_begin(&scr->report, &wait, "copies what is only in the cache to %.400s",
                   scr->prefix.path);
    int rc = flush_outputs(scr);
    int newest = scr->set.flush > 0 ? scr_flush_newest(scr) : SCR_SUCCESS;
    scr_wait_end(&wait);
    rc = rc ? rc : newest ? newest : scr_flush_result(scr);
    if (scr->cache.unsaved && rc == SCR_SUCCESS)
        rc = scr_fail(&scr->report, SCR_ERR_CACHE,
                      "SCR_Finalize: the newest checkpoint, or an output, was only in "
                      "the cache, which is another run's now");
    if (rc == SCR_SUCCESS) empty_cache(scr);
    scr_summary_print(&scr->report, scr->flush.waited);
    scr_logging_end(scr, rc);
    return rc;
}
