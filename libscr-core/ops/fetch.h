/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FETCH_H
#define SCR_FETCH_H

/* Checkpoints that a restart reads from the prefix folder. Collective where nothing else
 * is said. */

#include "ops/context.h"
#include <filo/filo_mpi.h>

/* On rank 0, local. Where the summary beside the data is of a dataset that the index does
 * not have, somebody put an earlier index, or that of another job, into its place: the
 * entry becomes what the summary says. 1: it did, which is reported. */
int scr_fetch_correct(struct scr *scr, const scr_dataset *dataset);

/* On rank 0, local: 1 when it is whole on the prefix folder, as index and summary say; or
 * the summary alone, where somebody has dropped it from the index. */
int scr_fetch_finds(struct scr *scr, const scr_dataset *dataset);

/* Brings it into the cache or, where that fails, finds it whole where it is. 0; positive
 * when it is damaged, and marked as failed then; or -errno when it only cannot be read
 * here and now: then it stays. Says what went wrong.
 */
int scr_fetch_dataset(struct scr *scr, const scr_dataset *dataset);

/* A dataset that is skipped, though nothing is wrong with it, stays on the prefix
 * folder in this run, and the one to restart from; on 0: no longer. The same on every
 * rank. */
void scr_fetch_spare(struct scr *scr, const scr_dataset *dataset, int on);

#endif
