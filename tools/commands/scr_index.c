/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_index: lists, changes, rebuilds and verifies the index of the datasets on a prefix
 * directory (SCR Developer Guide 1.2, sections 2.15 and 2.33.4). */
#include "commands/scr_index.h"

#include "base/versions.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/record_size.h"
#include "lib/tool.h"
#include "prefix/flush_file.h"
#include "scavenge/scan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

int index_read(const tool_prefix *prefix, kvtree **index)
{
    kvtree_error err = {"no memory"};
    *index = kvtree_new();
    int rc = *index ? scr_index_read(prefix->dir, *index, &err) : -ENOMEM;
    if (!rc) return COMMAND_GOOD;
    kvtree_delete(index);
    if (rc != -ENOENT)
        return tool_say(INDEX_UNREADABLE, "%s: %s%s", prefix->path, err.text,
                        rc == -EBADMSG ? "; --rebuild makes a new one" : "");
    if (!tool_prefix_tell_unused(prefix))
        return tool_say(INDEX_MISSING, "%s: no index; --rebuild makes one", prefix->path);
    return tool_say(INDEX_MISSING,
                    "%s: no index; if .scr was removed, --rebuild makes one of the "
                    "datasets that are left",
                    prefix->path);
}

int index_find(const tool_prefix *prefix, const char *name, kvtree **index,
               scr_dataset *d)
{
    char names[256];
    int code = index_read(prefix, index);
    if (code != COMMAND_GOOD || scr_index_get(*index, name, d) == 0) return code;
    scr_index_names(*index, names, sizeof names);
    kvtree_delete(index);
    return tool_say(DATASET_UNKNOWN, "there is no dataset \"%s\"; %s has: %s", name,
                    prefix->path, names);
}

/* ---- tasks that print ---- */

static int index_print_list(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset *list = NULL;
    int count = 0;
    kvtree *index;
    int code = index_read(prefix, &index);
    if (code != COMMAND_GOOD) return code;
    if (scr_index_list(index, &list, &count) != 0) {
        code = tool_no_memory();
    } else {
        tool_table *table = index_table(r->json);
        for (int i = count - 1; i >= 0; i--)
            index_row(table, r->json, index, &list[i]);
        code = tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
    }
    free(list);
    kvtree_delete(&index);
    return code;
}

static int index_print_one(const scr_index *index, const scr_dataset *d, int json)
{
    tool_table *table = index_table(1);
    index_row(table, 1, index, d);
    return tool_table_print(table, json ? TOOL_JSON : TOOL_LINES);
}

static int index_inspect(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset d;
    kvtree *index;
    int code = index_find(prefix, r->name, &index, &d);
    if (code != COMMAND_GOOD) return code;
    code = index_print_one(index, &d, r->json);
    kvtree_delete(&index);
    return code;
}

/* Prints the summary of a dataset; needs no index. */
static int index_print_summary(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {""};
    scr_dataset d;
    int folder = -1;
    int rc = beneath_open_below(prefix->dir, r->name, &folder, &err);
    if (!rc) rc = scr_summary_read(folder, &d, &err);
    io_close(&folder);
    if (rc) return tool_say(SUMMARY_UNUSABLE, "%s: %s", r->name, err.text);
    if (strcmp(d.name, r->name) != 0)
        tool_say(SUMMARY_OTHER_NAME, "%s: its summary has the name %s", r->name, d.name);
    return index_print_one(NULL, &d, r->json);
}

/* ---- tasks that change an entry ---- */

typedef struct index_change {
    int (*apply)(scr_index *index, const scr_dataset *d);
    const scr_dataset *d;
} index_change;

static int index_apply(kvtree *index, void *arg)
{
    const index_change *c = arg;
    int rc = c->apply(index, c->d);
    return rc ? rc : 1;
}

/* Changes an entry under the lock of the index. */
static int index_change_entry(const tool_prefix *prefix, index_change c)
{
    kvtree_error err = {"no memory"};
    kvtree *index = kvtree_new();
    int rc =
        index ? scr_index_update(prefix->dir, index_apply, &c, index, &err) : -ENOMEM;
    kvtree_delete(&index);
    return rc ? tool_say(INDEX_NOT_CHANGED, "%s", err.text) : COMMAND_GOOD;
}

