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

/* Processes that were seen below another one. Each has a descriptor that stands for it
 * also when its parent has ended, and for nobody else. Zeros: none. */
typedef struct processes_below {
    int count, room;
    struct process_below {
        pid_t pid;
        int fd;
    } * list;
} processes_below;

/* Adds those that are below that process now, and below those that are there already.
 * Returns how many are new; 0 also where the kernel has no such descriptors (Linux 5.3).
 * What there is no memory or descriptor for is left out. */
int processes_look_below(pid_t pid, processes_below *below);

/* Signals each of them, as far as it has not ended. */
void processes_signal_below(const processes_below *below, int signal);

/* Forgets them. */
void processes_forget_below(processes_below *below);

/* Reaps all children that have ended; not while somebody waits for one of them. */
void processes_reap(void);

#endif
