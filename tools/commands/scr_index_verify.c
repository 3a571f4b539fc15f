/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_index --verify: reads every file of a dataset and compares it with the map. */
#include "base/path.h"
#include "commands/scr_index.h"
#include "common/beneath.h"
#include "common/io.h"
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_progress.h"
#include "scavenge/scan.h"

#include <errno.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTED = 10 }; /* bad files of a dataset that are reported individually */

/* Bytes of all datasets: processed so far (read or skipped), and in total. */
typedef struct verify_sum {
    uint64_t done, total;
    bool is_counted; /* the total includes datasets that are still to come */
} verify_sum;

/* The result for one dataset. */
typedef struct verify_result {
    const char *name;
    int dir; /* the directory to which the names in the map are relative */
    long files, damaged, unchecked;
    uint64_t bytes;
    const char *verdict; /* the worst verdict of all files */
    long bad;            /* files that are damaged or unreadable */
    verify_sum *sum;
    hostlist ranks; /* rank7, ...: the ranks of bad files that are not reported */
} verify_result;

/* An unreadable file (no permission, no memory, an I/O error) may be intact. */
static const char *const verify_good = "good", *const verify_damaged = "damaged",
                         *const verify_unreadable = "unreadable";

static void verify_note(verify_result *v, int rc)
{
    if (rc && err_is_damage(rc))
        v->verdict = verify_damaged;
    else if (rc && v->verdict == verify_good)
        v->verdict = verify_unreadable;
}

/* Reports a bad file. 0 or -ENOMEM. */
static int verify_report_file(verify_result *v, int rank, const char *name,
                              const char *why)
{
    const hostlist *ranks = &v->ranks;
    char text[32];
    if (++v->bad <= REPORTED) {
        tool_say(DATASET_FILE_BAD, "%s: rank %d: %s: %s", v->name, rank, name, why);
        return 0;
    }
    snprintf(text, sizeof text, "rank%d", rank);
    if (ranks->count == HOSTLIST_MAX ||
        (ranks->count && strcmp(ranks->names[ranks->count - 1], text) == 0))
        return 0;
    return hostlist_parse(text, &v->ranks, NULL);
}

static void verify_report_others(verify_result *v)
{
    char *ranks = hostlist_compress(&v->ranks);
    if (v->bad > REPORTED)
        tool_say(DATASET_FILE_BAD, "%s: %ld more files, of %s", v->name,
                 v->bad - REPORTED, ranks ? ranks : "?");
    free(ranks);
    hostlist_done(&v->ranks);
}

/* Verifies a file that ranks wrote together. Its checksums are those of its parts, the
 * first of which is in the same list. */
static int verify_shared(const verify_result *v, const filo_file *shared, int count,
                         const filo_file files[], kvtree_error *err)
{
    struct stat st;
    int rc = filo_extract(v->dir, shared, NULL, err);
    rc = rc ? rc : beneath_stat(v->dir, shared->name, &st, err);
    if (rc || !filo_file_was_written(shared, &st)) return rc;
    for (int i = 0; i < count; i++)
        if (files[i].segments > 0 && !files[i].has_crc &&
            strcmp(files[i].segment->container, shared->name) == 0)
            return err_set(err, FILO_DAMAGED,
                           "written since the map, which has no checksums of its parts; "
                           "a copy must keep times (cp -a)");
    return 0;
}

/* Reports the progress of one file. */
static void verify_report(void *arg, uint64_t done, uint64_t total)
{
    const verify_sum *sum = arg;
    (void)total;
    tool_progress_set(sum->done + done, sum->total);
}

static int verify_files(void *arg, int rank, int count, const filo_file files[],
                        kvtree_error *err)
{
    verify_result *v = arg;
    for (int i = 0; i < count; i++) {
        kvtree_error why = {""};
        int rc = files[i].shared ? verify_shared(v, &files[i], count, files, &why)
                                 : filo_extract_with(v->dir, &files[i], NULL,
                                                     verify_report, v->sum, &why);
        if (!files[i].shared) { /* of a shared file, the parts count */
            v->files++;
            v->bytes += files[i].size;
            v->sum->done += files[i].size;
            v->unchecked += !files[i].has_crc;
        }
        if (rc == 0) continue;
        verify_note(v, rc);
        v->damaged += err_is_damage(rc);
        if (rc == -ENOMEM || verify_report_file(v, rank, files[i].name, why.text) != 0)
            return err_set(err, -ENOMEM, "no memory");
    }
    return 0;
}

