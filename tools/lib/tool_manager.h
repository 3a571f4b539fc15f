/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_MANAGER_H
#define TOOL_MANAGER_H

/* Facts about the allocation in which a command runs, from a table with a row per batch
 * system, and one for machines without any. */

#include "halt/halt.h"
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include <stdbool.h>

/* The name of the batch system: "slurm", "pbs", "lsf", "flux" or "none". */
const char *tool_manager_name(void);

/* The id of the allocation; NULL without one. */
const char *tool_manager_job(void);

/* The id of the allocation, for which the batch system is asked where the environment has
 * none: 1; 0: there is none; or negative with a text. */
int tool_manager_find_job(char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* Whether a program that needs a drained node never begins. */
bool tool_manager_drained_waits(void);

/* Seconds before the end of the allocation that are for saving. */
int tool_manager_reserve(void);

/* What becomes of the allocation when a node is lost; NULL: unknown. */
const char *tool_manager_lost(void);

/* Adds the nodes of the allocation, each once, in their order: SCR_NODELIST, else the
 * list of the batch system, else this machine. An exit code, after a message. */
int tool_manager_nodes(const tool_prefix *prefix, hostlist *nodes);

/* Adds those of the nodes that the batch system reports as down, in the same way; it
 * is asked within the given time, if it can be asked. */
int tool_manager_down(const hostlist *nodes, double seconds, hostlist *down);

/* The same for nodes that it drains, or expects to fail: they work, but nothing new
 * should start on them. Nodes that are down may be among them. */
int tool_manager_drained(const hostlist *nodes, double seconds, hostlist *drained);

/* Adds the nodes of a text to the list. An exit code, after a message. */
int tool_manager_parse(const char *text, hostlist *list);

/* Checks a list of nodes on the command line, or NULL: -1 to continue, or the exit code
 * for wrong usage, after a message. */
int tool_manager_check(const tool *t, const char *text);

/* Adds, each once, those of `up` (NULL: of the allocation) that are not `down`; with both
 * NULL those that the batch system reports as down are left out. An exit code. */
int tool_manager_up(const tool_prefix *prefix, const char *up, const char *down,
                    double seconds, hostlist *nodes);

/* The end of the allocation from the parameter SCR_END_TIME, else as tool_manager_end
 * finds it; seconds 0: 0 in place of that. An exit code, after a message. */
int tool_manager_find_end(const tool_prefix *prefix, double seconds, scr_halt_end *end);

/* The end of the allocation from the environment of the batch system, else from its
 * command, which has the given time; end->time 0: unknown. An exit code, after a
 * message. */
int tool_manager_end(double seconds, scr_halt_end *end);

/* Whether the allocation ends, has ended, or its time is over: nothing starts on its
 * nodes any more, which is no failure of theirs. The batch system is asked, if it can be,
 * within the given time; false without an answer. */
bool tool_manager_is_over(double seconds);

/* Whether the batch system can put this job back into its queue; and does so. 0, or as
 * tool_run with a text. */
bool tool_manager_can_requeue(void);
int tool_manager_requeue(double seconds, kvtree_error *err);

#endif
