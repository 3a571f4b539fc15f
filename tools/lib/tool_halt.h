/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_HALT_H
#define TOOL_HALT_H

/* What commands say of a run that was halted, or should halt. */

#include "halt/halt.h"

/* 1 when a program that ended by itself did so since it was told to, as far as the halt
 * file and the end of the allocation tell; reason gets a text. That it called
 * SCR_Finalize is no such reason. 0, or -ENOMEM. */
int tool_halt_stopped(const kvtree *halt, const scr_halt_end *end, int64_t now,
                      char reason[SCR_HALT_REASON_SIZE]);

/* What somebody has to do for the job to go on where a condition holds: a text, to be
 * freed; NULL: no memory. path is the prefix folder. */
char *tool_halt_remedy(const kvtree *halt, const scr_halt_end *end, int64_t now,
                       const char *path);

/* 1 when nothing holds but what SCR recorded itself as the last run ended. */
int tool_halt_is_own(const kvtree *halt, const scr_halt_end *end, int64_t now);

/* The same for a halt file that is damaged. */
char *tool_halt_damaged(const char *path);

/* The command that removes all conditions, in the same way. */
char *tool_halt_remove(const char *path);

#endif
