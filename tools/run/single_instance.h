/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SINGLE_INSTANCE_H
#define SINGLE_INSTANCE_H

/* One scr_run at a time per job and prefix directory: a second one would start its
 * program in the caches from which the first one still saves. Calculations in other
 * prefix directories have caches of their own. */

#include "lib/tool_prefix.h"

/* Locks the job of the owner and the prefix directory on this machine, until *lock is
 * closed or the process ends. An exit code, after a message that names the other process.
 * Where locks are not available, that is no failure, and *lock is -1. */
int single_instance_lock(const tool_prefix *prefix, const tool_owner *owner, int *lock);

/* The process that holds the lock, or that of a run on this machine (run.lock in its
 * control directory), or that of the log of scr_run on any machine (run_log.h). -1: one
 * that is not of this machine; 0: none is known. A process of this machine that belongs
 * to another user does not count: it may pretend. Makes nothing. */
long single_instance_holder(const tool_prefix *prefix, const tool_owner *owner);

#endif
