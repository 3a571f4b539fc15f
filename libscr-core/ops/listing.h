/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_LISTING_H
#define SCR_OPS_LISTING_H

/* SCR_Dataset_...: which files the ranks wrote that wrote the checkpoint of the open
 * restart. The map of the dataset on the prefix directory tells; of one that is read in
 * the cache, SCR_Start_restart writes a map of that kind to .scr/restart for the time of
 * the restart. A question reads the few map files that lead to one rank. */

#include "ops/context.h"

/* Writes the map where one is needed (SCR_RESTART_RANKS=any). Collective; a failure is
 * reported, and the questions fail. */
void scr_listing_begin(struct scr *scr);

/* The files of a rank. The lists are of one rank at a time, and valid until the next
 * call. Local; an SCR code. */
int scr_listing_files(struct scr *scr, scr_call call, int rank, int *count,
                      const filo_file **files);

/* The path on the prefix directory of a file in that list. 0 or -ENAMETOOLONG. */
int scr_listing_name(const struct scr *scr, const filo_file *file,
                     char name[SCR_MAX_FILENAME]);

/* Removes what was written. Collective. */
void scr_listing_end(struct scr *scr);

/* Frees what is in memory. Local. */
void scr_listing_free(struct scr *scr);

/* At start: removes what a run left that was killed. */
void scr_listing_sweep(const struct scr *scr);

#endif
