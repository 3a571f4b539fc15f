/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_list_down_nodes: prints which nodes cannot be used (SCR Developer Guide 1.2,
 * section 2.24.4). */
#include "lib/tool.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_table.h"
#include "nodes/down_nodes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOME_ARE_DOWN = 1, UNKNOWN = 3 }; /* exit codes besides 0, no node is down */

typedef struct request {
    const char *dir, *down, *launcher;
    int timeout, secs, reason, log, json, free;
} request;

/* ---- output ---- */

static int list_down_print_json(const hostlist *nodes, const down_reason *reasons)
{
    static const tool_column columns[] = {{"node", "NODE", TOOL_TEXT},
                                          {"reason", "REASON", TOOL_TEXT}};
    tool_table *table = tool_table_new(columns, 2);
    for (int i = 0; i < nodes->count; i++) {
        if (!*reasons[i].text) continue;
        tool_table_text(table, nodes->names[i]);
        tool_table_text(table, reasons[i].text);
    }
    return tool_table_print(table, TOOL_JSON);
}

/* Prints "node: reason", as SCR 3 does. */
static int list_down_print_reasons(const hostlist *nodes, const down_reason *reasons)
{
    for (int i = 0; i < nodes->count; i++) {
        if (!*reasons[i].text) continue;
        tool_print(nodes->names[i]);
        printf(": ");
        tool_print(reasons[i].text);
        printf("\n");
    }
    return COMMAND_GOOD;
}

static int list_down_print_list(const hostlist *nodes, const down_reason *reasons)
{
    hostlist down = {0, calloc((size_t)nodes->count + 1, sizeof(char *))};
    for (int i = 0; i < nodes->count && down.names; i++)
        if (*reasons[i].text) down.names[down.count++] = nodes->names[i];
    char *text = down.names ? hostlist_compress(&down) : NULL;
    if (text && *text) printf("%s\n", text);
    int code = text ? COMMAND_GOOD : tool_no_memory();
    free(text);
    free(down.names);
    return code;
}

static void list_down_write_event(const tool_prefix *prefix, const request *r,
                                  const char *run, const char *node, const char *reason)
{
    char note[DOWN_REASON_SIZE + 64];
    scr_log_event event = {
        .kind = SCR_LOG_NODE_LOST, .run = run, .node = node, .note = reason};
    if (r->secs >= 0) {
        snprintf(note, sizeof note, "%s (after %d s of the run)", reason, r->secs);
        event.note = note;
    }
    tool_log_write(prefix, &event, NULL);
}

static void list_down_write_log(const tool_prefix *prefix, const request *r,
                                const hostlist *nodes, const down_reason *reasons,
                                const hostlist *known)
{
    char run[SCR_LOG_RUN_SIZE];
    hostlist fresh = {0, NULL};
    tool_log_find_run(prefix, run);
    if (hostlist_minus(nodes, known, &fresh) != 0) tool_no_memory();
    for (int i = 0, k = 0; i < nodes->count && k < fresh.count; i++) {
        /* both lists are in the same order */
        if (strcmp(nodes->names[i], fresh.names[k]) != 0) continue;
        k++;
        if (*reasons[i].text)
            list_down_write_event(prefix, r, run, nodes->names[i], reasons[i].text);
    }
    hostlist_done(&fresh);
}

/* ---- work ---- */

static int list_down_count_down(const hostlist *nodes, const down_reason *reasons)
{
    int count = 0;
    for (int i = 0; reasons && i < nodes->count; i++)
        count += *reasons[i].text != 0;
    return count;
}

static int list_down_report(const tool_prefix *prefix, const request *r,
                            const hostlist *nodes, const hostlist *known,
                            const down_reason *reasons)
{
    int some = list_down_count_down(nodes, reasons) > 0, code;
    code = r->json     ? list_down_print_json(nodes, reasons)
           : r->reason ? list_down_print_reasons(nodes, reasons)
                       : list_down_print_list(nodes, reasons);
    /* errors of the log are reported and change nothing else */
    if (r->log) list_down_write_log(prefix, r, nodes, reasons, known);
    if (command_flush() != COMMAND_GOOD || code != COMMAND_GOOD) return UNKNOWN;
    return some ? SOME_ARE_DOWN : COMMAND_GOOD;
}

static int list_down_run(const tool_prefix *prefix, const request *r, hostlist *nodes,
                         const hostlist *known)
{
    double seconds = r->timeout;
    int code = COMMAND_GOOD;
    if (nodes->count == 0) code = tool_manager_nodes(prefix, nodes);
    if (code == COMMAND_GOOD && r->timeout == 0)
        code = down_nodes_patience(prefix, &seconds);
    down_reason *reasons = calloc((size_t)nodes->count + 1, sizeof *reasons);
    if (!reasons) code = tool_no_memory();
    if (code == COMMAND_GOOD) {
        down_nodes_mark(nodes, known, "known to be down", reasons);
        code = down_nodes_check(prefix);
    }
    int before = list_down_count_down(nodes, reasons);
    if (code == COMMAND_GOOD)
        code = down_nodes_find(prefix, nodes, seconds, r->free, reasons);
    if (code == COMMAND_GOOD && list_down_count_down(nodes, reasons) > before &&
        tool_manager_is_over(seconds))
        code = tool_say(ALLOCATION_OVER, "the allocation is over");
    code = code == COMMAND_GOOD ? list_down_report(prefix, r, nodes, known, reasons)
                                : (int)UNKNOWN;
    free(reasons);
    return code;
}

int main(int argc, char **argv)
{
    request r = {.secs = -1};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'d', "down", "NODES", "these are down already; they are not asked",
         .text = &r.down},
        {'t', "timeout", "N", "seconds that a node may take (default: SCR_NODE_TIMEOUT)",
         .number = &r.timeout},
        {'f', "free", NULL,
         "sizes of directories are those of free space, not of the\nfile system",
         .flag = &r.free},
        {'r', "reason", NULL, "print why each is down", .flag = &r.reason},
        {'l', "log", NULL, "log those that are down, but for those of --down",
         .flag = &r.log},
        {'s', "secs", "N", "with --log: the run has lasted for N seconds",
         .number = &r.secs},
        TOOL_LAUNCHER_OPTION(&r.launcher),
        {'J', "json", NULL, "print a JSON object per node that is down", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [NODES]...",
        .about = "Prints which of NODES (default: those of the allocation) cannot be "
                 "used: they are\nexcluded by SCR_EXCLUDE_NODES, or down for the batch "
                 "system, do not answer, or\nscr_check_node fails there.\n",
        .codes = "0 none is down, 1 some are, 2 wrong usage, 3 unknown.\n",
        .options = options,
        .most = -1};
    tool_args args;
    tool_prefix prefix;
    hostlist nodes = {0, NULL}, known = {0, NULL};
    int code = tool_start(&t, argc, argv, &args);
    for (int i = 0; code < 0 && i < args.count; i++)
        code = tool_manager_check(&t, args.list[i]);
    if (code < 0) code = tool_manager_check(&t, r.down);
    if (code >= 0) return code;
    if (r.log) command_outlive_reader();
    code = tool_prefix_configure(&prefix, r.dir);
    for (int i = 0; code == COMMAND_GOOD && i < args.count; i++)
        code = tool_manager_parse(args.list[i], &nodes);
    if (code == COMMAND_GOOD && r.down) code = tool_manager_parse(r.down, &known);
    code = code == COMMAND_GOOD ? list_down_run(&prefix, &r, &nodes, &known) : UNKNOWN;
    tool_prefix_close(&prefix);
    hostlist_done(&nodes);
    hostlist_done(&known);
    return code;
}
