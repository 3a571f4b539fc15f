/* SPDX-License-Identifier: BSD-3-Clause */
/* The content of a staging directory; see scan.h. */
#include "scavenge/scan.h"

#include "common/array.h"
#include "common/beneath.h"
#include "common/io.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct scan_reader {
    const scavenge_folder *folder;
    int dir;               /* the subdirectory .scr, open */
    char hidden[PATH_MAX]; /* its path, for messages */
    bool described;        /* the scan has the description of a dataset */
    scavenge_scan *scan;
} scan_reader;

static int scan_refuse(scavenge_scan *scan, int rc, const char *why)
{
    if (rc == -ENOMEM) return rc;
    if (scan->refused++ == 0) snprintf(scan->why.text, sizeof scan->why.text, "%s", why);
    return 0;
}

/* ---- the dataset ---- */

static void scan_clear(scavenge_scan *scan)
{
    for (int i = 0; i < scan->count; i++)
        scavenge_rank_free(scan->ranks[i]);
    scan->count = scan->members = 0;
}

/* Whether a record of dataset d counts. A node that was replaced may have files of an
 * earlier dataset with the same id, but the newest dataset is the one to save. */
static bool scan_accepts(scan_reader *r, const scr_dataset *d, const char *name)
{
    kvtree_error why;
    const scr_dataset *known = &r->scan->dataset;
    bool newer = !r->described || d->created > known->created;
    if (!newer && d->id == known->id && d->created == known->created &&
        d->ranks == known->ranks && strcmp(d->name, known->name) == 0)
        return true;
    if (r->described) {
        const scr_dataset *other = newer ? known : d;
        snprintf(why.text, sizeof why.text, "%s is of dataset %d (%.200s), another one",
                 name, other->id, other->name);
        scan_refuse(r->scan, 0, why.text);
    }
    if (!newer) return false;
    scan_clear(r->scan);
    r->scan->dataset = *d;
    r->described = true;
    return true;
}

/* ---- records ---- */

static int scan_add_rank(scan_reader *r, int number, const char *name)
{
    kvtree_error why = {""};
    scavenge_scan *scan = r->scan;
    scavenge_rank *rank, **ranks = NULL;
    scr_dataset d;
    int rc = scavenge_rank_read(r->folder->dir, number, &rank, &d, &why);
    if (rc) return scan_refuse(scan, rc, why.text);
    bool accepted = scan_accepts(r, &d, name);
    if (accepted) ranks = array_grow(scan->ranks, (size_t)scan->count, sizeof *ranks);
    if (!ranks) {
        scavenge_rank_free(rank);
        return accepted ? -ENOMEM : 0;
    }
    scan->ranks = ranks;
    ranks[scan->count++] = rank;
    return 0;
}

static int scan_add_member(scan_reader *r, const char *name)
{
    kvtree_error why = {""};
    scavenge_scan *scan = r->scan;
    redset_manifest *m;
    scr_dataset d;
    int rc = redset_read_header(r->dir, r->hidden, name, &m, &why);
    if (rc) return scan_refuse(scan, rc, why.text);
    const scavenge_member member = {m->place, m->rank};
    rc = scr_dataset_from_tree(m->about, &d, &why);
    redset_manifest_free(m);
    if (rc) return scan_refuse(scan, rc, why.text);
    if (!scan_accepts(r, &d, name)) return 0;
    scavenge_member *list = array_grow(scan->list, (size_t)scan->members, sizeof *list);
    if (!list) return -ENOMEM;
    scan->list = list;
    list[scan->members++] = member;
    return 0;
}

static int scan_read_records(scan_reader *r, DIR *stream, kvtree_error *err)
{
    const struct dirent *item;
    redset_place place;
    int number, rc = 0;
    while (!rc && (errno = 0, item = readdir(stream)) != NULL) {
        if (scavenge_rank_from_name(item->d_name, &number) == 0)
            rc = scan_add_rank(r, number, item->d_name);
        else if (redset_file_name_parse(item->d_name, &place) == 0)
            rc = scan_add_member(r, item->d_name);
    }
    if (rc) return err_set(err, rc, "no memory");
    if (errno) return err_sys(err, -errno, "list %s", r->hidden);
    if (r->described) return 0;
    return err_set(err, -ENOENT, "%s has no valid record of a rank%s%s", r->hidden,
                   r->scan->refused ? ": " : "", r->scan->why.text);
}

