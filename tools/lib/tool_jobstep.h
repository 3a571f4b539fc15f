/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_JOBSTEP_H
#define TOOL_JOBSTEP_H

/* Job steps: all that a launcher started, to be ended as a whole. Within a batch system
 * that has steps (tool_manager_table.h), a step is one of these, "17.3" in Slurm.
 * Elsewhere it is the process of the launcher, which forwards signals: "pid:1234:56789".
 * The start time of the process distinguishes it from a later process with the same
 * id. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <sys/types.h>

#define TOOL_JOBSTEP_SIZE 64

/* Finds the step of the launcher pid. 0; -ESRCH: there is none; or -errno; with a
 * text. */
int tool_jobstep_find(pid_t pid, char step[TOOL_JOBSTEP_SIZE], kvtree_error *err);

/* 0 if step is a valid name of a step; otherwise -EINVAL. */
int tool_jobstep_check(const char *step);

/* Whether the step is known to have ended. ask: also queries the batch system, which
 * takes a moment and must not be done every second. */
bool tool_jobstep_has_ended(const char *step, int ask);

/* Ends the step through the batch system; or by SIGTERM, and SIGKILL after the given
 * time. 0 when it has ended (batch system: when the request was accepted), -ESRCH if it
 * had ended before, or -errno; with a text. */
int tool_jobstep_kill(const char *step, double seconds, kvtree_error *err);

#endif
