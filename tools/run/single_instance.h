/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SINGLE_INSTANCE_H
#define SINGLE_INSTANCE_H

/* One scr_run at a time per job and prefix directory: a second scr_run would start its
 * program in the caches from which the first one still saves. Calculations in other
 * prefix directories have their own caches. */

#include "lib/tool_prefix.h"

/* Locks the job of the owner and the prefix directory on this machine, until *lock is
 * closed or the process ends. An exit code, after a message that names the other process.
 * Unavailable locks are not a failure; *lock is then -1. */
int single_instance_lock(const tool_prefix *prefix, const tool_owner *owner, int *lock);

/* Returns the process that holds the lock, or the lock of a run on this machine (run.lock
 * in its control directory), or the lock of the log of scr_run on any machine
 * (run_log.h). -1: a process on another machine; 0: none is known. A process of another
 * user on this machine does not count, since it may pretend. Creates nothing. */
long single_instance_holder(const tool_prefix *prefix, const tool_owner *owner);

#endif
