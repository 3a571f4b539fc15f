/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_REMAINS_H
#define SCAVENGE_REMAINS_H

/* What a flush left of a dataset that was saved from the caches instead: its folder in
 * the stage of the dataset (filo.h). */

#include "plan/dataset.h"

/* Removes it when the dataset is complete; a process that still copies to it fails. What
 * flushes of other datasets have there stays. A failure leaves it for the next run. */
void scavenge_remains_remove(int prefix, const scr_dataset *d);

#endif
