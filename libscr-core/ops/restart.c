/* SPDX-License-Identifier: BSD-3-Clause */
/* Restart: offers the newest checkpoint, and handles the result of the application. */
#include "ops/folders.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "ops/bring.h"
#include "ops/fetch.h"
#include "ops/listing.h"
#include "ops/route.h"
#include "plan/restart.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ---- */

/* What is known of all checkpoints, on rank 0. Row i belongs to dataset i. */
struct table {
    scr_restart_facts facts;
    scr_dataset *datasets;
    int room;
    int rc;     /* why the index could not be read, or 0 */
    bool rises; /* checkpoints newer than the current one are tried, which was reported */
};

static void restart_table_free(struct table *t)
{
    free(t->facts.rows);
    free(t->datasets);
    t->facts.rows = NULL;
    t->datasets = NULL;
    t->facts.count = t->room = 0;
}

/* An unknown time matches any. */
static bool restart_is_same(const scr_dataset *a, const scr_dataset *b)
{
    return a->id == b->id && strcmp(a->name, b->name) == 0 &&
           (a->created == b->created || !a->created || !b->created);
}

/* The row of exactly this dataset, created if missing; NULL without memory. */
static scr_restart_row *restart_row_of(struct table *t, const scr_dataset *d)
{
    scr_restart_facts *f = &t->facts;
    for (int i = 0; i < f->count; i++)
        if (restart_is_same(&t->datasets[i], d)) return &f->rows[i];
    if (f->count == t->room) {
        const size_t room = (size_t)t->room * 2 + 8;
        scr_restart_row *rows = realloc(f->rows, room * sizeof *rows);
        if (rows) f->rows = rows;
        scr_dataset *datasets = realloc(t->datasets, room * sizeof *datasets);
        if (datasets) t->datasets = datasets;
        if (!rows || !datasets) return NULL;
        t->room = (int)room;
    }
    t->datasets[f->count] = *d;
    f->rows[f->count] = (scr_restart_row){.age = scr_dataset_age(d)};
    return &f->rows[f->count++];
}

static bool restart_is_exhausted(const scr_index_state *s)
{
    return s->complete == 1 && !s->failed && s->attempts >= SCR_INDEX_ATTEMPTS;
}

/* Rank 0. Adds the checkpoints that the index lists. */
static int restart_gather_stored(const struct scr *scr, struct table *t,
                                 const kvtree *index)
{
    scr_dataset *list = NULL, current = {.id = 0};
    int count = 0, rc = scr_index_list(index, &list, &count);
    const int chosen = scr_index_get_current(index, &current) == 0;
    for (int i = 0; i < count && !rc; i++) {
        scr_index_state s = {.complete = 0};
        if (!list[i].ckpt || scr_index_look(index, &list[i], &s) != 0 ||
            s.complete != 1 || s.failed)
            continue;
        scr_restart_row *row = restart_row_of(t, &list[i]);
        if (!row) {
            rc = -ENOMEM;
            break;
        }
        row->stored = SCR_COPY_THERE;
        row->exhausted = restart_is_exhausted(&s) && list[i].id != scr->restart.again;
        row->is_of_other_ranks = list[i].ranks != scr->job.ranks && !scr->set.any_ranks;
        row->is_current = chosen && restart_is_same(&list[i], &current);
    }
    free(list);
    return rc;
}

/* Rank 0. */
static int restart_gather_index(struct scr *scr, struct table *t, kvtree_error *err)
{
    const kvtree *index;
    int rc = scr_index_view(&scr->prefix, &index, err);
    if (!rc && restart_gather_stored(scr, t, index) != 0)
        rc = err_set(err, -ENOMEM, "no memory for the list of checkpoints");
    return rc;
}

/* Rank 0. Whether a checkpoint must not be used: the program refused it, even if a node
 * has brought a copy back since, or too many runs did not complete a restart from it. */
