/* SPDX-License-Identifier: BSD-3-Clause */
/* Cached datasets, and their other copies. */
#include "ops/context.h"

#include "prefix/flush_file.h"

bool scr_cache_is_saved(struct scr *scr, int id)
{
    const scr_cached *cached = scr_cached_find(&scr->cache, id);
    if (cached && cached->dropped) return true;
    return scr_location_has(&scr->prefix, id, SCR_LOCATION_PFS);
}

void scr_cache_drop(struct scr *scr, int id)
{
    kvtree_error err = {""};
    scr_cache_verify(&scr->cache, id);
    scr_filemap_remove_dataset(scr->cache.map, id);
    /* the map is written first: the next start removes files that are in no map */
    if (scr_filemaps_write(&scr->cache, &err) != 0)
        scr_fail_local(&scr->report, SCR_MSG_CACHE_FILEMAP_NOT_WRITTEN, 0, "%s",
                       err.text);
    scr_dataset_folder_remove(&scr->cache, id);
    scr_location_remove(&scr->prefix, id);
}
