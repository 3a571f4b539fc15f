/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of states and calls; see plan/lifecycle.h. */
#include "plan/lifecycle.h"

#include "common/errtext.h"
#include <errno.h>

#define OUTSIDE ((1u << SCR_STATE_IDLE) - 1)
#define IDLE (1u << SCR_STATE_IDLE)
#define OUTPUT (1u << SCR_STATE_OUTPUT)
#define RESTART (1u << SCR_STATE_RESTART)

static const struct {
    const char *name;
    unsigned legal;
    scr_state needs; /* the state that the message asks for */
} lifecycle_calls[SCR_CALLS] = {
    [SCR_CALL_INIT] = {"SCR_Init", OUTSIDE, SCR_STATE_UNINITIALIZED},
    /* SCR_Finalize and SCR_Abandon close an open output or restart */
    [SCR_CALL_FINALIZE] = {"SCR_Finalize", IDLE | OUTPUT | RESTART, SCR_STATE_IDLE},
    [SCR_CALL_ABANDON] = {"SCR_Abandon", IDLE | OUTPUT | RESTART, SCR_STATE_IDLE},
    [SCR_CALL_CONFIG_SET] = {"SCR_Config", OUTSIDE, SCR_STATE_UNINITIALIZED},
    [SCR_CALL_NEED_CHECKPOINT] = {"SCR_Need_checkpoint", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_START_OUTPUT] = {"SCR_Start_output", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_START_CHECKPOINT] = {"SCR_Start_checkpoint", IDLE, SCR_STATE_IDLE},
    /* outside of output and restart SCR_Route_file copies the name, or returns the path
     * of a file of the newest checkpoint */
    [SCR_CALL_ROUTE_FILE] = {"SCR_Route_file", OUTSIDE | IDLE | OUTPUT | RESTART,
                             SCR_STATE_IDLE},
    [SCR_CALL_ROUTE_FILE_PART] = {"SCR_Route_file_part",
                                  OUTSIDE | IDLE | OUTPUT | RESTART, SCR_STATE_IDLE},
    [SCR_CALL_COMPLETE_OUTPUT] = {"SCR_Complete_output", OUTPUT, SCR_STATE_OUTPUT},
    [SCR_CALL_COMPLETE_CHECKPOINT] = {"SCR_Complete_checkpoint", OUTPUT,
                                      SCR_STATE_OUTPUT},
    [SCR_CALL_HAVE_RESTART] = {"SCR_Have_restart", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_START_RESTART] = {"SCR_Start_restart", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_COMPLETE_RESTART] = {"SCR_Complete_restart", RESTART, SCR_STATE_RESTART},
    [SCR_CALL_FETCH_FILES] = {"SCR_Fetch_files", RESTART, SCR_STATE_RESTART},
    [SCR_CALL_FETCH_FILE_PARTS] = {"SCR_Fetch_file_parts", RESTART, SCR_STATE_RESTART},
    [SCR_CALL_DATASET_RANKS] = {"SCR_Dataset_ranks", RESTART, SCR_STATE_RESTART},
    [SCR_CALL_DATASET_FILES] = {"SCR_Dataset_files", RESTART, SCR_STATE_RESTART},
    [SCR_CALL_DATASET_FILE] = {"SCR_Dataset_file", RESTART, SCR_STATE_RESTART},
    [SCR_CALL_SHOULD_EXIT] = {"SCR_Should_exit", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_CURRENT] = {"SCR_Current", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_DELETE] = {"SCR_Delete", IDLE, SCR_STATE_IDLE},
    [SCR_CALL_DROP] = {"SCR_Drop", IDLE, SCR_STATE_IDLE},
};

const char *scr_call_name(scr_call call)
{
    return lifecycle_calls[call].name;
}

/* Why a call is illegal in state, and the call that leads towards the needed state. */
static const char *lifecycle_advice(scr_state state, scr_state needs)
{
    if (state == SCR_STATE_FINALIZED)
        return "SCR_Finalize has ended the run already; this call belongs before it, or "
               "after another SCR_Init";
    if (state == SCR_STATE_ABANDONED)
        return "SCR_Abandon has ended the run already; this call belongs before it, or "
               "after another SCR_Init_comm";
    if (state == SCR_STATE_OUTPUT)
        return "an output is open; SCR_Complete_output is missing";
    if (state == SCR_STATE_RESTART)
        return "a restart is open; SCR_Complete_restart is missing";
    if (needs == SCR_STATE_UNINITIALIZED)
        return "SCR is initialized already; SCR_Finalize is missing";
    if (state == SCR_STATE_UNINITIALIZED)
        return "SCR is not initialized; SCR_Init is missing or has failed";
    if (needs == SCR_STATE_OUTPUT)
        return "no output is open; SCR_Start_output is missing";
    return "no restart is open; SCR_Start_restart is missing";
}

int scr_lifecycle_check(scr_state state, scr_call call, kvtree_error *err)
{
    if (lifecycle_calls[call].legal & (1u << state)) return 0;
    return err_set(err, -EPERM, "%s: %s", lifecycle_calls[call].name,
                   lifecycle_advice(state, lifecycle_calls[call].needs));
}
