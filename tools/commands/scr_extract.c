/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_extract: extracts, lists or verifies files of a dataset that are packed into
 * containers (SCR Developer Guide 1.2, section 2.12). */
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/others.h"
#include "common/owner.h"
#include "lib/tool.h"
#include "lib/tool_progress.h"
#include "lib/tool_table.h"
#include <errno.h>
#include <filo/filo.h>
#include <inttypes.h>
#include <kvtree/kvtree_gather.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum task { EXTRACT, LIST, VERIFY };

typedef struct extract_request {
    enum task task;
    filo_place place;
    const char *to;
    int force, json;
    int rank; /* -1: all ranks */
    int names;
    char **name;
} extract_request;

enum outcome { LISTED, EXTRACTED, THERE, GOOD, DAMAGED, FAILED, OUTCOMES };

static const char *const outcome_names[OUTCOMES] = {
    "listed", "extracted", "there already", "good", "damaged", "failed"};

typedef struct extract_work {
    const extract_request *r;
    int dir, to;          /* the dataset's directory; the directory for extracted files;
                           * -1: not open */
    int64_t shared;       /* other users who can change the map, as found by
                           * others_put_below */
    kvtree *wanted;       /* NAME -> FOUND if the map has the file */
    kvtree *containers;   /* names of all containers, ... */
    kvtree *shared_files; /* ... and of files that ranks wrote together */
    int count[OUTCOMES];
    uint64_t done, total; /* bytes of chosen files */
    int code;             /* COMMAND_BAD if a row could not be made */
} extract_work;

/* ---- output ---- */

static void extract_print_row(int rank, const filo_file *file)
{
    printf("%7d %14" PRIu64 " ", rank, file->size);
    if (file->has_crc)
        printf("0x%08" PRIx32 "  ", file->crc);
    else
        printf("         -  ");
    tool_print(file->name);
    for (int i = 0; i < file->segments; i++) {
        const filo_segment *s = &file->segment[i];
        printf("%s", i ? ", " : "  in ");
        tool_print(s->container);
        printf(" at %" PRIu64 " (%" PRIu64 ")", s->offset, s->length);
    }
    printf("%s\n", file->packed && file->segments == 0 ? "  packed" : "");
}

