/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_FOLD_H
#define TOOL_FOLD_H

/* Folds messages about nodes: one line for all nodes with the same text.
 *
 *     tool_fold fold = {0};
 *     tool_fold_add(&fold, "n1", "n1: Host is down");
 *     tool_fold_add(&fold, "n2", "n2: Host is down");
 *     tool_fold_report(&fold, report, NULL);
 *         calls report(NULL, "2 nodes,", "n[1-2]", "Host is down") */

#include "lib/hostlist.h"

typedef struct tool_fold_line {
    hostlist nodes;
    char *text; /* as given; with several nodes, without their names */
    char *bare; /* without names of nodes */
} tool_fold_line;

/* Initialized to {0}; lines are in the order of their first nodes. */
typedef struct tool_fold {
    int count;
    tool_fold_line *list;
} tool_fold;

/* Adds a message. 0, or -ENOMEM with fold unchanged. */
int tool_fold_add(tool_fold *fold, const char *node, const char *text);

/* Reports all lines as "node", "n1", TEXT or "2 nodes,", "n[1-2]", TEXT, and empties
 * fold. */
typedef void tool_fold_reporter(void *arg, const char *count, const char *nodes,
                                const char *text);
void tool_fold_report(tool_fold *fold, tool_fold_reporter *report, void *arg);

void tool_fold_done(tool_fold *fold);

#endif
