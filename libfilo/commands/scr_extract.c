/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_extract: takes files of a dataset out of the containers into which they were packed
 * (SCR Developer Guide 1.2, section 2.12); or lists them, or only checks them. */
#include "common/command.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/others.h"
#include "common/owner.h"
#include "common/quote.h"
#include "src/filo_private.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <kvtree/kvtree_gather.h>
#include <kvtree/kvtree_util.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS "[OPTION]... FOLDER [NAME]..."

enum task { EXTRACT, LIST, VERIFY };

typedef struct request {
    enum task task;
    filo_place place;
    const char *to;
    int force, json;
    int rank; /* -1: all */
    int names;
    char **name;
} request;

enum outcome { LISTED, EXTRACTED, THERE, GOOD, DAMAGED, FAILED, OUTCOMES };

static const char *const words[OUTCOMES] = {"listed", "extracted", "there already",
                                            "good",   "damaged",   "failed"};

typedef struct work {
    const request *r;
    int dir, to;        /* the folder, and where files go; -1: not open */
    int shared;         /* others may change the map */
    kvtree *wanted;     /* NAME -> empty, or something when it was found */
    kvtree *containers; /* names of all */
    int count[OUTCOMES];
    int lost; /* what could not be printed: an errno */
} work;

/* ---- output ---- */

static int complain(const char *what, const char *reason)
{
    return command_complain("%s: %s", what, reason);
}

static void print_row(int rank, const filo_file *file)
{
    printf("%7d %14" PRIu64 " ", rank, file->size);
    if (file->has_crc)
        printf("0x%08" PRIx32 "  ", file->crc);
    else
        printf("         -  ");
    quote_text(stdout, file->name, "");
    for (int i = 0; i < file->segments; i++) {
        const filo_segment *s = &file->segment[i];
        printf("%s", i ? ", " : "  in ");
        quote_text(stdout, s->container, "");
        printf(" at %" PRIu64 " (%" PRIu64 ")", s->offset, s->length);
    }
    printf("%s\n", file->packed && file->segments == 0 ? "  packed" : "");
}

/* An object per file: what the map says (docs/formats/rank2file.md), and the outcome. */
static int print_json(int rank, const filo_file *file, enum outcome outcome,
                      const char *reason)
{
    kvtree *tree = kvtree_new(), *entry = filo_map_entry(1, file);
    int rc = kvtree_util_set_int(tree, "RANK", rank);
    if (!rc) rc = kvtree_util_set_str(tree, "NAME", file->name);
    if (!rc) rc = kvtree_merge(tree, kvtree_get_kv(entry, "FILE", file->name));
    if (!rc && outcome != LISTED)
        rc = kvtree_util_set_str(tree, "RESULT", words[outcome]);
    if (!rc && *reason) rc = kvtree_util_set_str(tree, "REASON", reason);
    if (!rc) rc = kvtree_fprint(stdout, tree, KVTREE_FORM_JSON, 0);
    kvtree_delete(&entry);
    kvtree_delete(&tree);
    return rc;
}

/* Tells what became of a file. */
static void report(work *w, int rank, const filo_file *file, enum outcome outcome,
                   const char *reason)
{
    char text[FILO_ERROR_SIZE + 32];
    w->count[outcome]++;
    if (w->r->json && w->lost == 0)
        w->lost = -print_json(rank, file, outcome, reason);
    else if (outcome == LISTED)
        print_row(rank, file);
    else if (!w->r->json && outcome < DAMAGED) {
        quote_text(stdout, file->name, "");
        printf(": %s\n", words[outcome]);
    }
    if (outcome < DAMAGED) return;
    snprintf(text, sizeof text, "%s: %s", words[outcome], reason);
    complain(file->name, text);
}

static void print_summary(const work *w)
{
    const int *count = w->count;
    if (w->r->json || w->r->task == LIST) return;
    if (w->r->task == VERIFY)
        printf("%d good, ", count[GOOD]);
    else
        printf("%d extracted, %d there already, ", count[EXTRACTED], count[THERE]);
    printf("%d damaged, %d failed\n", count[DAMAGED], count[FAILED]);
}

/* ---- the map is looked at ---- */

static int is_of_rank(const work *w, int rank)
{
    return w->r->rank < 0 || w->r->rank == rank;
}

