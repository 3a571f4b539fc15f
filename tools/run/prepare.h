/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PREPARE_H
#define PREPARE_H

/* Before the first run of an allocation (SCR Developer Guide 1.2, sections 2.25.2 and
 * 2.25.3). */

#include "lib/tool_prefix.h"

/* Whether the programs that scr_run and its commands start are there: those of ours,
 * those by which nodes are reached, and the launcher of that name (NULL: any). An exit
 * code, after complaints. */
int prepare_test_runtime(const tool_prefix *prefix, const char *name);

/* Makes SCR's folder in the prefix folder, and removes what an earlier allocation noted
 * of its nodes and caches, and why SCR itself ended an earlier job. What an earlier job
 * of this allocation left in the caches stays noted: it may still have to be saved; and
 * so do flushes that were under way: the next run removes their temporary files. Then the
 * site may say no (hooks.h). An exit code, after a complaint. */
int prepare_prefix(const tool_prefix *prefix);

#endif
