/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_FLUSH_LEFTOVERS_H
#define SCAVENGE_FLUSH_LEFTOVERS_H

/* Leftovers of an interrupted flush of a dataset that is scavenged instead: its directory
 * in the stage of the dataset (filo.h). */

#include "plan/dataset.h"

/* Removes it when the dataset is complete; a process that still copies to it fails.
 * Flushes of other datasets in the stage are kept. A failure leaves it to the next run.
 */
void scavenge_leftovers_remove(int prefix, const scr_dataset *d);

#endif
