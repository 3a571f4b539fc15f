/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

/* Progress of a command on standard error. On a terminal: a bar that appears after two
 * seconds and leaves nothing behind. Elsewhere: a line every 10 seconds. A command has
 * one progress at a time.
 *
 *     tool_progress_begin("verify ckpt.7", NULL);
 *     tool_progress_set(done, total);            repeatedly
 *     tool_progress_turn("add", "files");        and so on
 *     tool_progress_end();
 *
 * Messages of the command get lines of their own; other output must begin with
 * tool_progress_hide. */

#include <stdint.h>

/* Begins a progress. unit: as for scr_meter. */
void tool_progress_begin(const char *what, const char *unit);

/* Begins the next task of the command; the texts are referenced, not copied. No effect
 * without tool_progress_begin. */
void tool_progress_turn(const char *what, const char *unit);

/* Returns the last task of tool_progress_turn, its unit and its start; NULL: there was
 * none since the start. */
const char *tool_progress_turned(const char **unit, double *since);

/* Called by any thread, also without tool_progress_begin; total 0: unknown. */
void tool_progress_set(uint64_t done, uint64_t total);

/* Gets the values that were set last. */
void tool_progress_get(uint64_t *done, uint64_t *total);

/* Removes the bar, if there is one, until it is drawn again. */
void tool_progress_hide(void);

/* No effect without tool_progress_begin. */
void tool_progress_end(void);

#endif
