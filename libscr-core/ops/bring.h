/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_BRING_H
#define SCR_OPS_BRING_H

/* SCR_Fetch_files: brings files of the open restart to the nodes of the ranks that want
 * them.
 *
 * No rank knows where all files are. Each name has a home, a rank that its hash selects:
 *
 *  1. Once per restart each rank tells the homes of its files' names that it has them:
 *     in the cache, or, packed into containers, on the prefix directory.
 *  2. In each call the first rank of each store collects the names that the ranks of the
 *     store want, and asks their homes.
 *  3. The answers of all are shared, and plan/bring.h makes one plan from them, by which
 *     the files travel (cache/brought.h). Packed files are extracted by the ranks that
 *     asked for them.
 *  4. Each rank receives the paths of its files. */

#include "ops/context.h"

/* The home of a name, as the key of what is sent to it. */
enum { SCR_BRING_HOME_SIZE = 16 };
void scr_bring_home(const scr_job *job, const char *name, char home[SCR_BRING_HOME_SIZE]);

/* Collective; an SCR code. */
int scr_bring(struct scr *scr, int count, const char *const names[]);

/* Its steps, for ops/bring_parts.c. Collective, agreed; 0, or -errno with a text. */
int scr_bring_names(struct scr *scr, int count, const char *const names[],
                    kvtree_error *err);

/* Reports a failure; the SCR code of an agreed result. */
int scr_bring_report(struct scr *scr, scr_call call, int rc, const kvtree_error *err);

/* Before the first copy of a restart is made in a store: what an earlier run left there
 * may have the id of this dataset. Collective, agreed. */
int scr_bring_clear(const struct scr *scr, const scr_store_dir *store, kvtree_error *err);

/* The path of a file that was brought, or lies in the cache of this node; NULL: it was
 * not asked for. Local. */
const char *scr_bring_find(const struct scr *scr, const char *name);

/* At the end of a restart: removes the copies. Collective. */
void scr_bring_end(struct scr *scr);

#endif