static bool restart_is_unwanted(struct scr *scr, const scr_restart_row *row,
                                const scr_dataset *d)
{
    kvtree_error err = {""};
    scr_index_state state = {.refused = 0};
    const kvtree *index;
    if (row->exhausted ||
        scr_flush_file_has(scr->prefix.flush_file, d->id, SCR_LOCATION_FAILED))
        return true;
    return scr_index_view(&scr->prefix, &index, &err) == 0 &&
           scr_index_look(index, d, &state) == 0 && state.refused;
}

/* Collective. Adds the cached checkpoints, which are the same on every rank. */
static int restart_gather_cached(struct scr *scr, struct table *t)
{
    int failed = 0, id = 0;
    for (const scr_cached *c; (c = scr_cached_next(&scr->cache, id)) != NULL;) {
        int skip = 0;
        id = c->d.id;
        if (!c->d.ckpt) continue;
        scr_restart_row *row = scr->job.rank == 0 ? restart_row_of(t, &c->d) : NULL;
        failed |= scr->job.rank == 0 && !row;
        if (row) skip = restart_is_unwanted(scr, row, &c->d);
        if (scr_job_first(&scr->job, skip)) {
            scr_say(&scr->report, SCR_MSG_RESTART_SKIPPED,
                    "dataset %d (%s) of the cache is skipped", id, c->d.name);
            scr_cached_set_state(&scr->cache, id, SCR_CACHED_USELESS);
        } else if (row) {
            row->cached = SCR_COPY_THERE;
        }
    }
    return scr_job_first(&scr->job, failed) ? -ENOMEM : 0;
}

/* Rank 0. Adds the cached checkpoints that an error keeps from being used. */
static int restart_gather_unreadable(const scr_cache *cache, struct table *t)
{
    const scr_cached *c = scr_cached_next_unusable(cache, 0);
    for (; c; c = scr_cached_next_unusable(cache, c->d.id)) {
        if (c->state != SCR_CACHED_UNREADABLE || !c->d.ckpt) continue;
        const scr_dataset d = {.id = c->d.id};
        scr_restart_row *row = restart_row_of(t, &d);
        if (!row) return -ENOMEM;
        row->cached = SCR_COPY_UNREADABLE;
    }
    return 0;
}

/* Collective. Gathers the facts. An SCR code; failures are reported. If the index cannot
 * be read, cached checkpoints can still be offered. */
static int restart_gather(struct scr *scr, struct table *t)
{
    kvtree_error err = {""};
    restart_table_free(t);
    t->facts.below = scr->restart.below;
    t->facts.only_older = scr->restart.only_older;
    t->facts.elsewhere = scr->restart.elsewhere;
    t->rc = 0;
    if (scr->set.fetch && scr->job.rank == 0) {
        t->rc = restart_gather_index(scr, t, &err);
        if (t->rc)
            scr_fail(&scr->report, SCR_MSG_INDEX_UNREADABLE, SCR_ERR_PREFIX, "%s",
                     err.text);
    }
    int rc = restart_gather_cached(scr, t);
    if (!rc && scr->job.rank == 0) rc = restart_gather_unreadable(&scr->cache, t);
    return scr_job_first(&scr->job, rc)
               ? scr_fail(&scr->report, SCR_MSG_MEMORY_EXHAUSTED, SCR_FAILURE,
                          "no memory for the list of checkpoints")
               : SCR_SUCCESS;
}

/* ---- steps ---- */

/* Collective. The next step, planned by rank 0, and the dataset that it is about. */
static scr_restart_step restart_next_step(struct scr *scr, const struct table *t,
                                          scr_dataset *d)
{
    scr_restart_step step = {SCR_RESTART_ANEW, -1, false};
    if (scr->job.rank == 0) step = scr_plan_restart(&t->facts);
    if (scr->job.rank == 0 && step.row >= 0) *d = t->datasets[step.row];
    scr_job_share(&scr->job, &step, sizeof step);
    if (step.row >= 0)
        scr_job_share(&scr->job, d, sizeof *d);
    else
        d->id = 0;
    return step;
}

