/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_REMAINS_H
#define SCAVENGE_REMAINS_H

/* What a flush left of a dataset that is saved from the caches instead: temporary files
 * on the prefix folder, and its record in the flush file. Whoever works on such files
 * does so on a node, where his lock can be seen; they are removed somewhere else, later.
 * So each node notes with a rank that nobody works for that any more, and in which state
 * of the flush file this was seen: a run that starts would write that anew. */

#include "scavenge/settle.h"

/* The flush of that dataset, if the flush file records exactly one, and it is of owner
 * (NULL: anybody's): its id, and a text that is another one when the flush file was
 * written since. Otherwise 0 and "". */
uint64_t scavenge_flush_find(int prefix, const scr_dataset *d, const char *owner,
                             char text[SCAVENGE_FLUSH_SIZE]);

/* That flush, if nobody works for any rank any more; 0: there is none, or somebody may.
 */
uint64_t scavenge_remains_find(int prefix, const scavenge_scan *scan);

/* Removes its temporary files and its record; what cannot be removed now waits for the
 * next run. */
void scavenge_remains_remove(int prefix, const scavenge_scan *scan, uint64_t flush);

#endif
