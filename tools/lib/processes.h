/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <sys/types.h>

/* The processes that this one started, and those that they started. A process whose
 * parent has ended comes to this one, so that none gets lost. */

/* Makes this process the one to which they come. 0 or -errno. */
int processes_adopt(void);

/* Which of them are meant. */
typedef struct processes_filter {
    const char *variables[3]; /* NAME=VALUE of their environment, all of them; ended by
                                 NULL; none: any */
    const char *spared;       /* not programs of that name; NULL */
} processes_filter;

/* Sends the signal to each; gives their number, or -errno. */
int processes_signal(const processes_filter *filter, int signal);

/* Kills each and waits until they have ended, for at most so many seconds: new ones may
 * be started meanwhile. 0; -ETIMEDOUT; or -errno. Nobody is reaped. */
int processes_end(const processes_filter *filter, double seconds);

/* Opens the processes below another one, at most so many: descriptors that stand for them
 * also when their parents have ended, and for nobody else. Their number; 0 also where
 * the kernel has no such descriptors (Linux 5.3). */
int processes_open_below(pid_t pid, int *fds, int most);

/* Signals each of them, as far as it has not ended. */
void processes_signal_open(const int *fds, int count, int signal);

/* Reaps all children that have ended; not while somebody waits for one of them. */
void processes_reap(void);

#endif
