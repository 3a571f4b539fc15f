/* SPDX-License-Identifier: BSD-3-Clause */
/* Eviction from the cache. */
#include "ops/context.h"

#include "plan/evict.h"
#include "prefix/flush_file.h"
#include <string.h>

/* ---- removing ---- */

void scr_cache_delete(struct scr *scr, int id)
{
    scr_flush_stop(scr, id);
    scr_cache_drop(scr, id);
}

void scr_cache_delete_unusable(struct scr *scr, int above)
{
    for (const scr_cached *c; (c = scr_cached_next_unusable(&scr->cache, above));) {
        above = c->d.id;
        scr_cache_delete(scr, above);
    }
}

/* ---- making room ---- */

/* A request to make room in a store. */
typedef struct eviction {
    int store, capacity; /* fewer datasets than this may stay */
    int spare;           /* id of a dataset that stays in any case; 0: none */
    int unsaved;         /* id of a dataset whose flush has just failed; 0: none */
    int done;            /* id of a dataset that needs no copy any more; 0: none */
} eviction;

/* Whether some row may leave only if it is on the prefix directory. */
static bool eviction_asks_for_copies(const scr_evict_facts *f)
{
    bool asks = false;
    for (int i = 0; i < f->count; i++)
        asks |= f->rows[i].output || (f->rows[i].newest && !f->replaces_newest);
    return asks && f->count >= f->capacity;
}

/* Collective. Finds the datasets that are on the prefix directory, which only rank 0
 * knows. */
static void eviction_find_copies(const struct scr *scr, scr_evict_facts *f)
{
    for (int i = 0; i < f->count; i++)
        f->rows[i].saved |=
            scr->job.rank == 0 && scr_flush_file_has(scr->prefix.flush_file,
                                                     f->rows[i].age.id, SCR_LOCATION_PFS);
    scr_job_share(&scr->job, f->rows, (size_t)f->count * sizeof *f->rows);
}

/* Collective. Gathers the facts, the same on every rank. */
static scr_evict_facts eviction_gather(struct scr *scr, const eviction *e)
{
    scr_evict_row *rows = scr->cache.rows;
    const int newest = scr_cached_newest(&scr->cache);
    const int capacity = scr->cache.stores[e->store].capacity;
    scr_evict_facts f = {.rows = rows,
                         .capacity = e->capacity,
                         .most_held = capacity > 1 ? capacity : 1,
                         .spare = e->spare,
                         .replaces_newest = scr->lifecycle.open.ckpt != 0};
    for (int i = 0; i < scr->cache.count; i++) {
        const scr_cached *c = &scr->cache.list[i];
        scr_evict_row *row = &rows[f.count];
        if (c->store != e->store || c->state != SCR_CACHED_GOOD) continue;
        memset(row, 0, sizeof *row);
        row->age = scr_dataset_age(&c->d);
        row->checkpoint = c->d.ckpt > 0;
        row->output = c->d.output != 0;
        row->newest = c->d.id == newest;
        row->flushing = c->d.id == scr->cache.flushing;
        row->held = c->held;
        row->saved = c->dropped || c->d.id == e->done;
        row->unsaved = c->d.id == e->unsaved;
        f.count++;
    }
    if (eviction_asks_for_copies(&f)) eviction_find_copies(scr, &f);
    return f;
}

/* Reports a dataset that a step keeps in, or removes from, the cache. */
static void eviction_report(const struct scr *scr, const eviction *e,
                            scr_evict_action action, int id)
{
    const scr_store_dir *dir = &scr->cache.stores[e->store];
    if (action == SCR_EVICT_HOLD)
        scr_say(&scr->report, SCR_MSG_CACHE_OVER_CAPACITY,
                "dataset %d cannot be flushed and stays in %s, which now holds more than "
                "%d datasets",
                id, dir->folder, dir->capacity);
    if (action == SCR_EVICT_LOSE)
        scr_say(&scr->report, SCR_MSG_CACHE_EVICTED_UNFLUSHED,
                "dataset %d is lost: it cannot be flushed, and leaves %s, which has too "
                "many others that cannot",
                id, dir->folder);
    if (action == SCR_EVICT_LOSE || action == SCR_EVICT_REMOVE)
        scr_say(&scr->report, SCR_MSG_CACHE_EVICTED, "dataset %d leaves the cache", id);
}

