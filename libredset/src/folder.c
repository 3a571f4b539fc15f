/* SPDX-License-Identifier: BSD-3-Clause */
/* All sets that left redundancy files in a folder, worked on by one process. They are
 * found by the names and headers of these files; nothing gets a name before all that was
 * asked for is rebuilt. */
#include "src/redset_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call on a folder. */
typedef struct search {
    const char *folder, *redundancy;
    int id;          /* of the wanted set, or REDSET_ALL */
    int dir;         /* folder */
    char path[4096]; /* of the folder with redundancy files */
    int name_count;
    redset_place *names; /* of redundancy files, in the order of sets and members */
    int count;
    redset_group **groups;
    char
        damaged[ERRTEXT_SIZE]; /* what is wrong with the first one that tells of no set */
} search;

/* ---- names ---- */

static int in_order(const void *x, const void *y)
{
    const redset_place *a = x, *b = y;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    if (a->scheme != b->scheme) return a->scheme < b->scheme ? -1 : 1;
    if (a->members != b->members) return a->members < b->members ? -1 : 1;
    return (a->member > b->member) - (a->member < b->member);
}

static int add_name(search *s, const redset_place *place, char *err)
{
    if ((s->name_count & (s->name_count - 1)) == 0) { /* room for twice as many */
        size_t room = s->name_count ? 2 * (size_t)s->name_count : 1;
        redset_place *names = realloc(s->names, room * sizeof *names);
        if (!names) return err_sys(err, -ENOMEM, "%zu redundancy files", room);
        s->names = names;
    }
    s->names[s->name_count++] = *place;
    return 0;
}

static int list_names(search *s, DIR *listing, char *err)
{
    int rc = 0;
    errno = 0;
    for (struct dirent *e; !rc && (e = readdir(listing)); errno = 0) {
        redset_place place = {.sets = 1};
        if (redset_file_name_parse(e->d_name, &place) != 0) continue;
        if (s->id == REDSET_ALL || s->id == place.id) rc = add_name(s, &place, err);
    }
    return rc || !errno ? rc : err_sys(err, -errno, "list %s", s->path);
}

/* The folder with redundancy files, to be listed. */
static int open_redundancy(search *s, DIR **listing, char *err)
{
    int fd;
    if (s->redundancy && beneath_check_name(s->redundancy, err) != 0) return -EINVAL;
    int rc = redset_join(s->path, sizeof s->path, s->folder, s->redundancy);
    if (rc) return err_sys(err, rc, "%s", s->folder);
    rc = beneath_open_folder(s->path, &fd, err);
    if (rc) return rc;
    *listing = fdopendir(fd);
    if (*listing) return 0;
    rc = err_sys(err, -errno, "list %s", s->path);
    io_close(&fd);
    return rc;
}

static int find_names(search *s, char *err)
{
    DIR *listing;
    int rc = open_redundancy(s, &listing, err);
    if (rc) return rc;
    rc = list_names(s, listing, err);
    closedir(listing);
    if (rc) return rc;
    if (s->name_count > 0) {
        qsort(s->names, (size_t)s->name_count, sizeof *s->names, in_order);
        return 0;
    }
    if (s->id == REDSET_ALL)
        return err_set(err, -ENOENT, "%s has no redundancy files", s->path);
    return err_set(err, -ENOENT, "%s has no redundancy files of set %d", s->path, s->id);
}

/* ---- sets ---- */

/* Whether a header tells of a set that is known already. */
static bool is_known(const search *s, const redset_layout *layout)
{
    for (int i = s->count - 1; i >= 0; i--) {
        const redset_layout *other = &s->groups[i]->layout;
        if (other->place.id != layout->place.id) return false;
        if (redset_layout_equal(other, layout)) return true;
    }
    return false;
}

static int add_group(search *s, redset_header *header, char *err)
{
    redset_layout layout = header->layout;
    header->layout = (redset_layout){0};
    layout.place.member = -1;
    int rc = redset_group_new(s->dir, s->redundancy, &layout, &s->groups[s->count], err);
    if (!rc) s->count++;
    return rc;
}

static int take_name(search *s, const redset_place *place, char *err)
{
    char name[REDSET_NAME_SIZE], path[BENEATH_NAME_MAX], why[ERRTEXT_SIZE];
    redset_place named = *place;
    redset_header *header;
    named.failures = place->scheme != REDSET_SINGLE;
    redset_file_name(&named, name);
    int rc = redset_join(path, sizeof path, s->redundancy, name);
    if (!rc) rc = redset_header_read(s->dir, path, &header, why);
    if (rc == -ENAMETOOLONG) return err_sys(err, rc, "%s", s->redundancy);
    if (rc && !redset_loss_of(rc)) return err_set(err, rc, "%s", why);
    if (rc) {
        if (!s->damaged[0]) snprintf(s->damaged, sizeof s->damaged, "%s", why);
        return 0;
    }
    if (!is_known(s, &header->layout)) rc = add_group(s, header, err);
    redset_header_free(header);
    return rc;
}