static int scan_read_hidden(scan_reader *r, kvtree_error *err)
{
    int rc = beneath_open_below(r->folder->dir, SCAVENGE_HIDDEN, &r->dir, err);
    if (rc) return rc;
    DIR *stream = beneath_list(r->dir);
    rc = stream ? scan_read_records(r, stream, err)
                : err_sys(err, -errno, "list %s", r->hidden);
    if (stream) closedir(stream);
    io_close(&r->dir);
    return rc;
}

/* ---- order ---- */

static int scan_compare_ranks(const void *a, const void *b)
{
    const scavenge_rank *const *x = a, *const *y = b;
    return ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

static int scan_compare_sets(const scavenge_member *a, const scavenge_member *b)
{
    const redset_place *x = &a->place, *y = &b->place;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    if (x->scheme != y->scheme) return x->scheme < y->scheme ? -1 : 1;
    return (x->members > y->members) - (x->members < y->members);
}

static int scan_compare_members(const void *a, const void *b)
{
    const scavenge_member *x = a, *y = b;
    int order = scan_compare_sets(x, y);
    if (order) return order;
    return (x->place.member > y->place.member) - (x->place.member < y->place.member);
}

int scavenge_set_end(const scavenge_member *list, int count, int i)
{
    int end = i + 1;
    while (end < count && scan_compare_sets(&list[i], &list[end]) == 0)
        end++;
    return end;
}

static void scan_sort(scavenge_scan *scan)
{
    if (scan->count > 1)
        qsort(scan->ranks, (size_t)scan->count, sizeof *scan->ranks, scan_compare_ranks);
    if (scan->members > 1)
        qsort(scan->list, (size_t)scan->members, sizeof *scan->list,
              scan_compare_members);
}

/* ---- files ---- */

bool scavenge_has_file(int dir, const scavenge_file *f, kvtree_error *why)
{
    struct stat st;
    if (beneath_stat(dir, f->name, &st, why) != 0) return false;
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->size) return true;
    err_set(why, 0, "%.200s %s", f->name,
            S_ISREG(st.st_mode) ? "has another size" : "is not a regular file");
    return false;
}

/* Checks the application files of a rank. Redundancy files may be missing, since only
 * other ranks need them. */
static int scan_check_rank(const scavenge_folder *folder, scavenge_scan *scan,
                           scavenge_rank *rank)
{
    kvtree_error why = {""};
    const scr_dataset *d = &scan->dataset;
    size_t n = strlen(d->name);
    int files = 0;
    uint64_t bytes = 0;
    bool scattered = false;
    for (int i = 0; i < rank->count; i++) {
        const scavenge_file *f = &rank->files[i];
        if (f->redundancy) continue;
        if (!scavenge_has_file(folder->dir, f, &why) &&
            (folder->final < 0 || !scavenge_has_file(folder->final, f, NULL))) {
            rank->lacks = strdup(why.text);
            return rank->lacks ? 0 : -ENOMEM;
        }
        files++;
        bytes += f->size;
        scattered |= strncmp(f->name, d->name, n) != 0 || f->name[n] != '/';
    }
    scan->whole++;
    scan->files += files;
    scan->bytes += bytes;
    if (scattered) scan->dataset.scattered = 1;
    return 0;
}

static int scan_note_owner(scavenge_scan *scan, kvtree *owners, const char *name,
                           int rank)
{
    const char *other = kvtree_get_val(owners, name);
    if (!other) return kvtree_util_set_int(owners, name, rank);
    err_set(&scan->conflict, 0, "ranks %s and %d both have a file %.200s", other, rank,
            name);
    return 0;
}

/* Finds files of two ranks that have the same name, which is a conflict. */
static int scan_find_conflict(scavenge_scan *scan)
{
    kvtree *owners = kvtree_new();
    int rc = owners ? 0 : -ENOMEM;
    for (int i = 0; i < scan->count && !rc && !scan->conflict.text[0]; i++) {
        const scavenge_rank *r = scan->ranks[i];
        for (int k = 0; k < r->count && !rc; k++)
            if (!r->files[k].redundancy)
                rc = scan_note_owner(scan, owners, r->files[k].name, r->rank);
    }
    for (int i = 0; i < scan->shared_count && !rc && !scan->conflict.text[0]; i++)
        rc = scan_note_owner(scan, owners, scan->shared[i].name, scan->shared[i].rank);
    kvtree_delete(&owners);
    return rc;
}

