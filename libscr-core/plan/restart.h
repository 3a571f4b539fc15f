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
 *    After the application rejects a checkpoint, only older ones are tried. Without a
 *    current checkpoint, or if another number of ranks wrote it, the newest is first.
 *  - Checkpoints newer than the current one are the last resort: they are tried only if
 *    no older one is usable, and none of the older ones is merely unreadable now.
 *  - If the run would otherwise begin anew, checkpoints from which too many runs failed
 *    to restart are tried again, the newest first.
 *  - A restart that finds nothing fails if only this run cannot use an existing
 *    checkpoint: an application that started from the beginning would overwrite it. */

#include "plan/dataset.h"
#include <stdbool.h>

/* A copy of a checkpoint, in the caches or on the prefix directory. */
typedef enum scr_copy {
    SCR_COPY_NONE,      /* absent, damaged, or must not be used */
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
    scr_age below;   /* older checkpoints are tried first; SCR_AGE_ANY: the current one
                        decides */
    bool only_older; /* newer ones are excluded, cached ones as well */
    int elsewhere;   /* id of the newest one in caches outside of this run; 0: none */
} scr_restart_facts;

typedef enum scr_restart_action {
    SCR_RESTART_COMPARE, /* verify the cached copy; it becomes READY, NONE or UNREADABLE
                          */
    SCR_RESTART_FETCH,   /* fetch the stored copy; it becomes READY, NONE or UNREADABLE */
    SCR_RESTART_OFFER,   /* final: offer this row */
    SCR_RESTART_ANEW,    /* final: there is no checkpoint */
    SCR_RESTART_FAIL_CACHE,     /* final: a cached checkpoint cannot be read now */
    SCR_RESTART_FAIL_PREFIX,    /* final: a stored checkpoint cannot be read now */
    SCR_RESTART_FAIL_ELSEWHERE, /* final: a newer one is in caches outside of this run */
} scr_restart_action;

typedef struct scr_restart_step {
    scr_restart_action action;
    int row;
    bool rises; /* the row is newer than the current one: the last resort */
} scr_restart_step;

scr_restart_step scr_plan_restart(const scr_restart_facts *facts);

/* Whether the fetched row does not become the current checkpoint: another number of ranks
 * wrote a newer one, from which a later run of that number should begin. A checkpoint
 * newer than the current one does not count, because an older one was chosen. */
bool scr_plan_restart_leaves_current(const scr_restart_facts *facts, int row);

#endif
