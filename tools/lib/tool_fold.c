/* SPDX-License-Identifier: BSD-3-Clause */
/* Folded messages about nodes; see tool_fold.h. */
#include "lib/tool_fold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a copy of the text without each "NODE: " at the start of a word. */
static char *fold_without_node(const char *text, const char *node)
{
    size_t n = strlen(node);
    char *copy = malloc(strlen(text) + 1), *out = copy;
    for (const char *at = text; copy && *at;) {
        int begins = at == text || at[-1] == ' ';
        if (begins && strncmp(at, node, n) == 0 && strncmp(at + n, ": ", 2) == 0)
            at += n + 2;
        else
            *out++ = *at++;
    }
    if (copy) *out = 0;
    return copy;
}

static void fold_free_line(tool_fold_line *line)
{
    hostlist_done(&line->nodes);
    free(line->text);
    free(line->bare);
}

/* Adds a node to a line with the same text. */
static int fold_add_node(tool_fold_line *line, const char *node)
{
    char *text = strdup(line->bare);
    int rc = text ? hostlist_parse(node, &line->nodes, NULL) : -ENOMEM;
    if (rc) {
        free(text);
        return -ENOMEM;
    }
    free(line->text);
    line->text = text;
    return 0;
}

/* Takes ownership of bare. */
static int fold_add_line(tool_fold *fold, const char *node, const char *text, char *bare)
{
    tool_fold_line line = {.text = strdup(text), .bare = bare};
    tool_fold_line *list =
        realloc(fold->list, ((size_t)fold->count + 1) * sizeof *fold->list);
    if (list) fold->list = list;
    if (!list || !line.text || hostlist_parse(node, &line.nodes, NULL) != 0) {
        fold_free_line(&line);
        return -ENOMEM;
    }
    list[fold->count++] = line;
    return 0;
}

int tool_fold_add(tool_fold *fold, const char *node, const char *text)
{
    char *bare = fold_without_node(text, node);
    if (!bare) return -ENOMEM;
    for (int i = 0; i < fold->count; i++) {
        if (strcmp(fold->list[i].bare, bare) != 0) continue;
        free(bare);
        return fold_add_node(&fold->list[i], node);
    }
    return fold_add_line(fold, node, text, bare);
}

void tool_fold_report(tool_fold *fold, tool_fold_reporter *report, void *arg)
{
    for (int i = 0; i < fold->count; i++) {
        const tool_fold_line *line = &fold->list[i];
        char *names = hostlist_compress(&line->nodes), count[32] = "node";
        if (line->nodes.count > 1)
            snprintf(count, sizeof count, "%d nodes,", line->nodes.count);
        report(arg, count, names ? names : "?", line->text);
        free(names);
    }
    tool_fold_done(fold);
}

void tool_fold_done(tool_fold *fold)
{
    for (int i = 0; i < fold->count; i++)
        fold_free_line(&fold->list[i]);
    free(fold->list);
    *fold = (tool_fold){0};
}
