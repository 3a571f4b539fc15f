/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that return to the queue; see requeue.h. */
#include "run/requeue.h"

#include "lib/tool.h"
#include "lib/tool_manager.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ANSWER = 30 }; /* timeout of the batch system in seconds */

static bool requeue_begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Whether the job halts for a reason other than a person's request or its own end. */
static bool requeue_is_forced(const run *r)
{
    const scr_halt_end none = {.time = 0};
    char reason[SCR_HALT_REASON_SIZE] = "";
    kvtree_error err = {""};
    kvtree *halt = kvtree_new();
    bool forced = halt && scr_halt_read(r->prefix.dir, halt, &err) == 0;
    if (forced && r->facts.code != 0) {
        scr_halt_check(halt, &none, time(NULL), reason);
        forced = !requeue_begins(reason, SCR_HALT_FINALIZED);
    }
    if (forced) {
        scr_halt_drop_own_reason(halt);
        forced = !scr_halt_check(halt, &none, time(NULL), reason);
    }
    kvtree_delete(&halt);
    return forced;
}

bool requeue_is_due(const run *r, const run_decision *decision)
{
    if (!r->request->requeue || r->facts.attempts == 0) return false;
    switch (decision->why) {
    case RUN_STOPPED:
        /* SIGTERM comes from the batch system: a person types other signals or closes a
         * terminal */
        return r->signals.stop == SIGTERM && !tool_manager_is_over(ANSWER);
    case RUN_HALTED:
        return requeue_is_forced(r) && !tool_manager_is_over(ANSWER);
    case RUN_TOO_FEW:
    case RUN_HOME_DOWN:
        return !tool_manager_is_over(ANSWER);
    default:
        return false;
    }
}

static int requeue_add_reason(kvtree *halt, void *arg)
{
    const run *r = arg;
    char reason[64];
    snprintf(reason, sizeof reason, SCR_HALT_SIGNAL ": signal %d came to scr_run",
             r->signals.last);
    return scr_halt_add_reason(halt, reason);
}

void requeue_ask_program(void *arg)
{
    run *r = arg;
    run_say(r, RUN_ASKED_TO_HALT,
            "signal %d came: the program is asked to end with a checkpoint",
            r->signals.last);
    run_change_halt(r, requeue_add_reason, r);
}

bool requeue_job(run *r)
{
    kvtree_error err = {""};
    run_say(r, RUN_REQUEUED, "job %s is put back into the queue", r->owner.job);
    if (tool_manager_requeue(ANSWER, &err) == 0) return true;
    run_say(r, RUN_REQUEUE_FAILED, "the job is not put back into the queue: %s",
            err.text);
    return false;
}
