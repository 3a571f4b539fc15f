/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a dataset is: in the cache, on the prefix folder, or on the way. Rank 0 has the
 * flush file. */
#include "ops/context.h"

#include "common/errtext.h"
#include "prefix/flush_file.h"

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

bool scr_cache_is_saved(struct scr *scr, int id)
{
    const scr_cached *cached = scr_cached_find(&scr->cache, id);
    if (cached && cached->dropped) return true;
    return scr_job_first(&scr->job,
                         scr->job.rank == 0 && scr_flush_file_has(scr->prefix.flush_file,
                                                                  id, SCR_LOCATION_PFS));
}

void scr_cache_drop(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "";
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
