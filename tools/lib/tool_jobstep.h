/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_JOBSTEP_H
#define TOOL_JOBSTEP_H

/* Job steps: what a launcher started, to be ended as a whole. Within a batch system that
 * has steps (tool_manager_table.h) it is one of them, "17.3" in Slurm; elsewhere the
 * process of the launcher, which forwards signals: "pid:1234:56789", with its start time,
 * so that a reused id is never confused with it.
 */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <sys/types.h>

#define TOOL_JOBSTEP_SIZE 64

/* The step of the launcher pid. 0; -ESRCH where there is none, or -errno, with a text. */
int tool_jobstep_find(pid_t pid, char step[TOOL_JOBSTEP_SIZE], kvtree_error *err);

/* 0 if step is the name of one, -EINVAL. */
int tool_jobstep_check(const char *step);

/* Whether it is known to have ended. ask: by the batch system, too, which takes a
 * moment; not for every second. */
bool tool_jobstep_has_ended(const char *step, int ask);

/* Ends it: by the batch system; or by SIGTERM, and SIGKILL after the given time. 0 when
 * it has ended (batch system: when the request was accepted), -ESRCH when it had ended
 * before, or -errno; with a text. */
int tool_jobstep_kill(const char *step, double seconds, kvtree_error *err);

#endif
