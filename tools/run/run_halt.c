/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions; see run.h. */
#include "run/run.h"

#include "lib/tool.h"
#include "lib/tool_halt.h"
#include "lib/tool_manager.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ANSWER = 30 }; /* timeout of the batch system in seconds */

/* Finds the end of the allocation. SCR in the program does not query the batch system, so
 * the answer of Slurm goes to the environment. */
static void run_find_end(run *r)
{
    char text[24];
    r->end_known = true;
    if (tool_manager_find_end(&r->prefix, ANSWER, &r->end) != COMMAND_GOOD) return;
    snprintf(text, sizeof text, "%" PRId64, r->end.time);
    if (r->end.time && setenv("SCR_END_TIME", text, 1) != 0) tool_no_memory();
}

/* Reads the halt file; NULL with the error if it cannot be read. */
static kvtree *run_open_halt(const run *r, int *rc, kvtree_error *err)
{
    kvtree *halt = kvtree_new();
    *rc = halt ? scr_halt_read(r->prefix.dir, halt, err)
               : err_set(err, -ENOMEM, "no memory");
    if (*rc) kvtree_delete(&halt);
    return halt;
}

void run_change_halt(const run *r, int (*change)(kvtree *halt, void *arg), void *arg)
{
    kvtree_error err = {"no memory"};
    kvtree *halt = kvtree_new();
    if (!halt || scr_halt_change(r->prefix.dir, change, arg, halt, &err) != 0)
        tool_say(HALT_FILE_UNREADABLE, "%s", err.text);
    kvtree_delete(&halt);
}

bool run_is_ending(const run *r, char *why, size_t size)
{
    double left = (double)(r->end.time - time(NULL));
    if (!r->end.time || r->reserve <= 0 || left > r->reserve) return false;
    snprintf(why, size, "%.0f seconds are left until the allocation ends (%s)",
             left > 0 ? left : 0, r->end.source);
    return true;
}

void run_read_halt(run *r)
{
    char reason[SCR_HALT_REASON_SIZE];
    kvtree_error err = {""};
    int64_t now = time(NULL);
    int rc;
    if (!r->end_known) run_find_end(r);
    kvtree *halt = run_open_halt(r, &rc, &err);
    *r->halt = 0;
    if (!halt || scr_halt_check(halt, &r->end, now, reason) ||
        run_is_ending(r, reason, sizeof reason)) {
        /* a program would not start with an unreadable halt file either */
        snprintf(r->halt, sizeof r->halt, "%.400s", halt ? reason : err.text);
        free(r->remedy);
        r->remedy = halt ? tool_halt_remedy(halt, &r->end, now, r->prefix.path)
                    : rc == -EBADMSG ? tool_halt_damaged(r->prefix.path)
                                     : NULL;
    }
    kvtree_delete(&halt);
}

void run_read_halted(run *r)
{
    char reason[SCR_HALT_REASON_SIZE];
    kvtree_error err = {"no memory"};
    int rc;
    kvtree *halt = run_open_halt(r, &rc, &err);
    if (halt) rc = tool_halt_stopped(halt, &r->end, time(NULL), reason);
    *r->halted = 0;
    if (rc > 0) snprintf(r->halted, sizeof r->halted, "%s", reason);
    if (rc < 0)
        tool_say(HALT_FILE_UNREADABLE, "whether the program was halted is not known: %s",
                 err.text);
    kvtree_delete(&halt);
}

static int run_drop_signal_of(kvtree *halt, void *arg)
{
    const char *reason = kvtree_elem_get_first_val(halt, SCR_HALT_KEY_REASON);
    const size_t length = strlen(SCR_HALT_SIGNAL);
    const char *which = arg;
    if (!reason || strncmp(reason, SCR_HALT_SIGNAL, length) != 0) return 0;
    if (strncmp(reason + length, which, strlen(which)) != 0) return 0;
    return scr_halt_drop_own_reason(halt);
}

void run_drop_signal(const run *r, const char *which)
{
    char text[16];
    snprintf(text, sizeof text, "%s", which);
    run_change_halt(r, run_drop_signal_of, text);
}

bool run_has_own_reason(const run *r)
{
    int rc;
    kvtree *halt = run_open_halt(r, &rc, NULL);
    bool has = halt && scr_halt_drop_own_reason(halt) > 0;
    kvtree_delete(&halt);
    return has;
}

static int run_drop_now(kvtree *halt, void *arg)
{
    int there = kvtree_get(halt, SCR_HALT_KEY_NOW) != NULL;
    (void)arg;
    kvtree_unset(halt, SCR_HALT_KEY_NOW);
    return there;
}

bool run_must_end_now(run *r)
{
    int rc;
    kvtree *halt = run_open_halt(r, &rc, NULL);
    bool now = halt && kvtree_get(halt, SCR_HALT_KEY_NOW) != NULL;
    kvtree_delete(&halt);
    if (now) run_change_halt(r, run_drop_now, NULL);
    return now;
}
