/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_Current, SCR_Delete and SCR_Drop: datasets by name. */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "records/scr_index.h"
#include <errno.h>
#include <filo/filo.h>
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

static int change_index(struct scr *scr, const char *name,
                        int (*change)(scr_index *, const char *))
{
    char err[SCR_ERR_TEXT] = "";
    int rc = 0;
    if (scr->rank == 0) {
        kvtree *index = kvtree_new();
        rc = scr_index_load(scr, index, err);
        if (!rc && (rc = change(index, name)) != 0) err_sys(err, rc, "dataset %s", name);
        rc = rc ? rc : scr_index_write(scr->prefix_fd, index, err);
        kvtree_delete(&index);
    }
    rc = agree(scr->world, rc, err);
    return rc ? scr_fail(scr, SCR_ERR_PREFIX, "%s", err) : SCR_SUCCESS;
}

int scr_manage_current(struct scr *scr, const char *name)
{
    scr_dataset indexed;
    if (indexed_by_name(scr, name, &indexed)) return SCR_ERR_PREFIX;
    int cached = cached_by_name(scr, name);
    int id = cached ? cached : indexed.id;
    if (!id) return scr_fail(scr, SCR_ERR_NO_DATASET, "there is no dataset \"%s\"", name);
    int rc = indexed.id ? change_index(scr, name, scr_index_set_current) : SCR_SUCCESS;
    if (rc) return rc;
    int count;
    scr_cached *list = scr_cached_list(scr, &count);
    for (int i = 0; i < count; i++)
        if (list[i].id > id) scr_cache_delete(scr, list[i].id);
    free(list);
    scr->restart_offered = 0;
    /* where only the cache has it, the index may go on naming a newer one */
    scr->fetch_below = indexed.id ? INT_MAX : id + 1;
    return SCR_SUCCESS;
}

/* Removes this rank's files, then on rank 0 the records and, if nothing else is in it,
 * the folder. */
static int remove_flushed(struct scr *scr, const scr_dataset *d, char *err)
{
    scr_place place = {.folder = NULL};
    filo_file *files = NULL;
    int ranks, count = 0, folder = -1, rc = scr_place_of(scr, d, &place);
    if (rc) err_set(err, rc, "no memory");
    rc = agree(scr->world, rc, err);
    rc = rc ? rc
            : filo_read_map(scr->world, place.folder, place.map, &ranks, &count, &files,
                            NULL, err);
    if (!rc) {
        rc = beneath_open_folder(place.folder, &folder, err);
        for (int i = 0; i < count && !rc; i++)
            rc = beneath_unlink(folder, files[i].name, err);
        if (folder >= 0) close(folder);
        rc = agree(scr->world, rc, err);
    }
    if (!rc && scr->rank == 0) {
        char hidden[SCR_NAME_SIZE + 8];
        snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
        rc = beneath_remove_tree(scr->prefix_fd, hidden, err);
        if (!rc) beneath_rmdir(scr->prefix_fd, d->name, NULL);
    }
    rc = agree(scr->world, rc, err);
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
    /* the entry first: what the index names is there */
    int rc = change_index(scr, name, scr_index_remove);
    if (rc || !files_too) return rc;
    rc = remove_flushed(scr, &indexed, err);
    return rc ? scr_fail(scr, SCR_ERR_PREFIX, "files of %s could not be removed: %s",
                         name, err)
              : SCR_SUCCESS;
}
