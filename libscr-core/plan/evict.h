/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_EVICT_H
#define SCR_PLAN_EVICT_H

/* Which dataset leaves a store of the cache to make room for the next one. A pure
 * function: facts in, next step out. The caller executes the step, records its result in
 * the facts, and calls again until the step is DONE.
 *
 * The rule:
 *  - The oldest dataset leaves first. The newest checkpoint stays while another dataset
 *    can leave instead, now or after its flush.
 *  - An output, and the newest checkpoint while no newer one is being written, leave only
 *    after they are on the prefix directory. If they cannot be flushed, the store keeps
 *    them beyond its capacity, up to twice the capacity; then the oldest of them is
 *    lost. */

#include "plan/dataset.h"
#include <stdbool.h>

/* A dataset of the store. */
typedef struct scr_evict_row {
    scr_age age;
    bool checkpoint, output;
    bool newest;   /* the newest checkpoint of the whole cache */
    bool flushing; /* a flush reads its files */
    bool held;     /* stays beyond the capacity */
    bool saved;    /* on the prefix directory */
    bool unsaved;  /* its flush has just failed */
} scr_evict_row;

typedef struct scr_evict_facts {
    int count;
    scr_evict_row *rows;
    int capacity;         /* the store must end with fewer datasets than this */
    int most_held;        /* datasets that may stay beyond the capacity */
    int spare;            /* id of a dataset that must stay; 0: none */
    bool replaces_newest; /* the room is for a checkpoint */
} scr_evict_facts;

typedef enum scr_evict_action {
    SCR_EVICT_DONE,   /* there is room, or nothing may leave */
    SCR_EVICT_WAIT,   /* wait for the end of the flush in progress */
    SCR_EVICT_FLUSH,  /* flush the row; it becomes saved or unsaved, or disappears */
    SCR_EVICT_HOLD,   /* mark the row as held */
    SCR_EVICT_REMOVE, /* remove the row */
    SCR_EVICT_LOSE,   /* remove the row although it is not on the prefix directory */
} scr_evict_action;

typedef struct scr_evict_step {
    scr_evict_action action;
    int row;
} scr_evict_step;

scr_evict_step scr_plan_evict(const scr_evict_facts *facts);

#endif
