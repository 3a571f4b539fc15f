/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HALT_H
#define TOOL_HALT_H

/* Messages about a run that was halted, or should halt. */

#include "halt/halt.h"
#include "lib/tool_prefix.h"
#include <stdbool.h>

/* 1 when a program that ended by itself was halted, according to the halt file and the
 * end of the allocation; reason gets a text. That it called SCR_Finalize is no such
 * reason. 0, or -ENOMEM. */
int tool_halt_stopped(const kvtree *halt, const scr_halt_end *end, int64_t now,
                      char reason[SCR_HALT_REASON_SIZE]);

/* How to continue the job where a condition holds: a text, to be freed; NULL: no memory.
 * path is the prefix directory. */
char *tool_halt_remedy(const kvtree *halt, const scr_halt_end *end, int64_t now,
                       const char *path);

/* Whether only the reason holds that SCR recorded itself at the end of the last run. */
bool tool_halt_is_own(const kvtree *halt, const scr_halt_end *end, int64_t now);

/* The same for a halt file that is damaged. */
char *tool_halt_damaged(const char *path);

/* Reads the halt file into the empty tree (NULL: no memory), and the end of the
 * allocation where a condition counts from it. 1 when a condition holds, with a reason;
 * 0; -1 after a message: unknown. A batch system without an answer is reported, and the
 * end is unknown then. */
int tool_halt_find(const tool_prefix *prefix, kvtree *halt, scr_halt_end *end,
                   char reason[SCR_HALT_REASON_SIZE]);

/* The command that removes all conditions, in the same way. */
char *tool_halt_remove(const char *path);

#endif
