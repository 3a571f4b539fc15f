/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_flush_file: prints where the datasets of the last run are (SCR Developer Guide 1.2,
 * section 2.24.2), for scripts that save datasets from the cache. */
#include "common/record_size.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "prefix/flush_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct flush_file_request {
    const char *dir;
    int latest, list, json;
    int needflush, location, subdir, before; /* ids of datasets; -1: not given */
} flush_file_request;

static const char *const flush_file_places[] = {SCR_LOCATION_CACHE, SCR_LOCATION_PFS,
                                                SCR_LOCATION_FLUSHING};
enum { PLACES = 3 };

/* The places that have the dataset; their number. */
static int flush_file_places_of(const kvtree *flush, int id, const char *has[PLACES])
{
    int count = 0;
    for (int i = 0; i < PLACES; i++)
        if (scr_flush_file_has(flush, id, flush_file_places[i]))
            has[count++] = flush_file_places[i];
    return count;
}

/* ---- tasks: exit codes ---- */

/* The highest id, or the highest below `before`. */
static int flush_file_print_latest(int before, int count, const int *ids)
{
    while (count > 0 && before > 0 && ids[count - 1] >= before)
        count--;
    if (count == 0 || ids[count - 1] < 1) return COMMAND_BAD;
    printf("%d\n", ids[count - 1]);
    return COMMAND_GOOD;
}

static int flush_file_print_list(const kvtree *flush, int count, const int *ids, int json)
{
    static const tool_column columns[] = {{"dset", "DSET", TOOL_NUMBER},
                                          {"name", "NAME", TOOL_TEXT},
                                          {"locations", "LOCATION", TOOL_LIST}};
    tool_table *table = tool_table_new(columns, 3);
    for (int i = 0; i < count; i++) {
        const char *has[PLACES];
        int n = flush_file_places_of(flush, ids[i], has);
        tool_table_number(table, ids[i]);
        tool_table_text(table, scr_flush_file_name(flush, ids[i]));
        tool_table_list(table, has, n);
    }
    return tool_table_print(table, json ? TOOL_JSON : TOOL_COLUMNS);
}

static int flush_file_answer(const flush_file_request *r, const kvtree *flush)
{
    const char *has[PLACES];
    int id = r->needflush > 0 ? r->needflush : r->location > 0 ? r->location : r->subdir;
    if (!kvtree_get_kv_int(flush, "DSET", id))
        return tool_say(DATASET_UNKNOWN, "there is no dataset %d", id);
    if (r->needflush > 0)
        return scr_flush_file_has(flush, id, SCR_LOCATION_PFS) ? COMMAND_BAD
                                                               : COMMAND_GOOD;
    if (r->location > 0) {
        int count = flush_file_places_of(flush, id, has);
        for (int i = 0; i < count; i++)
            printf("%s\n", has[i]);
        return count ? COMMAND_GOOD : COMMAND_BAD;
    }
    const char *name = scr_flush_file_name(flush, id);
    if (!name) return tool_say(FLUSH_FILE_UNUSABLE, "dataset %d has no name", id);
    tool_print(name);
    printf("\n");
    return COMMAND_GOOD;
}

static int flush_file_work(const flush_file_request *r, const tool_prefix *prefix)
{
    kvtree_error err = {"no memory"};
    int count = 0, *ids = NULL, code;
    kvtree *flush = kvtree_new();
    int rc = flush ? kvtree_file_read(prefix->dir, SCR_FLUSH_FILE_NAME, RECORD_SIZE_SMALL,
                                      flush, &err)
                   : -ENOMEM;
    if (rc) {
        code = tool_say(FLUSH_FILE_UNUSABLE, "%s: %s", prefix->path, err.text);
        tool_prefix_tell_unused(prefix);
    } else if (scr_flush_file_list(flush, &count, &ids) != 0)
        code = tool_say(FLUSH_FILE_UNUSABLE, SCR_FLUSH_FILE_NAME ": an id is no number");
    else if (r->latest || r->before > 0)
        code = flush_file_print_latest(r->before, count, ids);
    else if (r->list)
        code = flush_file_print_list(flush, count, ids, r->json);
    else
        code = flush_file_answer(r, flush);
    free(ids);
    kvtree_delete(&flush);
    return code;
}

/* ---- arguments ---- */

/* Exactly one task; -1 to continue. */
static int flush_file_check(const tool *t, const flush_file_request *r)
{
    const int ids[] = {r->needflush, r->location, r->subdir, r->before};
    int tasks = r->latest + r->list;
    for (int i = 0; i < 4; i++) {
        if (ids[i] == -1) continue;
        tasks++;
        if (ids[i] < 1 || ids[i] > SCR_ID_MAX)
            return tool_misused(t, "'%d' is no id of a dataset", ids[i]);
    }
    if (tasks != 1) return tool_misused(t, "one task is needed");
    if (r->json && !r->list) return tool_misused(t, "--json goes with --list");
    return -1;
}

int main(int argc, char **argv)
{
    flush_file_request r = {.needflush = -1, .location = -1, .subdir = -1, .before = -1};
    const tool_option options[] = {
        TOOL_DIR_OPTIONS(&r.dir),
        {'l', "latest", NULL, "print the id of the newest dataset", .flag = &r.latest},
        {'b', "before", "ID", "print the newest id that is less than ID",
         .number = &r.before},
        {'n', "needflush", "ID",
         "exit with 0 if dataset ID must still be copied to the\n"
         "parallel file system, with 1 if it is there",
         .number = &r.needflush},
        {'o', "location", "ID", "print where dataset ID is: CACHE, PFS, FLUSHING",
         .number = &r.location},
        {'s', "subdir", "ID", "print the directory that dataset ID has below DIRECTORY",
         .number = &r.subdir},
        {'a', "list", NULL, "list all datasets", .flag = &r.list},
        {'j', "json", NULL, "with --list: a JSON object per dataset", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... [DIRECTORY]",
        .about =
            "Prints where the datasets of the last run in DIRECTORY are, from its flush "
            "file.\n",
        .codes = "0 found, or yes; 1 not found, or no, or an error; 2 wrong usage.\n",
        .options = options,
        .most = 1,
        .folder = &r.dir};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    code = flush_file_check(&t, &r);
    if (code >= 0) return code;
    code = tool_prefix_open(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = flush_file_work(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
