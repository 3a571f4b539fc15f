/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FETCH_H
#define SCR_FETCH_H

/* Checkpoints that a restart reads from the prefix directory. Collective unless stated
 * otherwise. */

#include "ops/context.h"
#include <filo/filo_mpi.h>

/* On rank 0, local. If the summary beside the data describes a dataset that the index
 * does not have, the index is an earlier one, or that of another job: the entry is
 * corrected. 1: it did, which is reported. */
int scr_fetch_correct(struct scr *scr, const scr_dataset *dataset);

/* On rank 0, local; other ranks do nothing. Compares the summary with what the index
 * says: 0, FILO_DAMAGED or -errno, with a text. */
int scr_fetch_check_summary(struct scr *scr, const scr_dataset *dataset,
                            kvtree_error *err);

/* On rank 0, local: whether it is complete on the prefix directory, by index and summary,
 * or by the summary alone if it was dropped from the index. */
int scr_fetch_finds(struct scr *scr, const scr_dataset *dataset);

/* Copies it into the cache or, if that fails, verifies it where it is. 0; positive: it is
 * damaged, and is marked as failed; -errno: it cannot be read now, and stays. Failures
 * are reported. It becomes the current checkpoint, unless leaves_current, on rank 0.
 */
int scr_fetch_dataset(struct scr *scr, const scr_dataset *dataset, bool leaves_current);

/* The number of the store for files of a dataset, which is opened where none is in use
 * yet; -errno with a text. Agreed. */
int scr_fetch_open_store(struct scr *scr, const scr_dataset *dataset, kvtree_error *err);

/* An intact dataset that is skipped stays on the prefix directory in this run, and
 * remains the one to restart from; on 0: no longer. The same on every rank. */
void scr_fetch_spare(struct scr *scr, const scr_dataset *dataset, int on);

#endif
