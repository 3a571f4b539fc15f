/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_flush_file: prints where the datasets of the last run are (SCR Developer Guide 1.2,
 * section 2.24.2), for scripts that save datasets from the cache. */
#include "common/record_size.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "prefix/flush_file.h"
#include "scavenge/node_command.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct flush_file_request {
    const char *dir;
    int latest, list, json, output, ckpt, resume, summary;
    int needflush, location, subdir, before; /* ids of datasets; -1: not given */
    int needflush_old, name;                 /* the same options under other names */
} flush_file_request;

static const char *const flush_file_places[] = {SCR_LOCATION_CACHE, SCR_LOCATION_PFS,
                                                SCR_LOCATION_FLUSHING};
enum { PLACES = 3 };

/* Lists the places that have the dataset; returns their number. */
static int flush_file_places_of(const kvtree *flush, int id, const char *has[PLACES])
{
    int count = 0;
    for (int i = 0; i < PLACES; i++)
        if (scr_flush_file_has(flush, id, flush_file_places[i]))
            has[count++] = flush_file_places[i];
    return count;
}

/* ---- tasks: exit codes ---- */

static bool flush_file_is_older(const flush_file_request *r, int id)
{
    return r->before <= 0 || id < r->before;
}

static int flush_file_print_latest(const flush_file_request *r, int count, const int *ids)
{
    while (count > 0 && !flush_file_is_older(r, ids[count - 1]))
        count--;
    if (count == 0 || ids[count - 1] < 1) return COMMAND_BAD;
    printf("%d\n", ids[count - 1]);
    return COMMAND_GOOD;
}

/* Prints ids on one line: outputs in ascending order, checkpoints in descending order. */
static int flush_file_print_kind(const flush_file_request *r, const kvtree *flush,
                                 int count, const int *ids)
{
    const char *kind = r->output ? SCR_FLUSH_OUTPUT : SCR_FLUSH_CKPT, *between = "";
    for (int i = 0; i < count; i++) {
        int id = ids[r->output ? i : count - 1 - i];
        if (!flush_file_is_older(r, id) || !scr_flush_file_is(flush, id, kind)) continue;
        printf("%s%d", between, id);
        between = " ";
    }
    if (!*between) return COMMAND_BAD;
    printf("\n");
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

/* Executes the command that copies the dataset from the caches (--resume), or that
 * completes it and enters it into the index (--summary). Returns only after a failure. */
static int flush_file_save(const flush_file_request *r, const tool_prefix *prefix)
{
    tool_words words = {0};
    char id[16];
    const char *const copy[] = {"--stop", "--id", id, NULL};
    const char *const add[] = {"--build", id, NULL};
    snprintf(id, sizeof id, "%d", r->subdir);
    scavenge_command_begin(&words, r->resume ? "scr_scavenge" : "scr_index", prefix);
    tool_words_add_all(&words, r->resume ? copy : add);
    const char *const *argv = words.failed ? NULL : tool_words_list(&words);
    if (!argv) {
        tool_words_done(&words);
        return tool_no_memory();
    }
    if (command_flush() != COMMAND_GOOD) return COMMAND_BAD;
    execvp(argv[0], (char *const *)argv); /* finds a bare name in PATH */
    int code = tool_say(RUN_LAUNCH_FAILED, "%s: %s", argv[0], strerror(errno));
    tool_words_done(&words);
    return code;
}

static int flush_file_answer(const flush_file_request *r, const tool_prefix *prefix,
                             const kvtree *flush)
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
        if (count == 0) printf("NONE\n");
        return COMMAND_GOOD;
    }
    const char *name = scr_flush_file_name(flush, id);
    if (!name) return tool_say(FLUSH_FILE_UNUSABLE, "dataset %d has no name", id);
    tool_print(name);
    printf("\n");
    if (scr_flush_file_has(flush, id, SCR_LOCATION_PFS)) return COMMAND_GOOD;
    return r->resume || r->summary ? flush_file_save(r, prefix) : COMMAND_GOOD;
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
        code =
            tool_say(FLUSH_FILE_UNUSABLE, SCR_FLUSH_FILE_NAME ": an id is not a number");
    else if (r->output || r->ckpt)
        code = flush_file_print_kind(r, flush, count, ids);
    else if (r->latest)
        code = flush_file_print_latest(r, count, ids);
    else if (r->list)
        code = flush_file_print_list(flush, count, ids, r->json);
    else
        code = flush_file_answer(r, prefix, flush);
    free(ids);
    kvtree_delete(&flush);
    return code;
}

