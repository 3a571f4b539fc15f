/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_BRING_H
#define SCR_OPS_BRING_H

/* SCR_Fetch_files: brings files of the open restart to the nodes of the ranks that want
 * them.
 *
 * No rank knows where all files are. Each name has a home: the rank that a hash of the
 * name selects.
 *
 *  1. Once per restart each rank reports its files to the homes of their names: files in
 *     the cache, or, on the prefix directory, files that are packed into containers.
 *  2. In each call the first rank of each store collects the names that the ranks of the
 *     store want, and asks the homes of these names.
 *  3. The answers are shared among all ranks. plan/bring.h makes one plan from them, and
 *     the files are sent according to it (cache/brought.h). The ranks that asked for
 *     packed files extract them.
 *  4. Each rank receives the paths of its files. */

#include "ops/context.h"

/* The home of a name, as the key under which data is sent to the home. */
enum { SCR_BRING_HOME_SIZE = 16 };
void scr_bring_home(const scr_job *job, const char *name, char home[SCR_BRING_HOME_SIZE]);

/* Executes SCR_Fetch_files. Collective; an SCR code. */
int scr_bring(struct scr *scr, int count, const char *const names[]);

/* The same for ops/bring_parts.c. Collective, agreed; 0, or -errno with a text. */
int scr_bring_names(struct scr *scr, int count, const char *const names[],
                    kvtree_error *err);

/* Reports the failure of an agreed result. Returns the SCR code of that result. */
int scr_bring_report(struct scr *scr, scr_call call, int rc, const kvtree_error *err);

/* Removes the copies of an earlier run from a store, before the first copy of this
 * restart is made: they may have the id of this dataset. Collective, agreed. */
int scr_bring_clear(const struct scr *scr, const scr_store_dir *store, kvtree_error *err);

/* The path of a file that was asked for: of its copy, or of the file in the cache of this
 * node. NULL: it was not asked for. Local. */
const char *scr_bring_find(const struct scr *scr, const char *name);

/* Removes the copies at the end of a restart. Collective. */
void scr_bring_end(struct scr *scr);

#endif
