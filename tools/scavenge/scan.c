/* SPDX-License-Identifier: BSD-3-Clause */
/* What was saved of a dataset; see scan.h. */
#include "scavenge/scan.h"

#include "common/beneath.h"
#include "common/io.h"
#include <dirent.h>
#include <errno.h>
#include <redset/redset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One call. */
typedef struct search {
    const scavenge_folder *folder;
    int hidden;      /* its folder .scr, open */
    char path[4096]; /* the path of that */
    int described;   /* 1: the scan has a description */
    scavenge_scan *scan;
} search;

static int refuse(scavenge_scan *scan, const char *why)
{
    if (scan->refused++ == 0) snprintf(scan->why, sizeof scan->why, "%s", why);
    return 0;
}

/* ---- which dataset ---- */

static int is_same(const scr_dataset *a, const scr_dataset *b)
{
    return a->id == b->id && a->created == b->created && a->ranks == b->ranks &&
           a->named == b->named && strcmp(a->name, b->name) == 0;
}

static void forget(scavenge_scan *scan)
{
    for (int i = 0; i < scan->count; i++)
        scavenge_rank_free(scan->ranks[i]);
    for (int i = 0; i < scan->sets; i++)
        free(scan->set[i].list);
    scan->count = scan->sets = 0;
}

/* 1 when something that is of dataset d counts. A node may have come back with files of
 * an earlier one of the same id: the newest is the one that was to be saved. */
static int counts(search *s, const scr_dataset *d, const char *name)
{
    char why[ERRTEXT_SIZE];
    scavenge_scan *scan = s->scan;
    int newer = s->described && d->created > scan->dataset.created;
    if (s->described && !newer && is_same(d, &scan->dataset)) return 1;
    if (s->described) {
        snprintf(why, sizeof why, "%s is of dataset %d (%.200s), another one", name,
                 newer ? scan->dataset.id : d->id, newer ? scan->dataset.name : d->name);
        refuse(scan, why);
        if (!newer) return 0;
        forget(scan);
    }
    scan->dataset = *d;
    s->described = 1;
    return 1;
}

/* ---- rank filemaps ---- */

static int keep_rank(scavenge_scan *scan, scavenge_rank *rank)
{
    size_t n = (size_t)scan->count + 1;
    if (n == 1 || (n & (n - 1)) == 0) {
        scavenge_rank **more = realloc(scan->ranks, 2 * n * sizeof *more);
        if (!more) return -ENOMEM;
        scan->ranks = more;
    }
    scan->ranks[scan->count++] = rank;
    return 0;
}

static int take_rank(search *s, int number, const char *name, char *err)
{
    char why[ERRTEXT_SIZE] = "";
    scavenge_rank *rank;
    scr_dataset d;
    int rc = scavenge_rank_read(s->folder->dir, number, &rank, &d, why);
    if (rc == -ENOMEM) return err_set(err, rc, "%s", why);
    if (rc) return refuse(s->scan, why);
    if (!counts(s, &d, name)) {
        scavenge_rank_free(rank);
        return 0;
    }
    if (keep_rank(s->scan, rank) == 0) return 0;
    scavenge_rank_free(rank);
    return err_set(err, -ENOMEM, "no memory");
}

/* ---- redundancy files ---- */

static int keep_member(scavenge_set *set, int member, int rank)
{
    size_t n = (size_t)set->count + 1;
    if (n == 1 || (n & (n - 1)) == 0) {
        scavenge_member *more = realloc(set->list, 2 * n * sizeof *more);
        if (!more) return -ENOMEM;
        set->list = more;
    }
    set->list[set->count++] = (scavenge_member){member, rank};
    return 0;
}

/* NULL without memory. */
static scavenge_set *set_of(scavenge_scan *scan, const redset_place *place)
{
    for (int i = 0; i < scan->sets; i++)
        if (scan->set[i].id == place->id && scan->set[i].members == place->members &&
            scan->set[i].scheme == (int)place->scheme)
            return &scan->set[i];
    size_t n = (size_t)scan->sets + 1;
    if (n == 1 || (n & (n - 1)) == 0) {
        scavenge_set *more = realloc(scan->set, 2 * n * sizeof *more);
        if (!more) return NULL;
        scan->set = more;
    }
    scavenge_set *set = &scan->set[scan->sets++];
    *set = (scavenge_set){
        .id = place->id, .scheme = (int)place->scheme, .members = place->members};
    return set;
}

static int take_redundancy(search *s, const char *name, char *err)
{
    char why[ERRTEXT_SIZE] = "";
    redset_manifest *m;
    scr_dataset d;
    int rc = redset_read_header(s->path, name, &m, why);
    if (rc == -ENOMEM) return err_set(err, rc, "%s", why);
    if (rc) return refuse(s->scan, why);
    rc = scr_dataset_from_tree(m->about, &d, why);
    if (rc)
        refuse(s->scan, why);
    else if (counts(s, &d, name)) {
        scavenge_set *set = set_of(s->scan, &m->place);
        rc = set ? keep_member(set, m->place.member, m->rank) : -ENOMEM;
        if (rc) err_set(err, rc, "no memory");
    }
    redset_manifest_free(m);
    return rc == -ENOMEM ? rc : 0;
}

