/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

/* How far a command is, on standard error: after two seconds a bar where that is a
 * terminal, of which nothing is left afterwards; elsewhere a line every 10 seconds. A
 * command has one at a time.
 *
 *     tool_progress_begin("verify ckpt.7", NULL);
 *     tool_progress_set(done, total);            again and again
 *     tool_progress_turn("add", "files");        and so on
 *     tool_progress_end();
 *
 * Messages of the command go to lines of their own; other output begins with
 * tool_progress_hide. */

#include <stdint.h>

/* unit: as of a scr_meter. */
void tool_progress_begin(const char *what, const char *unit);

/* The command goes on with something else; the texts are kept. Nothing without
 * tool_progress_begin. */
void tool_progress_turn(const char *what, const char *unit);

/* What it turned to last, and when; NULL: it has not, since it began. */
const char *tool_progress_turned(const char **unit, double *since);

/* By any thread, also without tool_progress_begin; total 0: unknown. */
void tool_progress_set(uint64_t done, uint64_t total);

/* What was set last. */
void tool_progress_get(uint64_t *done, uint64_t *total);

/* Removes the bar until it is drawn again, if there is one. */
void tool_progress_hide(void);

/* Fine without tool_progress_begin. */
void tool_progress_end(void);

#endif
