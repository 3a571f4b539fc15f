/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions; see run.h. */
#include "run/run.h"

#include "lib/tool.h"
#include "records/scr_halt.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* When the allocation ends. */
static scr_halt_end find_end(const run *r)
{
    char err[ERRTEXT_SIZE];
    scr_problems problems = {0, NULL};
    int64_t when = 0;
    scr_halt_end end = {0, NULL};
    scr_config_int64(&r->prefix.config, "SCR_END_TIME", 0, &when, &problems);
    tool_tell_problems(&problems);
    if (when)
        end = (scr_halt_end){when, "SCR_END_TIME"};
    else if (scr_halt_find_end(&end, err) != 0)
        tool_complain("%s", err);
    return end;
}

void run_read_halt(run *r)
{
    char err[ERRTEXT_SIZE] = "no memory", reason[SCR_HALT_REASON_SIZE];
    scr_halt_end end = find_end(r);
    kvtree *halt = kvtree_new();
    int rc = halt ? scr_halt_read(r->prefix.dir, halt, err) : -ENOMEM;
    *r->halt = 0;
    if (rc) {
        /* nobody knows what it said; the program would not start with it, either */
        snprintf(r->halt, sizeof r->halt, "%.400s", err);
    } else if (scr_halt_check(halt, &end, time(NULL), reason)) {
        snprintf(r->halt, sizeof r->halt, "%s", reason);
    }
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
