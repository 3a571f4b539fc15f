/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdint.h>
#include <sys/types.h>

/* Descendants of this process. This process adopts orphans among them, so that none is
 * lost. */

/* Maximum size of a NAME=VALUE in a filter with its NUL. */
#define PROCESSES_MARK_SIZE 64

/* Gets the start time of a process in clock ticks since boot. 0, or -ESRCH, also for a
 * zombie. */
int processes_start_time(pid_t pid, uint64_t *start);

/* Makes this process adopt its orphaned descendants. 0 or -errno. */
int processes_adopt(void);

/* Selects processes. */
typedef struct processes_filter {
    /* NAME=VALUE entries, ended by NULL: selects the processes whose environment has all
     * of these entries, and their descendants. Empty: the descendants of this process. */
    const char *variables[3];
    const char *spared; /* name of programs that are excluded; or NULL */
    pid_t group;        /* process group that is excluded; or 0 */
} processes_filter;

/* Sends the signal to each selected process; returns their number, or -errno. */
int processes_signal(const processes_filter *filter, int signal);

/* Kills the selected processes until none is left, since new ones may start meanwhile, or
 * until the given time is over. 0; -ETIMEDOUT; or -errno. Processes are not reaped. */
int processes_end(const processes_filter *filter, double seconds);

/* The meaning of an error of processes_end, for a message. */
const char *processes_reason(int rc);

/* Reaps all children that have ended; must not be called while another function waits for
 * a child. */
void processes_reap(void);

#endif