/* ---- files ---- */

static int is_file(int dir, const char *name, uint64_t size, char *why)
{
    struct stat st;
    int rc = beneath_stat(dir, name, &st, why);
    if (rc) return 0;
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == size) return 1;
    snprintf(why, ERRTEXT_SIZE, "%.200s %s", name,
             S_ISREG(st.st_mode) ? "has another size" : "is no regular file");
    return 0;
}

/* Notes the first file that a rank lacks. Redundancy files help others only. */
static int look_at_files(const search *s, scavenge_rank *rank)
{
    char why[ERRTEXT_SIZE] = "";
    for (int i = 0; i < rank->count; i++) {
        const scavenge_file *f = &rank->files[i];
        if (f->redundancy || is_file(s->folder->dir, f->name, f->size, why)) continue;
        if (s->folder->final >= 0 && is_file(s->folder->final, f->name, f->size, NULL))
            continue;
        rank->lacks = strdup(why);
        return rank->lacks ? 0 : -ENOMEM;
    }
    return 0;
}

static void add_up(scavenge_scan *scan, const scavenge_rank *rank)
{
    const scr_dataset *d = &scan->dataset;
    size_t n = strlen(d->name);
    for (int i = 0; i < rank->count; i++) {
        const scavenge_file *f = &rank->files[i];
        if (f->redundancy) continue;
        scan->files++;
        scan->bytes += f->size;
        if (d->named && (strncmp(f->name, d->name, n) != 0 || f->name[n] != '/'))
            scan->dataset.scattered = 1;
    }
    scan->whole++;
}

/* ---- names of several ranks ---- */

typedef struct claim {
    const char *name;
    int rank;
} claim;

