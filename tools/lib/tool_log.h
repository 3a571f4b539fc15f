/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_LOG_H
#define TOOL_LOG_H

/* Adds events to the log of a prefix directory, in all targets of its configuration. */

#include "lib/tool_prefix.h"
#include "report/log.h"
#include <stdbool.h>

/* Sets a field by its name in the log; event->kind must be set. A text is referenced, not
 * copied. 0; -ENOENT: the kind has no such field; -EINVAL: the text is not a valid
 * value. */
int tool_log_set(scr_log_event *event, const char *field, const char *text);

/* Whether events of the kind have the field. */
bool tool_log_has(scr_log_kind kind, const char *field);

/* Logs the event for the owner of the prefix directory, which must be configured. *on (on
 * may be NULL): whether the log is on. An exit code, after messages. */
int tool_log_write(const tool_prefix *prefix, const scr_log_event *event, int *on);

/* Finds the id of the last run of this job that has no end in the log yet; "": none. */
void tool_log_find_run(const tool_prefix *prefix, char id[SCR_LOG_RUN_SIZE]);

/* Logs the ends of the runs of this job that did not log them; no process of the job may
 * run any more. id: a run that ended now, or NULL. Other runs end at their last
 * events. */
void tool_log_end_runs(const tool_prefix *prefix, const char *id, const char *note);

/* Implements scr_log_event and scr_log_transfer; an exit code. transfer 1: accepts only
 * events with the fields from and to, and FLUSH stands for FLUSH_COMPLETE. */
int tool_log_main(int argc, char **argv, int transfer);

#endif