/* Collective. Verifies a cached checkpoint. Files that this run wrote or read are read
 * again, because they may have been truncated or removed since. */
static scr_copy restart_compare(struct scr *scr, int id)
{
    scr_cached *cached = scr_cached_find(&scr->cache, id);
    if (cached && cached->used) cached->unread = true;
    if (cached) cached->used = false;
    if (scr_cache_ensure(scr, id)) return SCR_COPY_READY;
    cached = scr_cached_find(&scr->cache, id);
    return cached && cached->state == SCR_CACHED_UNREADABLE ? SCR_COPY_UNREADABLE
                                                            : SCR_COPY_NONE;
}

/* Rank 0. Updates the rows of datasets that were evicted to make room. */
static void restart_refresh_cached(const struct scr *scr, struct table *t)
{
    for (int i = 0; i < t->facts.count; i++) {
        scr_restart_row *row = &t->facts.rows[i];
        const int id = t->datasets[i].id;
        if (row->cached != SCR_COPY_THERE && row->cached != SCR_COPY_READY) continue;
        if (scr->prefix.direct.dataset.id == id) continue;
        const scr_cached *cached = scr_cached_find(&scr->cache, id);
        if (!cached || cached->state == SCR_CACHED_USELESS) row->cached = SCR_COPY_NONE;
    }
}

/* Rank 0. Notes and reports that an exhausted checkpoint is tried again; for the rest of
 * the run it counts like others. */
static void restart_note_again(struct scr *scr, const struct table *t,
                               const scr_restart_step *step)
{
    if (scr->job.rank != 0 || !t->facts.rows[step->row].exhausted) return;
    scr->restart.again = t->facts.rows[step->row].age.id;
    scr_say(&scr->report, SCR_MSG_RESTART_TRIED_AGAIN,
            "%s is tried again, although %d runs did not complete a restart from it: no "
            "other checkpoint can be used; SCR_FETCH=0 with SCR_CACHE_PURGE=1 begins "
            "without one",
            t->datasets[step->row].name, SCR_INDEX_ATTEMPTS);
}

/* Collective. Fetches a checkpoint. 1: nothing was fetched, because the index named
 * another dataset than the one in the directory, and was corrected. */
static int restart_fetch(struct scr *scr, struct table *t, const scr_restart_step *step,
                         const scr_dataset *d)
{
    if (scr_job_first(&scr->job, scr->job.rank == 0 && scr_fetch_correct(scr, d)))
        return 1;
    if (step->rises && !t->rises)
        scr_say(&scr->report, SCR_MSG_RESTART_NEWER_TRIED,
                "neither the chosen checkpoint nor an older one is usable; newer ones "
                "are tried");
    t->rises |= step->rises;
    restart_note_again(scr, t, step);
    const bool leaves =
        scr->job.rank == 0 && scr_plan_restart_leaves_current(&t->facts, step->row);
    const int rc = scr_fetch_dataset(scr, d, leaves);
    if (scr->job.rank != 0) return 0;
    scr_restart_row *row = &t->facts.rows[step->row];
    row->stored = rc == 0 ? SCR_COPY_READY : rc < 0 ? SCR_COPY_UNREADABLE : SCR_COPY_NONE;
    if (rc == 0) row->cached = SCR_COPY_READY;
    if (rc == -EOPNOTSUPP) t->rc = rc;
    restart_refresh_cached(scr, t);
    return 0;
}

/* Collective. Executes steps until the final one, and returns it. */
static scr_restart_step restart_find(struct scr *scr, struct table *t, scr_dataset *d)
{
    for (;;) {
        const scr_restart_step step = restart_next_step(scr, t, d);
        if (step.action == SCR_RESTART_COMPARE) {
            const scr_copy copy = restart_compare(scr, d->id);
            if (scr->job.rank == 0) t->facts.rows[step.row].cached = copy;
        } else if (step.action != SCR_RESTART_FETCH) {
            return step;
        } else if (restart_fetch(scr, t, &step, d) &&
                   restart_gather(scr, t) != SCR_SUCCESS) {
            return (scr_restart_step){SCR_RESTART_FAIL_PREFIX, -1, false};
        }
    }
}

