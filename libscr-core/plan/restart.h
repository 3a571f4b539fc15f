/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_RESTART_H
#define SCR_PLAN_RESTART_H

/* Which checkpoint a restart begins from. A pure function: facts in, next step out. The
 * caller executes the step, enters what came of it into the facts, and asks again, until
 * the step is an end.
 *
 * The rule:
 *  - A cached checkpoint that can be used wins over older ones on the prefix folder.
 *  - On the prefix folder the current checkpoint is tried first, then older ones. After
 *    the program could not use a checkpoint, older ones than that are tried. Without a
 *    current one, or where it is of another number of ranks, the newest is first.
 *  - Newer ones are tried last, and only where nothing else can be had, and none of the
 *    older ones may be readable another time.
 *  - A restart that finds nothing fails where something is known that only this run
 *    cannot use: an application that began anew would overwrite it. */

#include "plan/dataset.h"
#include <stdbool.h>

/* A copy of a checkpoint, in the caches or on the prefix folder. */
typedef enum scr_copy {
    SCR_COPY_NONE,      /* there is none, or it is damaged, or must not be used */
    SCR_COPY_THERE,     /* complete by its records; its bytes are not compared yet */
    SCR_COPY_READY,     /* as it was written */
    SCR_COPY_UNREADABLE /* this run cannot read it, for a reason that may pass */
} scr_copy;

/* A checkpoint. Copies with different names are different rows. */
typedef struct scr_restart_row {
    scr_age age;
    scr_copy cached, stored; /* stored: on the prefix folder */
    bool exhausted;          /* too many runs that tried it did not get that far */
    bool is_current;         /* the index names it as the one to begin with */
    bool is_of_other_ranks;  /* written by another number of ranks */
} scr_restart_row;

typedef struct scr_restart_facts {
    int count;
    scr_restart_row *rows;
    scr_age below; /* older ones are tried first; SCR_AGE_ANY: as the current one says */
    bool only_older; /* newer ones are not tried at all, also not cached ones */
    int elsewhere;   /* id of the newest in caches that this run does not use; 0: none */
} scr_restart_facts;

typedef enum scr_restart_action {
    SCR_RESTART_COMPARE,     /* reads the cached copy: READY, NONE or UNREADABLE then */
    SCR_RESTART_FETCH,       /* the stored copy: READY, or NONE or UNREADABLE */
    SCR_RESTART_OFFER,       /* the end: this one */
    SCR_RESTART_ANEW,        /* the end: there is no checkpoint */
    SCR_RESTART_FAIL_CACHE,  /* the end: a cached one cannot be read now */
    SCR_RESTART_FAIL_PREFIX, /* the end: one on the prefix folder cannot */
    SCR_RESTART_FAIL_ELSEWHERE, /* the end: a newer one is in caches that are not used */
} scr_restart_action;

typedef struct scr_restart_step {
    scr_restart_action action;
    int row;
    bool rises; /* newer than the current one, for want of anything else */
} scr_restart_step;

scr_restart_step scr_plan_restart(const scr_restart_facts *facts);

#endif
