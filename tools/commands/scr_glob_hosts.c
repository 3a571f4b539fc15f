/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_glob_hosts: lists of hosts in short form (SCR Developer Guide 1.2, section 2.24.1).
 */
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum task { NONE, MINUS, INTERSECT, UNITE, CONTAINS }; /* as in the table of options */
enum form { SHORT, COUNT, EXPAND };

typedef struct request {
    enum task task;
    enum form form;
    int nth; /* from 1 on; 0: all */
    int json;
} request;

/* ---- results ---- */

/* Prints and ends; an exit code. */
static int glob_hosts_print_json(const hostlist *list, const char *text)
{
    static const tool_column columns[] = {{"hosts", "HOSTS", TOOL_TEXT},
                                          {"count", "COUNT", TOOL_NUMBER},
                                          {"names", "NAMES", TOOL_LIST}};
    tool_table *table = tool_table_new(columns, 3);
    tool_table_text(table, text);
    tool_table_number(table, list->count);
    tool_table_list(table, (const char *const *)list->names, list->count);
    return tool_table_print(table, TOOL_JSON);
}

static int glob_hosts_print_short(const hostlist *list, int json)
{
    char *text = hostlist_compress(list);
    int code = text ? COMMAND_GOOD : tool_complain("no memory");
    if (text && json)
        code = glob_hosts_print_json(list, text);
    else if (text)
        printf("%s\n", text);
    free(text);
    return code;
}

/* Keeps that host alone. */
static int glob_hosts_keep_nth(hostlist *list, int nth)
{
    if (nth > list->count)
        return tool_complain("there are %d hosts, and no host %d", list->count, nth);
    char *chosen = list->names[nth - 1];
    list->names[nth - 1] = list->names[0];
    list->names[0] = chosen;
    while (list->count > 1)
        free(list->names[--list->count]);
    return COMMAND_GOOD;
}

static int glob_hosts_print(const request *r, hostlist *list)
{
    if (r->nth && glob_hosts_keep_nth(list, r->nth) != COMMAND_GOOD) return COMMAND_BAD;
    if (r->form == COUNT && !r->json) {
        printf("%d\n", list->count);
        return COMMAND_GOOD;
    }
    if (r->form != EXPAND || r->json) return glob_hosts_print_short(list, r->json);
    for (int i = 0; i < list->count; i++)
        printf("%s\n", list->names[i]);
    return COMMAND_GOOD;
}

/* ---- work ---- */

static int glob_hosts_parse(const char *text, hostlist *list)
{
    char err[ERRTEXT_SIZE] = "";
    return hostlist_parse(text, list, err) == 0 ? COMMAND_GOOD : tool_complain("%s", err);
}

/* Two lists in one argument, with a colon in between. */
static int glob_hosts_parse_two(const char *text, hostlist *a, hostlist *b)
{
    const char *colon = strchr(text, ':');
    if (!colon || strchr(colon + 1, ':'))
        return tool_complain("'%s' is not two lists with a colon between them", text);
    char *first = strndup(text, (size_t)(colon - text));
    int code = first ? glob_hosts_parse(first, a) : tool_complain("no memory");
    free(first);
    return code == COMMAND_GOOD ? glob_hosts_parse(colon + 1, b) : code;
}

static int glob_hosts_combine(const request *r, const hostlist *a, const hostlist *b,
                              hostlist *result)
{
    hostlist left = {0, NULL};
    int rc;
    switch (r->task) {
    case MINUS:
        rc = hostlist_minus(a, b, result);
        break;
    case UNITE:
        rc = hostlist_unite(a, b, result);
        break;
    case CONTAINS: /* all of b, or it does not count */
        rc = hostlist_minus(b, a, &left);
        if (!rc) rc = left.count > 0;
        hostlist_done(&left);
        return rc < 0 ? tool_complain("no memory") : rc ? COMMAND_BAD : COMMAND_GOOD;
    default:
        rc = hostlist_intersect(a, b, result);
    }
    return rc ? tool_complain("no memory") : COMMAND_GOOD;
}

static int glob_hosts_combine_two(const request *r, const char *text)
{
    hostlist a = {0, NULL}, b = {0, NULL}, result = {0, NULL};
    int code = glob_hosts_parse_two(text, &a, &b);
    if (code == COMMAND_GOOD) code = glob_hosts_combine(r, &a, &b, &result);
    if (code == COMMAND_GOOD && r->task != CONTAINS) code = glob_hosts_print(r, &result);
    hostlist_done(&a);
    hostlist_done(&b);
    hostlist_done(&result);
    return code;
}

static int glob_hosts_print_list(const request *r, const tool_args *args)
{
    hostlist list = {0, NULL};
    int code = COMMAND_GOOD;
    for (int i = 0; i < args->count && code == COMMAND_GOOD; i++)
        code = glob_hosts_parse(args->list[i], &list);
    if (code == COMMAND_GOOD) code = glob_hosts_print(r, &list);
    hostlist_done(&list);
    return code;
}

/* ---- arguments ---- */

typedef struct given {
    int count, expand, compress, nth; /* nth -1: not given */
    const char *two[4];               /* for the tasks from MINUS on */
} given;

/* What is to be printed, and of what; -1 to go on. */
static int glob_hosts_take_request(const tool *t, const given *g, const tool_args *args,
                                   request *r, const char **two)
{
    int lists = 0;
    for (int i = 0; i < 4; i++) {
        if (!g->two[i]) continue;
        lists++;
        *two = g->two[i];
        r->task = (enum task)(MINUS + i);
    }
    if (lists > 1 || g->count + g->expand + g->compress + (g->nth >= 0) > 1)
        return tool_misused(t, "more than one task");
    if (lists && args->count) return tool_misused(t, "too many lists of hosts");
    if (!lists && !args->count) return tool_misused(t, "no list of hosts");
    if (g->nth == 0) return tool_misused(t, "hosts are counted from 1");
    r->nth = g->nth > 0 ? g->nth : 0;
    r->form = g->count ? COUNT : g->expand ? EXPAND : SHORT;
    return -1;
}

int main(int argc, char **argv)
{
    request r = {.task = NONE};
    given g = {.nth = -1};
    const char *two = NULL;
    const tool_option options[] = {
        {'c', "count", NULL, "print how many hosts there are", .flag = &g.count},
        {'n', "nth", "N", "print host N, from 1 on", .number = &g.nth},
        {'e', "expand", NULL, "print the hosts, one per line", .flag = &g.expand},
        {'C', "compress", NULL, "print the short form, sorted (the default)",
         .flag = &g.compress},
        {'m', "minus", "A:B", "the hosts of list A that are not in B", .text = &g.two[0]},
        {'i', "intersection", "A:B", "those that are in both", .text = &g.two[1]},
        {'u', "union", "A:B", "those of A, and what B has beside", .text = &g.two[2]},
        {'x', "contains", "A:B", "nothing; exit with 0 if all of B are in A, else 1",
         .text = &g.two[3]},
        {'j', "json", NULL, "print a JSON object", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [HOSTS]...",
        .about = "Works on lists of hosts such as atlas[3,5-7,009-011],login1.\n",
        .codes = "0 done, or yes; 1 no, or there is no such host, or an error, such as\n"
                 "a list that cannot be read; 2 wrong usage.\n",
        .options = options,
        .most = -1};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = glob_hosts_take_request(&t, &g, &args, &r, &two);
    if (code >= 0) return code;
    return tool_finish(two ? glob_hosts_combine_two(&r, two)
                           : glob_hosts_print_list(&r, &args));
}
