/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_FLUSH_LEFTOVERS_H
#define SCAVENGE_FLUSH_LEFTOVERS_H

/* Leftovers of an interrupted flush of a dataset that is scavenged instead: temporary
 * files on the prefix folder, and a record in the flush file. A process that still
 * continues the flush holds a lock that only its node sees, but the leftovers are removed
 * elsewhere, later. So each node records in the rank filemaps that no process continues
 * the flush, together with the state of the flush file: a new run would change that. */

#include "scavenge/staging.h"

/* The flush of the dataset, if the flush file records exactly one and `owner` (NULL:
 * anyone) started it: its id, and a text that also identifies the state of the flush
 * file. Otherwise 0 and "". */
uint64_t scavenge_flush_find(int prefix, const scr_dataset *d, const char *owner,
                             char text[SCAVENGE_FLUSH_SIZE]);

/* That flush, if no process continues it for any rank; otherwise 0. */
uint64_t scavenge_leftovers_find(int prefix, const scavenge_scan *scan);

/* Removes its temporary files, and then its record. What cannot be removed is left to the
 * next run. */
void scavenge_leftovers_remove(int prefix, const scavenge_scan *scan, uint64_t flush);

#endif
