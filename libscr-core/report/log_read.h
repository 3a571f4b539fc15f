/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_READ_H
#define SCR_LOG_READ_H

/* Reads the text file of the log (.scr/log below the prefix directory;
 * docs/formats/log.md), and the one that was put aside before it, event by event. */

#include "report/log.h"
#include <kvtree/kvtree_error.h>

/* The kind of an event that this version does not know. */
#define SCR_LOG_OTHER SCR_LOG_KINDS

/* Parses a line without its newline, and changes it: texts of the event point into it.
 * Texts that the line lacks are NULL, numbers 0, seconds below 0; so are values that are
 * not as the log writes them. Fields that this version does not know are skipped. 0, or
 * -EBADMSG for what is no line of a log. */
int scr_log_parse(char *line, scr_log_event *event);

/* Gets each event, in the order of the files; its texts are valid during the call. */
typedef void scr_log_reader(void *arg, const scr_log_event *event);

/* Reads the last bytes of the log, as many as most, or all of it (0). Lines that are not
 * as the log writes them are skipped. 0; -ENOENT: there is no log; or another -errno with
 * a text. */
int scr_log_read(int prefix, int64_t most, scr_log_reader *reader, void *arg,
                 kvtree_error *err);

#endif