/* Verifies the files of a dataset whose summary and map are good. */
static void verify_dataset(const tool_prefix *prefix, const scr_dataset *d,
                           verify_result *v)
{
    char map[SCR_NAME_SIZE + 32], key[SCR_DATASET_KEY_SIZE];
    kvtree_error err = {"no memory"};
    scr_dataset_key(d, key);
    snprintf(map, sizeof map, "%s/" FILO_MAP, d->name);
    char *folder = scr_path_join(prefix->path, d->name);
    filo_place place = {.folder = folder, .dataset = key};
    if (d->scattered)
        place = (filo_place){.folder = prefix->path, .map = map, .dataset = key};
    int rc = folder ? beneath_open_below(prefix->dir, d->scattered ? "" : d->name,
                                         &v->dir, &err)
                    : -ENOMEM;
    if (!rc) rc = filo_map_read(&place, NULL, verify_files, v, &err);
    io_close(&v->dir);
    free(folder);
    verify_note(v, rc);
    verify_report_others(v);
    if (rc) tool_say(DATASET_MAP_UNUSABLE, "%s: %s", d->name, err.text);
}

/* Checks summary and map first: they must describe the same files. */
static void verify_found(const tool_prefix *prefix, scr_scan *scan, verify_result *v)
{
    kvtree_error err = {""};
    int rc = scr_scan_one(scan, v->name, &err);
    if (rc) {
        tool_say(SCAN_FAILED, "%s: %s", v->name, err.text);
        v->verdict = rc == -ENOENT ? "missing" : verify_unreadable;
    } else if (scan->refused) {
        tool_say(DATASET_REFUSED, "%s", scan->why.text);
        verify_note(v, scan->code);
    } else if (!scan->found[0].complete) {
        tool_say(DATASET_INCOMPLETE, "%s: it is not complete", v->name);
        v->verdict = "incomplete";
    } else {
        if (!v->sum->is_counted) v->sum->total += scan->found[0].size;
        verify_dataset(prefix, &scan->found[0], v);
    }
}

/* Verifies a dataset and adds a row for it; an exit code. */
static int verify_name(const tool_prefix *prefix, const char *name, verify_sum *sum,
                       tool_table *table)
{
    kvtree_error err = {""};
    scr_scan scan;
    verify_result v = {.name = name, .dir = -1, .verdict = verify_good, .sum = sum};
    if (scr_scan_open(&scan, prefix->path, &err) == 0) {
        verify_found(prefix, &scan, &v);
        scr_scan_close(&scan);
    } else {
        tool_say(SCAN_FAILED, "%s: %s", name, err.text);
        v.verdict = verify_unreadable;
    }
    tool_table_text(table, name);
    tool_table_text(table, v.verdict);
    tool_table_mark(table, v.verdict == verify_good ? TOOL_GOOD : TOOL_BAD);
    tool_table_number(table, v.files);
    tool_table_number(table, (int64_t)v.bytes);
    tool_table_number(table, v.damaged);
    tool_table_number(table, v.unchecked);
    return v.verdict == verify_good ? COMMAND_GOOD : COMMAND_BAD;
}

static bool verify_is_complete(const kvtree *index, const scr_dataset *d)
{
    scr_index_state state = {.complete = 0};
    scr_index_look(index, d, &state);
    return state.complete == 1;
}

/* Verifies the datasets that are complete in the index, newest first. */
static int verify_all(const tool_prefix *prefix, const kvtree *index, tool_table *table)
{
    scr_dataset *list = NULL;
    verify_sum sum = {0};
    int count = 0, code = COMMAND_GOOD;
    if (scr_index_list(index, &list, &count) != 0) code = tool_no_memory();
    for (int i = 0; i < count; i++)
        if (verify_is_complete(index, &list[i])) sum.total += list[i].size;
    sum.is_counted = sum.total > 0;
    for (int i = count - 1; i >= 0; i--)
        if (verify_is_complete(index, &list[i]))
            code |= verify_name(prefix, list[i].name, &sum, table);
    free(list);
    return code;
}

int index_verify(const tool_prefix *prefix, const index_request *r)
{
    static const tool_column columns[] = {
        {"name", "NAME", TOOL_TEXT},         {"result", "RESULT", TOOL_TEXT},
        {"files", "FILES", TOOL_NUMBER},     {"bytes", "BYTES", TOOL_NUMBER},
        {"damaged", "DAMAGED", TOOL_NUMBER}, {"without_crc", "NO CRC", TOOL_NUMBER}};
    kvtree *index = NULL;
    verify_sum named = {0};
    int code = r->names ? COMMAND_GOOD : index_read(prefix, &index);
    if (code != COMMAND_GOOD) return code;
    tool_table *table = tool_table_new(columns, 6);
    tool_progress_begin("verify", NULL);
    if (index) code = verify_all(prefix, index, table);
    kvtree_delete(&index);
    for (int i = 0; i < r->names; i++)
        code |= verify_name(prefix, r->list[i], &named, table);
    tool_progress_end();
    int printed = tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
    return code == COMMAND_GOOD ? printed : code;
}
