/* SPDX-License-Identifier: BSD-3-Clause */
/* Restart: offering the newest checkpoint, and what the application says of it. */
#include "scr_context.h"

#include "records/scr_index.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Id 0: none. */
static void newest_cached(struct scr *scr, scr_dataset *cached)
{
    int id = scr_cached_newest(scr);
    if (!id || scr_cached_get(scr, id, cached) != 0) cached->id = 0;
}

int scr_restart_have(struct scr *scr, int *flag, char *name)
{
    scr_dataset cached, candidate;
    newest_cached(scr, &cached);
    int below = scr->fetch_below, rc = 0;
    /* the prefix folder may have a newer one than the cache, when the newest was lost
     * there */
    while (scr->set.fetch && (rc = scr_fetch_candidate(scr, below, &candidate)) == 0 &&
           candidate.id > cached.id) {
        below = candidate.id;
        if (scr_fetch_dataset(scr, &candidate) == 0)
            cached = candidate;
        else
            newest_cached(scr, &cached); /* what left the cache to make room is gone */
    }
    scr->restart_offered = cached.id;
    *flag = cached.id != 0;
    if (*flag && name) strcpy(name, cached.name);
    if (*flag) {
        scr_log_event e = scr_event_of(SCR_LOG_RESTART_OFFERED, &cached);
        scr_event(scr, 2, &e, "dataset %d (%s) is offered for a restart", cached.id,
                  cached.name);
    }
    /* an index that cannot be read does not mean that there is nothing to restart from */
    return *flag || rc == 0 || rc == -ENOENT ? SCR_SUCCESS : SCR_ERR_PREFIX;
}

int scr_restart_start(struct scr *scr, char *name)
{
    if (!scr->restart_offered ||
        scr_cached_get(scr, scr->restart_offered, &scr->open) != 0)
        return scr_fail(scr, SCR_ERR_STATE,
                        "SCR_Start_restart: no checkpoint was offered; "
                        "SCR_Have_restart is missing, or gave 0");
    if (name) strcpy(name, scr->open.name);
    scr->state = SCR_STATE_RESTART;
    scr->restart_start = MPI_Wtime();
    scr_log_event e = scr_event_of(SCR_LOG_RESTART_START, &scr->open);
    scr_event(scr, 2, &e, "the restart from dataset %d (%s) begins", scr->open.id,
              scr->open.name);
    return SCR_SUCCESS;
}

/* On rank 0. Only the cache may have it, and then there is no entry. */
static void mark_failed(struct scr *scr, const scr_dataset *d)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = scr_index_change(scr, d->name, d->id, scr_index_mark_failed, err);
    if (rc && rc != -ENOENT)
        scr_say(scr, 0, "warning: the index could not be changed: %s", err);
}

int scr_restart_complete(struct scr *scr, int valid)
{
    int all = valid != 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, scr->world);
    scr->state = SCR_STATE_IDLE;
    scr->restart_offered = 0;
    scr->idle_since = MPI_Wtime();
    scr_log_event e =
        scr_event_of(all ? SCR_LOG_RESTART_COMPLETE : SCR_LOG_RESTART_FAILED, &scr->open);
    e.secs = scr->idle_since - scr->restart_start;
    e.code = SCR_ERR_INVALID;
    if (all) {
        scr_event(scr, 2, &e, "the application restarted from dataset %d (%s)",
                  scr->open.id, scr->open.name);
        return SCR_SUCCESS;
    }
    /* also when the index has a newer one, or cannot be changed */
    scr->fetch_below = scr->open.id;
    scr_event_fail(scr, SCR_ERR_INVALID, &e,
                   "the application could not restart from dataset %d (%s); it is marked "
                   "as failed, and an older one is tried next",
                   scr->open.id, scr->open.name);
    if (scr->rank == 0) mark_failed(scr, &scr->open);
    scr_cache_delete(scr, scr->open.id);
    return SCR_ERR_INVALID;
}
