/* SPDX-License-Identifier: BSD-3-Clause */
/* The locations of cached datasets, as the flush file of a run records them, on rank
 * 0. */
#include "prefix/prefix.h"

#include "common/errtext.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void location_write(const scr_prefix *prefix, bool durable)
{
    kvtree_error err = {""};
    int rc = durable ? scr_flush_file_write(prefix->fd, prefix->flush_file, &err)
                     : scr_flush_file_note(prefix->fd, prefix->flush_file, &err);
    if (rc)
        scr_say(prefix->job->report, SCR_MSG_FLUSH_FILE_NOT_WRITTEN,
                "the flush file could not be written: %s", err.text);
}

static int location_set(kvtree *flush, const scr_dataset *d, const char *location, int on)
{
    int rc = scr_flush_file_set(flush, d->id, d->name, location, on);
    return rc || !on ? rc : scr_flush_file_set_kind(flush, d->id, d->ckpt > 0, d->output);
}

/* Whether a power loss may undo the change: no flush is under way afterwards, and
 * datasets on the prefix directory are found in the index. */
static bool location_may_be_forgotten(const scr_location_change *change)
{
    return strcmp(change->location, SCR_LOCATION_FLUSHING) == 0 ||
           (change->on && strcmp(change->location, SCR_LOCATION_PFS) == 0);
}

void scr_location(scr_prefix *prefix, const scr_dataset *d, const char *location, int on)
{
    scr_locations(prefix, d, 1, &(scr_location_change){location, on});
}

void scr_locations(scr_prefix *prefix, const scr_dataset *d, int count,
                   const scr_location_change changes[])
{
    bool durable = false;
    int rc = 0;
    if (prefix->job->rank != 0) return;
    for (int i = 0; i < count && !rc; i++) {
        durable |= !location_may_be_forgotten(&changes[i]);
        rc = location_set(prefix->flush_file, d, changes[i].location, changes[i].on);
    }
    if (rc)
        scr_say(prefix->job->report, SCR_MSG_FLUSH_FILE_NOT_WRITTEN,
                "the flush file could not be written: no memory");
    else
        location_write(prefix, durable);
}

void scr_location_remove(scr_prefix *prefix, int id)
{
    if (prefix->job->rank != 0) return;
    scr_flush_file_remove(prefix->flush_file, id);
    location_write(prefix, true);
}

bool scr_location_has(const scr_prefix *prefix, int id, const char *location)
{
    int has =
        prefix->job->rank == 0 && scr_flush_file_has(prefix->flush_file, id, location);
    MPI_Bcast(&has, 1, MPI_INT, 0, prefix->job->world);
    return has != 0;
}

void scr_locations_read(scr_prefix *prefix)
{
    kvtree_error err = {""};
    int rc = scr_flush_file_read(prefix->fd, prefix->flush_file, &err);
    if (rc && rc != -ENOENT)
        scr_say(prefix->job->report, SCR_MSG_FLUSH_FILE_LOST,
                "%s; it counts as empty: datasets may be flushed again", err.text);
}

/* Clears the location PFS of datasets that the index does not have as complete. */
static void location_clear_lost(scr_prefix *prefix, const kvtree *index)
{
    int count, *ids;
    bool changed = false;
    if (scr_flush_file_list(prefix->flush_file, &count, &ids) != 0) return;
    for (int i = 0; i < count; i++) {
        scr_dataset d = {.id = ids[i]};
        if (!scr_flush_file_has(prefix->flush_file, d.id, SCR_LOCATION_PFS)) continue;
        scr_index_state state = {.complete = 0};
        const char *name = scr_flush_file_name(prefix->flush_file, d.id);
        snprintf(d.name, sizeof d.name, "%s", name ? name : "");
        if (name && scr_index_look(index, &d, &state) == 0 && state.complete == 1)
            continue;
        scr_flush_file_set(prefix->flush_file, d.id, d.name, SCR_LOCATION_PFS, 0);
        changed = true;
    }
    free(ids);
    if (changed) location_write(prefix, true);
}

void scr_locations_correct(scr_prefix *prefix, const kvtree *index)
{
    /* another job uses the same ids for other datasets */
    const char *owner = scr_flush_file_owner(prefix->flush_file);
    if (owner && strcmp(owner, prefix->job->owner) != 0)
        scr_flush_file_keep(prefix->flush_file, NULL, 0);
    /* without an owner, scr_prerun assumes that the datasets are of an earlier
     * allocation */
    scr_flush_file_set_owner(prefix->flush_file, prefix->job->owner);
    location_clear_lost(prefix, index);
}
