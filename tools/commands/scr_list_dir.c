/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_list_dir: the control folder and the cache folders of a job on a node (SCR
 * Developer Guide 1.2, section 2.24.3). */
#include "config/descs.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *dir, *user, *jobid;
    int base, json;
    int control, cache;
} request;

/* ---- output ---- */

static void add_row(tool_table *table, const request *r, const char *kind,
                    const char *path)
{
    if (r->json) {
        tool_table_text(table, kind);
        tool_table_text(table, path);
        return;
    }
    tool_print(path);
    printf("\n");
}

static void add_folder(tool_table *table, const request *r, const tool_prefix *prefix,
                       const tool_owner *owner, const char *base, int control)
{
    char path[TOOL_PATH_SIZE];
    snprintf(path, sizeof path, "%s", base);
    if (!r->base) tool_job_folder(prefix, owner, base, control, path);
    add_row(table, r, control ? "control" : "cache", path);
}

/* 1 when a redundancy descriptor before that one has the same store. */
static int is_repeated(const scr_reddescs *all, int i)
{
    for (int k = 0; k < i; k++)
        if (all->list[k].enabled && strcmp(all->list[k].store, all->list[i].store) == 0)
            return 1;
    return 0;
}

static void print_folders(tool_table *table, const request *r, const tool_prefix *prefix,
                          const tool_owner *owner, const scr_descs *descs)
{
    const char *base = scr_config_get(&prefix->config, "SCR_CNTL_BASE", NULL);
    const scr_reddescs *all = &descs->reddescs;
    if (r->control) add_folder(table, r, prefix, owner, base, 1);
    for (int i = 0; r->cache && i < all->count; i++)
        if (all->list[i].enabled && !is_repeated(all, i))
            add_folder(table, r, prefix, owner, all->list[i].store, 0);
}

/* ---- work ---- */

/* Names of the command line in place of those that are found. */
static int find_owner(const request *r, const tool_prefix *prefix, tool_owner *owner)
{
    if (tool_owner_find(prefix, owner) != COMMAND_GOOD) return COMMAND_BAD;
    if (r->user) snprintf(owner->user, sizeof owner->user, "%s", r->user);
    if (r->jobid) snprintf(owner->job, sizeof owner->job, "%s", r->jobid);
    return COMMAND_GOOD;
}

static int work(const request *r, const tool_prefix *prefix)
{
    static const tool_column columns[] = {{"kind", "KIND", TOOL_TEXT},
                                          {"path", "PATH", TOOL_TEXT}};
    scr_problems problems = {0, NULL};
    scr_descs descs;
    tool_owner owner;
    tool_table *table;
    if (find_owner(r, prefix, &owner) != COMMAND_GOOD) return COMMAND_BAD;
    if (scr_descs_load(&prefix->config, &descs, &problems) != 0)
        return tool_complain("no memory");
    int code = tool_tell_problems(&problems);
    if (code == COMMAND_GOOD) {
        table = tool_table_new(columns, 2);
        print_folders(table, r, prefix, &owner, &descs);
        code = tool_table_print(table, r->json ? TOOL_JSON : TOOL_LINES);
    }
    scr_descs_done(&descs);
    return code;
}

/* ---- arguments ---- */

/* A name that becomes a part of a path. */
static int check_name(const tool *t, const char *name, size_t size)
{
    if (name && (!*name || strlen(name) >= size || strchr(name, '/') ||
                 strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
        return tool_misused(t, "'%.60s' is no name of a user or a job", name);
    return -1;
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        {'p', "prefix", "FOLDER", "the prefix folder (default: SCR_PREFIX, or this one)",
         .text = &r.dir},
        {'u', "user", "NAME", "of that user", .text = &r.user},
        {'i', "jobid", "ID", "of that allocation", .text = &r.jobid},
        {'b', "base", NULL, "print only the folder below which it lies", .flag = &r.base},
        {'j', "json", NULL, "print a JSON object per folder", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... control|cache|all",
        .about =
            "Prints the control folder, or the cache folders, that a job has on this "
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
    code = check_name(&t, r.user, SCR_USER_SIZE);
    if (code < 0) code = check_name(&t, r.jobid, SCR_JOB_ID_SIZE);
    if (code >= 0) return code;
    code = tool_prefix_configure(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = work(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
