/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_index: the index of the datasets in a prefix folder: listed, changed, made again
 * where it was lost, and held against the files (SCR Developer Guide 1.2, sections 2.15
 * and 2.33.4). */
#include "commands/scr_index.h"

#include "base/versions.h"
#include "lib/tool.h"
#include "prefix/flush_file.h"
#include "prefix/scan.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* An exit code. */
int index_read(const tool_prefix *prefix, scr_index *index)
{
    char err[ERRTEXT_SIZE] = "no memory";
    int rc = index ? scr_index_read(prefix->dir, index, err) : -ENOMEM;
    if (rc == -ENOENT) {
        tool_complain("%s: no index; --rebuild makes one of what is there", prefix->path);
        tool_prefix_tell_unused(prefix);
        return COMMAND_BAD;
    }
    if (rc == -EBADMSG)
        return tool_complain("%s: %s; --rebuild makes a new one", prefix->path, err);
    return rc ? tool_complain("%s: %s", prefix->path, err) : COMMAND_GOOD;
}

/* The dataset that a name stands for. */
static int find(const tool_prefix *prefix, const scr_index *index, const char *name,
                scr_dataset *d)
{
    char names[256];
    if (scr_index_get(index, name, d) == 0) return COMMAND_GOOD;
    scr_index_names(index, names, sizeof names);
    return tool_complain("there is no dataset \"%s\"; %s has: %s", name, prefix->path,
                         names);
}

/* ---- list and inspect ---- */

static int print_all(const scr_index *index, int json)
{
    scr_dataset *list = NULL;
    int count = 0;
    tool_table *table = index_table(json);
    if (scr_index_list(index, &list, &count) != 0) return tool_complain("no memory");
    for (int i = count - 1; i >= 0; i--)
        index_row(table, json, index, &list[i]);
    free(list);
    return tool_table_print(table, json ? TOOL_JSON : TOOL_COLUMNS);
}

static int print_one(const scr_index *index, const scr_dataset *d, int json)
{
    tool_table *table = index_table(1);
    index_row(table, 1, index, d);
    return tool_table_print(table, json ? TOOL_JSON : TOOL_LINES);
}

static int list(const tool_prefix *prefix, const index_request *r)
{
    kvtree *index = kvtree_new();
    int code = index_read(prefix, index);
    if (code == COMMAND_GOOD) code = print_all(index, r->json);
    kvtree_delete(&index);
    return code;
}

static int inspect(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset d;
    kvtree *index = kvtree_new();
    int code = index_read(prefix, index);
    if (code == COMMAND_GOOD) code = find(prefix, index, r->name, &d);
    if (code == COMMAND_GOOD) code = print_one(index, &d, r->json);
    kvtree_delete(&index);
    return code;
}

/* What the dataset says of itself; no index is needed. */
static int summary(const tool_prefix *prefix, const index_request *r)
{
    char err[ERRTEXT_SIZE] = "";
    scr_dataset d;
    int folder, code = COMMAND_GOOD;
    int rc = index_open_folder(prefix, r->name, &folder, err);
    if (!rc) {
        rc = scr_summary_read(folder, &d, err);
        io_close(&folder);
    }
    if (rc) return tool_complain("%s: %s", r->name, err);
    kvtree *nothing = kvtree_new();
    if (strcmp(d.name, r->name) != 0)
        tool_complain("%s: its summary has the name %s", r->name, d.name);
    code = print_one(nothing, &d, r->json);
    kvtree_delete(&nothing);
    return code;
}

/* ---- changes ---- */

/* A change of one entry, under the lock of the index. */
struct change {
    int (*apply)(scr_index *index, const scr_dataset *d);
    const scr_dataset *d;
};

static int apply_change(kvtree *index, void *arg)
{
    const struct change *c = arg;
    int rc = c->apply(index, c->d);
    return rc ? rc : 1;
}

static int change(const tool_prefix *prefix, const scr_dataset *d,
                  int (*apply)(scr_index *index, const scr_dataset *d))
{
    char err[ERRTEXT_SIZE] = "no memory";
    struct change c = {apply, d};
    kvtree *index = kvtree_new();
    int rc =
        index ? scr_index_update(prefix->dir, apply_change, &c, index, err) : -ENOMEM;
    kvtree_delete(&index);
    return rc ? tool_complain("%s", err) : COMMAND_GOOD;
}

/* It is not flushed for the next run either, which would enter it again. A flush file
 * that is missing or damaged says nothing of it. */
static int unset_location(kvtree *flush, void *arg)
{
    const scr_dataset *d = arg;
    const char *name = scr_flush_file_name(flush, d->id);
    if (!name || strcmp(name, d->name) != 0 ||
        !scr_flush_file_has(flush, d->id, SCR_LOCATION_PFS))
        return 0;
    int rc = scr_flush_file_set(flush, d->id, name, SCR_LOCATION_PFS, 0);
    return rc ? rc : 1;
}

