/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HALT_H
#define TOOL_HALT_H

/* Messages about a run that was halted or should halt. */

#include "halt/halt.h"
#include "lib/tool_prefix.h"
#include <stdbool.h>

/* Whether a program that ended by itself was halted, according to the halt file and the
 * end of the allocation. A call of SCR_Finalize does not count. 1 with a text in reason;
 * 0; or -ENOMEM. */
int tool_halt_stopped(const kvtree *halt, const scr_halt_end *end, int64_t now,
                      char reason[SCR_HALT_REASON_SIZE]);

/* Returns a text, to be freed, on how to continue the job after a halt condition; NULL
 * without memory. path is the prefix directory. */
char *tool_halt_remedy(const kvtree *halt, const scr_halt_end *end, int64_t now,
                       const char *path);

/* Whether the only reason to halt is the one that SCR recorded at the end of the last
 * run. */
bool tool_halt_is_own(const kvtree *halt, const scr_halt_end *end, int64_t now);

/* Like tool_halt_remedy, for a damaged halt file. */
char *tool_halt_damaged(const char *path);

/* Reads the halt file into the empty tree (NULL: no memory) and finds the end of the
 * allocation if a condition depends on it. 1 with a reason if a condition holds; 0; -1
 * after a message: unknown. If the batch system does not answer, this is reported and the
 * end remains unknown. */
int tool_halt_find(const tool_prefix *prefix, kvtree *halt, scr_halt_end *end,
                   char reason[SCR_HALT_REASON_SIZE]);

/* Returns the command that removes all conditions, to be freed; NULL without memory. */
char *tool_halt_remove(const char *path);

#endif
