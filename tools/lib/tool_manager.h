/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_MANAGER_H
#define TOOL_MANAGER_H

/* What the batch system tells of the allocation in which a command runs: a table with a
 * row per system, and one for machines without any. */

#include "halt/halt.h"
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"

/* The name of the batch system: "slurm", "pbs", "lsf", "flux" or "none". */
const char *tool_manager_name(void);

/* Adds the nodes of the allocation, each once, in their order: SCR_NODELIST, or what the
 * batch system says, or, without one, this machine. An exit code, after a complaint. */
int tool_manager_nodes(const tool_prefix *prefix, hostlist *nodes);

/* Adds those of the nodes that the batch system calls down, in the same way; only Slurm
 * is asked, for at most so many seconds. */
int tool_manager_down(const hostlist *nodes, double seconds, hostlist *down);

/* The same for those that it drains, or expects to fail: they work, but nothing new
 * should begin on them. One that is down, too, may be among them. */
int tool_manager_drained(const hostlist *nodes, double seconds, hostlist *drained);

/* A list of nodes on the command line, or NULL: -1, or the exit code for wrong usage
 * where it is none, after a complaint. */
int tool_manager_check(const tool *t, const char *text);

/* Adds, each once, those of `up` (NULL: of the allocation) that are not `down`; with both
 * NULL that is who the batch system calls down, as above. The same. */
int tool_manager_up(const tool_prefix *prefix, const char *up, const char *down,
                    double seconds, hostlist *nodes);

/* The end of the allocation from the parameter SCR_END_TIME, else as tool_manager_end
 * finds it; seconds 0: 0 in place of that. An exit code, after a message. */
int tool_manager_find_end(const tool_prefix *prefix, double seconds, scr_halt_end *end);

/* When the allocation ends: what the batch system tells in the environment, or else what
 * Slurm answers, which is asked for at most so many seconds. end->time is 0 where nobody
 * tells. An exit code, after a complaint. SCR_END_TIME is up to the caller. */
int tool_manager_end(double seconds, scr_halt_end *end);

/* 1 when the batch system says that the allocation ends, or has ended, or that its time
 * is over: nothing begins on its nodes any more, which is no fault of theirs. Only Slurm
 * is asked, for at most so many seconds; 0 also when it does not answer. */
int tool_manager_is_over(double seconds);

#endif
