/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CACHE_BROUGHT_H
#define SCR_CACHE_BROUGHT_H

/* Copies of other processes' files that a restart reads: in scr.brought/<id> of a store,
 * until the end of the restart. */

#include "cache/cache.h"
#include "plan/bring.h"

/* Maximum size of a name below the fd of a store. */
#define SCR_BROUGHT_NAME_SIZE (SCR_NAME_SIZE + 64)
void scr_brought_name(int id, const char *name, char path[SCR_BROUGHT_NAME_SIZE]);

/* The path of a copy. The caller frees it; NULL without memory. */
char *scr_brought_path(const scr_store_dir *store, int id, const char *name);

/* Creates an empty file of that name below the fd of a store, in place of any other. */
int scr_brought_create(const scr_store_dir *store, const char *path, int *fd,
                       kvtree_error *err);

/* Removes all copies in a store. Called by the first process of the store, when no
 * process reads them. Local. */
int scr_brought_clear(const scr_store_dir *store, kvtree_error *err);

/* The same in all stores of which this process is the first. Failures are ignored:
 * remaining copies are removed before the first copy of the next restart is made. */
void scr_brought_remove(const scr_cache *cache);

/* The size in an entry <name>/{SIZE, ...}; 0: unknown. */
uint64_t scr_brought_size(const kvtree_elem *file);

/* Adds bytes to those of meter->total that have arrived, and reports the sum. */
void scr_brought_count(scr_cache_meter *meter, uint64_t bytes);

/* The files that a process receives. */
typedef struct scr_bringing {
    scr_cache *cache;
    const scr_store_dir *store;
    int id;                     /* of the dataset */
    const scr_bring_want *plan; /* for all processes, sorted by rounds */
    int count;
    const kvtree *files; /* that this process receives: <number>/{<name>/...} with SIZE
                            and CRC */
    kvtree *failed;      /* files that did not arrive: <name>/<reason> */
} scr_bringing;

/* Executes the plan. Collective; 0, or -ENOMEM on this process alone, after sending all
 * files that other processes want. */
int scr_brought_execute(scr_bringing *b);

#endif
