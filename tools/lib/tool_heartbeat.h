/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HEARTBEAT_H
#define TOOL_HEARTBEAT_H

/* Heartbeat of a long command on another node: a line on standard output at intervals,
 * which distinguishes it from a command on a node that lost its power. The line has the
 * numbers of tool_progress_set after blanks, " 4096 65536", or is empty without them.
 *
 *     tool_heartbeat heartbeat;
 *     tool_heartbeat_begin(&heartbeat, 15);
 *     ... copies ...
 *     tool_heartbeat_end(&heartbeat);
 *
 * When the reader is gone, SIGPIPE ends the command. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct tool_heartbeat {
    timer_t timer;
    bool runs;
} tool_heartbeat;

/* Flushes stdout and prints a line every so often; seconds 0: never. Where no timer is
 * available there are no lines, which is no error. */
void tool_heartbeat_begin(tool_heartbeat *heartbeat, int seconds);

/* After a last line. */
void tool_heartbeat_end(tool_heartbeat *heartbeat);

/* What follows the lines of a heartbeat at the begin of an output. */
const char *tool_heartbeat_skip(const char *output);

/* The numbers of the last whole line that has them. False: there is none. */
bool tool_heartbeat_read(const char *output, uint64_t *done, uint64_t *total);

#endif
