/* SPDX-License-Identifier: BSD-3-Clause */
/* All sets with redundancy files in a directory; this process has all their members. Sets
 * are found by the names and headers of these files. No file gets its name before all
 * requested sets are rebuilt. */
#include "src/folder/folder.h"

#include "common/array.h"
#include "common/errtext.h"
#include "common/io.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct folder_set {
    redset_recovery recovery;
    redset set;
} folder_set;

/* One call on a directory. */
typedef struct folder_search {
    const char *folder, *redundancy;
    int id;          /* of the wanted set, or REDSET_ALL */
    int dir;         /* directory */
    char path[4096]; /* of the directory with redundancy files */
    int name_count;
    redset_place *names; /* of redundancy files, in the order of sets and members */
    int count;
    redset_recovery **sets; /* each in a folder_set */
    redset_error damaged;   /* error of the first unusable redundancy file */
    redset_meter *meter;    /* of all bytes, or NULL */
} folder_search;

/* ---- names ---- */

static int folder_compare_places(const void *x, const void *y)
{
    const redset_place *a = x, *b = y;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    if (a->scheme != b->scheme) return a->scheme < b->scheme ? -1 : 1;
    if (a->members != b->members) return a->members < b->members ? -1 : 1;
    return (a->member > b->member) - (a->member < b->member);
}

static int folder_add_name(folder_search *s, const redset_place *place, redset_error *err)
{
    redset_place *names = array_grow(s->names, (size_t)s->name_count, sizeof *names);
    if (!names) return err_sys(err, -ENOMEM, "%d redundancy files", s->name_count + 1);
    s->names = names;
    s->names[s->name_count++] = *place;
    return 0;
}

static int folder_list_names(folder_search *s, DIR *listing, redset_error *err)
{
    int rc = 0;
    errno = 0;
    for (struct dirent *e; !rc && (e = readdir(listing)); errno = 0) {
        redset_place place = {.sets = 1};
        if (redset_file_name_parse(e->d_name, &place) != 0) continue;
        if (s->id == REDSET_ALL || s->id == place.id)
            rc = folder_add_name(s, &place, err);
    }
    return rc || !errno ? rc : err_sys(err, -errno, "list %s", s->path);
}

/* Opens the directory with redundancy files for listing. */
static int folder_open_redundancy(folder_search *s, DIR **listing, redset_error *err)
{
    int fd, rc = redset_join(s->path, sizeof s->path, s->folder, s->redundancy);
    if (rc) return err_sys(err, rc, "%s", s->folder);
    rc = beneath_open_below(s->dir, s->redundancy ? s->redundancy : "", &fd, err);
    if (rc) return rc == -EINVAL ? rc : err_sys(err, rc, "open directory %s", s->path);
    *listing = beneath_list(fd);
    if (!*listing) rc = err_sys(err, -errno, "list %s", s->path);
    io_close(&fd);
    return rc;
}

static int folder_find_names(folder_search *s, redset_error *err)
{
    DIR *listing;
    int rc = folder_open_redundancy(s, &listing, err);
    if (rc) return rc;
    rc = folder_list_names(s, listing, err);
    closedir(listing);
    if (rc) return rc;
    if (s->name_count > 0) {
        qsort(s->names, (size_t)s->name_count, sizeof *s->names, folder_compare_places);
        return 0;
    }
    if (s->id == REDSET_ALL)
        return err_set(err, -ENOENT, "%s has no redundancy files", s->path);
    return err_set(err, -ENOENT, "%s has no redundancy files of set %d", s->path, s->id);
}

/* ---- sets ---- */

static redset_recovery *folder_set_free(redset_recovery *recovery)
{
    folder_set *fs = (folder_set *)recovery;
    if (!fs) return NULL;
    redset_recovery_close(&fs->recovery);
    redset_transport_local_free(fs->set.members);
    redset_layout_done(&fs->set.layout);
    free(fs);
    return NULL;
}

