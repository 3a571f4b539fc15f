/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_RESTART_H
#define SCR_PLAN_RESTART_H

/* Which checkpoint a restart uses. A pure function: facts in, next step out. The caller
 * executes the step, records its result in the facts, and calls again until the step is
 * final.
 *
 * The rule ("newer" and "older" as in plan/dataset.h):
 *  - A usable cached checkpoint wins over older ones on the prefix directory.
 *  - On the prefix directory the current checkpoint is tried first, then older ones.
 * After the application rejects a checkpoint, only older ones are tried. Without a
 * current checkpoint, or with one of another number of ranks, the newest is first.
 *  - Checkpoints newer than the current one are the last resort: only if no older one is
 *    usable, and none of them is merely unreadable now.
 *  - One that too many runs failed to restart from is tried again, the newest first, only
 *    where the run would begin anew otherwise.
 *  - A restart that finds nothing fails if this run alone cannot use an existing
 *    checkpoint: an application that started from the beginning would overwrite it. */

#include "plan/dataset.h"
#include <stdbool.h>

/* A copy of a checkpoint, in the caches or on the prefix directory. */
typedef enum scr_copy {
    SCR_COPY_NONE,      /* absent, damaged, or not to be used */
    SCR_COPY_THERE,     /* complete by its records; its bytes are not verified yet */
    SCR_COPY_READY,     /* verified */
    SCR_COPY_UNREADABLE /* cannot be read now, because of a transient error */
} scr_copy;

/* A checkpoint. Copies with different names are different rows. */
typedef struct scr_restart_row {
    scr_age age;
    scr_copy cached, stored; /* stored: on the prefix directory */
    bool exhausted;          /* too many runs failed to restart from it */
    bool is_current;         /* the index names it as the current one */
    bool is_of_other_ranks;  /* written by another number of ranks */
} scr_restart_row;

typedef struct scr_restart_facts {
    int count;
    scr_restart_row *rows;
    scr_age below; /* older ones are tried first; SCR_AGE_ANY: the current one decides */
    bool only_older; /* newer ones are excluded, cached ones as well */
    int elsewhere;   /* id of the newest in caches outside of this run; 0: none */
} scr_restart_facts;

typedef enum scr_restart_action {
    SCR_RESTART_COMPARE, /* verify the cached copy; it becomes READY, NONE or UNREADABLE
                          */
    SCR_RESTART_FETCH,   /* fetch the stored copy; it becomes READY, NONE or UNREADABLE */
    SCR_RESTART_OFFER,   /* final: offer this row */
    SCR_RESTART_ANEW,    /* final: there is no checkpoint */
    SCR_RESTART_FAIL_CACHE,  /* final: a cached one cannot be read now */
    SCR_RESTART_FAIL_PREFIX, /* final: one on the prefix directory cannot be read now */
    SCR_RESTART_FAIL_ELSEWHERE, /* final: a newer one is in caches outside of this run */
} scr_restart_action;

typedef struct scr_restart_step {
    scr_restart_action action;
    int row;
    bool rises; /* newer than the current one, as the last resort */
} scr_restart_step;

scr_restart_step scr_plan_restart(const scr_restart_facts *facts);

/* Whether the row that is fetched does not become the current checkpoint: a newer one is
 * of another number of ranks, and a run that can use it is to begin with it. One that is
 * newer than the current one does not count: an older one was chosen. */
bool scr_plan_restart_leaves_current(const scr_restart_facts *facts, int row);

#endif
