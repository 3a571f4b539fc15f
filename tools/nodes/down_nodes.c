/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that cannot be used; see down_nodes.h. */
#include "nodes/down_nodes.h"

#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "nodes/node_check.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT = 16384 /* maximum output of a check in bytes */ };

typedef struct search {
    const hostlist *nodes;
    double seconds;
    bool free;
    down_reason *reasons;
    int *asked;                       /* indices of the queried nodes */
    char unchecked[DOWN_REASON_SIZE]; /* why a check was not possible; or "" */
} search;

static void down_nodes_set_reason(down_reason *reason, const char *format,
                                  const char *text)
{
    if (!*reason->text) snprintf(reason->text, sizeof reason->text, format, text);
}

void down_nodes_mark(const hostlist *nodes, const hostlist *list, const char *reason,
                     down_reason *reasons)
{
    for (int k = 0; k < list->count; k++)
        for (int i = 0; i < nodes->count; i++)
            if (strcmp(nodes->names[i], list->names[k]) == 0)
                down_nodes_set_reason(&reasons[i], "%s", reason);
}

int down_nodes_patience(const tool_prefix *prefix, double *seconds)
{
    scr_problems problems = {.count = 0};
    int64_t value = 0;
    scr_config_seconds(&prefix->config, "SCR_NODE_TIMEOUT", &value, &problems);
    *seconds = (double)value;
    return tool_tell_problems(&problems);
}

/* ---- facts known without querying the nodes ---- */

static int down_nodes_read_excluded(const tool_prefix *prefix, hostlist *list)
{
    kvtree_error err = {""};
    const char *text = scr_config_get(&prefix->config, "SCR_EXCLUDE_NODES", NULL);
    *list = (hostlist){0, NULL};
    if (!text || !*text || hostlist_parse(text, list, &err) == 0) return COMMAND_GOOD;
    return tool_say(NODELIST_INVALID, "SCR_EXCLUDE_NODES: %s", err.text);
}

int down_nodes_check(const tool_prefix *prefix)
{
    hostlist list;
    int code = down_nodes_read_excluded(prefix, &list);
    hostlist_done(&list);
    return code;
}

static void down_nodes_mark_excluded(const tool_prefix *prefix, const search *s)
{
    hostlist list;
    if (down_nodes_read_excluded(prefix, &list) == COMMAND_GOOD)
        down_nodes_mark(s->nodes, &list, "excluded by SCR_EXCLUDE_NODES", s->reasons);
    hostlist_done(&list);
}

static void down_nodes_ask_manager(const search *s)
{
    hostlist list = {0, NULL};
    if (tool_manager_down(s->nodes, s->seconds, &list) == COMMAND_GOOD)
        down_nodes_mark(s->nodes, &list, "the batch system calls it down", s->reasons);
    hostlist_done(&list);
}

/* ---- answers of the nodes ---- */

/* Takes the message of the command, or the reason for a missing answer. */
static void down_nodes_take_answer(int task, const tool_end *end, void *arg)
{
    search *s = arg;
    down_reason *reason = &s->reasons[s->asked[task]];
    char line[DOWN_REASON_SIZE];
    if (end->code == 0) return;
    int answered = tool_remote_reason(end, "scr_check_node", line, sizeof line);
    char *identifier = answered ? strrchr(line, '[') : NULL;
    /* a reason becomes part of another message or a table, so its identifier is
     * removed */
    if (identifier && identifier > line) identifier[-1] = 0;
    if (answered && end->code == NODE_UNCHECKED) {
        strcpy(s->unchecked, line);
        return;
    }
    if (end->code < 0)
        down_nodes_set_reason(reason, "no answer: %.240s",
                              end->code == -EHOSTUNREACH && *line ? line : end->text);
    else
        down_nodes_set_reason(reason, "%s", *line ? line : end->text);
    reason->unasked = end->code < 0 && !tool_remote_is_gone(end->code);
    reason->answers = answered || reason->unasked;
}

static int down_nodes_ask_nodes(const tool_prefix *prefix, search *s)
{
    char *command = tool_remote_command("scr_check_node");
    kvtree_error err = {""};
    hostlist asked = {0, NULL};
    tool_remote remote = {.seconds = s->seconds, .bytes = OUTPUT, .joined = 1};
    const char *const argv[] = {command, "--prefix", prefix->path,
                                s->free ? "--free" : NULL, NULL};
    int code = COMMAND_GOOD;
    asked.names = calloc((size_t)s->nodes->count + 1, sizeof *asked.names);
    for (int i = 0; i < s->nodes->count && asked.names; i++) {
        if (*s->reasons[i].text) continue;
        s->asked[asked.count] = i;
        asked.names[asked.count++] = s->nodes->names[i];
    }
    if (!command || !asked.names) code = tool_no_memory();
    if (code == COMMAND_GOOD) code = tool_remote_choose(&remote, prefix, &asked);
    int rc = code == COMMAND_GOOD
                 ? tool_remote_run(&remote, &asked, argv, down_nodes_take_answer, s, &err)
                 : 0;
    /* the caller reports a signal */
    if (rc)
        code = rc == -EINTR ? COMMAND_BAD : tool_say(NODE_QUERY_FAILED, "%s", err.text);
    tool_remote_done(&remote);
    free(asked.names); /* `nodes` owns the names */
    free(command);
    return code;
}

int down_nodes_find(const tool_prefix *prefix, const hostlist *nodes, double seconds,
                    bool free_space, down_reason *reasons)
{
    search s = {nodes, seconds, free_space, reasons, NULL, ""};
    int code = COMMAND_GOOD;
    down_nodes_mark_excluded(prefix, &s);
    s.asked = calloc((size_t)nodes->count + 1, sizeof *s.asked);
    if (!s.asked) code = tool_no_memory();
    /* if the batch system does not answer, all nodes are queried */
    if (code == COMMAND_GOOD) down_nodes_ask_manager(&s);
    if (code == COMMAND_GOOD) code = down_nodes_ask_nodes(prefix, &s);
    if (*s.unchecked) tool_say(NODES_UNCHECKED, "not checked: %s", s.unchecked);
    free(s.asked);
    return code;
}
