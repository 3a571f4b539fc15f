/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_index --verify: every file of a dataset is read, and held against its map. */
#include "base/path.h"
#include "commands/scr_index.h"
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "prefix/scan.h"

#include <errno.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int index_open_folder(const tool_prefix *prefix, const char *name, int *folder, char *err)
{
    char inside[BENEATH_NAME_MAX + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s/x", name);
    return beneath_open_parent(prefix->dir, inside, 0, folder, &last, err);
}

/* What becomes of one dataset. */
typedef struct check {
    const char *name;
    int dir; /* the folder to which the names in the map are relative */
    int files, damaged, unchecked;
    uint64_t bytes;
    const char *result; /* for people and programs: the worst of it */
    int told;           /* files that are told one by one */
    int more;           /* others that are not good, and ... */
    hostlist ranks;     /* ... the ranks that have them: rank7 */
} check;

enum { TOLD = 10 };

/* What could not be read, for want of rights or memory or because a disk fails, may be
 * whole. */
static const char *const good = "good", *const damaged = "damaged",
                         *const unreadable = "unreadable";

static void note(check *c, int rc)
{
    if (rc && err_is_damage(rc))
        c->result = damaged;
    else if (rc && c->result == good)
        c->result = unreadable;
}

/* A file that is not good; thousands of them are a number and their ranks. */
static int tell_file(check *c, int rank, const char *name, const char *why)
{
    char text[32];
    if (c->told < TOLD) {
        c->told++;
        tool_complain("%s: rank %d: %s: %s", c->name, rank, name, why);
        return 0;
    }
    c->more++;
    snprintf(text, sizeof text, "rank%d", rank);
    int known = c->ranks.count && strcmp(c->ranks.names[c->ranks.count - 1], text) == 0;
    return known || c->ranks.count == HOSTLIST_MAX
               ? 0
               : hostlist_parse(text, &c->ranks, NULL);
}

static void tell_more(check *c)
{
    char *ranks = hostlist_compress(&c->ranks);
    if (c->more)
        tool_complain("%s: %d more files are damaged or cannot be read, of %s", c->name,
                      c->more, ranks ? ranks : "?");
    free(ranks);
    hostlist_done(&c->ranks);
}

static int check_files(void *arg, int rank, int count, const filo_file files[], char *err)
{
    check *c = arg;
    for (int i = 0; i < count; i++) {
        char why[FILO_ERROR_SIZE] = "";
        int rc = filo_extract(c->dir, &files[i], NULL, why);
        if (rc == -ENOMEM) return err_set(err, rc, "no memory");
        c->files++;
        c->bytes += files[i].size;
        c->unchecked += !files[i].has_crc;
        if (rc == 0) continue;
        note(c, rc);
        c->damaged += err_is_damage(rc);
        if (tell_file(c, rank, files[i].name, why) != 0)
            return err_set(err, -ENOMEM, "no memory");
    }
    return 0;
}

static int read_map(const tool_prefix *prefix, const scr_dataset *d, check *c, char *err)
{
    char map[SCR_NAME_SIZE + 32];
    snprintf(map, sizeof map, "%s/" FILO_MAP, d->name);
    char *folder = scr_path_join(prefix->path, d->name);
    filo_place place = {.folder = folder, .map = NULL};
    if (d->scattered) place = (filo_place){.folder = prefix->path, .map = map};
    int rc = folder ? filo_map_read(&place, NULL, check_files, c, err)
                    : err_set(err, -ENOMEM, "no memory");
    free(folder);
    return rc;
}

/* Checks the files of a dataset whose summary and map are good. */
static void check_dataset(const tool_prefix *prefix, const scr_dataset *d, check *c)
{
    char err[ERRTEXT_SIZE] = "";
    int folder = -1;
    int rc = d->scattered ? 0 : index_open_folder(prefix, d->name, &folder, err);
    c->dir = d->scattered ? prefix->dir : folder;
    rc = rc ? rc : read_map(prefix, d, c, err);
    io_close(&folder);
    note(c, rc);
    tell_more(c);
    if (rc) tool_complain("%s: %s", d->name, err);
}

static void add_row(tool_table *table, const check *c)
{
    tool_table_text(table, c->name);
    tool_table_text(table, c->result);
    tool_table_mark(table, c->result == good ? TOOL_GOOD : TOOL_BAD);
    tool_table_number(table, c->files);
    tool_table_number(table, (int64_t)c->bytes);
    tool_table_number(table, c->damaged);
    tool_table_number(table, c->unchecked);
}

/* Summary and map first: they must tell of the same files. */
static void check_found(const tool_prefix *prefix, scr_scan *scan, check *c)
{
    char err[ERRTEXT_SIZE] = "";
    int rc = scr_scan_one(scan, c->name, err);
    if (rc) {
        tool_complain("%s: %s", c->name, err);
        c->result = rc == -ENOENT ? "missing" : unreadable;
    } else if (scan->refused) {
        tool_complain("%s", scan->why);
        note(c, scan->code);
    } else if (!scan->found[0].complete) {
        tool_complain("%s: it is not complete", c->name);
        c->result = "incomplete";
    } else {
        check_dataset(prefix, &scan->found[0], c);
    }
}

/* An exit code. */
static int check_name(const tool_prefix *prefix, const char *name, tool_table *table)
{
    char err[ERRTEXT_SIZE] = "";
    scr_scan scan;
    check c = {.name = name, .dir = -1, .result = good};
    if (scr_scan_open(&scan, prefix->path, err) == 0) {
        check_found(prefix, &scan, &c);
        scr_scan_close(&scan);
    } else {
        tool_complain("%s: %s", name, err);
        c.result = unreadable;
    }
    add_row(table, &c);
    return c.result == good ? COMMAND_GOOD : COMMAND_BAD;
}

/* Those that the index calls complete, the newest first. */
static int check_all(const tool_prefix *prefix, const kvtree *index, tool_table *table)
{
    scr_dataset *list = NULL;
    int count = 0, code = COMMAND_GOOD;
    if (scr_index_list(index, &list, &count) != 0) code = tool_complain("no memory");
    for (int i = count - 1; i >= 0; i--) {
        scr_index_state state = {.complete = 0};
        scr_index_look(index, &list[i], &state);
        if (state.complete == 1 &&
            check_name(prefix, list[i].name, table) != COMMAND_GOOD)
            code = COMMAND_BAD;
    }
    free(list);
    return code;
}

int index_verify(const tool_prefix *prefix, const index_request *r)
{
    static const tool_column columns[] = {
        {"name", "NAME", TOOL_TEXT},         {"result", "RESULT", TOOL_TEXT},
        {"files", "FILES", TOOL_NUMBER},     {"bytes", "BYTES", TOOL_NUMBER},
        {"damaged", "DAMAGED", TOOL_NUMBER}, {"without_crc", "NO CRC", TOOL_NUMBER}};
    kvtree *index = r->names ? NULL : kvtree_new();
    int code = r->names ? COMMAND_GOOD : index_read(prefix, index);
    if (code != COMMAND_GOOD) {
        kvtree_delete(&index);
        return code;
    }
    tool_table *table = tool_table_new(columns, 6);
    if (index) code = check_all(prefix, index, table);
    kvtree_delete(&index);
    for (int i = 0; i < r->names; i++)
        if (check_name(prefix, r->list[i], table) != COMMAND_GOOD) code = COMMAND_BAD;
    int printed = tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
    return code == COMMAND_GOOD ? printed : code;
}