/* Creates a set of that layout. Takes ownership of the layout, also on failure. */
static int folder_set_new(const folder_search *s, redset_layout *layout,
                          redset_recovery **recovery, redset_error *err)
{
    folder_set *fs = calloc(1, sizeof *fs);
    if (!fs) {
        redset_layout_done(layout);
        return err_sys(err, -ENOMEM, "set");
    }
    fs->set = (redset){.layout = *layout,
                       .piece = REDSET_PIECE,
                       .memory = REDSET_MEMORY,
                       .meter = s->meter};
    fs->set.layout.place.member = -1;
    fs->set.members = fs->set.world = redset_transport_local(layout->place.members);
    int rc = fs->set.members ? 0 : err_sys(err, -ENOMEM, "set");
    fs->recovery.set = &fs->set;
    if (!rc)
        rc = redset_recovery_open(&fs->recovery, &fs->set, s->dir, s->redundancy, err);
    fs->recovery.explains = true;
    *recovery = &fs->recovery;
    if (rc) *recovery = folder_set_free(*recovery);
    return rc;
}

/* Whether a set of that layout was already found. */
static bool folder_is_known(const folder_search *s, const redset_layout *layout)
{
    for (int i = s->count - 1; i >= 0; i--) {
        const redset_layout *other = &s->sets[i]->set->layout;
        if (other->place.id != layout->place.id) return false;
        if (redset_layout_is_equal(other, layout)) return true;
    }
    return false;
}

/* Adds the set of a redundancy file, if the file is valid. */
static int folder_add_set(folder_search *s, const redset_place *place, redset_error *err)
{
    char name[REDSET_NAME_SIZE], path[BENEATH_NAME_MAX];
    redset_error why;
    redset_place named = *place;
    redset_header *header;
    named.failures = place->scheme != REDSET_SINGLE;
    redset_file_name(&named, name);
    int rc = redset_join(path, sizeof path, s->redundancy, name);
    if (!rc) rc = redset_header_read(s->dir, path, &header, &why);
    if (rc == -ENAMETOOLONG) return err_sys(err, rc, "%s", s->redundancy);
    if (rc && !redset_loss_of(rc)) return err_set(err, rc, "%s", why.text);
    if (rc) {
        if (!s->damaged.text[0]) s->damaged = why;
        return 0;
    }
    if (!folder_is_known(s, &header->layout)) {
        rc = folder_set_new(s, &header->layout, &s->sets[s->count], err);
        header->layout = (redset_layout){0};
        if (!rc) s->count++;
    }
    redset_header_free(header);
    return rc;
}

static int folder_find_sets(folder_search *s, redset_error *err)
{
    int rc = folder_find_names(s, err);
    if (rc) return rc;
    s->sets = calloc((size_t)s->name_count, sizeof(redset_recovery *));
    if (!s->sets) return err_sys(err, -ENOMEM, "%d sets", s->name_count);
    for (int i = 0; i < s->name_count && !rc; i++)
        rc = folder_add_set(s, &s->names[i], err);
    return rc;
}

/* ---- verdict ---- */

/* A set that cannot be rebuilt is worse than a set that may be rebuilt once its files can
 * be read (-EIO). */
static int folder_severity(int verdict)
{
    if (verdict == REDSET_UNRECOVERABLE) return 3;
    return verdict < 0 ? 2 : verdict != 0;
}

/* Returns the worst verdict of all sets, with the text of the first set with this
 * verdict. */
static int folder_conclude(const folder_search *s, redset_error *err)
{
    const redset_recovery *worst = NULL;
    int like = 0;
    for (int i = 0; i < s->count; i++) {
        const redset_recovery *r = s->sets[i];
        if (!r->verdict) continue;
        bool is_worse =
            !worst || folder_severity(r->verdict) > folder_severity(worst->verdict);
        if (is_worse) worst = r;
        like = is_worse ? 1 : like + (r->verdict == worst->verdict);
    }
    if (!worst) return 0;
    err_set(err, 0, "%s", worst->err.text);
    return like == 1 ? worst->verdict
                     : err_wrap(err, worst->verdict, "%d sets, first", like);
}

/* Checks that all sets of the encode have redundancy files. */
static int folder_check_complete(const folder_search *s, redset_error *err)
{
    if (s->count == 0)
        return err_set(err, REDSET_UNRECOVERABLE,
                       "%s has no redundancy file that is whole: %s", s->path,
                       s->damaged.text);
    int sets = s->sets[0]->set->layout.place.sets;
    if (s->id != REDSET_ALL || s->count == sets) return 0;
    return err_set(err, REDSET_UNRECOVERABLE,
                   "%d of %d sets have no redundancy file in %s that is whole%s%s",
                   sets - s->count, sets, s->path, s->damaged.text[0] ? ": " : "",
                   s->damaged.text);
}

