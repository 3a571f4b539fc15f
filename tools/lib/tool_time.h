/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TIME_H
#define TOOL_TIME_H

/* Times as people write and read them, in seconds since 1970. Except for the time zone,
 * all functions are pure. */

#include <stdint.h>

/* Forms that tool_time_parse accepts, for help and messages. */
#define TOOL_TIME_FORMS                                                                  \
    "2026-11-22T18:30, 18:30, 6:30pm, 6:30pm tomorrow, +90min, or seconds since 1970"

/* Parses a time relative to now. 0 or -EINVAL. */
int tool_time_parse(const char *text, int64_t now, int64_t *time);

/* Formats the local time as "2026-11-22T18:30:00+01:00", or as the number if it is
 * outside of the calendar. */
#define TOOL_TIME_SIZE 64
void tool_time_text(int64_t time, char text[TOOL_TIME_SIZE]);

#endif
