/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_FOLD_H
#define TOOL_FOLD_H

/* Folds messages about nodes: one line for all nodes with the same text.
 *
 *     tool_fold fold = {0};
 *     tool_fold_add(&fold, "n1", "n1: Host is down");
 *     tool_fold_add(&fold, "n2", "n2: Host is down");
 *     for (int i = 0; i < fold.count; i++)
 *         fold.list[i]: nodes n1 and n2, "Host is down"
 *     tool_fold_done(&fold); */

#include "lib/hostlist.h"

typedef struct tool_fold_line {
    hostlist nodes;
    char *text; /* as given; for several nodes without their names */
    char *bare; /* without their names */
} tool_fold_line;

/* Begins as {0}; lines in the order of their first nodes. */
typedef struct tool_fold {
    int count;
    tool_fold_line *list;
} tool_fold;

/* 0, or -ENOMEM with fold unchanged. */
int tool_fold_add(tool_fold *fold, const char *node, const char *text);

/* Prints all lines as messages, "node n1: TEXT" or "2 nodes, n[1-2]: TEXT", and empties
 * it. */
void tool_fold_complain(tool_fold *fold);

void tool_fold_done(tool_fold *fold);

#endif
