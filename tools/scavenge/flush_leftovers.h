/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_FLUSH_LEFTOVERS_H
#define SCAVENGE_FLUSH_LEFTOVERS_H

/* Leftovers of an interrupted flush of a dataset that was scavenged: its directory in the
 * stage of the dataset (filo.h). */

#include "plan/dataset.h"

/* Removes the leftovers when the dataset is complete; a process that still copies there
 * fails. Keeps flushes of other datasets in the stage. After a failure the next run
 * removes the leftovers. */
void scavenge_leftovers_remove(int prefix, const scr_dataset *d);

#endif
