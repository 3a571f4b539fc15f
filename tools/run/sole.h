/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLE_H
#define SOLE_H

/* One scr_run at a time for a job and a prefix folder: a second one would start its
 * program in the caches from which the first one still saves. Calculations in other
 * prefix folders have caches of their own. */

#include "lib/tool_prefix.h"

/* Becomes the one, on this machine, for the job of the owner and the prefix folder, until
 * *claim, which it owns, is closed, or the process ends; no file is made. An exit code,
 * after a complaint that names the other process. *claim -1: no claim could be made,
 * which is no failure. */
int sole_claim(const tool_prefix *prefix, const tool_owner *owner, int *claim);

#endif