static int index_unset_location(kvtree *flush, void *arg)
{
    const scr_dataset *d = arg;
    const char *name = scr_flush_file_name(flush, d->id);
    if (!name || strcmp(name, d->name) != 0 ||
        !scr_flush_file_has(flush, d->id, SCR_LOCATION_PFS))
        return 0;
    int rc = scr_flush_file_set(flush, d->id, name, SCR_LOCATION_PFS, 0);
    return rc ? rc : 1;
}

/* Removes the record in the flush file that the dataset is flushed: otherwise the next
 * run would enter the dataset again. The flush file is optional. */
static void index_drop_location(const tool_prefix *prefix, scr_dataset *d)
{
    kvtree_error err = {""};
    kvtree *flush = kvtree_new();
    const scr_change c = {.prefix = prefix->dir,
                          .name = SCR_FLUSH_FILE_NAME,
                          .limit = RECORD_SIZE_SMALL,
                          .change = index_unset_location,
                          .arg = d};
    int rc = flush ? scr_change_record(&c, flush, &err) : -ENOMEM;
    if (rc && rc != -ENOENT && rc != -EBADMSG)
        tool_say(FLUSH_FILE_NOT_WRITTEN, "flush file: %s", err.text);
    kvtree_delete(&flush);
}

void index_report(const char *name, const char *what)
{
    tool_print(name);
    printf(": %s\n", what);
}

static int index_remove(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset d;
    kvtree *index;
    int code = index_find(prefix, r->name, &index, &d);
    if (code != COMMAND_GOOD) return code;
    kvtree_delete(&index);
    code = index_change_entry(prefix, (index_change){scr_index_remove, &d});
    if (code != COMMAND_GOOD) return code;
    index_drop_location(prefix, &d);
    index_report(d.name, "removed from the index; its files stay");
    return COMMAND_GOOD;
}

typedef struct index_later {
    const scr_dataset *than;
    scr_dataset *gone; /* removed datasets, to be freed */
    int count;
} index_later;

static int index_remove_later(kvtree *index, void *arg)
{
    index_later *later = arg;
    int count, rc = scr_index_list(index, &later->gone, &count);
    later->count = 0;
    for (int i = 0; i < count && !rc; i++) {
        const scr_dataset d = later->gone[i];
        if (!scr_dataset_is_newer(&d, later->than)) continue;
        rc = scr_index_remove(index, &d);
        if (!rc) later->gone[later->count++] = d;
        if (rc == -ENOENT) rc = 0; /* removed with another one of its name */
    }
    return rc ? rc : later->count > 0;
}

static int index_drop_after(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {"no memory"};
    scr_dataset d;
    kvtree *index;
    index_later later = {&d, NULL, 0};
    int code = index_find(prefix, r->name, &index, &d);
    if (code != COMMAND_GOOD) return code;
    kvtree_unset_all(index);
    int rc = scr_index_update(prefix->dir, index_remove_later, &later, index, &err);
    for (int i = 0; i < later.count && !rc; i++) {
        index_drop_location(prefix, &later.gone[i]);
        index_report(later.gone[i].name, "removed from the index; its files stay");
    }
    if (later.count == 0 && !rc) index_report(d.name, "no dataset is newer");
    free(later.gone);
    kvtree_delete(&index);
    return tool_result(INDEX_NOT_CHANGED, rc, &err);
}

static int index_set_current(const tool_prefix *prefix, const index_request *r)
{
    scr_dataset d;
    scr_index_state state = {.complete = 0};
    kvtree *index;
    int code = index_find(prefix, r->name, &index, &d);
    if (code != COMMAND_GOOD) return code;
    scr_index_look(index, &d, &state);
    kvtree_delete(&index);
    const char *why = scr_index_why_not(&d, &state);
    if (why) return tool_say(DATASET_NOT_SELECTABLE, "%s: %s", d.name, why);
    code = index_change_entry(prefix, (index_change){scr_index_choose, &d});
    if (code == COMMAND_GOOD)
        index_report(d.name, "current: the next run begins with it, unless it finds a "
                             "newer one in its caches");
    return code;
}

/* ---- entries for datasets that were found ---- */

/* Enters the datasets without changing CURRENT, which the user may have chosen. */
int index_enter_all(const tool_prefix *prefix, const scr_scan *scan, int *added)
{
    kvtree_error err = {"no memory"};
    kvtree *index = kvtree_new();
    int rc =
        index ? scr_index_make(prefix->dir, scan->found, scan->count, index, added, &err)
              : -ENOMEM;
    kvtree_delete(&index);
    return rc ? tool_say(INDEX_NOT_CHANGED, "%s", err.text) : COMMAND_GOOD;
}

