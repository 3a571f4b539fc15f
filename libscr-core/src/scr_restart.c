/* SPDX-License-Identifier: BSD-3-Clause */
/* Restart: offering the newest checkpoint, and what the application says of it. */
#include "scr_folders.h"

#include "records/scr_index.h"
#include "scr_fetch.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One that ended runs that tried it leaves the cache: the prefix folder has it, too. */
static int passes_over(struct scr *scr, const scr_dataset *cached)
{
    return scr->set.fetch && scr_fetch_passes_over(scr, cached);
}

/* What this run wrote or read may have been cut or removed since: a restart reads it
 * again. */
static int is_as_written(struct scr *scr, int id)
{
    scr_kept *kept = scr_kept_find(scr, id);
    if (kept && kept->used) kept->unread = 1;
    if (kept) kept->used = 0;
    return scr_cache_ensure(scr, id);
}

/* The newest checkpoint of the cache that is as it was written; id 0: none. */
static void newest_cached(struct scr *scr, scr_dataset *cached)
{
    for (;;) {
        int id = scr_cached_newest_below(scr, scr->offer_below);
        if (!id || scr_cached_get(scr, id, cached) != 0) cached->id = 0;
        if (!cached->id) return;
        if (!passes_over(scr, cached)) {
            if (is_as_written(scr, id)) return;
            continue;
        }
        scr_say(scr, 1, "dataset %d (%s) leaves the cache", id, cached->name);
        scr_cache_delete(scr, id);
        if (scr_cached_newest_below(scr, scr->offer_below) == id) return; /* no memory */
    }
}

/* All that is on the prefix folder, newest first, whatever CURRENT is. */
#define BESIDES_CURRENT ((scr_age){SCR_ID_MAX + 1, 0})

/* A search on the prefix folder. */
struct search {
    scr_age below;
    kvtree *tried; /* names */
    int rises;     /* what is newer than CURRENT is not tried yet */
};

/* What is newer than CURRENT, where somebody has chosen that, is better than nothing. */
static int next_candidate(struct scr *scr, struct search *s, int nothing, scr_dataset *d)
{
    int rc = scr_fetch_candidate(scr, s->below, s->tried, d);
    if (rc != -ENOENT || !nothing || !s->rises) return rc;
    s->rises = 0;
    s->below = BESIDES_CURRENT;
    rc = scr_fetch_candidate(scr, s->below, s->tried, d);
    if (!rc)
        scr_say(scr, 0,
                "warning: neither the checkpoint to begin with nor an older one can be "
                "used, so newer ones are tried");
    return rc;
}

/* After d another copy of it may be better, and all others where it is CURRENT, but of
 * other ranks; without memory to leave it out only older ones are. */
static void pass(struct scr *scr, struct search *s, const scr_dataset *d)
{
    if (!kvtree_set(s->tried, d->name, NULL))
        s->below = scr_dataset_age(d);
    else if (d->ranks != scr->ranks && s->below.id == SCR_AGE_ANY.id)
        s->below = BESIDES_CURRENT;
    else
        s->below = (scr_age){d->id + 1, 0};
    MPI_Bcast(&s->below, sizeof s->below, MPI_BYTE, 0, scr->world);
}

/* The prefix folder may have a newer one than the cache, when the newest was lost there.
 * What cannot be fetched is left out in the next round; *over is why one was that nothing
 * is wrong with, or 0. */
static int fetch_newer(struct scr *scr, scr_dataset *cached, int *over)
{
    scr_dataset d;
    struct search s = {scr->fetch_below, kvtree_new(), !scr->offers_again};
    int rc = 0, fetched;
    *over = 0;
    while (scr->set.fetch &&
           (rc = next_candidate(scr, &s, !cached->id && !*over, &d)) == 0) {
        pass(scr, &s, &d);
        if (!scr_dataset_is_newer(&d, cached)) {
            if (s.below.id != BESIDES_CURRENT.id) break;
            continue;
        }
        if ((fetched = scr_fetch_dataset(scr, &d)) == 0)
            *cached = d;
        else
            newest_cached(scr, cached); /* what left the cache to make room is gone */
        if (fetched < 0) *over = fetched;
    }
    kvtree_delete(&s.tried);
    return rc;
}

