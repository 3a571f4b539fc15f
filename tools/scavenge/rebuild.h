/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_REBUILD_H
#define SCAVENGE_REBUILD_H

/* What was saved of a dataset is completed from its redundancy files (SCR Developer Guide
 * 1.2, section 2.33.10). */

#include "scavenge/scan.h"

/* What became of a set. */
typedef struct scavenge_rebuilt {
    int id;
    int ranks;              /* of which files were rebuilt */
    int failed;             /* a negative error, REDSET_UNRECOVERABLE, or 0 */
    char why[ERRTEXT_SIZE]; /* what was lost, or what went wrong */
} scavenge_rebuilt;

/* Rebuilds all sets that lack something, up to `most` of them side by side. The ranks
 * that are whole then get filemaps. *list, to be freed, has the *count sets that lacked
 * something. That one cannot be rebuilt is no error here: another scan tells what is
 * whole. 0 or -ENOMEM. */
int scavenge_rebuild(const scavenge_folder *folder, const scavenge_scan *scan, int most,
                     scavenge_rebuilt **list, int *count);

#endif