/* Notes which files are there, and what is a container. */
static int note(void *arg, int rank, int count, const filo_file files[], char *err)
{
    work *w = arg;
    int lost = 0;
    for (int i = 0; i < count; i++) {
        kvtree *wanted =
            is_of_rank(w, rank) ? kvtree_get(w->wanted, files[i].name) : NULL;
        if (wanted) lost |= !kvtree_set(wanted, "FOUND", NULL);
        for (int s = 0; s < files[i].segments; s++) {
            const char *name = files[i].segment[s].container;
            if (!kvtree_get(w->containers, name))
                lost |= !kvtree_set(w->containers, name, NULL);
        }
    }
    return lost ? err_sys(err, -ENOMEM, "list the files of rank %d", rank) : 0;
}

/* All of the map is read before any file is touched: it is whole, and has what was asked
 * for. */
static int look_at_map(work *w)
{
    const request *r = w->r;
    char err[FILO_ERROR_SIZE] = "", text[64];
    int ranks = 0, lost = 0;
    for (int i = 0; i < r->names; i++)
        lost |= !kvtree_set(w->wanted, r->name[i], NULL);
    if (lost) return complain(r->place.folder, strerror(ENOMEM));
    if (filo_map_read(&r->place, &ranks, note, w, err) != 0)
        return complain(r->place.folder, err);
    snprintf(text, sizeof text, "no rank %d in the map, which is of %d ranks", r->rank,
             ranks);
    if (r->rank >= ranks) return complain(r->place.folder, text);
    snprintf(text, sizeof text, "not in the map");
    if (r->rank >= 0) snprintf(text, sizeof text, "no file of rank %d", r->rank);
    for (kvtree_elem *e = kvtree_elem_first(w->wanted); e; e = kvtree_elem_next(e)) {
        if (kvtree_size(kvtree_elem_hash(e)) > 0) continue;
        complain(kvtree_elem_key(e), text);
        w->count[FAILED]++;
    }
    return COMMAND_GOOD;
}

/* ---- files ---- */

/* Without names, all; where files are taken out, those that are packed. */
static int is_chosen(const work *w, int rank, const filo_file *file)
{
    if (!is_of_rank(w, rank)) return 0;
    if (w->r->names) return kvtree_get(w->wanted, file->name) != NULL;
    return w->r->task != EXTRACT || file->packed;
}

/* No file takes the place of what others are taken out of. */
static int check_name(const work *w, const char *name, char *err)
{
    const char *map = w->r->place.map ? w->r->place.map : FILO_MAP;
    if (kvtree_gather_owns(map, name))
        return err_set(err, -EINVAL, "the name belongs to the map %s", map);
    if (kvtree_get(w->containers, name))
        return err_set(err, -EINVAL, "the name is that of a container");
    return 0;
}

static int extract(const work *w, const filo_file *file, char *err)
{
    const filo_target to = {.dir = w->to < 0 ? w->dir : w->to,
                            .name = file->name,
                            .replace = w->r->force,
                            .shared = w->to < 0 && w->shared};
    int rc = check_name(w, file->name, err);
    if (rc) return rc;
    if (w->to >= 0 || file->packed) return filo_extract(w->dir, file, &to, err);
    rc = filo_extract(w->dir, file, NULL, err);
    return rc ? rc : FILO_THERE; /* under its name, where it should be */
}

static int handle(void *arg, int rank, int count, const filo_file files[], char *err)
{
    work *w = arg;
    for (int i = 0; i < count; i++) {
        char text[FILO_ERROR_SIZE] = "";
        enum outcome outcome = w->r->task == VERIFY ? GOOD : EXTRACTED;
        if (!is_chosen(w, rank, &files[i])) continue;
        if (w->r->task == LIST) {
            report(w, rank, &files[i], LISTED, "");
            continue;
        }
        int rc = w->r->task == VERIFY ? filo_extract(w->dir, &files[i], NULL, text)
                                      : extract(w, &files[i], text);
        if (rc == FILO_THERE) outcome = THERE;
        if (rc == FILO_DAMAGED) outcome = DAMAGED;
        if (rc < 0) outcome = FAILED;
        report(w, rank, &files[i], outcome, text);
    }
    return 0;
}

static int handle_all(work *w)
{
    char err[FILO_ERROR_SIZE] = "";
    if (w->r->task == LIST && !w->r->json)
        printf("   rank           size crc32       name\n");
    if (filo_map_read(&w->r->place, NULL, handle, w, err) != 0)
        return complain(w->r->place.folder, err);
    print_summary(w);
    return w->count[DAMAGED] || w->count[FAILED] ? COMMAND_BAD : COMMAND_GOOD;
}

/* Finds out whether others may change the map. */
static int look_at_sharing(work *w, char *err)
{
    const char *last, *map = w->r->place.map ? w->r->place.map : FILO_MAP;
    int folder, rc = beneath_open_parent(w->dir, map, 0, &folder, &last, err);
    if (rc) return rc;
    w->shared = others_put(folder);
    io_close(&folder);
    return w->shared < 0 ? err_sys(err, w->shared, "look at the folder of %s", map) : 0;
}