static int find_sets(search *s, char *err)
{
    int rc = beneath_open_folder(s->folder, &s->dir, err);
    if (!rc) rc = find_names(s, err);
    if (rc) return rc;
    s->groups = calloc((size_t)s->name_count, sizeof(redset_group *));
    if (!s->groups) return err_sys(err, -ENOMEM, "%d sets", s->name_count);
    for (int i = 0; i < s->name_count && !rc; i++)
        rc = take_name(s, &s->names[i], err);
    return rc;
}

/* ---- verdict ---- */

/* What cannot be rebuilt is worse than what may be, once it can be read. */
static int badness(int verdict)
{
    if (verdict == REDSET_UNRECOVERABLE) return 3;
    return verdict < 0 ? 2 : verdict != 0;
}

/* That of all sets: the worst, with the text of the first that has it. */
static int conclude(const search *s, char *err)
{
    const redset_group *worst = NULL;
    int like = 0;
    for (int i = 0; i < s->count; i++) {
        const redset_group *g = s->groups[i];
        bool worse = !worst || badness(g->verdict) > badness(worst->verdict);
        if (!g->verdict) continue;
        if (worse) worst = g;
        like = worse ? 1 : like + (g->verdict == worst->verdict);
    }
    if (!worst) return 0;
    err_set(err, 0, "%s", worst->text);
    return like == 1 ? worst->verdict
                     : err_wrap(err, worst->verdict, "%d sets, first", like);
}

/* All sets of the encode are there. */
static int check_complete(const search *s, char *err)
{
    if (s->count == 0)
        return err_set(err, REDSET_UNRECOVERABLE,
                       "%s has no redundancy file that is whole: %s", s->path,
                       s->damaged);
    int sets = s->groups[0]->layout.place.sets;
    if (s->id != REDSET_ALL || s->count == sets) return 0;
    return err_set(err, REDSET_UNRECOVERABLE,
                   "%d of %d sets have no redundancy file in %s that is whole%s%s",
                   sets - s->count, sets, s->path, s->damaged[0] ? ": " : "", s->damaged);
}

static bool judge_all(search *s)
{
    bool mixed = false;
    for (int i = 0; i < s->count; i++) {
        redset_group_judge(s->groups[i]);
        mixed = mixed || s->groups[i]->plan.kind == REDSET_PLAN_MIXED;
    }
    return mixed;
}

/* What is known before the bytes of files are read. Where encodes are mixed, names tell
 * nothing. */
static int judge(search *s, char *err)
{
    if (judge_all(s)) return conclude(s, err);
    int rc = redset_groups_check_encode(s->groups, s->count, err);
    if (!rc) rc = redset_groups_check_names(s->groups, s->count, err);
    for (int i = 0; i < s->count && !rc; i++)
        rc = redset_group_measure(s->groups[i], err);
    if (rc) return rc;
    judge_all(s);
    return check_complete(s, err);
}

static int verify(search *s, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    int missing = judge(s, text);
    if (missing < 0) return err_set(err, missing, "%s", text);
    for (int i = 0; i < s->count; i++) {
        int rc = redset_group_verify(s->groups[i], err);
        if (rc < 0) return rc;
    }
    return missing ? err_set(err, missing, "%s", text) : conclude(s, err);
}

static int rebuild(search *s, char *err)
{
    int rc = judge(s, err);
    if (!rc) rc = conclude(s, err);
    if (rc == REDSET_RECOVERABLE) rc = 0;
    for (int i = 0; i < s->count && !rc; i++) {
        rc = redset_group_rebuild(s->groups[i], err);
        if (badness(s->groups[i]->verdict) > 1) conclude(s, err);
    }
    for (int i = 0; i < s->count && !rc; i++)
        rc = redset_group_commit(s->groups[i], err);
    return rc;
}

/* ---- public ---- */

static int run(search *s, int (*work)(search *, char *), redset_found **found, char *err)
{
    int rc = find_sets(s, err);
    if (!rc) rc = work(s, err);
    redset_found *made = rc >= 0 ? redset_found_new(s->count, s->groups) : NULL;
    if (rc >= 0 && !made) rc = err_sys(err, -ENOMEM, "what was found");
    for (int i = 0; i < s->count; i++)
        redset_group_free(s->groups[i]);
    free(s->groups);
    free(s->names);
    io_close(&s->dir);
    if (rc >= 0) *found = made;
    return rc;
}

/* Everything below has a text to write to. */
static int run_reported(search *s, int (*work)(search *, char *), redset_found **found,
                        char *err)
{
    char text[ERRTEXT_SIZE] = "";
    int rc = run(s, work, found, text);
    return rc ? err_set(err, rc, "%s", text) : 0;
}

int redset_verify_folder(const char *folder, const char *redundancy, int id,
                         redset_found **found, char *err)
{
    search s = {.folder = folder, .redundancy = redundancy, .id = id, .dir = -1};
    return run_reported(&s, verify, found, err);
}

int redset_rebuild_folder(const char *folder, const char *redundancy, int id,
                          redset_found **found, char *err)
{
    search s = {.folder = folder, .redundancy = redundancy, .id = id, .dir = -1};
    return run_reported(&s, rebuild, found, err);
}
