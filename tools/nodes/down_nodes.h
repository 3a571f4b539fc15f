/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOWN_NODES_H
#define DOWN_NODES_H

/* Which nodes cannot be used, and why (SCR Developer Guide 1.2, section 2.24.4): those
 * that somebody named, SCR_EXCLUDE_NODES, those that the batch system calls down, and
 * those on which scr_check_node fails or does not answer. */

#include "lib/hostlist.h"
#include "lib/tool_prefix.h"

enum { DOWN_REASON_SIZE = 256 };

typedef struct down_reason {
    char text[DOWN_REASON_SIZE]; /* empty: the node can be used */
    int answers; /* 1: not for a run, but what its cache has may still be saved */
    int unasked; /* 1: maybe nobody asked it: who should have could not, or was cut off */
} down_reason;

/* Seconds that a node has to answer: SCR_NODE_TIMEOUT. An exit code, after a complaint.
 */
int down_nodes_patience(const tool_prefix *prefix, double *seconds);

/* Whether SCR_EXCLUDE_NODES is a list of nodes: for who has to know before a job begins.
 * An exit code, after a complaint. */
int down_nodes_check(const tool_prefix *prefix);

/* Fills reasons, one per node, which were empty or say what is known already. Nodes that
 * have one are not asked. A configuration with mistakes, also in SCR_EXCLUDE_NODES, makes
 * no node bad: it is said once. An exit code, after a complaint: nobody was asked. */
int down_nodes_find(const tool_prefix *prefix, const hostlist *nodes, double seconds,
                    down_reason *reasons);

/* Gives that reason to those of nodes which are in the list and have none. */
void down_nodes_mark(const hostlist *nodes, const hostlist *list, const char *reason,
                     down_reason *reasons);

#endif
