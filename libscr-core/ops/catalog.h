/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CATALOG_H
#define SCR_CATALOG_H

/* What is in the caches at start: the catalog that headers of redundancy files make, and
 * the filemaps of earlier runs, which are hints. */

#include "ops/context.h"

/* ---- ops/filemap_assign.c: filemaps of earlier runs, which are hints. Collective; a
 * code ----
 */
int scr_hints_read(struct scr *scr);    /* on the leader of each node, all of them */
int scr_hints_scatter(struct scr *scr); /* what concerns a rank goes to it */

/* Local: the newest complete checkpoint that filemaps in the control folder tell of; 0:
 * none. */
int scr_hints_newest(struct scr *scr);

/* Writes the filemaps of this run, in the place of earlier ones. A failure is reported,
 * and not fatal. */
void scr_maps_begin(struct scr *scr);

/* ---- ops/catalog.c: what is in the cache, as the headers of redundancy files say ----
 */

/* Reads the headers in all stores, or in the store of that number, into the maps of the
 * processes that share it; entries of other numbers of ranks, and of ranks that are
 * elsewhere, too. Collective; a code, and the error is reported; or agreed, 0 or -errno
 * with a text. */
int scr_catalog_read(struct scr *scr);
int scr_catalog_store(struct scr *scr, int cache, char *err);

/* 1 when the dataset has redundancy files, whatever is in them, in a store of which this
 * process is the first. Local. */
int scr_catalog_has_redundancy(const struct scr *scr, int id);

#endif
