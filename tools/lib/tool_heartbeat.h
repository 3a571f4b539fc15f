/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HEARTBEAT_H
#define TOOL_HEARTBEAT_H

/* Heartbeat of a long command on another node: a line on standard output at intervals,
 * which distinguishes the command from one on a node that lost power. The line has the
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

/* Flushes stdout and prints a line at each interval; seconds 0: never. If no timer is
 * available, no lines are printed; this is not an error. */
void tool_heartbeat_begin(tool_heartbeat *heartbeat, int seconds);

/* Ends the heartbeat after a last line. */
void tool_heartbeat_end(tool_heartbeat *heartbeat);

/* Returns the output that follows the heartbeat lines at its start. */
const char *tool_heartbeat_skip(const char *output);

/* Reads the numbers from the last complete line that has them. False: there is no such
 * line. */
bool tool_heartbeat_read(const char *output, uint64_t *done, uint64_t *total);

#endif