/* ---- reports ---- */

/* Rank 0. Reports the newest skipped checkpoint that is newer than the first one to
 * try. */
static void restart_report_exhausted(const struct scr *scr, const struct table *t)
{
    const scr_restart_facts *f = &t->facts;
    const scr_restart_step first = scr_plan_restart(f);
    int newest = -1, least = 0;
    if (f->below.id != SCR_AGE_ANY.id) return;
    if (first.row >= 0 && !first.rises) least = f->rows[first.row].age.id;
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].exhausted && f->rows[i].age.id > least) {
            least = f->rows[i].age.id;
            newest = i;
        }
    if (newest >= 0)
        scr_say(&scr->report, SCR_MSG_RESTART_ATTEMPTS_EXHAUSTED,
                "%s is skipped, because %d runs did not complete a restart from it; "
                "SCR_CURRENT=%s tries it again",
                t->datasets[newest].name, SCR_INDEX_ATTEMPTS, t->datasets[newest].name);
}

/* Rank 0. Reports the newest checkpoint of another number of ranks that is newer than the
 * offered one, or is the current one. */
static void restart_report_other_ranks(const struct scr *scr, const struct table *t,
                                       int offered)
{
    int newest = -1;
    for (int i = 0; i < t->facts.count; i++) {
        const scr_restart_row *row = &t->facts.rows[i];
        if (row->stored == SCR_COPY_THERE && row->is_of_other_ranks && !row->exhausted &&
            (row->age.id > offered || row->is_current) &&
            (newest < 0 || scr_dataset_is_newer(&t->datasets[i], &t->datasets[newest])))
            newest = i;
    }
    if (newest >= 0)
        scr_say(&scr->report, SCR_MSG_RESTART_OTHER_RANKS,
                "%s on the prefix directory was written by %d ranks, and this run has "
                "%d; it is not used",
                t->datasets[newest].name, t->datasets[newest].ranks, scr->job.ranks);
}

/* Returns the result if no checkpoint is offered: an error if one exists and was reported
 * as unusable, because an application that started anew would lose its progress. */
static int restart_fail(const struct scr *scr, scr_restart_action end, int rc)
{
    if (end == SCR_RESTART_FAIL_ELSEWHERE)
        return scr_fail(
            &scr->report, SCR_MSG_RESTART_CACHE_ELSEWHERE, SCR_ERR_CACHE,
            "SCR_Have_restart: the newest checkpoint, %d, is in caches that this run "
            "does not use, for the reason given above; start again without the nodes "
            "named there, or with SCR_CACHE_PURGE=1 to abandon it",
            scr->restart.elsewhere);
    if (rc && rc != -EOPNOTSUPP) return SCR_ERR_PREFIX; /* reported: the index */
    if (scr->cache.unsaved)
        return scr_fail(&scr->report, SCR_MSG_CACHE_TAKEN_OVER, SCR_ERR_CACHE,
                        "SCR_Have_restart: the newest checkpoint, or an output, was only "
                        "in the cache, which another run uses now");
    if (end == SCR_RESTART_FAIL_CACHE)
        return scr_fail(&scr->report, SCR_MSG_RESTART_CACHE_UNUSABLE, SCR_ERR_CACHE,
                        "SCR_Have_restart: the checkpoint in the cache could not be "
                        "rebuilt, for the reason given above; correct this and start "
                        "again, or start with SCR_CACHE_PURGE=1 without a checkpoint");
    if (end == SCR_RESTART_ANEW) return SCR_SUCCESS;
    return scr_fail(&scr->report, SCR_MSG_RESTART_PREFIX_UNUSABLE,
                    rc ? SCR_ERR_CACHE : SCR_ERR_PREFIX,
                    "SCR_Have_restart: none of the checkpoints in %s could be read, for "
                    "the reason given above; correct this and start again, or start with "
                    "SCR_FETCH=0 without a checkpoint",
                    scr->prefix.path);
}