static int folder_judge_all(folder_search *s, bool *mixed, redset_error *err)
{
    int rc = 0;
    for (int i = 0; i < s->count && !rc; i++) {
        rc = redset_recovery_judge(s->sets[i], err);
        *mixed = *mixed || s->sets[i]->plan.kind == REDSET_PLAN_MIXED;
    }
    return rc;
}

/* Judges the sets before files are read. With mixed encodes, names mean nothing. */
static int folder_judge(folder_search *s, redset_error *err)
{
    bool mixed = false;
    int rc = folder_judge_all(s, &mixed, err);
    if (rc || mixed) return rc ? rc : folder_conclude(s, err);
    rc = redset_check_one_encode(s->sets, s->count, err);
    if (!rc) rc = redset_check_distinct_names(s->sets, s->count, err);
    for (int i = 0; i < s->count && !rc; i++)
        rc = redset_recovery_check_sizes(s->sets[i], err);
    if (!rc) rc = folder_judge_all(s, &mixed, err);
    return rc ? rc : folder_check_complete(s, err);
}

static int folder_verify(folder_search *s, redset_error *err)
{
    redset_error cause = {""};
    int missing = folder_judge(s, &cause), rc = 0;
    if (missing < 0) return err_set(err, missing, "%s", cause.text);
    for (int i = 0; i < s->count && rc >= 0; i++) {
        rc = redset_recovery_verify(s->sets[i], err);
        if (!rc) rc = redset_recovery_judge(s->sets[i], err);
        if (!rc && s->sets[i]->verdict == REDSET_RECOVERABLE)
            rc = redset_recovery_pass_headers(s->sets[i], err);
    }
    if (rc) return rc;
    return missing ? err_set(err, missing, "%s", cause.text) : folder_conclude(s, err);
}

static int folder_rebuild(folder_search *s, redset_error *err)
{
    int rc = folder_judge(s, err);
    if (!rc) rc = folder_conclude(s, err);
    if (rc == REDSET_RECOVERABLE) rc = 0;
    for (int i = 0; i < s->count && !rc; i++) {
        rc = redset_recovery_rebuild(s->sets[i], err);
        if (!rc) rc = redset_recovery_complete(s->sets[i], err);
        if (folder_severity(s->sets[i]->verdict) > 1) folder_conclude(s, err);
    }
    for (int i = 0; i < s->count && !rc; i++)
        rc = redset_recovery_commit(s->sets[i], err);
    return rc;
}

/* ---- public calls ---- */

static int folder_run(folder_search s, int (*work)(folder_search *, redset_error *),
                      redset_found **found, redset_error *err)
{
    redset_error cause = {""};
    const int dir = s.dir;
    int rc = dir == AT_FDCWD ? beneath_open_folder(s.folder, &s.dir, &cause) : 0;
    if (!rc) rc = folder_find_sets(&s, &cause);
    if (!rc) rc = work(&s, &cause);
    redset_found *made = rc >= 0 ? redset_report_new(s.count, s.sets) : NULL;
    if (rc >= 0 && !made) rc = err_sys(&cause, -ENOMEM, "report");
    for (int i = 0; i < s.count; i++)
        folder_set_free(s.sets[i]);
    free(s.sets);
    free(s.names);
    if (s.dir != dir) io_close(&s.dir);
    if (rc >= 0) *found = made;
    return rc ? err_set(err, rc, "%s", cause.text) : 0;
}

int redset_verify_folder(int dir, const char *folder, const char *redundancy, int id,
                         redset_found **found, redset_error *err)
{
    const folder_search s = {
        .folder = folder, .redundancy = redundancy, .id = id, .dir = dir};
    return folder_run(s, folder_verify, found, err);
}

int redset_rebuild_folder(int dir, const char *folder, const char *redundancy, int id,
                          redset_found **found, redset_error *err)
{
    return redset_rebuild_folder_with(dir, folder, redundancy, id, NULL, NULL, found,
                                      err);
}

int redset_rebuild_folder_with(int dir, const char *folder, const char *redundancy,
                               int id,
                               void (*report)(void *arg, uint64_t done, uint64_t total),
                               void *arg, redset_found **found, redset_error *err)
{
    redset_meter meter = {.report = report, .arg = arg};
    const folder_search s = {.folder = folder,
                             .redundancy = redundancy,
                             .id = id,
                             .dir = dir,
                             .meter = report ? &meter : NULL};
    return folder_run(s, folder_rebuild, found, err);
}
