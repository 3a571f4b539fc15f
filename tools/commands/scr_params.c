/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_params: prints the parameters of SCR with their values and sources, and all
 * mistakes in the configuration, without a job. */
#include "config/values.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "nodes/down_nodes.h"
#include "run/launcher_site.h"
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef struct request {
    const char *dir, *system;
    int set, check, json;
} request;

/* ---- mistakes ---- */

static void params_check_type(const scr_config *c, const scr_param *p,
                              scr_problems *problems)
{
    union {
        int number;
        int64_t seconds;
        uint64_t bytes;
        double decimal;
    } unused;
    const scr_value v = scr_config_value(c, p->name);
    if (p->type == SCR_PARAM_INT) /* times since 1970 need 64 bits */
        scr_config_int64(c, p->name, INT64_MIN, &unused.seconds, problems);
    else
        scr_value_read(&v, p->type, 0, &unused, problems);
}

static void params_report_unknown(void *found, const char *name, const char *reason,
                                  const char *nearest)
{
    if (reason) {
        tool_say(CONFIG_FORMER, "%s in the environment has no meaning here, because %s",
                 name, reason);
        return;
    }
    *(int *)found = 1;
    tool_say(CONFIG_VARIABLE_UNKNOWN, "%s; did you mean %s?", name, nearest);
}

/* Checks the configuration; an exit code, after all messages. */
static int params_check(const scr_config *c)
{
    scr_problems problems = {.count = 0};
    scr_descs descs = {0};
    struct scr_settings values = {0};
    int unknown = 0;
    scr_param_find_unknown(params_report_unknown, &unknown);
    scr_values_load(c, &values, &descs, &problems);
    for (const scr_param *p = scr_param_table; p->name; p++)
        params_check_type(c, p, &problems); /* including parameters of commands */
    if (launcher_site_check(c, &problems) != 0) tool_no_memory();
    scr_descs_done(&descs);
    tool_tell_warnings(problems.warnings);
    int code = tool_tell_problems(&problems);
    return unknown ? COMMAND_BAD : code;
}

/* ---- output ---- */

/* Whether the value must not appear on screens and in logs. */
static bool params_is_secret(const scr_param *p)
{
    return strcmp(p->name, "SCR_LOG_DB_PASS") == 0;
}

static void params_add_row(tool_table *table, const scr_config *c, const scr_param *p,
                           int set)
{
    const char *source = NULL, *value = scr_config_get(c, p->name, &source);
    int is_set = value && source && strcmp(source, "default") != 0;
    if (set && !is_set) return;
    tool_table_text(table, p->name);
    tool_table_text(table, is_set && params_is_secret(p) ? "(not shown)" : value);
    if (is_set) tool_table_mark(table, TOOL_GOOD);
    tool_table_text(table, is_set ? source : NULL);
    tool_table_text(table, scr_param_type_name(p->type));
    tool_table_text(table, p->value);
    tool_table_text(table, p->help);
}

static int params_print(const scr_config *c, const tool_args *args, const request *r)
{
    static const tool_column columns[] = {
        {"name", "PARAMETER", TOOL_TEXT},  {"value", "VALUE", TOOL_TEXT},
        {"source", "SET BY", TOOL_TEXT},   {"type", "TYPE", TOOL_TEXT},
        {"default", "DEFAULT", TOOL_TEXT}, {"help", "MEANING", TOOL_TEXT}};
    tool_table *table = tool_table_new(columns, 6);
    for (const scr_param *p = scr_param_table; p->name && !args->count; p++)
        params_add_row(table, c, p, r->set);
    for (int i = 0; i < args->count; i++)
        params_add_row(table, c, scr_param_find(args->list[i]), 0);
    return tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'y', "system", "FILE", "read FILE in place of the system file",
         .text = &r.system},
        {'s', "set", NULL, "only those that are set", .flag = &r.set},
        {'c', "check", NULL, "print nothing but what is wrong", .flag = &r.check},
        {'j', "json", NULL, "print a JSON object for each", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [PARAMETER]...",
        .about =
            "Prints parameters of SCR: the value for a run in the prefix directory, its\n"
            "source, its type, its default and its meaning; all of them, or those that\n"
            "are named. Reports mistakes in the configuration, too.\n",
        .codes =
            "0 all is right, 1 something in the configuration is wrong, or an error,\n"
            "2 wrong usage.\n",
        .options = options,
        .most = -1};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (command_names(t.arguments, args.count, args.list) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    if (r.check && (args.count || r.set || r.json))
        return tool_misused(&t, "--check prints nothing that could be chosen");
    for (int i = 0; i < args.count; i++)
        if (!scr_param_find(args.list[i]))
            return tool_misused(&t, "%s is not a parameter; did you mean %s?",
                                args.list[i], scr_param_nearest(args.list[i]));
    if (r.system && access(r.system, R_OK) != 0)
        return tool_say(CONFIG_FILE_UNREADABLE, "%s: %s", r.system, strerror(errno));
    code = tool_prefix_configure_by(&prefix, r.dir, r.system);
    tool_tell_warnings(prefix.warnings);
    /* report all mistakes at once */
    if (prefix.config.env && params_check(&prefix.config) != COMMAND_GOOD)
        code = COMMAND_BAD;
    if (prefix.config.env && down_nodes_check(&prefix) != COMMAND_GOOD)
        code = COMMAND_BAD;
    if (prefix.config.env && !r.check &&
        params_print(&prefix.config, &args, &r) != COMMAND_GOOD)
        code = COMMAND_BAD;
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
