/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_MANAGER_H
#define TOOL_MANAGER_H

/* Facts about the allocation in which a command runs. They come from a table with a row
 * for each batch system, and one for machines without any. */

#include "halt/halt.h"
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include <stdbool.h>

/* The name of the batch system: "slurm", "pbs", "lsf", "flux" or "none". */
const char *tool_manager_name(void);

/* The id of the allocation; NULL without one. */
const char *tool_manager_job(void);

/* Gets the id of the allocation; asks the batch system if the environment has none. 1; 0:
 * there is none; or negative with a text. */
int tool_manager_find_job(char job[SCR_JOB_ID_SIZE], kvtree_error *err);

/* Whether a program that needs a drained node never starts. */
bool tool_manager_drained_waits(void);

/* Seconds before the end of the allocation that are reserved for saving. */
int tool_manager_reserve(void);

/* What happens to the allocation when a node is lost, for people; NULL: unknown. */
const char *tool_manager_lost(void);

/* Adds the nodes of the allocation, each once, in order: from SCR_NODELIST, else from the
 * batch system, else this machine. An exit code, after a message. */
int tool_manager_nodes(const tool_prefix *prefix, hostlist *nodes);

/* Adds those of the nodes that the batch system reports as down. The batch system is
 * queried, if it can be, with the given timeout. An exit code, after a message. */
int tool_manager_down(const hostlist *nodes, double seconds, hostlist *down);

/* Like tool_manager_down, for nodes that the batch system drains or expects to fail: they
 * work, but nothing new should start on them. Nodes that are down may be among them. */
int tool_manager_drained(const hostlist *nodes, double seconds, hostlist *drained);

/* Adds the nodes of a text to the list. An exit code, after a message. */
int tool_manager_parse(const char *text, hostlist *list);

/* Checks a list of nodes on the command line, or NULL: -1 to continue, or the exit code
 * for wrong usage, after a message. */
int tool_manager_check(const tool *t, const char *text);

/* Adds, each once, the nodes in `up` (NULL: all of the allocation) that are not in
 * `down`. If both are NULL, leaves out the nodes that the batch system reports as down.
 * An exit code. */
int tool_manager_up(const tool_prefix *prefix, const char *up, const char *down,
                    double seconds, hostlist *nodes);

/* Finds the end of the allocation: the parameter SCR_END_TIME, else as tool_manager_end
 * with the given timeout; seconds 0: only the parameter. end->time 0: unknown. An exit
 * code, after a message. */
int tool_manager_find_end(const tool_prefix *prefix, double seconds, scr_halt_end *end);

/* Finds the end of the allocation from the environment of the batch system, else from its
 * command with the given timeout; end->time 0: unknown. An exit code, after a message. */
int tool_manager_end(double seconds, scr_halt_end *end);

/* Whether the allocation ends, has ended, or its time is over. Then nothing starts on its
 * nodes any more, which is not a failure of the nodes. Queries the batch system, if it
 * can be queried, with the given timeout; false without an answer. */
bool tool_manager_is_over(double seconds);

/* Whether the batch system can put this job back into its queue; puts it there. 0, or as
 * tool_run with a text. */
bool tool_manager_can_requeue(void);
int tool_manager_requeue(double seconds, kvtree_error *err);

#endif
