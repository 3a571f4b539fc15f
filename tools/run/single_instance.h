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

/* The process of this machine that holds the lock, or that of a run (run.lock in its
 * control directory); 0: none is known. Makes nothing. */
long single_instance_holder(const tool_prefix *prefix, const tool_owner *owner);

#endif
