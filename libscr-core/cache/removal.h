/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REMOVAL_H
#define SCR_REMOVAL_H

/* Removal of a dataset from the cache while the application continues. Its redundancy
 * files are removed last: the new dataset reuses their blocks. */

#include "cache/cache.h"

/* Starts to remove the directory of a dataset that is not in the records any more, except
 * for its redundancy files, on the first process of the store. Local. */
void scr_removal_begin(scr_cache *cache, int store, int id);

/* The path of the directory that may contain redundancy files to reuse, if it is in the
 * same store as dataset id. The caller frees it; NULL: there is none. The directory has
 * this name once all ranks have agreed on something since the removal began. */
char *scr_removal_spare(const scr_cache *cache, int id);

/* Waits for the end of the removal, and removes the redundancy files, which must no
 * longer be in use. Failures are reported. Local. */
void scr_removal_settle(scr_cache *cache);

/* On the first process of a store, at start: removes the remains of removals by killed
 * runs. Failures are reported. Local. */
void scr_removal_sweep(const scr_cache *cache, const scr_store_dir *dir);

/* Reports that the directory name of a store could not be removed. Local. */
void scr_removal_report(const scr_cache *cache, const scr_store_dir *store,
                        const char *name, const kvtree_error *err);

#endif