/* ---- SCR_Have_restart ---- */

int scr_restart_have(struct scr *scr, int *flag, char *name)
{
    struct table t = {.room = 0};
    scr_dataset d = {.id = 0};
    scr_folders_ensure(scr);
    scr_route_forget(scr);
    scr_bypass_forget(scr);
    scr->prefix.direct.dataset.id = 0;
    scr->restart.offered = *flag = 0;
    int rc = restart_gather(scr, &t);
    if (!rc && scr->job.rank == 0) restart_report_exhausted(scr, &t);
    if (!rc) {
        const scr_restart_step end = restart_find(scr, &t, &d);
        *flag = end.action == SCR_RESTART_OFFER;
        if (scr->job.rank == 0) restart_report_other_ranks(scr, &t, *flag ? d.id : 0);
        t.rc = scr_job_first(&scr->job, t.rc);
        if (!*flag) rc = restart_fail(scr, end.action, t.rc);
    }
    restart_table_free(&t);
    if (!*flag) return rc;
    scr->restart.offered = d.id;
    if (name) strcpy(name, d.name);
    scr_log_event e = scr_event_of(SCR_LOG_RESTART_OFFERED, &d);
    scr_event(&scr->report, SCR_MSG_RESTART_OFFERED, &e,
              "dataset %d (%s) is offered for a restart", d.id, d.name);
    return SCR_SUCCESS;
}

void scr_restart_remind(struct scr *scr)
{
    struct table t = {.room = 0};
    scr_dataset d;
    const bool first = !scr->lifecycle.begun && !scr->lifecycle.have_called &&
                       !scr->lifecycle.current_called;
    scr->lifecycle.begun = 1;
    if (!first || restart_gather(scr, &t) != SCR_SUCCESS) return;
    restart_next_step(scr, &t, &d);
    restart_table_free(&t);
    if (!d.id || scr_job_max(&scr->job, scr->restart.routed_early)) return;
    scr_say(&scr->report, SCR_MSG_RESTART_NOT_ASKED,
            "checkpoint %d (%s) is available, but the program starts without it: it "
            "called neither SCR_Have_restart nor SCR_Route_file nor SCR_Current for it. "
            "New checkpoints will replace older ones. A program that restarts by "
            "SCR_Route_file alone "
            "needs SCR_FETCH_ON_INIT=1",
            d.id, d.name);
}

/* ---- results ---- */

/* On rank 0. Marks a checkpoint in the index: -ENOENT if only the cache has it. */
static int restart_mark(struct scr *scr, const scr_dataset *d, scr_index_changer *change)
{
    kvtree_error err = {""};
    int rc = scr_index_change(&scr->prefix, d, change, &err);
    if (rc && rc != -ENOENT)
        scr_say(&scr->report, SCR_MSG_INDEX_NOT_WRITTEN,
                "the index could not be written: %s", err.text);
    return rc;
}

/* Collective. Records that the program could not use a checkpoint, in the index and, for
 * a cached copy, in the flush file, before any rank continues. */
static void restart_mark_failed(struct scr *scr, const scr_dataset *d, bool is_cached)
{
    if (is_cached) scr_location(&scr->prefix, d, SCR_LOCATION_FAILED, 1);
    int rc = scr->job.rank == 0 ? restart_mark(scr, d, scr_index_mark_refused) : 0;
    rc = scr_job_first(&scr->job, rc);
    if (rc && rc != -ENOENT) scr->restart.only_older = true;
}

/* Marks the attempt in the index before the application reads anything. */
static void restart_begin_attempt(struct scr *scr)
{
    if (!scr->set.fetch) return;
    if (scr->job.rank == 0) restart_mark(scr, &scr->lifecycle.open, scr_index_mark_tried);
    MPI_Barrier(scr->job.world); /* from here on a crash counts as an attempt */
}

