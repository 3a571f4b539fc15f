/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdint.h>
#include <sys/types.h>

/* Processes that this one started, directly or through others. Orphans among them are
 * adopted by this one, so that none is lost. */

/* Bytes of NAME=VALUE in a filter with its NUL, at most. */
#define PROCESSES_MARK_SIZE 64

/* When the process started, in clock ticks since the machine did. 0, or -ESRCH, also for
 * a zombie. */
int processes_start_time(pid_t pid, uint64_t *start);

/* Makes this process the one that adopts. 0 or -errno. */
int processes_adopt(void);

/* Selects processes. */
typedef struct processes_filter {
    /* NAME=VALUE of their environment, all of them, ended by NULL: processes that were
     * started with these, and what they started. None: what this process started. */
    const char *variables[3];
    const char *spared; /* not programs of that name; NULL */
    pid_t group;        /* not members of that process group; 0 */
} processes_filter;

/* Sends the signal to each; returns their number, or -errno. */
int processes_signal(const processes_filter *filter, int signal);

/* Kills each and waits for the given time until they have ended: new ones may start
 * meanwhile. 0; -ETIMEDOUT; or -errno. None is reaped. */
int processes_end(const processes_filter *filter, double seconds);

/* What a code of processes_end means, for a message. */
const char *processes_reason(int rc);

/* Reaps all children that have ended; not while another function waits for one. */
void processes_reap(void);

#endif
