/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_list_dir: prints the control directory and the cache directories of a job on a node
 * (SCR Developer Guide 1.2, section 2.24.3). */
#include "config/descs.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct list_dir_request {
    const char *dir, *user, *jobid;
    int base, json;
    int control, cache;
} list_dir_request;

/* Source and destination of the printed directories. */
typedef struct list_dir_output {
    const list_dir_request *r;
    const tool_prefix *prefix;
    tool_owner owner;
    tool_table *table; /* NULL: directories are printed as lines */
} list_dir_output;

static void list_dir_add(const list_dir_output *o, const char *base, int control)
{
    char path[TOOL_PATH_SIZE];
    snprintf(path, sizeof path, "%s", base);
    if (!o->r->base) tool_job_folder(o->prefix, &o->owner, base, control, path);
    if (o->r->json) {
        tool_table_text(o->table, control ? "control" : "cache");
        tool_table_text(o->table, path);
    } else {
        tool_print(path);
        printf("\n");
    }
}

/* Whether an earlier enabled redundancy descriptor has the same store. */
static bool list_dir_is_repeated(const scr_reddescs *all, int i)
{
    for (int k = 0; k < i; k++)
        if (all->list[k].enabled && strcmp(all->list[k].store, all->list[i].store) == 0)
            return true;
    return false;
}

static int list_dir_print(list_dir_output *o, const scr_reddescs *all)
{
    static const tool_column columns[] = {{"kind", NULL, TOOL_TEXT},
                                          {"path", NULL, TOOL_TEXT}};
    const list_dir_request *r = o->r;
    if (r->json) o->table = tool_table_new(columns, 2);
    if (r->control)
        list_dir_add(o, scr_config_get(&o->prefix->config, "SCR_CNTL_BASE", NULL), 1);
    for (int i = 0; r->cache && i < all->count; i++)
        if (all->list[i].enabled && !list_dir_is_repeated(all, i))
            list_dir_add(o, all->list[i].store, 0);
    return r->json ? tool_table_print(o->table, TOOL_JSON) : COMMAND_GOOD;
}

static int list_dir_work(const list_dir_request *r, const tool_prefix *prefix)
{
    scr_problems problems = {.count = 0};
    scr_descs descs;
    list_dir_output o = {.r = r, .prefix = prefix};
    if (tool_owner_find(prefix, &o.owner) != COMMAND_GOOD) return COMMAND_BAD;
    if (r->user) snprintf(o.owner.user, sizeof o.owner.user, "%s", r->user);
    if (r->jobid) snprintf(o.owner.job, sizeof o.owner.job, "%s", r->jobid);
    if (scr_descs_load(&prefix->config, &descs, &problems) != 0) return tool_no_memory();
    int code = tool_tell_problems(&problems);
    if (code == COMMAND_GOOD) code = list_dir_print(&o, &descs.reddescs);
    scr_descs_done(&descs);
    return code;
}

/* ---- arguments ---- */

/* Checks that a name can be part of a path; -1 to continue, or an exit code. */
static int list_dir_check_name(const tool *t, const char *name, size_t size)
{
    if (name && (!*name || strlen(name) >= size || strchr(name, '/') ||
                 strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
        return tool_misused(t, "'%.60s' is not a name of a user or a job", name);
    return -1;
}

int main(int argc, char **argv)
{
    list_dir_request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'u', "user", "NAME", "the directories of that user", .text = &r.user},
        {'j', "jobid", "ID", "the directories of that allocation", .text = &r.jobid},
        {'b', "base", NULL, "print only the base directories", .flag = &r.base},
        {'J', "json", NULL, "print a JSON object per directory", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... control|cache|all",
        .about = "Prints the control directory, or the cache directories, that a job has "
                 "on this "
                 "node,\none per line.\n",
        .codes = "0 printed, 1 the configuration has mistakes, or an error, 2 wrong\n"
                 "usage.\n",
        .options = options,
        .least = 1,
        .most = 1};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    int all = strcmp(args.list[0], "all") == 0;
    r.control = all || strcmp(args.list[0], "control") == 0;
    r.cache = all || strcmp(args.list[0], "cache") == 0;
    if (!r.control && !r.cache)
        return tool_misused(&t, "'%s' is not control, cache or all", args.list[0]);
    code = list_dir_check_name(&t, r.user, SCR_USER_SIZE);
    if (code < 0) code = list_dir_check_name(&t, r.jobid, SCR_JOB_ID_SIZE);
    if (code >= 0) return code;
    code = tool_prefix_configure(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = list_dir_work(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
