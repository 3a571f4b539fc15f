/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_COMMIT_SCAVENGED_H
#define SCAVENGE_COMMIT_SCAVENGED_H

/* Commits a scavenged dataset to the prefix directory in the same order as a flush: the
 * index marks the dataset incomplete; files are renamed; map and summary are written; the
 * index marks the dataset complete; the staging directory is removed. If the commit is
 * interrupted at any point, a second call completes it (docs/formats/scavenge.md). */

#include "scavenge/rebuild.h"
#include "scavenge/staging.h"

typedef struct scavenge_commit_result {
    scr_dataset dataset;
    bool complete;    /* the dataset can be fetched */
    bool current;     /* the next run restarts from it */
    kvtree_error why; /* why it is not complete */
    int sets;         /* incomplete redundancy sets, to be freed: */
    scavenge_rebuilt *rebuilt;
} scavenge_commit_result;

/* Unknown state: whether files were packed, and whether some were renamed. */
#define SCAVENGE_WHOLE_BAD 1

/* Rebuilds missing files of the dataset and commits it. If files remain missing, the
 * index records the dataset as incomplete with the reason, and the staging directory
 * stays. 0 in both cases; SCAVENGE_WHOLE_BAD, with nothing renamed, if the record
 * SCAVENGE_WHOLE of an interrupted commit is damaged; -EBUSY while another process
 * commits the dataset; -ESTALE if a newer dataset has its name or names of its files; or
 * another -errno; each with a text. */
int scavenge_commit(const scavenge_prefix *prefix, const scavenge_key *key,
                    scavenge_commit_result *result, kvtree_error *err);

#endif