static int index_set_damaged_aside(const tool_prefix *prefix)
{
    char aside[SCR_INDEX_ASIDE_SIZE];
    kvtree_error err = {"no memory"};
    kvtree *index = kvtree_new();
    int rc = index ? scr_index_read(prefix->dir, index, &err) : -ENOMEM;
    kvtree_delete(&index);
    if (rc == -EBADMSG) {
        tool_say(INDEX_UNREADABLE, "%s", err.text);
        rc = scr_index_set_aside(prefix->dir, aside, &err);
        if (!rc && aside[0]) printf("the damaged index is %s now\n", aside);
    }
    return tool_result(INDEX_NOT_CHANGED, rc && rc != -ENOENT, &err);
}

static int index_enter_scan(const tool_prefix *prefix, const scr_scan *scan)
{
    kvtree_error err = {""};
    int added = 0;
    /* a directory that no run has used is probably a mistake, so it is not changed */
    if (scan->count == 0 && tool_prefix_tell_unused(prefix)) return COMMAND_BAD;
    if (beneath_mkdirs(prefix->dir, ".scr", 0777, &err) != 0)
        return tool_say(DIRECTORY_UNUSABLE, "%s", err.text);
    if (scan->code == SCR_OTHER_VERSION)
        return tool_say(PREFIX_VERSION, "%s", scan->why.text);
    int code = index_enter_all(prefix, scan, &added);
    if (code != COMMAND_GOOD) return code;
    printf("%d datasets found, %d added to the index\n", scan->count, added);
    if (scan->refused)
        tool_say(DATASET_REFUSED, "%d cannot be restarted from; the first: %s",
                 scan->refused, scan->why.text);
    if (scan->stopped) tool_say(SCAN_INCOMPLETE, "not all directories were searched");
    return COMMAND_GOOD;
}

static int index_rebuild(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {""};
    scr_scan scan;
    int code = index_set_damaged_aside(prefix);
    if (code != COMMAND_GOOD) return code;
    if (scr_scan_open(&scan, prefix->path, &err) != 0)
        return tool_say(SCAN_FAILED, "%s", err.text);
    code = scr_scan_all(&scan, NULL, &err) != 0 ? tool_say(SCAN_FAILED, "%s", err.text)
                                                : index_enter_scan(prefix, &scan);
    scr_scan_close(&scan);
    return code;
}

/* ---- arguments ---- */

typedef struct index_task {
    char letter;                     /* letter of the option, as in tool_option */
    const char *name, *value, *help; /* value: NULL, or the name of the option's value */
    int (*run)(const tool_prefix *prefix, const index_request *r);
    bool changes; /* it changes the index; other tasks print */
    bool by_id;   /* the value is an id */
} index_task;

static const index_task index_tasks[] = {
    {'l', "list", NULL, "list all datasets, newest first (the default)",
     .run = index_print_list},
    {'a', "add", "NAME",
     "add the dataset in the directory NAME below DIRECTORY; a\n"
     "scavenged dataset is completed first",
     .run = index_add, .changes = true},
    {'b', "build", "ID", "the same for the dataset with that id", .run = index_build,
     .changes = true, .by_id = true},
    {'r', "remove", "NAME", "remove dataset NAME from the index; its files stay",
     .run = index_remove, .changes = true},
    {'d', "drop", "NAME", "the same", .run = index_remove, .changes = true},
    {'A', "drop-after", "NAME",
     "remove all datasets newer than NAME from the index; their\nfiles stay",
     .run = index_drop_after, .changes = true},
    {'c', "current", "NAME", "let the next run begin with dataset NAME",
     .run = index_set_current, .changes = true},
    {'i', "inspect", "NAME", "print the index entry of dataset NAME",
     .run = index_inspect},
    {'s', "summary", "NAME", "print the summary of dataset NAME",
     .run = index_print_summary},
    {'S', "scan", "NAME",
     "print the scavenged files of dataset NAME, and which are\n"
     "missing",
     .run = index_print_scan},
    {'R', "rebuild", NULL,
     "rebuild the index from the datasets in DIRECTORY, or add\n"
     "those that it lacks",
     .run = index_rebuild, .changes = true},
    {'I', "import", "DIR",
     "make a dataset of the files in DIR below DIRECTORY that\n"
     "no SCR wrote; they stay where they are",
     .run = index_import, .changes = true},
    {'v', "verify", NULL,
     "read and check every file of all complete datasets, or\n"
     "of those named",
     .run = index_verify},
};
enum { INDEX_TASKS = sizeof index_tasks / sizeof *index_tasks };

