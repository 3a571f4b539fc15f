/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_RESUME_H
#define SCR_PLAN_RESUME_H

/* What SCR_Init does with flushes that an earlier run began and that were interrupted:
 * one is resumed, the transfers of the others are stopped, and what they copied is
 * removed. A pure function of the flushes in stages of the prefix directory and of the
 * state files of transfers on the nodes.
 *
 * The rule:
 *  - Of the flushes of this job whose dataset the cache still has and the prefix
 *    directory still lacks, the newest is resumed, and only if a rank finds the state
 *    file of its transfer on its node: otherwise nothing would be saved by it.
 *  - Everything else that this job began is stopped and removed. So is what has no
 *    readable record, which no job can resume.
 *  - The flush of another job may still run, and stays. */

#include "plan/dataset.h"
#include <stdbool.h>

/* A flush in a stage. */
typedef struct scr_resume_flush {
    scr_age age;     /* of its dataset; {0, 0}: unknown */
    bool is_foreign; /* another job began it */
    bool is_cached;  /* the cache has the very dataset that it copies */
    bool is_stored;  /* that dataset, or a newer one of its name, is complete */
    bool is_removed; /* the result */
} scr_resume_flush;

/* The state file of a transfer on a node. */
typedef struct scr_resume_transfer {
    int rank;        /* that it is of */
    bool is_here;    /* the rank runs on this node now */
    bool is_stopped; /* the result */
} scr_resume_transfer;

typedef struct scr_resume_facts {
    bool has_transfer; /* some node has one that is_here */
    int flush_count, transfer_count;
    scr_resume_flush *flushes;
    scr_resume_transfer *transfers; /* any part of all */
} scr_resume_facts;

/* The flush to resume, which does not depend on transfers; -1: none. Sets the results. */
int scr_plan_resume(const scr_resume_facts *facts);

#endif
