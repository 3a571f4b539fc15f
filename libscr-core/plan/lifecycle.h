/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LIFECYCLE_H
#define SCR_LIFECYCLE_H

/* Which SCR_* calls are legal in which state. A pure function of a table. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>

typedef enum scr_state {
    SCR_STATE_UNINITIALIZED,
    SCR_STATE_FINALIZED, /* the same calls are legal as before SCR_Init */
    SCR_STATE_ABANDONED, /* the same */
    SCR_STATE_IDLE,
    SCR_STATE_OUTPUT,
    SCR_STATE_RESTART,
    SCR_STATES
} scr_state;

typedef enum scr_call {
    SCR_CALL_INIT,
    SCR_CALL_FINALIZE,
    SCR_CALL_ABANDON,
    SCR_CALL_CONFIG_SET,
    SCR_CALL_NEED_CHECKPOINT,
    SCR_CALL_START_OUTPUT,
    SCR_CALL_START_CHECKPOINT,
    SCR_CALL_ROUTE_FILE,
    SCR_CALL_ROUTE_FILE_PART,
    SCR_CALL_COMPLETE_OUTPUT,
    SCR_CALL_COMPLETE_CHECKPOINT,
    SCR_CALL_HAVE_RESTART,
    SCR_CALL_START_RESTART,
    SCR_CALL_COMPLETE_RESTART,
    SCR_CALL_FETCH_FILES,
    SCR_CALL_FETCH_FILE_PARTS,
    SCR_CALL_DATASET_RANKS,
    SCR_CALL_DATASET_FILES,
    SCR_CALL_DATASET_FILE,
    SCR_CALL_SHOULD_EXIT,
    SCR_CALL_CURRENT,
    SCR_CALL_DELETE,
    SCR_CALL_DROP,
    SCR_CALLS
} scr_call;

/* Whether no run is active: before SCR_Init, or after its end. */
static inline bool scr_state_is_outside(scr_state state)
{
    return state < SCR_STATE_IDLE;
}

/* The name for messages: "SCR_Start_output". */
const char *scr_call_name(scr_call call);

/* 0 if call is legal in state; otherwise -EPERM, and err (common/errtext.h) names the
 * call that is missing, or the one that came too early. */
int scr_lifecycle_check(scr_state state, scr_call call, kvtree_error *err);

#endif
