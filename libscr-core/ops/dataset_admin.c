/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_Current, SCR_Delete and SCR_Drop: datasets by name. */
#include "ops/context.h"

#include "common/agree_mpi.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The id of the newest cached dataset of that name; 0: none. */
static int admin_find_cached(const struct scr *scr, const char *name)
{
    const scr_cached *c = scr_cached_next(&scr->cache, 0);
    int id = 0;
    for (; c; c = scr_cached_next(&scr->cache, c->d.id))
        if (strcmp(c->d.name, name) == 0) id = c->d.id;
    return id;
}

/* Removes all cached datasets of the name: an application may use a name again. */
static void admin_delete_cached(struct scr *scr, const char *name)
{
    int id, last = 0; /* found again: no memory to remove it */
    while ((id = admin_find_cached(scr, name)) != 0 && id != last) {
        scr_cache_delete(scr, id);
        last = id;
    }
}

/* What rank 0 finds in the index under a name. */
struct indexed {
    scr_dataset d; /* id 0: nothing */
    scr_index_state state;
    char names[256]; /* names of all datasets, for messages */
};

static int admin_look_up(struct scr *scr, const char *name, struct indexed *found)
{
    kvtree_error err = {""};
    int rc = 0;
    memset(found, 0, sizeof *found);
    if (scr->job.rank == 0) {
        const kvtree *index;
        rc = scr_index_view(&scr->prefix, &index, &err);
        if (!rc && scr_index_get(index, name, &found->d) == 0)
            scr_index_look(index, &found->d, &found->state);
        if (!rc) scr_index_names(index, found->names, sizeof found->names);
        if (rc)
            scr_fail(&scr->report, SCR_MSG_INDEX_UNREADABLE, SCR_ERR_PREFIX, "%s",
                     err.text);
    }
    MPI_Bcast(&rc, 1, MPI_INT, 0, scr->job.world);
    /* all ranks run the same program, so the struct has the same layout */
    MPI_Bcast(found, sizeof *found, MPI_BYTE, 0, scr->job.world);
    return rc;
}

static int admin_fail_unknown(struct scr *scr, const char *name,
                              const struct indexed *found)
{
    return scr_fail(&scr->report, SCR_MSG_DATASET_UNKNOWN, SCR_ERR_NO_DATASET,
                    "there is no dataset \"%s\"; the prefix directory has: %s", name,
                    found->names);
}

/* ---- current ---- */

static bool admin_is_checkpoint(const struct scr *scr, int id)
{
    scr_dataset d;
    return scr_cached_get(&scr->cache, id, &d) == 0 && d.ckpt > 0;
}

/* Whether the cached dataset with d's id is a different, newer one. */
static bool admin_has_newer_cached(const struct scr *scr, const scr_dataset *d)
{
    scr_dataset cached;
    return scr_cached_get(&scr->cache, d->id, &cached) == 0 &&
           scr_dataset_is_newer(&cached, d) && strcmp(cached.name, d->name) != 0;
}

/* Collective. A checkpoint that is also an output reaches the prefix directory before it
 * leaves the cache. */
static void admin_save_outputs(struct scr *scr, int above)
{
    for (const scr_cached *c; (c = scr_cached_next(&scr->cache, above)) != NULL;) {
        above = c->d.id;
        if (c->d.output && c->d.ckpt && !scr_cache_is_saved(scr, above))
            scr_flush_dataset(scr, above);
    }
}

/* Collective. Outputs alone stay: no run restarts from them. */
static void admin_delete_newer(struct scr *scr, int above)
{
    for (const scr_cached *c; (c = scr_cached_next(&scr->cache, above)) != NULL;) {
        above = c->d.id;
        if (c->d.ckpt) scr_cache_delete(scr, above);
    }
}

int scr_manage_current(struct scr *scr, const char *name)
{
    kvtree_error err = {""};
    struct indexed found;
    if (admin_look_up(scr, name, &found)) return SCR_ERR_PREFIX;
    int id = admin_find_cached(scr, name);
    if (!id && !found.d.id) return admin_fail_unknown(scr, name, &found);
    const char *reason = found.d.id ? scr_index_why_not(&found.d, &found.state)
                                    : "the prefix directory does not have it";
    if (id && !admin_is_checkpoint(scr, id)) {
        reason = "it is not a checkpoint";
        id = 0;
    }
    /* compared with the dataset of that name on the prefix directory, the cached one may
     * be older, newer, or not completely flushed yet */
    int flushed = !reason && found.d.id >= id;
    if (!flushed && !id)
        return scr_fail(&scr->report, SCR_MSG_DATASET_NOT_SELECTABLE, SCR_ERR_NO_DATASET,
                        "%s cannot be the current checkpoint: %s", name, reason);
    if (flushed) id = found.d.id;
    const int newer = flushed && admin_has_newer_cached(scr, &found.d) ? id - 1 : id;
    admin_save_outputs(scr, newer);
    int rc = flushed && scr->job.rank == 0
                 ? scr_index_change(&scr->prefix, &found.d, scr_index_choose, &err)
                 : 0;
    if (agree(scr->job.world, rc, &err) != 0)
        return scr_fail(&scr->report, SCR_MSG_DATASET_NOT_SELECTED, SCR_ERR_PREFIX,
                        "SCR_Current: %s", err.text);
    scr_dataset chosen;
    if (scr_cached_get(&scr->cache, id, &chosen) == 0)
        scr_location(&scr->prefix, &chosen, SCR_LOCATION_FAILED, 0);
    admin_delete_newer(scr, newer);
    scr_cache_delete_unusable(scr, id); /* another run might rebuild a newer one */
    scr->restart.offered = scr->restart.elsewhere = 0;
    /* if only the cache has the dataset, the index may still name a newer one */
    scr_restart_forget(&scr->restart);
    if (!flushed) scr->restart.below = (scr_age){id + 1, 0};
    return SCR_SUCCESS;
}

/* ---- delete and drop ---- */

int scr_manage_delete(struct scr *scr, const char *name, int files_too)
{
    kvtree_error err = {""};
    struct indexed found;
    int cached = admin_find_cached(scr, name);
    /* a flush that ends later would add the entry again */
    if (!files_too && cached && scr_flush_id(scr) == cached) scr_flush_wait(scr);
    if (admin_look_up(scr, name, &found)) return SCR_ERR_PREFIX;
    const int dropped =
        !files_too && cached && scr_cache_is_saved(scr, cached) ? cached : 0;
    if (!files_too) cached = 0;
    if (!cached && !found.d.id) return admin_fail_unknown(scr, name, &found);
    scr->restart.offered = 0;
    if (cached) admin_delete_cached(scr, name);
    if (!found.d.id) return SCR_SUCCESS;
    int rc;
    if (files_too)
        rc = scr_retention_delete(&scr->prefix, &found.d, &err);
    else
        rc =
            agree(scr->job.world,
                  scr->job.rank ? 0 : scr_index_drop(&scr->prefix, &found.d, &err), &err);
    if (!rc && dropped) scr_cached_find(&scr->cache, dropped)->dropped = true;
    return rc ? scr_fail(&scr->report, SCR_MSG_DATASET_NOT_REMOVED, SCR_ERR_PREFIX,
                         "%s could not be removed: %s", name, err.text)
              : SCR_SUCCESS;
}
