/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_REMOVAL_H
#define SCR_REMOVAL_H

/* A dataset leaves the cache while the application goes on. */

#include "scr_context.h"

/* In scr_cache.c. Takes the dataset that is to make way for a new one out of the records
 * of a store, so that there are less than capacity; its id, or 0. Its files may go when
 * all ranks have come so far. *tight: so little room is left that they must go before
 * anybody writes. */
int scr_cache_leave(struct scr *scr, int cache, int capacity, int64_t *tight);

/* On the first of a store: removes the folder of a dataset that is in no records any
 * more, in the background. Local. */
void scr_removal_begin(struct scr *scr, int cache, int id);

/* Waits for the end of that; what failed is said. Local. */
void scr_removal_settle(struct scr *scr);

/* On the first of a store, at start: removes what a run that was killed left of such
 * datasets. Local; what fails is said. */
void scr_removal_sweep(const struct scr *scr, const scr_cache *cache);

#endif
