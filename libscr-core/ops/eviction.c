/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves the cache, and when. */
#include "ops/context.h"

#include "base/path.h"
#include "cache/removal.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/number.h"
#include "prefix/flush_file.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

void scr_location(struct scr *scr, const scr_dataset *dataset, const char *location,
                  int on)
{
    char err[SCR_ERR_TEXT] = "";
    if (scr->job.rank != 0) return;
    int rc = scr_flush_file_set(scr->prefix.flush_file, dataset->id, dataset->name,
                                location, on);
    rc = rc ? err_set(err, rc, "no memory")
            : scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err);
    if (rc)
        scr_say(&scr->report, 0, "warning: the flush file could not be written: %s", err);
}

int scr_location_has(struct scr *scr, int id, const char *location)
{
    int has =
        scr->job.rank == 0 && scr_flush_file_has(scr->prefix.flush_file, id, location);
    MPI_Bcast(&has, 1, MPI_INT, 0, scr->job.world);
    return has;
}

/* ---- removing ---- */

void scr_cache_delete(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "";
    scr_flush_stop(scr, id);
    scr_cache_verify(&scr->cache, id);
    scr_filemap_remove_dataset(scr->cache.map, id);
    /* the map first: files that no map knows are swept away at the next start */
    if (scr_filemaps_write(&scr->cache, err) != 0) scr_event_local(&scr->report, 0, err);
    scr_dataset_folder_remove(&scr->cache, id);
    if (scr->job.rank == 0) {
        scr_flush_file_remove(scr->prefix.flush_file, id);
        if (scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err) != 0)
            scr_event_local(&scr->report, 0, err);
    }
}

void scr_cache_delete_aside(struct scr *scr, int above, const char *why)
{
    const kvtree_elem *next, *e = kvtree_elem_first(kvtree_get(scr->cache.aside, "ID"));
    for (; e; e = next) {
        int id = kvtree_elem_key_int(e);
        next = kvtree_elem_next(e);
        if (id <= above || (why && !kvtree_get(kvtree_elem_hash(e), why))) continue;
        scr_cache_delete(scr, id);
        kvtree_unset_kv_int(scr->cache.aside, "ID", id);
    }
}

/* Keeps one more than the store should have, but not more than twice as many. */
static int hold(struct scr *scr, int cache, int id)
{
    int held = 0, most = scr->cache.stores[cache].capacity;
    for (int i = 0; i < scr->cache.kept_count; i++)
        held += scr->cache.kept[i].store == cache && scr->cache.kept[i].held;
    if (held >= (most > 1 ? most : 1)) return 0;
    scr_kept_find(&scr->cache, id)->held = 1;
    return 1;
}

/* Collective. An output that could not be flushed when it was written gets another
 * chance; and the only checkpoint is not given up for something that nobody can restart
 * from. 0: it stays. */
static int can_leave(struct scr *scr, const scr_cached *cached, int needed, int cache)
{
    const scr_store_dir *c = &scr->cache.stores[cache];
    if (!cached->output && !needed) return 1;
    if (scr_location_has(scr, cached->id, SCR_LOCATION_PFS)) return 1;
    if (scr_flush_dataset(scr, cached->id) == SCR_SUCCESS) return 1;
    if (!scr_kept_find(&scr->cache, cached->id))
        return 0; /* it was lost, as the flush found */
    if (hold(scr, cache, cached->id)) {
        scr_say(&scr->report, 0,
                "warning: dataset %d cannot be flushed, so it stays in %s, which holds "
                "more than %d datasets now",
                cached->id, c->folder, c->capacity);
        return 0;
    }
    scr_say(&scr->report, 0,
            "warning: dataset %d leaves the cache, and is lost, because it cannot be "
            "flushed, and %s has too many others that cannot",
            cached->id, c->folder);
    return 1;
}

/* Collective. The dataset that has to leave a store so that there are less than capacity,
 * when nothing needs it any more; 0: none, or none but spare. */
static int next_victim(struct scr *scr, int cache, int capacity, int spare)
{
    for (;;) {
        int newest = scr_cached_newest(&scr->cache),
            count = scr_cached_in_store(&scr->cache, cache);
        if (scr_decide_wait(scr->cache.listed, count, capacity)) {
            scr_flush_wait(scr);
            continue;
        }
        int out = scr_decide_evict(scr->cache.listed, count, capacity);
        if (out < 0 || scr->cache.listed[out].id == spare) return 0;
        scr_cached victim = scr->cache.listed[out];
        if (!can_leave(scr, &victim, victim.id == newest && !scr->lifecycle.open.ckpt,
                       cache))
            continue;
        scr_say(&scr->report, 2, "dataset %d leaves the cache", victim.id);
        return victim.id;
    }
}

void scr_cache_try_again(struct scr *scr)
{
    for (int i = 0; i < scr->cache.kept_count; i++)
        scr->cache.kept[i].held = 0;
}

void scr_cache_make_room(struct scr *scr, int cache, int capacity, int spare_newest)
{
    int spare = spare_newest ? scr_cached_newest(&scr->cache) : 0, id, last = 0;
    /* a victim that is still listed could not be removed, for lack of memory */
    while ((id = next_victim(scr, cache, capacity, spare)) != 0 && id != last) {
        scr_cache_delete(scr, id);
        last = id;
    }
}

void scr_cache_relieve(struct scr *scr, int cache)
{
    const scr_store_dir *c = &scr->cache.stores[cache];
    if (!scr_cache_has_aside(&scr->cache, SCR_ASIDE_USELESS)) return;
    int tight = scr_cached_lacks_room(&scr->cache, cache);
    MPI_Allreduce(MPI_IN_PLACE, &tight, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (!tight) return;
    scr_say(&scr->report, 0,
            "warning: %s has no room for a new dataset beside the remains of lost ones, "
            "which are removed now",
            c->folder);
    scr_cache_delete_aside(scr, 0, SCR_ASIDE_USELESS);
}

int scr_cache_leave(struct scr *scr, int cache, int capacity, int64_t *tight)
{
    int id = next_victim(scr, cache, capacity, 0);
    *tight = id ? scr_cached_is_tight(&scr->cache, cache, id) : 0;
    if (!id) return 0;
    scr_cache_verify(&scr->cache, id);
    /* both are written when the new dataset is complete: till then they name one too many
     */
    scr_filemap_remove_dataset(scr->cache.map, id);
    if (scr->job.rank == 0) scr_flush_file_remove(scr->prefix.flush_file, id);
    scr_forget(&scr->cache, id);
    return id;
}

void scr_cache_outdate(struct scr *scr)
{
    scr_cache_delete_aside(scr, 0, NULL);
    for (int i = 0; i < scr->cache.store_count; i++)
        if (scr->cache.stores[i].capacity == 0) scr_cache_make_room(scr, i, 1, 0);
}
