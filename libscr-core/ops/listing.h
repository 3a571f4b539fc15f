/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_LISTING_H
#define SCR_OPS_LISTING_H

/* SCR_Dataset_...: which files each rank wrote in the checkpoint of the open restart. The
 * map of the dataset on the prefix directory has this information; for a dataset that is
 * read in the cache, SCR_Start_restart writes such a map to .scr/restart.* until the end
 * of the restart. A query reads only the few map files that lead to one rank. */

#include "ops/context.h"

/* Writes the map if one is needed (SCR_RESTART_RANKS=any). Collective; a failure is
 * reported, and makes the queries fail. */
void scr_listing_begin(struct scr *scr);

/* Return the number of files of a rank; and the path on the prefix directory
 * (SCR_MAX_FILENAME bytes) and the size of one of them. Local; an SCR code. */
int scr_listing_count(struct scr *scr, int rank, int *count);
int scr_listing_file(struct scr *scr, int rank, int number, char *name, uint64_t *size);

/* Removes the map. Collective. */
void scr_listing_end(struct scr *scr);

/* Frees the list in memory. Local. */
void scr_listing_free(struct scr *scr);

/* At start: removes the map that a killed run left. */
void scr_listing_sweep(const struct scr *scr);

#endif