/* 1 when the cache has a checkpoint that an error of this run kept from being rebuilt. */
static int has_aside(const struct scr *scr)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(scr->aside, "ID"));
    while (e && !kvtree_get(kvtree_elem_hash(e), "CKPT"))
        e = kvtree_elem_next(e);
    return e != NULL;
}

/* There is nothing to offer. That is an error where a checkpoint is there, and was said
 * to be passed over: an application that started anew would lose all that it has done. */
static int without(const struct scr *scr, int rc, int over)
{
    if (rc && rc != -ENOENT) return SCR_ERR_PREFIX;
    if (scr->unsaved)
        return scr_fail(scr, SCR_ERR_CACHE,
                        "SCR_Have_restart: the newest checkpoint, or an output, was only "
                        "in the cache, which is another run's now");
    if (!over && has_aside(scr))
        return scr_fail(scr, SCR_ERR_CACHE,
                        "SCR_Have_restart: there is a checkpoint in the cache, but it "
                        "could not be rebuilt, for the reason given above; start again "
                        "when that is mended, or on other nodes, or with "
                        "SCR_CACHE_PURGE=1 to begin anew");
    if (!over) return SCR_SUCCESS;
    return scr_fail(scr, over == -EOPNOTSUPP ? SCR_ERR_CACHE : SCR_ERR_PREFIX,
                    "SCR_Have_restart: there are checkpoints in %s, but none could be "
                    "read, for the reason given above; start again when that is mended, "
                    "or with SCR_FETCH=0 to begin anew",
                    scr->prefix);
}

int scr_restart_have(struct scr *scr, int *flag, char *name)
{
    scr_dataset cached;
    scr_folders_ensure(scr);
    scr->direct.id = 0;
    newest_cached(scr, &cached);
    int over, rc = fetch_newer(scr, &cached, &over);
    scr->restart_offered = cached.id;
    *flag = cached.id != 0;
    if (*flag && name) strcpy(name, cached.name);
    if (*flag) {
        scr_log_event e = scr_event_of(SCR_LOG_RESTART_OFFERED, &cached);
        scr_event(scr, 2, &e, "dataset %d (%s) is offered for a restart", cached.id,
                  cached.name);
    }
    /* an index that cannot be read does not mean that there is nothing to restart from */
    return *flag ? SCR_SUCCESS : without(scr, rc, over);
}

/* On rank 0, for what the index has: -ENOENT where the cache alone has it. */
static int note(struct scr *scr, const scr_dataset *d, scr_index_changer *change)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = scr_index_change(scr, d, change, err);
    if (rc && rc != -ENOENT)
        scr_say(scr, 0, "warning: the index could not be changed: %s", err);
    return rc;
}

/* Collective. The same where the program could not use it. */
static void mark_failed(struct scr *scr, const scr_dataset *d)
{
    int rc = scr->rank == 0 ? note(scr, d, scr_index_mark_failed) : 0;
    MPI_Bcast(&rc, 1, MPI_INT, 0, scr->world);
    if (rc && rc != -ENOENT) scr->offers_again = 1;
}

/* The attempt is in the index before the application reads anything. */
static void begin_attempt(struct scr *scr)
{
    if (!scr->set.fetch) return;
    if (scr->rank == 0) note(scr, &scr->open, scr_index_mark_tried);
    MPI_Barrier(scr->world); /* whoever crashes now does so on record */
}