static void drop_location(const tool_prefix *prefix, scr_dataset *d)
{
    char err[ERRTEXT_SIZE] = "";
    kvtree *flush = kvtree_new();
    const scr_change c = {.prefix = prefix->dir,
                          .name = SCR_FLUSH_FILE_NAME,
                          .change = unset_location,
                          .arg = d};
    int rc = flush ? scr_change_record(&c, flush, err) : -ENOMEM;
    if (rc && rc != -ENOENT && rc != -EBADMSG)
        tool_complain("warning: the flush file could not be written: %s", err);
    kvtree_delete(&flush);
}

void index_say(const char *name, const char *what)
{
    tool_print(name);
    printf(": %s\n", what);
}

static int drop(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset d;
    kvtree *index = kvtree_new();
    int code = index_read(prefix, index);
    if (code == COMMAND_GOOD) code = find(prefix, index, r->name, &d);
    if (code == COMMAND_GOOD) code = change(prefix, &d, scr_index_remove);
    if (code == COMMAND_GOOD) {
        drop_location(prefix, &d);
        index_say(d.name, "removed from the index; its files stay");
    }
    kvtree_delete(&index);
    return code;
}

static int choose(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset d;
    scr_index_state state = {.complete = 0};
    kvtree *index = kvtree_new();
    int code = index_read(prefix, index);
    if (code == COMMAND_GOOD) code = find(prefix, index, r->name, &d);
    if (code == COMMAND_GOOD) {
        scr_index_look(index, &d, &state);
        const char *why = scr_index_why_not(&d, &state);
        if (why)
            code = tool_complain("%s cannot be the current checkpoint: %s", d.name, why);
    }
    if (code == COMMAND_GOOD) code = change(prefix, &d, scr_index_choose);
    if (code == COMMAND_GOOD)
        index_say(d.name, "current: the next run begins with it, unless it finds a newer "
                          "one in its caches");
    kvtree_delete(&index);
    return code;
}

/* ---- what is on the prefix folder ---- */

/* Which one is current stays as it is: it may be somebody's wish. */
int index_enter_all(const tool_prefix *prefix, const scr_scan *scan, int *added)
{
    char err[ERRTEXT_SIZE] = "no memory";
    kvtree *index = kvtree_new();
    int rc =
        index ? scr_index_make(prefix->dir, scan->found, scan->count, index, added, err)
              : -ENOMEM;
    kvtree_delete(&index);
    return rc ? tool_complain("%s", err) : COMMAND_GOOD;
}

/* ---- an index that was lost ---- */

/* A damaged one makes room for a new one. */
static int set_damaged_aside(const tool_prefix *prefix)
{
    char err[ERRTEXT_SIZE] = "no memory", aside[SCR_INDEX_ASIDE_SIZE];
    kvtree *index = kvtree_new();
    int rc = index ? scr_index_read(prefix->dir, index, err) : -ENOMEM;
    kvtree_delete(&index);
    if (rc == -EBADMSG) {
        tool_complain("%s", err);
        rc = scr_index_set_aside(prefix->dir, aside, err);
        if (!rc && aside[0]) printf("the damaged index is %s now\n", aside);
    }
    return rc && rc != -ENOENT ? tool_complain("%s", err) : COMMAND_GOOD;
}

static void print_scan(const scr_scan *scan, int added)
{
    printf("%d datasets found, %d added to the index\n", scan->count, added);
    if (scan->refused)
        tool_complain("%d cannot be restarted from; the first: %s", scan->refused,
                      scan->why);
    if (scan->stopped)
        tool_complain("the search did not look into all folders: there may be more");
}

static int rebuild(const tool_prefix *prefix)
{
    char err[ERRTEXT_SIZE] = "";
    scr_scan scan;
    int added = 0, code = set_damaged_aside(prefix);
    if (code != COMMAND_GOOD) return code;
    if (scr_scan_open(&scan, prefix->path, err) != 0) return tool_complain("%s", err);
    int rc = scr_scan_all(&scan, NULL, err);
    if (rc) code = tool_complain("%s", err);
    /* in a folder that nobody means nothing is made */
    if (!rc && scan.count == 0 && tool_prefix_tell_unused(prefix)) code = COMMAND_BAD;
    if (code == COMMAND_GOOD && beneath_mkdirs(prefix->dir, ".scr", 0777, err) != 0)
        code = tool_complain("%s", err);
    if (!rc && scan.code == SCR_OTHER_VERSION) code = tool_complain("%s", scan.why);
    if (code == COMMAND_GOOD) code = index_enter_all(prefix, &scan, &added);
    if (code == COMMAND_GOOD) print_scan(&scan, added);
    scr_scan_close(&scan);
    return code;
}

/* ---- arguments ---- */