/* Collective. Finds out whether files can also be read from the prefix directory. */
static void restart_find_on_prefix(struct scr *scr)
{
    scr->restart.in_prefix = scr->prefix.direct.dataset.id == scr->lifecycle.open.id;
    if (scr->restart.in_prefix || !scr->set.fetch) return;
    scr->restart.in_prefix = scr_job_first(
        &scr->job, scr->job.rank == 0 && scr_fetch_finds(scr, &scr->lifecycle.open));
    if (scr->restart.in_prefix) scr_flush_spread(scr, &scr->lifecycle.open);
}

int scr_restart_start(struct scr *scr, char *name)
{
    int rc = scr->restart.offered ? 0 : -ENOENT;
    if (!rc && scr->prefix.direct.dataset.id == scr->restart.offered)
        scr->lifecycle.open = scr->prefix.direct.dataset;
    else if (!rc)
        rc = scr_cached_get(&scr->cache, scr->restart.offered, &scr->lifecycle.open);
    if (rc)
        return scr_fail(&scr->report, SCR_MSG_RESTART_NOT_OFFERED, SCR_ERR_STATE,
                        "SCR_Start_restart: no checkpoint was offered; SCR_Have_restart "
                        "is missing, or gave 0");
    if (name) strcpy(name, scr->lifecycle.open.name);
    scr->lifecycle.begun = 1;
    restart_begin_attempt(scr);
    restart_find_on_prefix(scr);
    scr_listing_begin(scr);
    kvtree_unset_all(scr->output.refused);
    scr->output.route_failed = 0;
    scr->lifecycle.state = SCR_STATE_RESTART;
    scr->restart.no_memory = 0;
    scr->restart.start = MPI_Wtime();
    scr_log_event e = scr_event_of(SCR_LOG_RESTART_START, &scr->lifecycle.open);
    scr_event(&scr->report, SCR_MSG_RESTART_STARTED, &e,
              "the restart from dataset %d (%s) begins", scr->lifecycle.open.id,
              scr->lifecycle.open.name);
    return SCR_SUCCESS;
}

/* Reports that files were removed while the program read them: SCR_Have_restart recreates
 * the directories, and finds the remaining copies of the checkpoint. */
static int restart_offer_again(struct scr *scr, const scr_log_event *e)
{
    if (scr->set.fetch && scr->job.rank == 0)
        restart_mark(scr, &scr->lifecycle.open, scr_index_unmark_tried);
    return scr_event(&scr->report, SCR_MSG_RESTART_FILES_REMOVED, e,
                     "the application could not restart from dataset %d (%s); files of "
                     "this run were removed meanwhile, and other copies are tried next",
                     scr->lifecycle.open.id, scr->lifecycle.open.name);
}

/* Local. 0, or with a text the reason why the application could not read an intact
 * checkpoint. */
static int restart_find_excuse(const struct scr *scr, kvtree_error *why)
{
    const kvtree_elem *refused = kvtree_elem_first(scr->output.refused);
    if (scr->restart.no_memory) return err_set(why, -ENOMEM, "no memory to find a file");
    if (refused)
        return err_set(why, -EINVAL, "the name \"%.100s\" was refused: %.300s",
                       kvtree_elem_key(refused),
                       kvtree_elem_key(kvtree_elem_first(kvtree_elem_hash(refused))));
    return scr->output.route_failed
               ? err_set(why, -EIO,
                         "a file, or the list of files, could not be read: %.300s",
                         scr->output.route_error.text)
               : 0;
}

/* Skips the checkpoint in this run, which offers an older one next, so that the
 * application does not try it forever; the next run tries it again. */
static int restart_give_way(struct scr *scr, const scr_log_event *e, const char *why)
{
    scr->restart.only_older = true;
    if (scr->set.fetch) scr_fetch_spare(scr, &scr->lifecycle.open, 1);
    if (scr->set.fetch && scr->job.rank == 0)
        restart_mark(scr, &scr->lifecycle.open, scr_index_unmark_tried);
    return scr_event(
        &scr->report, SCR_MSG_RESTART_NOT_READ, e,
        "the application could not restart from dataset %d (%s): %s; it is not marked as "
        "failed: this run offers an older one, the next run this one again",
        scr->lifecycle.open.id, scr->lifecycle.open.name, why);
}

