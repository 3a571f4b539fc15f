/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_watchdog: ends a job step that makes no progress (SCR Developer Guide 1.2,
 * section 2.25.1). */
#include "lib/tool.h"
#include "lib/tool_jobstep.h"
#include "lib/tool_prefix.h"
#include "lib/tool_process.h"
#include "run/run_progress.h"
#include <errno.h>
#include <stdbool.h>
#include <time.h>

enum {
    ENDED = 0,
    WAS_OVER = 3, /* exit codes */
    GRACE = 10    /* seconds from SIGTERM to SIGKILL */
};

typedef struct request {
    const char *dir, *step;
    int timeout, timeout_pfs; /* 0: as in the parameters */
} request;

static int watchdog_read_limits(const tool_prefix *prefix, const request *r, watchdog *w)
{
    scr_problems problems = {.count = 0};
    int64_t timeout = 0, pfs = 0;
    scr_config_seconds(&prefix->config, "SCR_WATCHDOG_TIMEOUT", &timeout, &problems);
    scr_config_seconds(&prefix->config, "SCR_WATCHDOG_TIMEOUT_PFS", &pfs, &problems);
    if (tool_tell_problems(&problems) != COMMAND_GOOD) return COMMAND_BAD;
    if (r->timeout) timeout = pfs = r->timeout;
    if (r->timeout_pfs) pfs = r->timeout_pfs;
    if (!timeout)
        return tool_say(CONFIG_MISTAKE, "--timeout or SCR_WATCHDOG_TIMEOUT is needed");
    w->timeout = (double)timeout;
    w->timeout_pfs = (double)(pfs ? pfs : timeout);
    return COMMAND_GOOD;
}

/* Whether the run hangs. A run with unknown progress does not count as hanging. */
static bool watchdog_is_hanging(progress_reader *source, watchdog *w, double *seconds)
{
    kvtree_error err = {""};
    run_progress p = source->last;
    if (run_progress_read(source, &p, &err) == 0)
        return watchdog_has_expired(w, &p, tool_now(), seconds);
    if (!w->reported) tool_say(RUN_PROGRESS_UNKNOWN, "progress unknown: %s", err.text);
    w->reported = true;
    return false;
}

/* Checks once a second. True: the run hangs; false: it is over. */
static bool watchdog_wait(const tool_prefix *prefix, const request *r, watchdog *w)
{
    static const struct timespec second = {.tv_sec = 1};
    double seconds;
    progress_reader source;
    run_progress_begin(&source, prefix->dir);
    run_progress_read(&source, &w->last, NULL);
    w->since = tool_now();
    while (!watchdog_is_hanging(&source, w, &seconds)) {
        if (tool_jobstep_has_ended(r->step, 0)) return false;
        nanosleep(&second, NULL);
    }
    if (tool_jobstep_has_ended(r->step, 1)) return false;
    tool_say(JOBSTEP_HANGS, "%s: no checkpoint for %.0f s; it is ended", r->step,
             seconds);
    return true;
}

static int watchdog_run(const tool_prefix *prefix, const request *r)
{
    kvtree_error err = {""};
    watchdog w = {0};
    if (watchdog_read_limits(prefix, r, &w) != COMMAND_GOOD) return COMMAND_BAD;
    int rc =
        watchdog_wait(prefix, r, &w) ? tool_jobstep_kill(r->step, GRACE, &err) : -ESRCH;
    if (rc == -ESRCH) {
        tool_say(JOBSTEP_OVER, "%s has ended already", r->step);
        return WAS_OVER;
    }
    return rc ? tool_say(JOBSTEP_NOT_ENDED, "%s", err.text) : ENDED;
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {TOOL_DIR_OPTIONS(&r.dir),
                                   {'j', "jobStepId", "ID",
                                    "the job step, as scr_get_jobstep_id prints it",
                                    .text = &r.step},
                                   {'t', "timeout", "N",
                                    "longest time without a checkpoint, in seconds\n"
                                    "(default: SCR_WATCHDOG_TIMEOUT)",
                                    .number = &r.timeout},
                                   {'T', "timeout-pfs", "N",
                                    "the same while a flush is under way (default:\n"
                                    "SCR_WATCHDOG_TIMEOUT_PFS, or as --timeout)",
                                    .number = &r.timeout_pfs},
                                   {0}};
    const tool t = {
        .arguments = "[OPTION]... --jobStepId ID",
        .about = "Waits until the run has completed no checkpoint for too long, and ends "
                 "its job "
                 "step\nthen. It is to be ended with the run. scr_run with "
                 "SCR_WATCHDOG=1 needs no "
                 "scr_watchdog.\n",
        .codes = "0 it hung, and has ended, 1 an error, 2 wrong usage, 3 it had ended\n"
                 "by itself.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (!r.step) return tool_misused(&t, "--jobStepId is needed");
    if (tool_jobstep_check(r.step) != 0)
        return tool_misused(&t, "'%.60s' is not an id of a job step", r.step);
    command_outlive_reader();
    code = tool_prefix_configure(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = watchdog_run(&prefix, &r);
    tool_prefix_close(&prefix);
    return code;
}
