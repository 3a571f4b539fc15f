/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRERUN_H
#define PRERUN_H

/* Preparation before the first run of an allocation (SCR Developer Guide 1.2, sections
 * 2.25.2 and 2.25.3). */

#include "lib/tool_prefix.h"

/* Tests whether the programs exist that scr_run and its commands start, except for the
 * launcher: commands of this project, and programs that reach other nodes. An exit code,
 * after messages. */
int prerun_test_runtime(const tool_prefix *prefix);

/* Like prerun_test_runtime, and tests the launcher of that name (NULL: any). */
int prerun_test_programs(const tool_prefix *prefix, const char *name);

/* Makes the directory .scr in the prefix directory. Removes the records of an earlier
 * allocation about its nodes and caches, and the reason for which SCR ended an earlier
 * job. Records of an earlier job of this allocation stay, since its caches may still have
 * to be saved. Flushes under way stay, too: the next run removes their temporary files.
 * Finally, the site may refuse the run (hooks.h). An exit code, after a message. */
int prerun_prefix(const tool_prefix *prefix);

#endif