/* Collective. The run continues from chosen: cached datasets of an earlier calculation,
 * which a returned node brought, must not be flushed or saved in its place. */
static void restart_set_aside_stale(struct scr *scr, const scr_dataset *chosen)
{
    int id = chosen->id;
    for (const scr_cached *c; (c = scr_cached_next(&scr->cache, id)) != NULL;) {
        id = c->d.id;
        if (!scr_dataset_is_newer(chosen, &c->d)) continue;
        scr_say(&scr->report, SCR_MSG_RESTART_EARLIER_CALCULATION,
                "dataset %d (%s) of the cache is older than %d (%s), from which this run "
                "continues, and is set aside",
                id, c->d.name, chosen->id, chosen->name);
        scr_location_remove(&scr->prefix, id);
        scr_cached_set_state(&scr->cache, id, SCR_CACHED_USELESS);
    }
}

/* Collective. Frees all resources of the restart. */
static void restart_close(struct scr *scr)
{
    scr_bring_end(scr);
    scr_listing_end(scr);
    scr_route_forget(scr);
    scr_direct_forget_others(&scr->prefix);
    scr->lifecycle.state = SCR_STATE_IDLE;
    scr->restart.offered = 0;
}

int scr_restart_complete(struct scr *scr, int valid)
{
    const int direct = scr->prefix.direct.dataset.id == scr->lifecycle.open.id;
    kvtree_error why = {""};
    const int all = scr_job_min(&scr->job, valid != 0);
    const int gone = scr_job_max(&scr->job, !direct && scr_cache_is_gone(&scr->cache));
    restart_close(scr);
    scr->pace.idle_since = MPI_Wtime();
    scr_log_event e = scr_event_of(
        all ? SCR_LOG_RESTART_COMPLETE : SCR_LOG_RESTART_FAILED, &scr->lifecycle.open);
    e.secs = scr->pace.idle_since - scr->restart.start;
    e.code = SCR_ERR_INVALID;
    if (all) {
        scr_cached *cached = scr_cached_find(&scr->cache, scr->lifecycle.open.id);
        if (cached) cached->used = true;
        if (scr->set.fetch && scr->job.rank == 0)
            restart_mark(scr, &scr->lifecycle.open, scr_index_mark_good);
        restart_set_aside_stale(scr, &scr->lifecycle.open);
        scr_event(&scr->report, SCR_MSG_RESTART_COMPLETE, &e,
                  "the application restarted from dataset %d (%s)",
                  scr->lifecycle.open.id, scr->lifecycle.open.name);
        return SCR_SUCCESS;
    }
    int excuse = agree(scr->job.world, restart_find_excuse(scr, &why), &why);
    if (excuse != -ENOMEM && gone) return restart_offer_again(scr, &e);
    /* also if the index has a newer checkpoint, or cannot be changed */
    scr->restart.below = scr_dataset_age(&scr->lifecycle.open);
    if (excuse) return restart_give_way(scr, &e, why.text);
    scr_event(&scr->report, SCR_MSG_RESTART_FAILED, &e,
              "the application could not restart from dataset %d (%s); it is marked as "
              "failed, and an older one is tried next",
              scr->lifecycle.open.id, scr->lifecycle.open.name);
    scr_flush_stop(scr, scr->lifecycle.open.id); /* or it would become valid again */
    restart_mark_failed(scr, &scr->lifecycle.open, !direct);
    if (!direct)
        scr_cached_set_state(&scr->cache, scr->lifecycle.open.id, SCR_CACHED_USELESS);
    return SCR_ERR_INVALID;
}

void scr_restart_abandon(struct scr *scr)
{
    restart_close(scr);
    if (scr->set.fetch && scr->job.rank == 0)
        restart_mark(scr, &scr->lifecycle.open, scr_index_unmark_tried);
}