static char **extract_free_texts(char **texts)
{
    for (int i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
    return NULL;
}

/* Returns the container, offset and length of each segment; NULL without memory. */
static char **extract_segment_texts(const filo_file *file)
{
    char **texts = calloc((size_t)file->segments + 1, sizeof *texts);
    for (int i = 0; texts && i < file->segments; i++) {
        const filo_segment *s = &file->segment[i];
        if (asprintf(&texts[i], "%s %" PRIu64 " %" PRIu64, s->container, s->offset,
                     s->length) >= 0)
            continue;
        texts[i] = NULL;
        return extract_free_texts(texts);
    }
    return texts;
}

/* Prints a JSON object for a file: its description in the map, and the outcome. */
static int extract_print_json(int rank, const filo_file *file, enum outcome outcome,
                              const char *reason)
{
    static const tool_column columns[] = {
        {"rank", NULL, TOOL_NUMBER},   {"name", NULL, TOOL_TEXT},
        {"size", NULL, TOOL_NUMBER},   {"crc32", NULL, TOOL_TEXT},
        {"mode", NULL, TOOL_TEXT},     {"shared", NULL, TOOL_SWITCH},
        {"packed", NULL, TOOL_SWITCH}, {"segments", NULL, TOOL_LIST},
        {"result", NULL, TOOL_TEXT},   {"reason", NULL, TOOL_TEXT}};
    char crc[16], mode[16];
    char **segments = extract_segment_texts(file);
    if (!segments) return tool_no_memory();
    tool_table *table = tool_table_new(columns, sizeof columns / sizeof *columns);
    snprintf(crc, sizeof crc, "0x%08" PRIx32, file->crc);
    snprintf(mode, sizeof mode, "%04o", file->mode & 0777);
    tool_table_number(table, rank);
    tool_table_text(table, file->name);
    tool_table_number(table, (int64_t)file->size);
    tool_table_text(table, file->has_crc ? crc : NULL);
    tool_table_text(table, file->packed ? mode : NULL);
    tool_table_switch(table, file->shared);
    tool_table_switch(table, file->packed);
    tool_table_list(table, (const char *const *)segments, file->segments);
    tool_table_text(table, outcome == LISTED ? NULL : outcome_names[outcome]);
    tool_table_text(table, *reason ? reason : NULL);
    extract_free_texts(segments);
    return tool_table_print(table, TOOL_JSON);
}

static void extract_report(extract_work *w, int rank, const filo_file *file,
                           enum outcome outcome, const char *reason)
{
    w->count[outcome]++;
    tool_progress_hide();
    if (w->r->json) {
        w->code |= extract_print_json(rank, file, outcome, reason);
    } else if (outcome == LISTED) {
        extract_print_row(rank, file);
    } else if (outcome < DAMAGED) {
        tool_print(file->name);
        printf(": %s\n", outcome_names[outcome]);
    }
    if (outcome >= DAMAGED)
        tool_say(EXTRACT_FILE_FAILED, "%s: %s: %s", file->name, outcome_names[outcome],
                 reason);
}

/* Whether nothing was packed and the user did not ask for particular files. */
static bool extract_is_idle(const extract_work *w)
{
    int done = 0;
    for (int i = 0; i < OUTCOMES; i++)
        done += w->count[i];
    return w->r->task == EXTRACT && !w->r->names && w->r->rank < 0 && done == 0;
}

static void extract_print_summary(const extract_work *w)
{
    const int *count = w->count;
    if (w->r->json || w->r->task == LIST) return;
    if (extract_is_idle(w))
        printf("no file is packed: all have their names already; --verify reads them\n");
    if (w->r->task == VERIFY)
        printf("%d good, ", count[GOOD]);
    else
        printf("%d extracted, %d there already, ", count[EXTRACTED], count[THERE]);
    printf("%d damaged, %d failed\n", count[DAMAGED], count[FAILED]);
}

/* ---- the map ---- */

static bool extract_is_rank(const extract_work *w, int rank)
{
    return w->r->rank < 0 || w->r->rank == rank;
}

static bool extract_add_name(kvtree *names, const char *name)
{
    return kvtree_get(names, name) || kvtree_set(names, name, NULL);
}

/* Records which of the wanted files exist, and the names of containers and shared
 * files. */
static int extract_note(void *arg, int rank, int count, const filo_file files[],
                        filo_error *err)
{
    extract_work *w = arg;
    bool lost = false;
    for (int i = 0; i < count; i++) {
        const filo_file *f = &files[i];
        kvtree *wanted = extract_is_rank(w, rank) ? kvtree_get(w->wanted, f->name) : NULL;
        if (wanted) lost |= !kvtree_set(wanted, "FOUND", NULL);
        if (f->shared) lost |= !extract_add_name(w->shared_files, f->name);
        for (int s = 0; s < f->segments; s++)
            lost |= !extract_add_name(w->containers, f->segment[s].container);
    }
    return lost ? err_sys(err, -ENOMEM, "list the files of rank %d", rank) : 0;
}

/* Opens the directory, and determines whether other users can change the map. */
static int extract_open_folder(extract_work *w)
{
    const extract_request *r = w->r;
    const char *map = r->place.map ? r->place.map : FILO_MAP;
    char records[BENEATH_NAME_MAX];
    filo_error err = {""};
    int rc = folder_make(r->place.folder, 0, &w->dir, &err);
    if (!rc && !owner_is_entered(w->dir))
        rc = err_set(&err, -EPERM, "another directory is in its place now");
    if (!rc && (rc = beneath_check_name(map, &err)) != 0)
        err_wrap(&err, rc, "name of the map");
    if (!rc) {
        snprintf(records, sizeof records, "%.*s", (int)beneath_folder_length(map), map);
        w->shared = others_put_below(w->dir, records, &err);
    }
    if (rc || w->shared < 0)
        return tool_say(EXTRACT_FAILED, "%s: %s", r->place.folder, err.text);
    return COMMAND_GOOD;
}

/* Reads the map in the open directory, whose path may lead elsewhere by now. */
static int extract_read_map(extract_work *w, int *ranks, filo_map_take *take,
                            filo_error *err)
{
    filo_place from = w->r->place;
    from.dir = &w->dir;
    return filo_map_read(&from, ranks, take, w, err);
}

/* Reads the complete map before any file is touched: the map must be valid and have the
 * wanted files. */
static int extract_check_map(extract_work *w)
{
    const extract_request *r = w->r;
    filo_error err = {"no memory"};
    int ranks = 0, rc = 0;
    for (int i = 0; i < r->names && !rc; i++)
        rc = kvtree_set(w->wanted, r->name[i], NULL) ? 0 : -ENOMEM;
    if (!rc) rc = extract_read_map(w, &ranks, extract_note, &err);
    if (rc) return tool_say(EXTRACT_FAILED, "%s: %s", r->place.folder, err.text);
    if (r->rank >= ranks)
        return tool_say(EXTRACT_NOT_IN_MAP,
                        "%s: no rank %d in the map, which is of %d ranks",
                        r->place.folder, r->rank, ranks);
    for (kvtree_elem *e = kvtree_elem_first(w->wanted); e; e = kvtree_elem_next(e)) {
        if (kvtree_size(kvtree_elem_hash(e)) > 0) continue;
        w->count[FAILED]++;
        if (r->rank < 0)
            tool_say(EXTRACT_NOT_IN_MAP, "%s: not in the map", kvtree_elem_key(e));
        else
            tool_say(EXTRACT_NOT_IN_MAP, "%s: no file of rank %d", kvtree_elem_key(e),
                     r->rank);
    }
    return COMMAND_GOOD;
}

/* ---- files ---- */

/* Returns the shared file that has the bytes of this file; or NULL. */
static const char *extract_shared_of(const extract_work *w, const filo_file *file)
{
    const char *name = file->segments > 0 ? file->segment[0].container : NULL;
    return name && kvtree_get(w->shared_files, name) ? name : NULL;
}

/* Whether a file is chosen: by default all files; for extraction, all files that are
 * packed into containers. */
static bool extract_is_chosen(const extract_work *w, int rank, const filo_file *file)
{
    if (!extract_is_rank(w, rank)) return false;
    if (w->r->names) return kvtree_get(w->wanted, file->name) != NULL;
    return w->r->task != EXTRACT || (file->packed && !extract_shared_of(w, file));
}

/* Reports the progress of one file. */
static void extract_progress(void *arg, uint64_t done, uint64_t total)
{
    const extract_work *w = arg;
    (void)total;
    tool_progress_set(w->done + done, w->total);
}

static int extract_pass(extract_work *w, const filo_file *file, const filo_target *to,
                        filo_error *err)
{
    int rc = filo_extract_with(w->dir, file, to, extract_progress, w, err);
    w->done += file->shared ? 0 : file->size;
    return rc;
}

static int extract_file(extract_work *w, const filo_file *file, filo_error *err)
{
    const char *map = w->r->place.map ? w->r->place.map : FILO_MAP;
    const filo_target to = {
        .dir = w->to < 0 ? w->dir : w->to,
        .name = file->name,
        .replace = w->r->force,
        .shared = w->to < 0 ? others_join_noted(w->shared, file->others) : 0};
    if (w->r->task == VERIFY) return extract_pass(w, file, NULL, err);
    if (kvtree_gather_owns(map, file->name))
        return err_set(err, -EINVAL, "the name belongs to the map %s", map);
    if (kvtree_get(w->containers, file->name) && !file->shared)
        return err_set(err, -EINVAL, "the name is that of a container");
    if (w->to < 0 && extract_shared_of(w, file))
        return err_set(err, -EINVAL,
                       "it is a part of %.200s, which is there; extract it with --to",
                       extract_shared_of(w, file));
    if (w->to >= 0 || file->packed) return extract_pass(w, file, &to, err);
    int rc = extract_pass(w, file, NULL, err);
    return rc ? rc : FILO_THERE; /* the file already has its name */
}

/* Adds up the chosen files, in a pass of its own, since the choice depends on the
 * complete map. */
static int extract_add_up(void *arg, int rank, int count, const filo_file files[],
                          filo_error *err)
{
    extract_work *w = arg;
    (void)err;
    for (int i = 0; i < count; i++)
        if (!files[i].shared && extract_is_chosen(w, rank, &files[i]))
            w->total += files[i].size;
    return 0;
}

static int extract_files(void *arg, int rank, int count, const filo_file files[],
                         filo_error *err)
{
    extract_work *w = arg;
    for (int i = 0; i < count; i++) {
        filo_error cause = {""};
        enum outcome outcome = w->r->task == VERIFY ? GOOD : EXTRACTED;
        if (!extract_is_chosen(w, rank, &files[i])) continue;
        int rc = w->r->task == LIST ? 0 : extract_file(w, &files[i], &cause);
        if (w->r->task == LIST) outcome = LISTED;
        if (rc == FILO_THERE) outcome = THERE;
        if (rc == FILO_DAMAGED) outcome = DAMAGED;
        if (rc < 0) outcome = FAILED;
        extract_report(w, rank, &files[i], outcome, cause.text);
    }
    return 0;
}

static int extract_all(extract_work *w)
{
    const extract_request *r = w->r;
    filo_error err = {""};
    if (r->to && folder_make(r->to, 0777, &w->to, &err) != 0)
        return tool_say(EXTRACT_FAILED, "%s", err.text);
    if (r->task == LIST && !r->json) printf("   rank           size crc32       name\n");
    int rc = r->task == LIST ? 0 : extract_read_map(w, NULL, extract_add_up, &err);
    tool_progress_begin(r->task == VERIFY ? "verify" : "extract", NULL);
    rc = rc ? rc : extract_read_map(w, NULL, extract_files, &err);
    tool_progress_end();
    if (rc) return tool_say(EXTRACT_FAILED, "%s: %s", r->place.folder, err.text);
    extract_print_summary(w);
    return w->count[DAMAGED] || w->count[FAILED] ? COMMAND_BAD : COMMAND_GOOD;
}

static int extract_run(const extract_request *r)
{
    extract_work w = {.r = r, .dir = -1, .to = -1};
    if (r->task == EXTRACT) command_outlive_reader();
    w.wanted = kvtree_new();
    w.containers = kvtree_new();
    w.shared_files = kvtree_new();
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit is an error, like a full
                               * disk */
    int code = extract_open_folder(&w);
    if (code == COMMAND_GOOD) code = extract_check_map(&w);
    if (code == COMMAND_GOOD) code = extract_all(&w);
    io_close(&w.dir);
    io_close(&w.to);
    kvtree_delete(&w.wanted);
    kvtree_delete(&w.containers);
    kvtree_delete(&w.shared_files);
    return tool_finish(code == COMMAND_GOOD ? w.code : code);
}

/* ---- arguments ---- */

static int extract_start(const tool *t, int argc, char **argv, extract_request *r)
{
    tool_args args;
    int code = tool_start(t, argc, argv, &args);
    if (code >= 0) return code;
    if (command_names(t->arguments, args.count, args.list) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    r->place.folder = args.list[0];
    r->name = args.list + 1;
    r->names = args.count - 1;
    return -1;
}

int main(int argc, char **argv)
{
    int list = 0, verify = 0;
    extract_request r = {.rank = -1};
    const tool_option options[] = {
        {'t', "to", "DIRECTORY2",
         "put them there (default: DIRECTORY, under their names)", .text = &r.to},
        {'f', "force", NULL, "replace other files that have these names",
         .flag = &r.force},
        {'l', "list", NULL, "only list: rank, size, checksum, name, place",
         .flag = &list},
        {'n', "verify", NULL, "only check, also files that are not packed",
         .flag = &verify},
        {'r', "rank", "N", "only files of that rank", .number = &r.rank},
        {'m', "map", "NAME", "the map below DIRECTORY (default: " FILO_MAP ")",
         .text = &r.place.map},
        {'j', "json", NULL, "print a JSON object per file", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... DIRECTORY [NAME]...",
        .about = "Copies the files NAME (default: all packed files) of the dataset in "
                 "DIRECTORY\nout of its containers. Sizes and checksums are compared "
                 "with the map, and a file\ngets its name when it is complete.\n",
        .codes = "0 success, 1 a file is damaged or missing, or an error, 2 wrong "
                 "usage.\n",
        .options = options,
        .least = 1,
        .most = -1};
    int code = extract_start(&t, argc, argv, &r);
    if (code >= 0) return code;
    if (list && verify) return tool_misused(&t, "--list and --verify exclude each other");
    if ((r.to || r.force) && (list || verify))
        return tool_misused(&t,
                            "--to or --force and --list or --verify exclude each other");
    r.task = list ? LIST : verify ? VERIFY : EXTRACT;
    code = owner_enter("directory", r.place.folder);
    return code == COMMAND_GOOD ? extract_run(&r) : code;
}
