/* SPDX-License-Identifier: BSD-3-Clause */
/* Restart: offering the newest checkpoint, and what the application says of it. */
#include "ops/folders.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "ops/fetch.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One that an application refused, or that ended runs that tried it, is skipped. */
static int passes_over(struct scr *scr, const scr_dataset *cached)
{
    return scr_location_has(scr, cached->id, SCR_LOCATION_FAILED) ||
           (scr->set.fetch && scr_fetch_passes_over(scr, cached));
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
        scr_say(scr, 1, "dataset %d (%s) of the cache is skipped", id, cached->name);
        scr_cache_set_aside(scr, id, SCR_ASIDE_USELESS);
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

/* There is nothing to offer. That is an error where a checkpoint is there, and was said
 * to be passed over: an application that started anew would lose all that it has done. */
static int without(const struct scr *scr, int rc, int over)
{
    if (rc && rc != -ENOENT) return SCR_ERR_PREFIX;
    if (scr->unsaved)
        return scr_fail(scr, SCR_ERR_CACHE,
                        "SCR_Have_restart: the newest checkpoint, or an output, was only "
                        "in the cache, which is another run's now");
    if (!over && scr_cache_has_aside(scr, SCR_ASIDE_UNREAD))
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
    if (cached.id < scr->passed_over) {
        *flag = scr->restart_offered = 0;
        return scr_fail(scr, SCR_ERR_CACHE,
                        "SCR_Have_restart: checkpoint %d, newer than any other, is in "
                        "caches that this run does not use, for the reason given above; "
                        "start again without the nodes named there, or with "
                        "SCR_CACHE_PURGE=1 to go on without it",
                        scr->passed_over);
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
    return *flag ? SCR_SUCCESS : without(scr, rc, over);
}

void scr_restart_remind(struct scr *scr)
{
    scr_dataset d;
    int first = !scr->begun && !scr->have_called;
    scr->begun = 1;
    if (!first) return;
    int id = scr_cached_newest(scr), asked = scr->routed_early;
    int there = id && scr_cached_get(scr, id, &d) == 0;
    if (!there && scr->set.fetch)
        there = scr_fetch_candidate(scr, SCR_AGE_ANY, NULL, &d) == 0;
    if (!there) return;
    MPI_Allreduce(MPI_IN_PLACE, &asked, 1, MPI_INT, MPI_MAX, scr->world);
    if (asked) return;
    scr_say(
        scr, 0,
        "warning: checkpoint %d (%s) can be loaded, but the program has not asked for "
        "it and begins anew: it did not call SCR_Have_restart, and SCR_Route_file gave "
        "no file of it before this output. New checkpoints take the places of older "
        "ones. A program that restarts by SCR_Route_file alone needs "
        "SCR_FETCH_ON_INIT=1",
        d.id, d.name);
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

/* Collective. Whether files can be read from the prefix folder, too. */
static void find_in_prefix(struct scr *scr)
{
    scr->in_prefix = scr->direct.id == scr->open.id;
    if (scr->in_prefix || !scr->set.fetch) return;
    if (scr->rank == 0) scr->in_prefix = scr_fetch_finds(scr, &scr->open);
    MPI_Bcast(&scr->in_prefix, 1, MPI_INT, 0, scr->world);
    if (scr->in_prefix) scr_flush_spread(scr, &scr->open, NULL);
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
    scr->begun = 1;
    begin_attempt(scr);
    find_in_prefix(scr);
    kvtree_unset_all(scr->refused);
    scr->route_failed = 0;
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

/* Agreed, with a text: 0, or why it is no fault of the checkpoint that the application
 * could not read it. */
static int find_excuse(struct scr *scr, char *why)
{
    const kvtree_elem *refused = kvtree_elem_first(scr->refused);
    int rc = 0;
    if (scr->no_memory)
        rc = err_set(why, -ENOMEM, "no memory to find a file");
    else if (refused || scr->route_failed)
        rc = err_set(why, -EINVAL, "SCR_Route_file refused \"%.200s\"",
                     refused ? kvtree_elem_key(refused) : "a name");
    return agree(scr->world, rc, why);
}

/* In this run an older checkpoint is next, so that the application comes to an end; the
 * next run tries this one again. */
static int give_way(struct scr *scr, const scr_log_event *e, const char *why)
{
    if (scr->direct.id != scr->open.id) scr->offer_below = scr->open.id;
    scr->offers_again = 1;
    if (scr->set.fetch) scr_fetch_spare(scr, &scr->open, 1);
    if (scr->set.fetch && scr->rank == 0) note(scr, &scr->open, scr_index_unmark_tried);
    return scr_event_fail(scr, SCR_ERR_INVALID, e,
                          "the application could not restart from dataset %d (%s): %s. "
                          "The checkpoint is not marked as failed; this run offers an "
                          "older one next, and the next run offers this one again",
                          scr->open.id, scr->open.name, why);
}

int scr_restart_complete(struct scr *scr, int valid)
{
    const int direct = scr->direct.id == scr->open.id;
    int what[2] = {valid != 0, direct || !scr_folders_gone(scr)};
    char why[SCR_ERR_TEXT] = "";
    MPI_Allreduce(MPI_IN_PLACE, what, 2, MPI_INT, MPI_MIN, scr->world);
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
    int excuse = find_excuse(scr, why);
    if (excuse != -ENOMEM && !what[1]) return offer_again(scr, &e);
    /* also when the index has a newer one, or cannot be changed */
    scr->fetch_below = scr_dataset_age(&scr->open);
    if (excuse) return give_way(scr, &e, why);
    scr_event_fail(scr, SCR_ERR_INVALID, &e,
                   "the application could not restart from dataset %d (%s); it is marked "
                   "as failed, and an older one is tried next",
                   scr->open.id, scr->open.name);
    mark_failed(scr, &scr->open);
    if (!direct) {
        scr_location(scr, &scr->open, SCR_LOCATION_FAILED, 1);
        scr_cache_set_aside(scr, scr->open.id, SCR_ASIDE_USELESS);
    }
    return SCR_ERR_INVALID;
}

void scr_restart_abandon(struct scr *scr)
{
    scr->state = SCR_STATE_IDLE;
    scr->restart_offered = 0;
    if (scr->set.fetch && scr->rank == 0) note(scr, &scr->open, scr_index_unmark_tried);
}
