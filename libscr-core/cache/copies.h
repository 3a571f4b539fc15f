/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CACHE_COPIES_H
#define SCR_CACHE_COPIES_H

/* Which processes hold the files of which ranks of a cached dataset: facts for
 * plan/distribute.h and plan/adopt.h. */

#include "cache/cache.h"
#include "plan/distribute.h"

/* Copies, unsorted; the caller frees the list. */
typedef struct scr_held {
    int count;
    scr_distribute_copy *copies;
} scr_held;

/* Whether this process has all files of a rank, of exactly this dataset, by names and
 * sizes: 1, 0 with a text, or -errno if that cannot be determined now. Local. */
int scr_copies_check_rank(const scr_cache *cache, const scr_dataset *dataset, int rank,
                          kvtree_error *err);

/* Finds the intact copies that this process holds. Other copies are dropped from the map,
 * which is reported; their files stay on disk. Agreed. */
int scr_copies_find(scr_cache *cache, const scr_dataset *dataset, scr_held *held,
                    kvtree_error *err);

/* Collects the copies of all processes, the same on every rank. Agreed. */
int scr_copies_share(const scr_cache *cache, const scr_held *held, scr_held *all,
                     kvtree_error *err);

#endif
