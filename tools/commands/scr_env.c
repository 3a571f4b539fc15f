/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_env: prints facts about the allocation (SCR Developer Guide 1.2, sections 2.24 and
 * 2.25). */
#include "common/number.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_table.h"
#include "prefix/nodes.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ANSWER = 30 }; /* timeout of the batch system in seconds */

typedef struct request {
    const char *dir;
    int user, jobid, nodes, down, endtime, runnodes, manager, json;
} request;

/* Gets the nodes, or the nodes that are down, in short form, to be freed. An exit
 * code. */
static int env_find_nodes(const tool_prefix *prefix, int down, char **text)
{
    hostlist all = {0, NULL}, bad = {0, NULL};
    int code = tool_manager_nodes(prefix, &all);
    if (code == COMMAND_GOOD && down) code = tool_manager_down(&all, ANSWER, &bad);
    *text = code == COMMAND_GOOD ? hostlist_compress(down ? &bad : &all) : NULL;
    if (code == COMMAND_GOOD && !*text) code = tool_no_memory();
    hostlist_done(&all);
    hostlist_done(&bad);
    return code;
}

/* ---- output ---- */

static int env_print_text(const char *text)
{
    tool_print(text);
    printf("\n");
    return COMMAND_GOOD;
}

static int env_print_nodes(const tool_prefix *prefix, int down)
{
    char *text;
    int code = env_find_nodes(prefix, down, &text);
    if (code == COMMAND_GOOD) printf("%s\n", text);
    free(text);
    return code;
}

static int env_print_end(const tool_prefix *prefix)
{
    scr_halt_end end;
    if (tool_manager_find_end(prefix, ANSWER, &end) != COMMAND_GOOD) return COMMAND_BAD;
    if (!end.time) return tool_say(END_TIME_UNKNOWN, "the allocation has no known end");
    printf("%" PRId64 "\n", end.time);
    return COMMAND_GOOD;
}

static int env_print_run_nodes(const tool_prefix *prefix)
{
    kvtree_error err = {""};
    int nodes;
    if (scr_nodes_read(prefix->dir, &nodes, &err) != 0)
        return tool_say(RUN_NODES_UNKNOWN, "%s", err.text);
    printf("%d\n", nodes);
    return COMMAND_GOOD;
}

/* Prints all facts except the nodes that are down. Unknown facts have no value. */
static int env_print_all(const tool_prefix *prefix, const tool_owner *owner, int json)
{
    static const tool_column columns[] = {
        {"user", "user", TOOL_TEXT},
        {"jobid", "job id", TOOL_TEXT},
        {"manager", "batch system", TOOL_TEXT},
        {"nodes", "nodes", TOOL_TEXT},
        {"lostnode", "a lost node", TOOL_TEXT},
        {"endtime", "end time", TOOL_NUMBER},
        {"runnodes", "nodes of the last run", TOOL_NUMBER}};
    tool_table *table = tool_table_new(columns, 7);
    char *nodes;
    scr_halt_end end;
    int last, code = env_find_nodes(prefix, 0, &nodes);
    if (tool_manager_find_end(prefix, ANSWER, &end) != COMMAND_GOOD) code = COMMAND_BAD;
    tool_table_text(table, owner->user);
    tool_table_text(table, owner->job);
    tool_table_text(table, tool_manager_name());
    tool_table_text(table, nodes);
    tool_table_text(table, tool_manager_lost());
    if (end.time)
        tool_table_number(table, end.time);
    else
        tool_table_text(table, NULL);
    if (scr_nodes_read(prefix->dir, &last, NULL) == 0)
        tool_table_number(table, last);
    else
        tool_table_text(table, NULL);
    free(nodes);
    int printed = tool_table_print(table, json ? TOOL_JSON : TOOL_LINES);
    return code == COMMAND_GOOD ? printed : code;
}

static int env_answer(const tool_prefix *prefix, const request *r)
{
    tool_owner owner;
    int code = tool_owner_find(prefix, &owner);
    if (code != COMMAND_GOOD) return code;
    if (r->user) return env_print_text(owner.user);
    if (r->jobid) return env_print_text(owner.job);
    if (r->manager) return env_print_text(tool_manager_name());
    if (r->nodes || r->down) return env_print_nodes(prefix, r->down);
    if (r->endtime) return env_print_end(prefix);
    if (r->runnodes) return env_print_run_nodes(prefix);
    return env_print_all(prefix, &owner, r->json);
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'u', "user", NULL, "print the user of the job", .flag = &r.user},
        {'j', "jobid", NULL, "print the id of the allocation", .flag = &r.jobid},
        {'m', "manager", NULL, "print the batch system: slurm, pbs, lsf, flux, none",
         .flag = &r.manager},
        {'n', "nodes", NULL, "print the nodes of the allocation", .flag = &r.nodes},
        {'d', "down", NULL, "print those that the batch system calls down",
         .flag = &r.down},
        {'e', "endtime", NULL, "print when the allocation ends, in seconds since 1970",
         .flag = &r.endtime},
        {'r', "runnodes", NULL, "print how many nodes the last run used",
         .flag = &r.runnodes},
        {'J', "json", NULL, "print all but the nodes that are down as a JSON object",
         .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about =
            "Prints the facts that are known about the allocation, or one of them.\n",
        .codes = "0 printed, 1 it is not known, or an error, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (r.user + r.jobid + r.manager + r.nodes + r.down + r.endtime + r.runnodes +
            r.json >
        1)
        return tool_misused(&t, "more than one question");
    code = tool_prefix_configure(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = env_answer(&prefix, &r);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