/* ---- arguments ---- */

/* Checks an id; -1 to continue. */
static int flush_file_check_id(const tool *t, int id, int least)
{
    if (id == -1 || (id >= least && id <= SCR_ID_MAX)) return -1;
    return tool_misused(t, "'%d' is not an id of a dataset", id);
}

/* Takes the id from the other name of the option. */
static void flush_file_take(int *id, int other)
{
    if (other != -1) *id = other;
}

/* Checks that there is exactly one task; -1 to continue. */
static int flush_file_check(const tool *t, flush_file_request *r)
{
    const int ids[] = {r->needflush, r->needflush_old, r->location, r->subdir, r->name};
    int tasks = r->latest + r->list + r->output + r->ckpt;
    int code = flush_file_check_id(t, r->before, tasks ? 0 : 1);
    for (int i = 0; i < 5; i++) {
        if (code < 0) code = flush_file_check_id(t, ids[i], 1);
        tasks += ids[i] != -1;
    }
    if (code >= 0) return code;
    if (tasks == 0 && r->before > 0) tasks = r->latest = 1;
    if (tasks != 1) return tool_misused(t, "one task is needed");
    if (r->before > 0 && !r->latest && !r->output && !r->ckpt)
        return tool_misused(t, "--before goes with --latest and lists of ids");
    if (r->json && !r->list) return tool_misused(t, "--json goes with --list");
    if (r->resume + r->summary > (r->name != -1))
        return tool_misused(t, "--resume or --summary goes with --name ID");
    flush_file_take(&r->needflush, r->needflush_old);
    flush_file_take(&r->subdir, r->name);
    return -1;
}

int main(int argc, char **argv)
{
    flush_file_request r = {.needflush = -1,
                            .location = -1,
                            .subdir = -1,
                            .before = -1,
                            .needflush_old = -1,
                            .name = -1};
    const tool_option options[] = {
        TOOL_DIR_OPTIONS(&r.dir),
        {'l', "latest", NULL, "print the id of the newest dataset", .flag = &r.latest},
        {'o', "list-output", NULL, "print the ids of outputs, in ascending order",
         .flag = &r.output},
        {'c', "list-ckpt", NULL, "print the ids of checkpoints, in descending order",
         .flag = &r.ckpt},
        {'b', "before", "ID",
         "with these: only ids less than ID, or all for 0; alone:\n"
         "print the newest id that is less than ID",
         .number = &r.before},
        {'n', "need-flush", "ID",
         "exit with 0 if dataset ID must still be copied to the\n"
         "parallel file system, with 1 if it is there",
         .number = &r.needflush},
        {'N', "needflush", "ID", "the same", .number = &r.needflush_old},
        {'L', "location", "ID", "print where dataset ID is: CACHE, PFS, FLUSHING, NONE",
         .number = &r.location},
        {'s', "name", "ID", "print the name of dataset ID", .number = &r.name},
        {'D', "subdir", "ID",
         "print the directory that dataset ID has below DIRECTORY:\nits name",
         .number = &r.subdir},
        {'r', "resume", NULL,
         "with --name: also copy it from the caches, unless it is\n"
         "on the parallel file system",
         .flag = &r.resume},
        {'S', "summary", NULL,
         "with --name, after --resume: also rebuild missing files\n"
         "and enter it into the index",
         .flag = &r.summary},
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
