/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOWN_NODES_H
#define DOWN_NODES_H

/* Finds nodes that cannot be used, with reasons (SCR Developer Guide 1.2, section
 * 2.24.4): nodes of the command line and of SCR_EXCLUDE_NODES, nodes that the batch
 * system reports as down, and nodes on which scr_check_node fails or does not answer. */

#include "lib/hostlist.h"
#include "lib/tool_prefix.h"
#include <stdbool.h>

enum { DOWN_REASON_SIZE = 256 };

typedef struct down_reason {
    char text[DOWN_REASON_SIZE]; /* empty: the node can be used */
    int answers;                 /* 1: unusable for runs, but its cache may still be
                                  * saved */
    int unasked;                 /* 1: the check itself failed; the node may be good */
} down_reason;

/* Gets the timeout of a node in seconds: SCR_NODE_TIMEOUT. An exit code, after a
 * message. */
int down_nodes_patience(const tool_prefix *prefix, double *seconds);

/* Checks that SCR_EXCLUDE_NODES is a list of nodes, before a job begins. An exit code,
 * after a message. */
int down_nodes_check(const tool_prefix *prefix);

/* Fills reasons, one per node. Nodes that already have a reason are not queried. free:
 * required sizes of directories count as free space (scr_check_node --free). Mistakes in
 * the configuration, also in SCR_EXCLUDE_NODES, make no node unusable and are reported
 * once. An exit code, after a message: nodes were not queried. */
int down_nodes_find(const tool_prefix *prefix, const hostlist *nodes, double seconds,
                    bool free, down_reason *reasons);

/* Sets the reason of nodes that are in the list and have no reason yet. */
void down_nodes_mark(const hostlist *nodes, const hostlist *list, const char *reason,
                     down_reason *reasons);

#endif
