/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_READ_H
#define SCR_LOG_READ_H

/* Reads the text file of the log (.scr/log below the prefix directory;
 * docs/formats/log.md), and the file that was put aside before it, event by event. */

#include "report/log.h"
#include <kvtree/kvtree_error.h>

/* The kind of an event that this version does not know. */
#define SCR_LOG_OTHER SCR_LOG_KINDS

/* Parses a line without its newline. Changes the line: texts of the event point into it.
 * Missing or invalid texts are NULL, numbers 0, seconds below 0. Fields that this version
 * does not know are skipped. Returns 0, or -EBADMSG for a line that is not of a log. */
int scr_log_parse(char *line, scr_log_event *event);

/* Called for each event, in the order of the files. Texts of the event are valid during
 * the call. */
typedef void scr_log_reader(void *arg, const scr_log_event *event);

/* Reads at most the last `most` bytes of the log, or the whole log (0). Skips invalid
 * lines. Returns 0; -ENOENT: there is no log; or another -errno with a text. */
int scr_log_read(int prefix, int64_t most, scr_log_reader *reader, void *arg,
                 kvtree_error *err);

#endif
