/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions of an active run; see halt/halt_run.h. */
#include "halt/halt_run.h"

#include "base/record_change.h"
#include "config/signals.h"
#include "report/wait.h"
#include <errno.h>
#include <stdio.h>
#include <time.h>

/* Wall-clock time, which people and batch systems use. */
static int64_t halt_today(void)
{
    return (int64_t)time(NULL);
}

static int halt_change(const scr_halt *halt, scr_changer *change, void *arg, kvtree *file,
                       kvtree_error *err)
{
    scr_wait wait;
    scr_wait_begin(halt->job->report, &wait, SCR_MSG_HALT_LOCK_WAIT,
                   "waits to change " SCR_HALT_NAME ": another process has " SCR_LOCK_NAME
                   ", or the file system is slow");
    int rc = scr_halt_change(halt->prefix, change, arg, file, err);
    scr_wait_end(&wait);
    return rc;
}

/* ---- begin ---- */

/* Determines the end of the allocation. */
static void halt_find_end(scr_halt *halt, int64_t end_time)
{
    kvtree_error err = {""};
    if (end_time > 0)
        halt->end = (scr_halt_end){end_time, "SCR_END_TIME"};
    else if (scr_halt_find_end(&halt->end, &err))
        scr_say(halt->job->report, SCR_MSG_HALT_END_TIME_INVALID, "%s", err.text);
    if (scr_halt_lacks_end(halt->file, &halt->end))
        scr_say(halt->job->report, SCR_MSG_HALT_END_UNKNOWN,
                "SCR_HALT_SECONDS has no effect: the end of the allocation is not known; "
                "set SCR_END_TIME");
}

/* Removes a reason that a run recorded, which must not stop the next run; other reasons
 * stay. */
static int halt_begin_conditions(kvtree *file, void *seconds)
{
    int changed = scr_halt_drop_own_reason(file);
    int rc = scr_halt_begin_seconds(file, *(const int64_t *)seconds);
    return rc ? rc : changed;
}

int scr_halt_run_begin(scr_halt *halt, int64_t seconds, int64_t end_time,
                       kvtree_error *err)
{
    int rc = halt_change(halt, halt_begin_conditions, &seconds, halt->file, err);
    if (rc == -EBADMSG) {
        scr_say(halt->job->report, SCR_MSG_HALT_FILE_REPLACED,
                "%s; its conditions are lost", err->text);
        halt_begin_conditions(halt->file, &seconds);
        rc = scr_halt_write(halt->prefix, halt->file, err);
    }
    if (!rc) halt_find_end(halt, end_time);
    return rc;
}

/* ---- the file ---- */

/* Reports an unusable file, once until it is usable again: applications check at every
 * step. */
static void halt_report_unusable(scr_halt *halt, const char *why)
{
    if (!halt->is_unusable)
        scr_say(halt->job->report, SCR_MSG_HALT_FILE_UNUSABLE,
                "the halt file is not usable: %s", why);
    halt->is_unusable = true;
}

/* Reads the file again. While it cannot be read, the last known conditions remain in
 * force. */
static void halt_refresh(scr_halt *halt)
{
    kvtree_error err = {""};
    kvtree *fresh = kvtree_new();
    if (fresh && scr_halt_read(halt->prefix, fresh, &err) == 0) {
        kvtree_delete(&halt->file);
        halt->file = fresh;
        halt->is_unusable = false;
        return;
    }
    halt_report_unusable(halt, err.text);
    kvtree_delete(&fresh);
}

/* Replaces an unreadable file by the last known conditions. */
static int halt_replace_file(scr_halt *halt, scr_changer *change, void *arg,
                             kvtree_error *err)
{
    halt_report_unusable(halt, err->text);
    int rc = change(halt->file, arg);
    return rc > 0 ? scr_halt_write(halt->prefix, halt->file, err) : rc;
}

void scr_halt_run_change(scr_halt *halt, scr_changer *change, void *arg)
{
    kvtree_error err = {"no memory"};
    kvtree *fresh = kvtree_new();
    int rc = fresh ? halt_change(halt, change, arg, fresh, &err) : -ENOMEM;
    if (rc == 0) {
        kvtree_delete(&halt->file);
        halt->file = fresh;
        return;
    }
    kvtree_delete(&fresh);
    if (rc == -EBADMSG) rc = halt_replace_file(halt, change, arg, &err);
    if (rc)
        scr_say(halt->job->report, SCR_MSG_HALT_FILE_NOT_WRITTEN,
                "the halt file could not be written: %s", err.text);
}

static int halt_add_reason(kvtree *file, void *reason)
{
    return scr_halt_add_reason(file, *(const char **)reason);
}

void scr_halt_run_record(scr_halt *halt, const char *reason)
{
    scr_halt_run_change(halt, halt_add_reason, &reason);
}

/* ---- conditions that hold ---- */

static void halt_report(scr_halt *halt, const char *reason)
{
    bool is_request = !halt->signal && scr_halt_is_request(halt->file, halt_today());
    scr_event(halt->job->report, SCR_MSG_HALT_REQUESTED,
              &(scr_log_event){.kind = SCR_LOG_HALT, .note = reason},
              "the run should end: %s%s%s", reason,
              is_request ? "; to continue: scr_halt --remove " : "",
              is_request ? halt->prefix_path : "");
    halt->is_reported = true;
}

void scr_halt_run_reason(const scr_halt *halt, char reason[SCR_HALT_REASON_SIZE])
{
    reason[0] = 0;
    scr_halt_check(halt->file, &halt->end, halt_today(), reason);
}

bool scr_halt_run_check(scr_halt *halt)
{
    char reason[SCR_HALT_REASON_SIZE] = "";
    halt_refresh(halt);
    bool holds = scr_halt_check(halt->file, &halt->end, halt_today(), reason);
    if (holds && !halt->is_reported)
        halt_report(halt, reason);
    else if (!holds)
        halt->is_reported = false;
    return holds;
}

void scr_halt_run_signal(scr_halt *halt, int number, int rank, const char *node)
{
    char reason[SCR_NODE_SIZE + 80];
    halt->signal = number;
    if (halt->job->rank != 0) return;
    snprintf(reason, sizeof reason, SCR_HALT_SIGNAL ": SIG%s came to rank %d on node %s",
             scr_signal_text(number), rank, node);
    scr_halt_run_record(halt, reason);
    halt_report(halt, reason);
}
