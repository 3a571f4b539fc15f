/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_REBUILD_H
#define SCAVENGE_REBUILD_H

/* Rebuilds missing files in a staging directory from redundancy files (SCR Developer
 * Guide 1.2, section 2.33.10). */

#include "scavenge/scan.h"

/* The result for one set. */
typedef struct scavenge_rebuilt {
    int id;
    int ranks;        /* ranks with rebuilt files */
    int failed;       /* a negative error, REDSET_UNRECOVERABLE, or 0 */
    kvtree_error why; /* what was lost, or the text of the error */
} scavenge_rebuilt;

/* Rebuilds all incomplete sets, at most `width` in parallel, and writes filemaps for the
 * ranks that have become complete. *list, to be freed, has the *count incomplete sets. A
 * set that cannot be rebuilt is not an error here: another scan shows the missing files.
 * 0 or -ENOMEM. */
int scavenge_rebuild(const scavenge_folder *folder, const scavenge_scan *scan, int width,
                     scavenge_rebuilt **list, int *count);

#endif
