/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REMOVAL_H
#define SCR_REMOVAL_H

/* A dataset leaves the cache while the application goes on. Its redundancy files stay to
 * the last: those of the dataset that comes are written over them. */

#include "cache/cache.h"

/* The folder of a dataset that is in no records any more is removed in the background, by
 * the first of the store, but for redundancy files. Local. */
void scr_removal_begin(scr_cache *cache, int store, int id);

/* The path of the folder in which redundancy files may be left, when that is in the same
 * store as dataset id, to be freed; NULL: there is none. It is there once all ranks have
 * agreed on something since the removal began. */
char *scr_removal_spare(const scr_cache *cache, int id);

/* Waits for the end of the removal, and removes what was left for others, who must be
 * done; what failed is said. Local. */
void scr_removal_settle(scr_cache *cache);

/* On the first of a store, at start: removes what a run that was killed left of such
 * datasets. Local; what fails is said. */
void scr_removal_sweep(const scr_cache *cache, const scr_store_dir *dir);

#endif
