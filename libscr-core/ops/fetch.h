/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FETCH_H
#define SCR_FETCH_H

/* Checkpoints that a restart reads from the prefix directory. Collective unless stated
 * otherwise. */

#include "ops/context.h"
#include <filo/filo_mpi.h>

/* On rank 0, local. Corrects the index entry if the summary beside the data describes a
 * dataset that the index does not have: then the index is an earlier version, or that of
 * another job. 1: the entry was corrected, which is reported. */
int scr_fetch_correct(struct scr *scr, const scr_dataset *dataset);

/* Compares the summary with the index entry. On rank 0, local; other ranks return 0. 0,
 * FILO_DAMAGED or -errno, with a text. */
int scr_fetch_check_summary(struct scr *scr, const scr_dataset *dataset,
                            kvtree_error *err);

/* On rank 0, local: whether the dataset is complete on the prefix directory, according to
 * index and summary, or to the summary alone if it was dropped from the index. */
int scr_fetch_finds(struct scr *scr, const scr_dataset *dataset);

/* Copies the dataset into the cache or, if that fails, verifies it in place. 0: it
 * becomes the current checkpoint, unless leaves_current, which counts on rank 0.
 * Positive: it is damaged, and is marked as failed. -errno: it cannot be read now, and
 * stays unmarked. Failures are reported. */
int scr_fetch_dataset(struct scr *scr, const scr_dataset *dataset, bool leaves_current);

/* The number of the store for files of a dataset; opens the store if it is not in use
 * yet. -errno with a text. Agreed. */
int scr_fetch_open_store(struct scr *scr, const scr_dataset *dataset, kvtree_error *err);

/* With on, spares an intact dataset that is skipped: it stays on the prefix directory in
 * this run, and remains the one that the next run restarts from. With on 0, ends this.
 * The same on every rank. */
void scr_fetch_spare(struct scr *scr, const scr_dataset *dataset, int on);

#endif
