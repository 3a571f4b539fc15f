/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRERUN_H
#define PRERUN_H

/* Preparation before the first run of an allocation (SCR Developer Guide 1.2, sections
 * 2.25.2 and 2.25.3). */

#include "lib/tool_prefix.h"

/* Tests whether the programs exist that scr_run and its commands start, besides the
 * launcher: those of this project, and those that reach nodes. An exit code, after
 * messages. */
int prerun_test_runtime(const tool_prefix *prefix);

/* The same, and the launcher of that name (NULL: any). */
int prerun_test_programs(const tool_prefix *prefix, const char *name);

/* Makes the directory .scr in the prefix directory, and removes what an earlier
 * allocation recorded of its nodes and caches, and why SCR ended an earlier job. Records
 * of an earlier job of this allocation stay: its caches may still have to be saved; and
 * so do flushes under way: the next run removes their temporary files. Then the site may
 * refuse (hooks.h). An exit code, after a message. */
int prerun_prefix(const tool_prefix *prefix);

#endif