int scavenge_scan_read(const scavenge_folder *folder, scavenge_scan *scan,
                       kvtree_error *err)
{
    scan_reader r = {.folder = folder, .scan = scan};
    memset(scan, 0, sizeof *scan);
    int n = snprintf(r.hidden, sizeof r.hidden, "%s/" SCAVENGE_HIDDEN, folder->path);
    if (n >= (int)sizeof r.hidden)
        return err_sys(err, -ENAMETOOLONG, "%.200s", folder->path);
    int rc = scan_read_hidden(&r, err);
    if (!rc) {
        scan->dataset.scattered = 0;
        scan_sort(scan);
        for (int i = 0; i < scan->count && !rc; i++)
            rc = scan_check_rank(folder, scan, scan->ranks[i]);
        if (!rc) rc = scavenge_scan_list_shared(scan);
        if (!rc) rc = scan_find_conflict(scan);
        if (rc) err_set(err, rc, "no memory");
    }
    if (rc) scavenge_scan_done(scan);
    return rc;
}

void scavenge_scan_done(scavenge_scan *scan)
{
    scavenge_scan_drop_shared(scan);
    scan_clear(scan);
    free(scan->ranks);
    free(scan->list);
    scan->ranks = NULL;
    scan->list = NULL;
}

/* ---- queries ---- */

int scavenge_scan_missing(const scavenge_scan *scan)
{
    return scan->dataset.ranks - scan->whole;
}

/* Returns the first rank with missing files; *why: why they are missing. */
static int scan_first_missing(const scavenge_scan *scan, const char **why)
{
    int rank = 0;
    while (rank < scan->count && scan->ranks[rank]->rank == rank &&
           !scan->ranks[rank]->lacks)
        rank++;
    bool known = rank < scan->count && scan->ranks[rank]->rank == rank;
    *why = known ? scan->ranks[rank]->lacks : "nothing of it was saved";
    return rank;
}

bool scavenge_scan_is_whole(const scavenge_scan *scan, kvtree_error *why)
{
    const scr_dataset *d = &scan->dataset;
    const char *lacks;
    int missing = scavenge_scan_missing(scan);
    if (missing) {
        int first = scan_first_missing(scan, &lacks);
        snprintf(why->text, sizeof why->text,
                 "files of %d of %d ranks are missing; rank %d: %s", missing, d->ranks,
                 first, lacks);
    } else if (scan->conflict.text[0]) {
        *why = scan->conflict;
    } else if (scan->files != d->files || scan->bytes != d->size) {
        snprintf(why->text, sizeof why->text,
                 "found %ld files of %llu bytes, but the description has %ld of %lu",
                 scan->files, (unsigned long long)scan->bytes, d->files, d->size);
    } else {
        return true;
    }
    return false;
}

bool scavenge_scan_has(const scavenge_scan *scan, int rank)
{
    const scavenge_rank key = {.rank = rank}, *wanted = &key;
    if (!scan->count) return false;
    scavenge_rank *const *found = bsearch(&wanted, scan->ranks, (size_t)scan->count,
                                          sizeof *scan->ranks, scan_compare_ranks);
    return found && !(*found)->lacks;
}

bool scavenge_set_is_incomplete(const scavenge_scan *scan, int first, int end)
{
    int whole = 0;
    for (int i = first; i < end; i++)
        whole += scavenge_scan_has(scan, scan->list[i].rank);
    return whole < scan->list[first].place.members;
}

/* Lists the complete ranks that have a redundancy file, according to filemaps; returns
 * their number. */
static int scan_list_complete(const scavenge_scan *scan, scavenge_member *list)
{
    int n = 0;
    for (int i = 0; i < scan->count; i++) {
        const scavenge_rank *r = scan->ranks[i];
        int k = 0;
        while (k < r->count && !r->files[k].redundancy)
            k++;
        if (k == r->count || r->lacks) continue;
        list[n].rank = r->rank;
        n += redset_file_name_parse(r->files[k].name, &list[n].place) == 0;
    }
    return n;
}

int scavenge_scan_repairable(const scavenge_scan *scan, int **ids, int *count)
{
    size_t room = (size_t)scan->count + 1;
    scavenge_member *list = calloc(room, sizeof *list);
    *ids = list ? calloc(room, sizeof **ids) : NULL;
    *count = 0;
    if (!*ids) {
        free(list);
        return -ENOMEM;
    }
    int n = scan_list_complete(scan, list);
    qsort(list, (size_t)n, sizeof *list, scan_compare_members);
    for (int i = 0, end; i < n; i = end) {
        end = scavenge_set_end(list, n, i);
        if (end - i < list[i].place.members) (*ids)[(*count)++] = list[i].place.id;
    }
    free(list);
    return 0;
}
