/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_LOG_H
#define TOOL_LOG_H

/* Commands that add an event to the log of a prefix folder, to the targets that the
 * configuration says. */

#include "lib/tool_prefix.h"
#include "report/log.h"

/* Sets a field of the event, whose kind is set, by its name in the log; a text is kept,
 * not copied. 0; -ENOENT: such an event has no such field; -EINVAL: the text is no value
 * of it. */
int tool_log_set(scr_log_event *event, const char *field, const char *text);

/* 1 if events of the kind have the field. */
int tool_log_has(scr_log_kind kind, const char *field);

/* Logs it, for the owner of the prefix folder, which was configured. *on tells whether
 * the log is on at all, unless on is NULL. An exit code, after complaints. */
int tool_log_write(const tool_prefix *prefix, const scr_log_event *event, int *on);

/* The whole command; an exit code. transfer 1: only events that have the fields from and
 * to, and FLUSH is short for FLUSH_COMPLETE. */
int tool_log_main(int argc, char **argv, int transfer);

#endif