static int by_name(const void *a, const void *b)
{
    const claim *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* The files of two ranks must have different names. */
static int compare_names(scavenge_scan *scan)
{
    size_t n = 0, count = 0;
    for (int i = 0; i < scan->count; i++)
        n += (size_t)scan->ranks[i]->count;
    claim *all = calloc(n + 1, sizeof *all);
    if (!all) return -ENOMEM;
    for (int i = 0; i < scan->count; i++)
        for (int k = 0; k < scan->ranks[i]->count; k++)
            if (!scan->ranks[i]->files[k].redundancy)
                all[count++] =
                    (claim){scan->ranks[i]->files[k].name, scan->ranks[i]->rank};
    qsort(all, count, sizeof *all, by_name);
    for (size_t i = 1; i < count && !scan->conflict[0]; i++)
        if (strcmp(all[i - 1].name, all[i].name) == 0)
            snprintf(scan->conflict, sizeof scan->conflict,
                     "ranks %d and %d both have a file %.200s", all[i - 1].rank,
                     all[i].rank, all[i].name);
    free(all);
    return 0;
}

/* ---- the whole ---- */

static int by_rank(const void *a, const void *b)
{
    const scavenge_rank *const *x = a, *const *y = b;
    return ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

static int by_id(const void *a, const void *b)
{
    const scavenge_set *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    if (x->scheme != y->scheme) return x->scheme < y->scheme ? -1 : 1;
    return (x->members > y->members) - (x->members < y->members);
}

static int by_member(const void *a, const void *b)
{
    const scavenge_member *x = a, *y = b;
    return (x->member > y->member) - (x->member < y->member);
}

static void sort(scavenge_scan *scan)
{
    if (scan->count)
        qsort(scan->ranks, (size_t)scan->count, sizeof *scan->ranks, by_rank);
    if (scan->sets) qsort(scan->set, (size_t)scan->sets, sizeof *scan->set, by_id);
    for (int i = 0; i < scan->sets; i++)
        qsort(scan->set[i].list, (size_t)scan->set[i].count, sizeof *scan->set[i].list,
              by_member);
}

static int take_all(search *s, DIR *stream, char *err)
{
    const struct dirent *item;
    redset_place place;
    int number, rc = 0;
    while (!rc && (errno = 0, item = readdir(stream)) != NULL) {
        if (scavenge_rank_from_name(item->d_name, &number) == 0)
            rc = take_rank(s, number, item->d_name, err);
        else if (redset_file_name_parse(item->d_name, &place) == 0)
            rc = take_redundancy(s, item->d_name, err);
    }
    if (!rc && errno) rc = err_sys(err, -errno, "list %s", s->path);
    if (!rc && !s->described)
        rc = err_set(err, -ENOENT, "nothing of any rank is in %s%s%s", s->path,
                     s->scan->refused ? ": " : "", s->scan->why);
    return rc;
}

static int read_hidden(search *s, char *err)
{
    const char *last;
    int rc = beneath_open_parent(s->folder->dir, SCAVENGE_HIDDEN "/x", 0, &s->hidden,
                                 &last, err);
    if (rc) return rc;
    DIR *stream = beneath_list(s->hidden);
    rc = stream ? take_all(s, stream, err) : err_sys(err, -errno, "list %s", s->path);
    if (stream) closedir(stream);
    io_close(&s->hidden);
    return rc;
}

int scavenge_scan_read(const scavenge_folder *folder, scavenge_scan *scan, char *err)
{
    search s = {.folder = folder, .hidden = -1, .scan = scan};
    memset(scan, 0, sizeof *scan);
    int n = snprintf(s.path, sizeof s.path, "%s/" SCAVENGE_HIDDEN, folder->path);
    int rc = n < (int)sizeof s.path ? read_hidden(&s, err)
                                    : err_sys(err, -ENAMETOOLONG, "%.200s", folder->path);
    scan->dataset.scattered = 0;
    for (int i = 0; i < scan->count && !rc; i++) {
        rc = look_at_files(&s, scan->ranks[i]);
        if (!rc && !scan->ranks[i]->lacks) add_up(scan, scan->ranks[i]);
    }
    if (!rc) rc = compare_names(scan);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    sort(scan);
    if (rc) scavenge_scan_done(scan);
    return rc;
}

void scavenge_scan_done(scavenge_scan *scan)
{
    forget(scan);
    free(scan->ranks);
    free(scan->set);
    scan->ranks = NULL;
    scan->set = NULL;
}

/* ---- what follows ---- */

int scavenge_scan_missing(const scavenge_scan *scan)
{
    return scan->dataset.ranks - scan->whole;
}

/* The first rank that is not whole, and its filemap, if there is one. */
static int first_missing(const scavenge_scan *scan, const scavenge_rank **found)
{
    int next = 0;
    *found = NULL;
    for (int i = 0; i < scan->count && scan->ranks[i]->rank == next; i++, next++)
        if (scan->ranks[i]->lacks) {
            *found = scan->ranks[i];
            break;
        }
    return next;
}

int scavenge_scan_is_whole(const scavenge_scan *scan, char why[ERRTEXT_SIZE])
{
    const scr_dataset *d = &scan->dataset;
    const scavenge_rank *rank;
    int missing = scavenge_scan_missing(scan);
    if (missing) {
        int first = first_missing(scan, &rank);
        snprintf(why, ERRTEXT_SIZE, "files of %d of %d ranks are missing; rank %d: %s",
                 missing, d->ranks, first,
                 rank ? rank->lacks : "nothing of it was saved");
    } else if (scan->conflict[0]) {
        snprintf(why, ERRTEXT_SIZE, "%s", scan->conflict);
    } else if (scan->files != d->files || scan->bytes != d->size) {
        snprintf(why, ERRTEXT_SIZE,
                 "%d files of %llu bytes are there, but its description tells of %d of "
                 "%lu",
                 scan->files, (unsigned long long)scan->bytes, d->files, d->size);
    } else {
        return 1;
    }
    return 0;
}

int scavenge_scan_has(const scavenge_scan *scan, int rank)
{
    const scavenge_rank key = {.rank = rank}, *wanted = &key;
    scavenge_rank *const *found = scan->count
                                      ? bsearch(&wanted, scan->ranks, (size_t)scan->count,
                                                sizeof *scan->ranks, by_rank)
                                      : NULL;
    return found && !(*found)->lacks;
}

int scavenge_set_lacks(const scavenge_scan *scan, const scavenge_set *set)
{
    int whole = 0;
    for (int i = 0; i < set->count; i++)
        whole += scavenge_scan_has(scan, set->list[i].rank);
    return whole < set->members;
}

/* A member that is whole. */
typedef struct found {
    int id, members;
} found;

static int by_set(const void *a, const void *b)
{
    const found *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int list_whole(const scavenge_scan *scan, found *list)
{
    int n = 0;
    for (int i = 0; i < scan->count; i++) {
        const scavenge_rank *r = scan->ranks[i];
        redset_place place;
        for (int k = 0; k < r->count && !r->lacks; k++) {
            if (!r->files[k].redundancy) continue;
            if (redset_file_name_parse(r->files[k].name, &place) == 0)
                list[n++] = (found){place.id, place.members};
            break;
        }
    }
    return n;
}

int scavenge_scan_wanting(const scavenge_scan *scan, int **ids, int *count)
{
    size_t room = (size_t)scan->count + 1;
    found *list = calloc(room, sizeof *list);
    *ids = calloc(room, sizeof **ids);
    *count = 0;
    if (!list || !*ids) {
        free(list);
        free(*ids);
        *ids = NULL;
        return -ENOMEM;
    }
    int n = list_whole(scan, list);
    qsort(list, (size_t)n, sizeof *list, by_set);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && list[end].id == list[i].id; end++)
            ;
        if (end - i < list[i].members) (*ids)[(*count)++] = list[i].id;
    }
    free(list);
    return 0;
}
