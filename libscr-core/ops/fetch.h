/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FETCH_H
#define SCR_FETCH_H

/* Checkpoints that a restart reads from the prefix folder. Collective where nothing else
 * is said. */

#include "ops/context.h"
#include <filo/filo_mpi.h>

/* The checkpoint on the prefix folder to restart from next (see scr_index_next_fetch); 0,
 * -ENOENT, or, when the index cannot be read, another -errno: that is said. */
int scr_fetch_candidate(struct scr *scr, scr_age below, const kvtree *tried,
                        scr_dataset *dataset);

/* 1 for a cached checkpoint that the prefix folder has, too, tried in vain too often. */
int scr_fetch_passes_over(struct scr *scr, const scr_dataset *dataset);

/* On rank 0, local: 1 when it is whole on the prefix folder, as index and summary say; or
 * the summary alone, where somebody has dropped it from the index. */
int scr_fetch_finds(struct scr *scr, const scr_dataset *dataset);

/* Brings it into the cache or, where that fails, finds it whole where it is. 0; positive
 * when it is of no use: damaged (it is marked as failed then) or of other ranks; or
 * -errno when it only cannot be read here and now: then it stays. Says what went wrong.
 */
int scr_fetch_dataset(struct scr *scr, const scr_dataset *dataset);

/* Reads the map of a complete dataset, which has one, for as many ranks as this run has:
 * positive where that is not so. As filo_read_map; agreed. */
int scr_fetch_map(struct scr *scr, const scr_dataset *dataset, const scr_place *place,
                  const filo_options *options, int *count, filo_file **files, char *err);

/* A dataset that is passed over, though nothing is wrong with it, stays on the prefix
 * folder in this run, and the one to restart from; on 0: no longer. The same on every
 * rank. */
void scr_fetch_spare(struct scr *scr, const scr_dataset *dataset, int on);

#endif
