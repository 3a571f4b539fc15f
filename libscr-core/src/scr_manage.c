/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_Current, SCR_Delete and SCR_Drop: datasets by name. */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "records/scr_index.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The id of the cached dataset of that name; 0: none. */
static int cached_by_name(struct scr *scr, const char *name)
{
    int count, id = 0;
    scr_cached *list = scr_cached_list(scr, &count);
    for (int i = 0; i < count; i++) {
        scr_dataset d;
        if (scr_cached_get(scr, list[i].id, &d) == 0 && strcmp(d.name, name) == 0)
            id = d.id;
    }
    free(list);
    return id;
}

/* What rank 0 finds in the index under name; id 0: nothing. */
static int indexed_by_name(struct scr *scr, const char *name, scr_dataset *dataset)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = 0;
    memset(dataset, 0, sizeof *dataset);
    if (scr->rank == 0) {
        kvtree *index = kvtree_new();
        rc = scr_index_load(scr, index, err);
        if (rc || scr_index_get(index, name, dataset) != 0)
            memset(dataset, 0, sizeof *dataset);
        kvtree_delete(&index);
        if (rc) scr_fail(scr, SCR_ERR_PREFIX, "%s", err);
    }
    MPI_Bcast(&rc, 1, MPI_INT, 0, scr->world);
    /* all ranks run the same program, so the struct has the same layout */
    MPI_Bcast(dataset, sizeof *dataset, MPI_BYTE, 0, scr->world);
    return rc;
}

/* Collective, agreed; 0 or -errno with a text. */
static int change_index(struct scr *scr, const scr_dataset *d,
                        int (*change)(scr_index *, const char *), char *err)
{
    int rc = scr->rank ? 0 : scr_index_change(scr, d->name, d->id, change, err);
    return agree(scr->world, rc, err);
}

int scr_manage_current(struct scr *scr, const char *name)
{
    char err[SCR_ERR_TEXT] = "";
    scr_dataset indexed;
    if (indexed_by_name(scr, name, &indexed)) return SCR_ERR_PREFIX;
    int cached = cached_by_name(scr, name);
    int id = cached ? cached : indexed.id;
    if (!id) return scr_fail(scr, SCR_ERR_NO_DATASET, "there is no dataset \"%s\"", name);
    if (indexed.id && change_index(scr, &indexed, scr_index_set_current, err) != 0)
        return scr_fail(scr, SCR_ERR_PREFIX, "SCR_Current: %s", err);
    int count;
    scr_cached *list = scr_cached_list(scr, &count);
    for (int i = 0; i < count; i++)
        if (list[i].id > id) scr_cache_delete(scr, list[i].id);
    free(list);
    scr_cache_delete_aside(scr, id); /* another run might rebuild a newer one */
    scr->restart_offered = 0;
    /* where only the cache has it, the index may go on naming a newer one */
    scr->fetch_below = indexed.id ? INT_MAX : id + 1;
    return SCR_SUCCESS;
}

/* ---- delete and drop ---- */

static int mark_incomplete(scr_index *index, const char *name)
{
    scr_dataset d;
    int rc = scr_index_get(index, name, &d);
    return rc ? rc : scr_index_add(index, &d, 0);
}

/* The files of this rank, as the dataset's map tells. Collective, agreed. */
static int list_flushed(struct scr *scr, const scr_dataset *d, const scr_place *place,
                        int *count, filo_file **files, char *err)
{
    int ranks = 0;
    int rc = filo_read_map(scr->world, place->folder, place->map, &ranks, count, files,
                           NULL, err);
    if (rc == -ENOENT) {
        scr_say(scr, 0,
                "warning: %s has no map on the prefix folder; if its flush did not end, "
                "files of it may stay there",
                d->name);
        return 0;
    }
    if (!rc && ranks > scr->ranks)
        rc = err_set(err, -EINVAL,
                     "it was written by %d ranks, and this run, which has %d, would "
                     "leave files of the others behind",
                     ranks, scr->ranks);
    return rc;
}

static int unlink_files(const char *path, int count, const filo_file *files, char *err)
{
    int folder;
    if (count == 0) return 0;
    int rc = beneath_open_folder(path, &folder, err);
    if (rc) return rc;
    for (int i = 0; i < count && !rc; i++)
        rc = beneath_unlink(folder, files[i].name, err);
    close(folder);
    return rc;
}

/* Rank 0 removes the records in the dataset's folder and, if nothing else is in it, the
 * folder. */
static int remove_records(struct scr *scr, const scr_dataset *d, char *err)
{
    char hidden[SCR_NAME_SIZE + 8];
    if (scr->rank != 0) return 0;
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    int rc = beneath_remove_tree(scr->prefix_fd, hidden, err);
    if (!rc) beneath_rmdir(scr->prefix_fd, d->name, NULL);
    return rc;
}

/* The index stops offering the dataset before its first file goes, but names it until
 * the last is gone, so that nothing is left that nobody knows. Collective, agreed. */
static int remove_flushed(struct scr *scr, const scr_dataset *d, char *err)
{
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    int count = 0, rc = scr_place_of(scr, d, &place);
    if (rc) err_set(err, rc, "no memory");
    rc = agree(scr->world, rc, err);
    rc = rc ? rc : list_flushed(scr, d, &place, &count, &files, err);
    rc = rc ? rc : change_index(scr, d, mark_incomplete, err);
    if (!rc) rc = agree(scr->world, unlink_files(place.folder, count, files, err), err);
    if (!rc) rc = agree(scr->world, remove_records(scr, d, err), err);
    filo_files_free(count, files);
    free(place.folder);
    return rc;
}

int scr_manage_delete(struct scr *scr, const char *name, int files_too)
{
    char err[SCR_ERR_TEXT] = "";
    scr_dataset indexed;
    if (indexed_by_name(scr, name, &indexed)) return SCR_ERR_PREFIX;
    int cached = files_too ? cached_by_name(scr, name) : 0;
    if (!cached && !indexed.id)
        return scr_fail(scr, SCR_ERR_NO_DATASET, "there is no dataset \"%s\"", name);
    scr->restart_offered = 0;
    if (cached) scr_cache_delete(scr, cached);
    if (!indexed.id) return SCR_SUCCESS;
    int rc = files_too ? remove_flushed(scr, &indexed, err) : 0;
    rc = rc ? rc : change_index(scr, &indexed, scr_index_remove, err);
    return rc ? scr_fail(scr, SCR_ERR_PREFIX, "%s could not be removed: %s", name, err)
              : SCR_SUCCESS;
}