/* The options given for each task. */
typedef struct index_given {
    const char *name[INDEX_TASKS];
    int flag[INDEX_TASKS];
} index_given;

/* Finds the task; -1 to continue, or an exit code. */
static int index_take_request(const tool *t, const index_given *g, const tool_args *args,
                              index_request *r, const index_task **task)
{
    int count = 0;
    *task = &index_tasks[0];
    for (int i = 0; i < INDEX_TASKS; i++) {
        if (!g->name[i] && !g->flag[i]) continue;
        count++;
        *task = &index_tasks[i];
        r->name = g->name[i];
    }
    if (count > 1) return tool_misused(t, "more than one task");
    bool by_id = (*task)->by_id;
    if (by_id && command_number(t->arguments, "--build", r->name, &r->id) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    if (r->name && !by_id && (*task)->run != index_import &&
        scr_dataset_check_name(r->name, NULL) != 0)
        return tool_misused(t, "'%s' is not a name of a dataset", r->name);
    if (args->count && (*task)->run != index_verify)
        return tool_misused(t,
                            "'%s': names of datasets stand alone with --verify only; "
                            "--prefix DIRECTORY names the prefix directory",
                            args->list[0]);
    if (r->json && (*task)->changes)
        return tool_misused(t, "--json goes with tasks that print a table");
    if ((*task)->run != index_import && (r->dataset || r->map))
        return tool_misused(t, "--name and --map go with --import");
    if (r->dataset && scr_dataset_check_name(r->dataset, NULL) != 0)
        return tool_misused(t, "'%s' is not a name of a dataset", r->dataset);
    r->names = args->count;
    r->list = args->list;
    return -1;
}

static int index_run(const index_task *task, const index_request *r)
{
    tool_prefix prefix;
    if (task->changes) command_outlive_reader();
    /* --add packs files into containers according to the configuration */
    bool adds = task->run == index_add || task->run == index_build;
    int code = (adds ? tool_prefix_configure_anyway : tool_prefix_open)(&prefix, r->dir);
    if (code == COMMAND_GOOD) code = tool_prefix_convert(&prefix);
    if (code == COMMAND_GOOD) code = task->run(&prefix, r);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}

/* Removes the slashes that shells append when they complete the directory of a
 * dataset. */
static void index_strip_slashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t n = strlen(argv[i]);
        while (n > 1 && argv[i][n - 1] == '/' && argv[i][n - 2] != '=')
            argv[i][--n] = 0;
    }
}

int main(int argc, char **argv)
{
    index_request r = {.width = 4};
    index_given g = {.name = {NULL}};
    const index_task *chosen;
    tool_option options[INDEX_TASKS + 6] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'n', "name", "NAME", "name of the imported dataset (default: DIR)",
         .text = &r.dataset},
        {'m', "map", "PATTERN",
         "names of its files, separated by commas, with {rank} for\n"
         "the rank (default: all files, the last number of the name)",
         .text = &r.map},
        {'w', "width", "N", "rebuild N redundancy sets at the same time (default: 4)",
         .number = &r.width},
        {'j', "json", NULL, "print a JSON object per dataset", .flag = &r.json}};
    for (int i = 0; i < INDEX_TASKS; i++) {
        const index_task *task = &index_tasks[i];
        options[i + 5] = (tool_option){task->letter,
                                       task->name,
                                       task->value,
                                       task->help,
                                       .text = task->value ? &g.name[i] : NULL,
                                       .flag = task->value ? NULL : &g.flag[i]};
    }
    const tool t = {
        .arguments = "[OPTION]... [NAME]...",
        .about = "Lists the datasets in a prefix directory, and changes and checks the "
                 "index of them.\n",
        .codes = "0 done, 1 an error, or a dataset is damaged, 2 wrong usage.\n",
        .options = options,
        .most = -1};
    tool_args args;
    index_strip_slashes(argc, argv);
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = index_take_request(&t, &g, &args, &r, &chosen);
    return code >= 0 ? code : index_run(chosen, &r);
}
