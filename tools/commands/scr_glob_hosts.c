/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_glob_hosts: works on lists of hosts in short form (SCR Developer Guide 1.2, section
 * 2.24.1). */
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations on two lists; CONTAINS gives only an exit code. */
enum { MINUS, INTERSECT, UNITE, CONTAINS, TASKS };

typedef struct request {
    int count, expand, compress, json;
    int nth; /* number from 1; -1: all */
    const char *hosts, *two[TASKS];
} request;

/* ---- output ---- */

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

static int glob_hosts_print(const request *r, const hostlist *all)
{
    hostlist list = *all; /* `all` owns the names */
    if (r->nth > list.count)
        return tool_say(NODELIST_NO_SUCH, "of %d hosts, no host %d", list.count, r->nth);
    if (r->nth > 0) list = (hostlist){1, all->names + r->nth - 1};
    if (r->count && !r->json) {
        printf("%d\n", list.count);
        return COMMAND_GOOD;
    }
    for (int i = 0; i < list.count && r->expand && !r->json; i++)
        printf("%s\n", list.names[i]);
    if (r->expand && !r->json) return COMMAND_GOOD;
    char *text = hostlist_compress(&list);
    int code = text ? COMMAND_GOOD : tool_no_memory();
    if (text && r->json)
        code = glob_hosts_print_json(&list, text);
    else if (text)
        printf("%s\n", text);
    free(text);
    return code;
}

/* ---- work ---- */

/* Parses two lists in one argument, separated by a colon. */
static int glob_hosts_parse_two(const char *text, hostlist *a, hostlist *b)
{
    const char *colon = strchr(text, ':');
    if (!colon || strchr(colon + 1, ':'))
        return tool_say(NODELIST_INVALID, "'%s' is not a pair of lists, such as A:B",
                        text);
    char *first = strndup(text, (size_t)(colon - text));
    int code = first ? tool_manager_parse(first, a) : tool_no_memory();
    free(first);
    return code == COMMAND_GOOD ? tool_manager_parse(colon + 1, b) : code;
}

static int glob_hosts_combine(const request *r, int task)
{
    static int (*const combine[])(const hostlist *, const hostlist *, hostlist *) = {
        hostlist_minus, hostlist_intersect, hostlist_unite, hostlist_minus};
    hostlist a = {0, NULL}, b = {0, NULL}, result = {0, NULL};
    int code = glob_hosts_parse_two(r->two[task], &a, &b);
    /* A contains B if B without A is empty */
    const hostlist *first = task == CONTAINS ? &b : &a;
    if (code == COMMAND_GOOD && combine[task](first, first == &a ? &b : &a, &result) != 0)
        code = tool_no_memory();
    if (code == COMMAND_GOOD && task == CONTAINS)
        code = result.count ? COMMAND_BAD : COMMAND_GOOD;
    else if (code == COMMAND_GOOD)
        code = glob_hosts_print(r, &result);
    hostlist_done(&a);
    hostlist_done(&b);
    hostlist_done(&result);
    return code;
}

static int glob_hosts_print_list(const request *r, const tool_args *args)
{
    hostlist list = {0, NULL};
    int code = COMMAND_GOOD;
    if (r->hosts) code = tool_manager_parse(r->hosts, &list);
    for (int i = 0; i < args->count && code == COMMAND_GOOD; i++)
        code = tool_manager_parse(args->list[i], &list);
    if (code == COMMAND_GOOD) code = glob_hosts_print(r, &list);
    hostlist_done(&list);
    return code;
}

/* Checks the request. -1 to continue; *task: the operation on two lists, or TASKS. */
static int glob_hosts_check(const tool *t, const request *r, const tool_args *args,
                            int *task)
{
    int lists = 0;
    *task = TASKS;
    for (int i = 0; i < TASKS; i++) {
        if (!r->two[i]) continue;
        lists++;
        *task = i;
    }
    if (lists > 1 || r->count + r->expand + r->compress + (r->nth >= 0) > 1)
        return tool_misused(t, "more than one task");
    const int plain = args->count + (r->hosts != NULL);
    if (lists && plain) return tool_misused(t, "too many lists of hosts");
    if (!lists && !plain) return tool_misused(t, "no list of hosts");
    if (r->nth == 0) return tool_misused(t, "hosts are counted from 1");
    return -1;
}

int main(int argc, char **argv)
{
    request r = {.nth = -1};
    int task;
    const tool_option options[] = {
        {'H', "hosts", "HOSTS", "a list of hosts, as an argument is", .text = &r.hosts},
        {'c', "count", NULL, "print how many hosts there are", .flag = &r.count},
        {'n', "nth", "N", "print host N, from 1 on", .number = &r.nth},
        {'e', "expand", NULL, "print the hosts, one per line", .flag = &r.expand},
        {'C', "compress", NULL, "print the short form, sorted (the default)",
         .flag = &r.compress},
        {'m', "minus", "A:B", "the hosts of list A that are not in B", .text = &r.two[0]},
        {'i', "intersection", "A:B", "those that are in both", .text = &r.two[1]},
        {'u', "union", "A:B", "those of A, and what B has beside", .text = &r.two[2]},
        {'x', "contains", "A:B", "nothing; exit with 0 if all of B are in A, else 1",
         .text = &r.two[3]},
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
    if (code < 0) code = glob_hosts_check(&t, &r, &args, &task);
    if (code >= 0) return code;
    return tool_finish(task < TASKS ? glob_hosts_combine(&r, task)
                                    : glob_hosts_print_list(&r, &args));
}
