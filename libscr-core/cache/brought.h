/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CACHE_BROUGHT_H
#define SCR_CACHE_BROUGHT_H

/* Copies of other processes' files that a restart reads: in scr.brought/<id> of a store,
 * for the time of the restart. */

#include "cache/cache.h"
#include "plan/bring.h"

/* Longest name below the fd of a store. */
#define SCR_BROUGHT_NAME_SIZE (SCR_NAME_SIZE + 64)
void scr_brought_name(int id, const char *name, char path[SCR_BROUGHT_NAME_SIZE]);

/* The path of a copy, to be freed; NULL without memory. */
char *scr_brought_path(const scr_store_dir *store, int id, const char *name);

/* Makes an empty file of that name below the fd of a store, in place of any other. */
int scr_brought_create(const scr_store_dir *store, const char *path, int *fd,
                       kvtree_error *err);

/* Removes all copies in a store; the first process of the store does, when no other one
 * reads them. Local. */
int scr_brought_clear(const scr_store_dir *store, kvtree_error *err);

/* The same in all stores of which this process is the first. Failures are ignored, as
 * copies of earlier restarts are removed before the first one of a restart is made. */
void scr_brought_remove(const scr_cache *cache);

/* The size in an entry <name>/{SIZE, ...}; 0: it is unknown. */
uint64_t scr_brought_size(const kvtree_elem *file);

/* Reports that so many of meter->total bytes have come. */
void scr_brought_count(scr_cache_meter *meter, uint64_t bytes);

/* What a process gets. */
typedef struct scr_bringing {
    scr_cache *cache;
    const scr_store_dir *store;
    int id;                     /* of the dataset */
    const scr_bring_want *plan; /* for all processes, by rounds */
    int count;
    const kvtree *files; /* that come here: <number>/{<name>/...} with SIZE and CRC */
    kvtree *failed;      /* those that did not: <name>/<reason> */
} scr_bringing;

/* Executes the plan. Collective; 0, or -ENOMEM on this process alone, with all files of
 * others sent. */
int scr_brought_execute(scr_bringing *b);

#endif