static int open_folders(work *w)
{
    const request *r = w->r;
    char err[FILO_ERROR_SIZE] = "";
    if (folder_make(r->place.folder, 0, &w->dir, err) != 0 ||
        (r->to && folder_make(r->to, 0777, &w->to, err) != 0) ||
        look_at_sharing(w, err) != 0) {
        command_complain("%s", err);
        return COMMAND_BAD;
    }
    return COMMAND_GOOD;
}

static int run(const request *r)
{
    work w = {.r = r, .dir = -1, .to = -1};
    if (r->task == EXTRACT) command_outlive_reader();
    w.wanted = kvtree_new();
    w.containers = kvtree_new();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error, like a full disk */
    int code = look_at_map(&w);
    if (code == COMMAND_GOOD) code = open_folders(&w);
    if (code == COMMAND_GOOD) code = handle_all(&w);
    int flushed = w.lost ? command_write_failed(w.lost) : command_flush();
    io_close(&w.dir);
    io_close(&w.to);
    kvtree_delete(&w.wanted);
    kvtree_delete(&w.containers);
    return code == COMMAND_GOOD ? flushed : code;
}

/* ---- arguments ---- */

static int help(void)
{
    command_usage(stdout, ARGUMENTS);
    printf(
        "Takes the files NAME (default: all that are packed) of the dataset in FOLDER "
        "out "
        "of\n"
        "its containers. Their sizes and checksums are compared with the map, and each "
        "gets\n"
        "its name when it is whole.\n"
        "\n"
        "  -t, --to FOLDER2   put them there (default: FOLDER, under their names)\n"
        "  -f, --force        replace other files that have these names\n"
        "  -l, --list         only list: rank, size, checksum, name, place\n"
        "  -n, --verify       only check, also files that are not packed\n"
        "  -r, --rank N       only files of that rank\n"
        "  -m, --map NAME     the map below FOLDER (default: " FILO_MAP ")\n"
        "  -j, --json         print a JSON object per file\n"
        "  -h, --help         print this text\n"
        "  -V, --version      print the version\n"
        "\n"
        "Exit code: 0 all is well, 1 something is damaged or missing, or an error, 2 "
        "wrong\n"
        "usage.\n");
    return command_flush();
}

static int conflict(const char *options)
{
    command_complain("%s exclude each other", options);
    return command_wrong_usage(ARGUMENTS);
}

/* Takes one option; -1 to go on, or an exit code. */
static int take_option(int c, request *r)
{
    switch (c) {
    case 't':
        r->to = optarg;
        return -1;
    case 'f':
        r->force = 1;
        return -1;
    case 'l':
    case 'n':
        if (r->task != EXTRACT) return conflict("--list and --verify");
        r->task = c == 'l' ? LIST : VERIFY;
        return -1;
    case 'r':
        return command_number("--rank", optarg, &r->rank) == COMMAND_GOOD
                   ? -1
                   : command_wrong_usage(ARGUMENTS);
    case 'm':
        r->place.map = optarg;
        return -1;
    case 'j':
        r->json = 1;
        return -1;
    case 'h':
        return help();
    case 'V':
        return command_version();
    default:
        return command_wrong_usage(ARGUMENTS);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"to", required_argument, NULL, 't'},   {"force", no_argument, NULL, 'f'},
        {"list", no_argument, NULL, 'l'},       {"verify", no_argument, NULL, 'n'},
        {"rank", required_argument, NULL, 'r'}, {"map", required_argument, NULL, 'm'},
        {"json", no_argument, NULL, 'j'},       {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},    {NULL, 0, NULL, 0}};
    request r = {.rank = -1};
    command_open_streams();
    for (int c; (c = getopt_long(argc, argv, "t:flnr:m:jhV", options, NULL)) != -1;) {
        int code = take_option(c, &r);
        if (code >= 0) return code;
    }
    if ((r.to || r.force) && r.task != EXTRACT)
        return conflict("--to or --force and --list or --verify");
    if (command_count(ARGUMENTS, argc - optind, 1, -1) != COMMAND_GOOD ||
        command_names(ARGUMENTS, argc - optind, argv + optind) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    r.place.folder = argv[optind];
    r.name = argv + optind + 1;
    r.names = argc - optind - 1;
    int code = owner_enter("folder", r.place.folder);
    return code == COMMAND_GOOD ? run(&r) : code;
}
