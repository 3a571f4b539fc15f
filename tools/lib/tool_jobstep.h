/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_JOBSTEP_H
#define TOOL_JOBSTEP_H

/* Job steps: what a launcher started, so that it can be ended as a whole. Within Slurm
 * that is a step, "17.3"; elsewhere it is the launcher's own process, which passes
 * signals on: "pid:1234:56789", with the time at which it started, so that a process that
 * got the number later is never taken for it. */

#include <sys/types.h>

#define TOOL_JOBSTEP_SIZE 64

/* The step of the launcher pid. 0; -ESRCH where there is none, or -errno, with a text. */
int tool_jobstep_find(pid_t pid, char step[TOOL_JOBSTEP_SIZE], char *err);

/* 0 if step is the name of one, -EINVAL. */
int tool_jobstep_check(const char *step);

/* 1 if it is known to have ended; 0 if not, or if nobody can tell. With ask also Slurm is
 * asked, which takes a moment, and is not for every second. */
int tool_jobstep_has_ended(const char *step, int ask);

/* Ends it: by scancel; or by SIGTERM, and SIGKILL after so many seconds. 0 when it has
 * ended (Slurm: when it was told to), -ESRCH when it was not there any more, or -errno;
 * with a text. */
int tool_jobstep_kill(const char *step, double seconds, char *err);

#endif
