/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_FOLD_H
#define TOOL_FOLD_H

/* What is said of nodes: one line for all of which the same is true.
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
    char *text; /* as it was given; of several nodes without their names */
    char *bare; /* the second of these */
} tool_fold_line;

/* Begins as {0}; lines in the order in which they came first. */
typedef struct tool_fold {
    int count;
    tool_fold_line *list;
} tool_fold;

/* 0, or -ENOMEM with fold as it was. */
int tool_fold_add(tool_fold *fold, const char *node, const char *text);

/* Complains of all: "node n1: TEXT", "2 nodes, n[1-2]: TEXT"; and empties it. */
void tool_fold_complain(tool_fold *fold);

void tool_fold_done(tool_fold *fold);

#endif
