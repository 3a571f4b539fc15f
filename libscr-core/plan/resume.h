/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_RESUME_H
#define SCR_PLAN_RESUME_H

/* What SCR_Init does with interrupted flushes of earlier runs: one is resumed; the
 * transfers of the others are stopped, and their copies are removed. A pure function of
 * the flushes in stages on the prefix directory and of the state files of transfers on
 * the nodes.
 *
 * The rule:
 *  - Candidates are flushes of this job whose dataset is in the cache and not yet on the
 *    prefix directory. The newest is resumed, but only if a rank finds the state file of
 *    its transfer on its node: otherwise nothing would be saved.
 *  - Everything else that this job began is stopped and removed. So are stages without a
 *    readable record, which no job can resume.
 *  - A flush of another job may still be running, and stays. */

#include "plan/dataset.h"
#include <stdbool.h>

/* A flush in a stage. */
typedef struct scr_resume_flush {
    scr_age age;     /* of its dataset; {0, 0}: unknown */
    bool is_foreign; /* another job began it */
    bool is_cached;  /* the cache has exactly this dataset */
    bool is_stored;  /* the dataset, or a newer one of its name, is complete */
    bool is_removed; /* the result */
} scr_resume_flush;

/* The state file of a transfer on a node. */
typedef struct scr_resume_transfer {
    int rank;        /* the rank of the transfer */
    bool is_here;    /* the rank runs on this node now */
    bool is_stopped; /* the result */
} scr_resume_transfer;

typedef struct scr_resume_facts {
    bool has_transfer; /* some node has a transfer that is_here */
    int flush_count, transfer_count;
    scr_resume_flush *flushes;
    scr_resume_transfer *transfers; /* any subset of all transfers */
} scr_resume_facts;

/* The flush to resume, which does not depend on the list of transfers; -1: none. Sets the
 * results. */
int scr_plan_resume(const scr_resume_facts *facts);

#endif
