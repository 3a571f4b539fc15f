/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets on the prefix directory, as described by index, summary and map. */
#include "ops/fetch.h"

#include "common/errtext.h"
#include "prefix/index.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* An unknown time matches any. */
static int stored_is_summary_of(const scr_dataset *found, const scr_dataset *d)
{
    return found->id == d->id && found->ranks == d->ranks && found->complete &&
           (found->created == d->created || !found->created || !d->created);
}

/* Rank 0 reads the summary in the dataset's directory. */
static int stored_read_summary(const struct scr *scr, const scr_dataset *d,
                               scr_dataset *found, kvtree_error *err)
{
    int folder;
    int rc = scr_place_open(&scr->prefix, d->name, &folder, err);
    if (rc == -ENOENT || rc == -ELOOP)
        return err_set(err, FILO_DAMAGED, "its directory is not there any more%s",
                       rc == -ELOOP ? "; what has its name is a link or a file" : "");
    if (!rc) {
        rc = scr_summary_read(folder, found, err);
        close(folder);
    }
    if (rc == -ENOENT || rc == -EBADMSG || rc == -EINVAL || rc == -ELOOP)
        return FILO_DAMAGED;
    return rc;
}

int scr_fetch_check_summary(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    scr_dataset found;
    if (scr->job.rank != 0) return 0;
    int rc = stored_read_summary(scr, d, &found, err);
    if (!rc && !stored_is_summary_of(&found, d))
        rc = err_set(err, FILO_DAMAGED,
                     "its summary is of dataset %d (%d ranks, complete %d)%s", found.id,
                     found.ranks, found.complete,
                     found.created == d->created ? "" : ", created at another time");
    return rc;
}

int scr_fetch_correct(struct scr *scr, const scr_dataset *d)
{
    kvtree_error err = {""};
    scr_dataset found;
    scr_index_state state;
    if (stored_read_summary(scr, d, &found, &err) != 0 ||
        stored_is_summary_of(&found, d) || !found.complete ||
        strcmp(found.name, d->name) != 0)
        return 0;
    const kvtree *index;
    const int unknown = scr_index_view(&scr->prefix, &index, &err) == 0 &&
                        scr_index_look(index, &found, &state) != 0;
    if (!unknown || scr_index_correct(&scr->prefix, &found, &err) != 0) return 0;
    scr_say(&scr->report, SCR_MSG_INDEX_CORRECTED,
            SCR_INDEX_NAME " has dataset %d as %s, but its directory has dataset %d%s; "
                           "the index is corrected",
            d->id, d->name, found.id,
            found.created == d->created ? "" : ", created at another time");
    return 1;
}

int scr_fetch_finds(struct scr *scr, const scr_dataset *d)
{
    kvtree_error err = {""};
    scr_index_state state = {.complete = 0};
    const kvtree *index;
    int dropped = scr_index_view(&scr->prefix, &index, &err) == 0 &&
                  scr_index_look(index, d, &state) == -ENOENT;
    return (dropped || (state.complete == 1 && !state.failed)) &&
           scr_fetch_check_summary(scr, d, &err) == 0;
}
