/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_COMMIT_SCAVENGED_H
#define SCAVENGE_COMMIT_SCAVENGED_H

/* Commits a scavenged dataset to the prefix directory, in the order of a flush: the index
 * says "not complete", files are renamed, map and summary are written, the index says
 * "complete", the staging directory is removed. Interrupted at any point, a second call
 * completes the work (docs/formats/scavenge.md). */

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

/* Rebuilds missing files of the dataset and commits it. If files stay missing, the index
 * says so, with the reason, and the staging directory stays. 0 in both cases; -EBUSY
 * while another process commits it, -ESTALE when a newer dataset has the name or names of
 * its files; or another -errno; each with a text. */
int scavenge_commit(const scavenge_prefix *prefix, const scavenge_key *key,
                    scavenge_commit_result *result, kvtree_error *err);

#endif
