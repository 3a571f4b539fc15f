/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_should_exit: tests whether a job script should start no other run, by the rules of
 * scr_run (SCR Developer Guide 1.2, section 2.25.1). */
#include "lib/tool.h"
#include "lib/tool_halt.h"
#include "lib/tool_manager.h"
#include "nodes/down_nodes.h"
#include "prefix/nodes.h"
#include "run/run_plan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { GO_ON = 1, UNKNOWN = 3 }; /* exit codes besides 0, exit */

typedef struct should_exit {
    const tool_prefix *prefix;
    int verbose;
    hostlist nodes;
    down_reason *reasons; /* one per node, and ... */
    run_node *table;      /* ... the same for the decision */
    char halt[SCR_HALT_REASON_SIZE];
    run_facts facts;
} should_exit;

/* ---- facts ---- */

static int should_exit_find_halt(should_exit *s)
{
    scr_halt_end end = {0, NULL};
    kvtree *halt = kvtree_new();
    int found = tool_halt_find(s->prefix, halt, &end, s->halt);
    kvtree_delete(&halt);
    s->facts.halt = found == 1 ? s->halt : NULL;
    return found < 0 ? COMMAND_BAD : COMMAND_GOOD;
}

static int should_exit_find_needed(should_exit *s)
{
    kvtree_error err = {""};
    scr_problems problems = {.count = 0};
    scr_config_int(&s->prefix->config, "SCR_MIN_NODES", 1, &s->facts.least, &problems);
    int rc = s->facts.least > 0
                 ? 0
                 : scr_nodes_read(s->prefix->dir, &s->facts.last_nodes, &err);
    if (rc) s->facts.last_nodes = 0; /* all nodes count as needed */
    if (rc && rc != -ENOENT)
        tool_say(RUN_NODES_UNKNOWN, "%s: %s", s->prefix->path, err.text);
    return tool_tell_problems(&problems);
}

static int should_exit_find_down(should_exit *s, const hostlist *known)
{
    double seconds;
    int code = down_nodes_patience(s->prefix, &seconds);
    if (code == COMMAND_GOOD) code = down_nodes_check(s->prefix);
    if (code != COMMAND_GOOD) return code;
    down_nodes_mark(&s->nodes, known, "known to be down", s->reasons);
    code = down_nodes_find(s->prefix, &s->nodes, seconds, false, s->reasons);
    s->facts.over = tool_manager_is_over(seconds);
    for (int i = 0; i < s->nodes.count; i++) {
        s->table[i].down = *s->reasons[i].text != 0;
        if (!s->table[i].down || !s->verbose) continue;
        tool_print(s->nodes.names[i]);
        printf(": ");
        tool_print(s->reasons[i].text);
        printf("\n");
    }
    return code;
}

static int should_exit_find_nodes(should_exit *s, const hostlist *known)
{
    int code = tool_manager_nodes(s->prefix, &s->nodes);
    size_t count = (size_t)s->nodes.count + 1;
    s->reasons = calloc(count, sizeof *s->reasons);
    s->table = calloc(count, sizeof *s->table);
    if (!s->reasons || !s->table) return tool_no_memory();
    s->facts.count = s->nodes.count;
    s->facts.nodes = s->table;
    if (code == COMMAND_GOOD) code = should_exit_find_needed(s);
    return code == COMMAND_GOOD ? should_exit_find_down(s, known) : code;
}

/* ---- the decision ---- */

static int should_exit_decide(should_exit *s)
{
    char text[RUN_TEXT_SIZE];
    const run_decision decision = run_plan(&s->facts);
    if (decision.why == RUN_LAUNCH) return GO_ON;
    run_plan_describe(&s->facts, &decision, text);
    if (s->verbose) {
        tool_print(text);
        printf("\n");
    }
    return COMMAND_GOOD;
}

/* Decides; queries the nodes only if no halt condition holds. */
static int should_exit_work(const tool_prefix *prefix, int verbose, const hostlist *known)
{
    /* stands for any failed run */
    should_exit s = {.prefix = prefix,
                     .verbose = verbose,
                     .facts = {.runs_left = -1, .attempts = 1, .code = 1}};
    int code = should_exit_find_halt(&s);
    if (code == COMMAND_GOOD && !s.facts.halt) code = should_exit_find_nodes(&s, known);
    code = code == COMMAND_GOOD ? should_exit_decide(&s) : (int)UNKNOWN;
    hostlist_done(&s.nodes);
    free(s.reasons);
    free(s.table);
    return command_flush() == COMMAND_GOOD || code != COMMAND_GOOD ? code : UNKNOWN;
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *down = NULL;
    int verbose = 0;
    hostlist known = {0, NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&dir),
        {'d', "down", "NODES", "these are down already; they are not asked",
         .text = &down},
        {'v', "verbose", NULL, "print why, and which nodes are down", .flag = &verbose},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [DIRECTORY]",
        .about =
            "Tests whether a job script should end, and start no other run in "
            "DIRECTORY: a condition\nin the halt file holds, the allocation is over, "
            "or too few nodes are left in it.\nscr_run does so itself.\n",
        .codes =
            "0 it should end, 1 it may start another run, 2 wrong usage, 3 unknown.\n",
        .options = options,
        .most = 1,
        .folder = &dir};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = tool_manager_check(&t, down);
    if (code >= 0) return code;
    code = tool_prefix_configure(&prefix, dir);
    if (code == COMMAND_GOOD && down) code = tool_manager_parse(down, &known);
    code = code == COMMAND_GOOD ? should_exit_work(&prefix, verbose, &known) : UNKNOWN;
    tool_prefix_close(&prefix);
    hostlist_done(&known);
    return code;
}
