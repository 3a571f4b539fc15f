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

enum { ANSWER = 30 }; /* seconds that the batch system has for an answer */

/* When the allocation ends. SCR in the program asks nobody: what Slurm answered goes into
 * the environment. */
static void find_end(run *r)
{
    char text[24];
    scr_problems problems = {0, NULL};
    int64_t when = 0;
    r->end_known = 1;
    scr_config_int64(&r->prefix.config, "SCR_END_TIME", 0, &when, &problems);
    tool_tell_problems(&problems);
    r->end = (scr_halt_end){when, "SCR_END_TIME"};
    if (when || tool_manager_end(ANSWER, &r->end) != COMMAND_GOOD || !r->end.time) return;
    snprintf(text, sizeof text, "%" PRId64, r->end.time);
    if (setenv("SCR_END_TIME", text, 1) != 0) tool_complain("no memory");
}

static void set_remedy(run *r, char *text)
{
    free(r->remedy);
    r->remedy = text;
}

void run_read_halt(run *r)
{
    char err[ERRTEXT_SIZE] = "no memory", reason[SCR_HALT_REASON_SIZE];
    int64_t now = time(NULL);
    kvtree *halt = kvtree_new();
    if (!r->end_known) find_end(r);
    int rc = halt ? scr_halt_read(r->prefix.dir, halt, err) : -ENOMEM;
    *r->halt = 0;
    if (rc) {
        /* nobody knows what it said; the program would not start with it, either */
        snprintf(r->halt, sizeof r->halt, "%.400s", err);
        set_remedy(r, rc == -EBADMSG ? tool_halt_damaged(r->prefix.path) : NULL);
    } else if (scr_halt_check(halt, &r->end, now, reason)) {
        snprintf(r->halt, sizeof r->halt, "%s", reason);
        set_remedy(r, tool_halt_remedy(halt, &r->end, now, r->prefix.path));
    }
    kvtree_delete(&halt);
}

void run_read_halted(run *r)
{
    char err[ERRTEXT_SIZE] = "no memory", reason[SCR_HALT_REASON_SIZE];
    kvtree *halt = kvtree_new();
    int rc = halt ? scr_halt_read(r->prefix.dir, halt, err) : -ENOMEM;
    if (!rc) rc = tool_halt_stopped(halt, &r->end, time(NULL), reason);
    *r->halted = 0;
    if (rc > 0) snprintf(r->halted, sizeof r->halted, "%s", reason);
    if (rc < 0) tool_complain("whether the program was halted is not known: %s", err);
    kvtree_delete(&halt);
}

static int forgive(kvtree *halt, void *arg)
{
    const char *reason = kvtree_elem_get_first_val(halt, SCR_HALT_KEY_REASON);
    static const char signal[] = SCR_HALT_SIGNAL;
    if (!reason || strncmp(reason, signal, sizeof signal - 1) != 0) return 0;
    return scr_halt_drop_own_reason(halt);
}

void run_forgive(run *r)
{
    char err[ERRTEXT_SIZE] = "";
    kvtree *halt = kvtree_new();
    if (halt && scr_halt_change(r->prefix.dir, forgive, NULL, halt, err) != 0)
        tool_complain("%s", err);
    kvtree_delete(&halt);
}

int run_noted_its_end(const run *r)
{
    kvtree *halt = kvtree_new();
    int noted = halt && scr_halt_read(r->prefix.dir, halt, NULL) == 0 &&
                scr_halt_drop_own_reason(halt) > 0;
    kvtree_delete(&halt);
    return noted;
}

static int take_back(kvtree *halt, void *arg)
{
    int there = kvtree_get(halt, SCR_HALT_KEY_NOW) != NULL;
    kvtree_unset(halt, SCR_HALT_KEY_NOW);
    return there;
}

int run_must_end_now(run *r)
{
    char err[ERRTEXT_SIZE] = "";
    kvtree *halt = kvtree_new();
    int now = halt && scr_halt_read(r->prefix.dir, halt, err) == 0 &&
              kvtree_get(halt, SCR_HALT_KEY_NOW) != NULL;
    if (now) {
        kvtree_unset_all(halt);
        if (scr_halt_change(r->prefix.dir, take_back, NULL, halt, err) != 0)
            tool_complain("%s", err);
    }
    kvtree_delete(&halt);
    return now;
}
