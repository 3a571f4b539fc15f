/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_LISTING_H
#define SCR_OPS_LISTING_H

/* SCR_Dataset_...: which files the ranks wrote that wrote the checkpoint of the open
 * restart. The map of the dataset on the prefix directory tells; of one that is read in
 * the cache, SCR_Start_restart writes a map of that kind to .scr/restart.* for the time
 * of the restart. A question reads the few map files that lead to one rank. */

#include "ops/context.h"

/* Writes the map where one is needed (SCR_RESTART_RANKS=any). Collective; a failure is
 * reported, and the questions fail. */
void scr_listing_begin(struct scr *scr);

/* The number of files of a rank; the path on the prefix directory (SCR_MAX_FILENAME
 * bytes) and the size of one of them. Local; an SCR code. */
int scr_listing_count(struct scr *scr, int rank, int *count);
int scr_listing_file(struct scr *scr, int rank, int number, char *name, uint64_t *size);

/* Removes what was written. Collective. */
void scr_listing_end(struct scr *scr);

/* Frees what is in memory. Local. */
void scr_listing_free(struct scr *scr);

/* At start: removes what a run left that was killed. */
void scr_listing_sweep(const struct scr *scr);

#endif