/* Collective. Executes steps up to the next removal. Returns the id of the dataset that
 * leaves; 0: none. */
static int eviction_next(struct scr *scr, eviction *e)
{
    for (;;) {
        const scr_evict_facts facts = eviction_gather(scr, e);
        const scr_evict_step step = scr_plan_evict(&facts);
        const int id = step.row < 0 ? 0 : facts.rows[step.row].age.id;
        eviction_report(scr, e, step.action, id);
        switch (step.action) {
        case SCR_EVICT_DONE:
        case SCR_EVICT_REMOVE:
        case SCR_EVICT_LOSE:
            return id;
        case SCR_EVICT_WAIT:
            scr_flush_wait(scr);
            break;
        case SCR_EVICT_FLUSH:
            /* one that was replaced is not flushed, and no failure */
            if (scr_flush_dataset(scr, id) == SCR_SUCCESS)
                e->done = id;
            else
                e->unsaved = id;
            break;
        case SCR_EVICT_HOLD:
            scr_cached_find(&scr->cache, id)->held = true;
            break;
        }
    }
}

void scr_cache_make_room(struct scr *scr, int store, int capacity, int spare_newest)
{
    eviction e = {.store = store,
                  .capacity = capacity,
                  .spare = spare_newest ? scr_cached_newest(&scr->cache) : 0};
    int id, last = 0;
    /* found again: no memory to remove it */
    while ((id = eviction_next(scr, &e)) != 0 && id != last) {
        scr_cache_delete(scr, id);
        last = id;
    }
}

int scr_cache_leave(struct scr *scr, int store, int capacity, int64_t *tight)
{
    eviction e = {.store = store, .capacity = capacity};
    int id = eviction_next(scr, &e);
    *tight = id ? scr_cached_is_tight(&scr->cache, store, id) : 0;
    if (!id) return 0;
    scr_cache_verify(&scr->cache, id);
    /* both files are written when the new dataset is complete; until then they list one
     * dataset too many */
    scr_filemap_remove_dataset(scr->cache.map, id);
    if (scr->job.rank == 0) scr_flush_file_remove(scr->prefix.flush_file, id);
    scr_cached_remove(&scr->cache, id);
    return id;
}

void scr_cache_outdate(struct scr *scr)
{
    scr_cache_delete_unusable(scr, 0);
    for (int i = 0; i < scr->cache.store_count; i++)
        if (scr->cache.stores[i].capacity == 0) scr_cache_make_room(scr, i, 1, 0);
}

void scr_cache_try_again(struct scr *scr)
{
    for (int i = 0; i < scr->cache.count; i++)
        scr->cache.list[i].held = false;
}

void scr_cache_relieve(struct scr *scr, int store)
{
    const scr_cached *c = scr_cached_next_unusable(&scr->cache, 0);
    while (c && c->state != SCR_CACHED_USELESS)
        c = scr_cached_next_unusable(&scr->cache, c->d.id);
    if (!c) return;
    if (!scr_job_max(&scr->job, scr_cached_lacks_room(&scr->cache, store))) return;
    scr_say(&scr->report, SCR_MSG_CACHE_REMAINS_REMOVED,
            "%s has no room for a new dataset; remains of lost datasets are removed",
            scr->cache.stores[store].folder);
    for (int id = 0; (c = scr_cached_next_unusable(&scr->cache, id)) != NULL;) {
        id = c->d.id;
        if (c->state == SCR_CACHED_USELESS) scr_cache_delete(scr, id);
    }
}