int scr_restart_start(struct scr *scr, char *name)
{
    int rc = scr->restart_offered ? 0 : -ENOENT;
    if (!rc && scr->direct.id == scr->restart_offered)
        scr->open = scr->direct;
    else if (!rc)
        rc = scr_cached_get(scr, scr->restart_offered, &scr->open);
    if (rc)
        return scr_fail(scr, SCR_ERR_STATE,
                        "SCR_Start_restart: no checkpoint was offered; "
                        "SCR_Have_restart is missing, or gave 0");
    if (name) strcpy(name, scr->open.name);
    begin_attempt(scr);
    scr->state = SCR_STATE_RESTART;
    scr->no_memory = 0;
    scr->restart_start = MPI_Wtime();
    scr_log_event e = scr_event_of(SCR_LOG_RESTART_START, &scr->open);
    scr_event(scr, 2, &e, "the restart from dataset %d (%s) begins", scr->open.id,
              scr->open.name);
    return SCR_SUCCESS;
}

/* Somebody has removed files while the program read them: SCR_Have_restart makes the
 * folders again, and finds what can be had of the checkpoint. */
static int offer_again(struct scr *scr, const scr_log_event *e)
{
    if (scr->set.fetch && scr->rank == 0) note(scr, &scr->open, scr_index_unmark_tried);
    return scr_event_fail(scr, SCR_ERR_INVALID, e,
                          "the application could not restart from dataset %d (%s), as "
                          "somebody has removed files of this run just now; what others "
                          "have of it is tried next",
                          scr->open.id, scr->open.name);
}

/* Some rank could not be told where its files are: that is no fault of theirs. In this
 * run an older checkpoint is next, so that the application comes to an end; the next run
 * tries this one again. */
static int give_way(struct scr *scr, const scr_log_event *e)
{
    if (scr->direct.id != scr->open.id) scr->offer_below = scr->open.id;
    scr->offers_again = 1;
    if (scr->set.fetch) scr_fetch_spare(scr, &scr->open, 1);
    if (scr->set.fetch && scr->rank == 0) note(scr, &scr->open, scr_index_unmark_tried);
    return scr_event_fail(scr, SCR_ERR_INVALID, e,
                          "the application could not restart from dataset %d (%s), as a "
                          "rank had no memory; it stays, and an older one is tried next",
                          scr->open.id, scr->open.name);
}

int scr_restart_complete(struct scr *scr, int valid)
{
    const int direct = scr->direct.id == scr->open.id;
    int what[3] = {valid != 0, !scr->no_memory, direct || !scr_folders_gone(scr)};
    MPI_Allreduce(MPI_IN_PLACE, what, 3, MPI_INT, MPI_MIN, scr->world);
    int all = what[0];
    scr->state = SCR_STATE_IDLE;
    scr->restart_offered = 0;
    scr->idle_since = MPI_Wtime();
    scr_log_event e =
        scr_event_of(all ? SCR_LOG_RESTART_COMPLETE : SCR_LOG_RESTART_FAILED, &scr->open);
    e.secs = scr->idle_since - scr->restart_start;
    e.code = SCR_ERR_INVALID;
    if (all) {
        scr_kept *kept = scr_kept_find(scr, scr->open.id);
        if (kept) kept->used = 1;
        if (scr->set.fetch && scr->rank == 0) note(scr, &scr->open, scr_index_mark_good);
        scr_event(scr, 2, &e, "the application restarted from dataset %d (%s)",
                  scr->open.id, scr->open.name);
        return SCR_SUCCESS;
    }
    if (what[1] && !what[2]) return offer_again(scr, &e);
    /* also when the index has a newer one, or cannot be changed */
    scr->fetch_below = scr_dataset_age(&scr->open);
    if (!what[1]) return give_way(scr, &e);
    scr_event_fail(scr, SCR_ERR_INVALID, &e,
                   "the application could not restart from dataset %d (%s); it is marked "
                   "as failed, and an older one is tried next",
                   scr->open.id, scr->open.name);
    mark_failed(scr, &scr->open);
    if (!direct) scr_cache_delete(scr, scr->open.id);
    return SCR_ERR_INVALID;
}