/* These change the index; the others print. */
static int is_change(enum index_task task)
{
    return task == INDEX_ADD || task == INDEX_DROP || task == INDEX_CURRENT ||
           task == INDEX_REBUILD;
}

static int run(const index_request *r)
{
    tool_prefix prefix;
    if (is_change(r->task)) command_outlive_reader();
    /* what was scavenged is packed as the configuration says */
    int code = (r->task == INDEX_ADD ? tool_prefix_configure_anyway
                                     : tool_prefix_open)(&prefix, r->dir);
    if (code == COMMAND_GOOD) {
        switch (r->task) {
        case INDEX_ADD:
            code = index_add(&prefix, r);
            break;
        case INDEX_DROP:
            code = drop(&prefix, r);
            break;
        case INDEX_CURRENT:
            code = choose(&prefix, r);
            break;
        case INDEX_INSPECT:
            code = inspect(&prefix, r);
            break;
        case INDEX_SUMMARY:
            code = summary(&prefix, r);
            break;
        case INDEX_REBUILD:
            code = rebuild(&prefix);
            break;
        case INDEX_SCAN:
            code = index_scan(&prefix, r);
            break;
        case INDEX_VERIFY:
            code = index_verify(&prefix, r);
            break;
        default:
            code = list(&prefix, r);
        }
    }
    tool_prefix_close(&prefix);
    return code;
}

/* What stands on the command line: for each task that has one, the name. */
struct given {
    const char *name[INDEX_NAMED];
    int list, rebuild, verify;
};

/* -1 to go on. */
static int take_request(const tool *t, const struct given *g, const tool_args *args,
                        index_request *r)
{
    static const enum index_task tasks[INDEX_NAMED] = {
        INDEX_ADD,     INDEX_DROP,    INDEX_DROP, INDEX_CURRENT,
        INDEX_INSPECT, INDEX_SUMMARY, INDEX_SCAN};
    int count = g->list + g->rebuild + g->verify;
    if (g->rebuild) r->task = INDEX_REBUILD;
    if (g->verify) r->task = INDEX_VERIFY;
    for (int i = 0; i < INDEX_NAMED; i++) {
        if (!g->name[i]) continue;
        count++;
        r->task = tasks[i];
        r->name = g->name[i];
    }
    if (count > 1) return tool_misused(t, "more than one task");
    if (r->name && scr_dataset_check_name(r->name, NULL) != 0)
        return tool_misused(t, "'%s' is no name of a dataset", r->name);
    if (args->count && !g->verify)
        return tool_misused(t, "names of datasets stand alone with --verify only");
    if (r->json && is_change(r->task))
        return tool_misused(t, "--json goes with what prints a table");
    r->names = args->count;
    r->list = args->list;
    return -1;
}

int main(int argc, char **argv)
{
    index_request r = {.task = INDEX_LIST, .width = 4};
    struct given g = {.list = 0};
    const tool_option options[] = {
        {'p', "prefix", "FOLDER", "the prefix folder (default: SCR_PREFIX, or this one)",
         .text = &r.dir},
        {'l', "list", NULL, "list all datasets, the newest first (the default)",
         .flag = &g.list},
        {'a', "add", "NAME",
         "add the dataset in the folder NAME below FOLDER; what was\n"
         "scavenged of it is completed first",
         .text = &g.name[0]},
        {'r', "remove", "NAME", "remove dataset NAME from the index; its files stay",
         .text = &g.name[1]},
        {'D', "drop", "NAME", "the same", .text = &g.name[2]},
        {'c', "current", "NAME", "let the next run begin with dataset NAME",
         .text = &g.name[3]},
        {'i', "inspect", "NAME", "print what the index has of dataset NAME",
         .text = &g.name[4]},
        {'s', "summary", "NAME", "print what dataset NAME says of itself",
         .text = &g.name[5]},
        {'S', "scan", "NAME",
         "print what was scavenged of dataset NAME, and what it\n"
         "lacks",
         .text = &g.name[6]},
        {'w', "width", "N", "rebuild so many redundancy sets at a time (default: 4)",
         .number = &r.width},
        {'b', "rebuild", NULL,
         "make the index again of the datasets that are there, or\n"
         "add those that it does not have",
         .flag = &g.rebuild},
        {'v', "verify", NULL,
         "read and check every file of all complete datasets, or\n"
         "of those named",
         .flag = &g.verify},
        {'j', "json", NULL, "print a JSON object per dataset", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [NAME]...",
        .about =
            "Lists the datasets in a prefix folder, and changes and checks the index "
            "of them.\n",
        .codes = "0 done, 1 an error, or a dataset is damaged, 2 wrong usage.\n",
        .options = options,
        .most = -1};
    tool_args args;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = take_request(&t, &g, &args, &r);
    return code >= 0 ? code : tool_finish(run(&r));
}
