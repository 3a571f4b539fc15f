/* SPDX-License-Identifier: BSD-3-Clause */
/* Retention and deletion of datasets on the prefix directory.
 *
 * A deletion has three durable states. First, one change of the index marks the datasets
 * as being deleted, so that no restart is offered any of them. Then their files are
 * removed. Then one change of the index drops the datasets of which nothing is left.
 * Until then the index names datasets that may still have files, and the next run
 * finishes the deletion.
 *
 * The map of a dataset may be too large for the memory of a process, and may be of more
 * ranks than this run has. So rank 0 reads it file by file, and hands the names out in
 * pieces to a limited number of ranks, which remove the files (prefix/file_removal.h). */
#include "prefix/prefix.h"
#include "report/progress.h"
#include "report/wait.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "plan/clean.h"
#include "prefix/file_removal.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The deletion of the files of one dataset. */
typedef struct deletion {
    scr_prefix *prefix;
    const scr_dataset *d;
    scr_place place;
    int folder;     /* directory of the dataset, open; -1: there is none */
    int64_t shared; /* other users who can change the map, as from others_put_below, or
                       chose names in it */
    int64_t named;  /* other users who chose names, according to the map */
    bool listed;    /* the name of the dataset comes from the index */
    const kvtree *others; /* on rank 0: names of files that stay */
    scr_file_removal files;
} deletion;

/* A dataset that is to be deleted, and the result. On rank 0 only. */
typedef struct doomed {
    scr_dataset d;
    bool no_map;   /* no files of it are known */
    int64_t named; /* as in deletion */
    int rc;
    kvtree_error err;
} doomed;

/* A whole operation. */
typedef struct retention {
    scr_prefix *prefix;
    bool listed; /* the names come from the index */
    int count;
    doomed *list; /* on rank 0 */
    kvtree *others;
    scr_file_count *gone;
} retention;

/* ---- before the first file is removed ---- */

/* Opens the directory of the dataset, without following links. From here on, files are
 * read and removed through this descriptor: other users may exchange directories
 * meanwhile. */
static int retention_open_place(deletion *x, kvtree_error *err)
{
    char inside[SCR_NAME_SIZE + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s/x", x->d->name);
    if (scr_place_of(x->prefix, x->d, &x->place) != 0)
        return err_set(err, -ENOMEM, "no memory");
    int rc = scr_prefix_enter(x->prefix, err);
    rc = rc ? rc : beneath_open_parent(x->prefix->fd, inside, 0, &x->folder, &last, err);
    if (rc) return rc;
    x->shared = others_put_below(x->folder, ".scr/", err);
    if (x->shared < 0) return (int)x->shared;
    return x->listed ? scr_index_check_name(x->prefix->fd, x->folder, x->d->name, err)
                     : scr_index_check_place(x->prefix->fd, x->folder, x->d->name, err);
}

static void retention_close_place(deletion *x)
{
    io_close(&x->folder);
    free(x->place.folder);
}

static int retention_read_map(deletion *x, filo_map_take *take, kvtree_error *err)
{
    const filo_place from = {.folder = x->place.folder,
                             .map = x->place.map,
                             .dataset = x->place.dataset,
                             .dir = &x->folder,
                             .skip = x->d->scattered ? strlen(x->d->name) + 1 : 0};
    return filo_map_read(&from, NULL, take, x, err);
}

static int retention_join_named(void *arg, int rank, int count, const filo_file files[],
                                kvtree_error *err)
{
    deletion *x = arg;
    (void)rank;
    (void)err;
    for (int i = 0; i < count; i++)
        x->named = others_join(x->named, files[i].others);
    return 0;
}

/* Rank 0. Reads the whole map once before anything is changed: if the map were damaged,
 * files would be left that no record names. */
static void retention_check_map(const retention *r, doomed *x)
{
    deletion map = {.prefix = r->prefix, .d = &x->d, .folder = -1, .listed = r->listed};
    x->rc = retention_open_place(&map, &x->err);
    if (!x->rc) x->rc = retention_read_map(&map, retention_join_named, &x->err);
    retention_close_place(&map);
    x->named = map.named;
    x->no_map = x->rc == -ENOENT;
    if (x->no_map) x->rc = 0;
}

static int retention_note_names(void *arg, int rank, int count, const filo_file files[],
                                kvtree_error *err)
{
    (void)rank;
    for (int i = 0; i < count; i++)
        if (!kvtree_get(arg, files[i].name) && !kvtree_set(arg, files[i].name, NULL))
            return err_set(err, -ENOMEM, "no memory");
    return 0;
}

static bool retention_is_doomed(const retention *r, const scr_dataset *d)
{
    for (int i = 0; i < r->count; i++)
        if (!r->list[i].rc && strcmp(r->list[i].d.name, d->name) == 0) return true;
    return false;
}

/* Adds the names of the files of a dataset to others. A dataset with a damaged map adds
 * no names: no run can restart from it. */
static int retention_note_dataset(const retention *r, const scr_dataset *d,
                                  kvtree_error *err)
{
    scr_place place;
    if (scr_place_of(r->prefix, d, &place) != 0)
        return err_set(err, -ENOMEM, "no memory");
    const filo_place from = {.folder = place.folder, .map = place.map};
    int rc = filo_map_read(&from, NULL, retention_note_names, r->others, err);
    free(place.folder);
    return rc == -ENOENT || rc == FILO_DAMAGED ? 0 : rc;
}

/* Rank 0. Notes the files of other scattered datasets, which may have the same names and
 * must stay. Times do not always tell files apart: some maps have none, and the clocks of
 * some file systems tick once per second. Each map is read once, whatever the number of
 * datasets to delete. */
static int retention_note_others(const retention *r, kvtree_error *err)
{
    scr_dataset *list = NULL;
    const kvtree *index;
    int count = 0, rc = r->others ? scr_index_view(r->prefix, &index, err) : -ENOMEM;
    if (!rc) rc = scr_index_list(index, &list, &count);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    for (int i = 0; i < count && !rc; i++)
        if (list[i].scattered && !retention_is_doomed(r, &list[i]))
            rc = retention_note_dataset(r, &list[i], err);
    free(list);
    return rc;
}

static int retention_mark_entries(kvtree *index, void *arg)
{
    const retention *r = arg;
    int changed = 0;
    for (int i = 0; i < r->count; i++) {
        doomed *x = &r->list[i];
        scr_index_state state = {.deleting = 0};
        /* scr_index_update drops a mark that must not be obeyed */
        if (x->rc == -EPERM && scr_index_look(index, &x->d, &state) == 0)
            changed |= state.deleting != 0;
        if (x->rc) continue;
        x->rc = scr_index_mark_deleting(index, &x->d);
        if (x->rc) err_sys(&x->err, x->rc, "index entry of %.200s", x->d.name);
        changed |= !x->rc;
    }
    return changed;
}

static void retention_fail_all(const retention *r, int rc, const char *err)
{
    for (int i = 0; i < r->count; i++)
        if (!r->list[i].rc) r->list[i].rc = err_set(&r->list[i].err, rc, "%s", err);
}

/* Rank 0. Checks and marks the datasets. After this, no restart is offered any of
 * them. */
static void retention_prepare(retention *r)
{
    kvtree_error err = {""};
    bool scattered = false;
    int rc = 0;
    for (int i = 0; i < r->count; i++) {
        retention_check_map(r, &r->list[i]);
        scattered |= r->list[i].d.scattered && !r->list[i].rc;
    }
    if (scattered) rc = retention_note_others(r, &err);
    rc = rc ? rc : scr_index_rewrite(r->prefix, retention_mark_entries, r, &err);
    if (rc) retention_fail_all(r, rc, err.text);
}

/* ---- files ---- */

/* Takes the files that are to be removed. Packed files are removed with their containers,
 * which are among the records. */
static int retention_take(void *arg, int rank, int count, const filo_file files[],
                          kvtree_error *err)
{
    deletion *x = arg;
    (void)rank;
    for (int i = 0; i < count; i++) {
        if (others_join_noted(x->shared, files[i].others) != x->shared)
            return err_set(err, -EPERM, "the map was exchanged");
        if (!files[i].packed && !kvtree_get(x->others, files[i].name))
            scr_file_removal_take(&x->files, &files[i]);
    }
    return 0;
}

/* Rank 0 removes the records in the directory of the dataset and, if it is then empty,
 * the directory. */
static int retention_remove_records(const deletion *x, kvtree_error *err)
{
    int rc = scr_records_remove_below(x->folder, ".scr", err);
    if (!rc) beneath_rmdir(x->prefix->fd, x->d->name, NULL);
    return rc;
}

/* Collective, agreed; or SCR_FILE_REMOVAL_KEPT. Removes the files in the map. All ranks
 * that take part have opened the directory. */
static int retention_remove_mapped(deletion *x, kvtree_error *err)
{
    const scr_job *job = x->prefix->job;
    kvtree_error why = {""};
    x->files.dir = x->d->scattered ? x->prefix->fd : x->folder;
    x->files.shared = x->shared;
    x->files.compares = x->d->scattered != 0;
    int rc = job->rank == 0 ? retention_read_map(x, retention_take, &why) : 0;
    int removed = scr_file_removal_end(&x->files, err);
    if (rc && rc != -ENOENT) removed = err_set(err, rc, "%s", why.text);
    return agree(job->world, removed, err);
}

/* Collective; agreed, except for the records; or SCR_FILE_REMOVAL_KEPT. */
static int retention_remove_opened(deletion *x, kvtree_error *err)
{
    const scr_job *job = x->prefix->job;
    x->files.job = job;
    scr_file_removal_begin(&x->files, x->prefix->set->flush_width, x->d->files);
    const bool opens = scr_file_removal_takes_part(&x->files);
    int rc = opens ? retention_open_place(x, err) : 0;
    if (rc == -ENOENT) rc = 0;
    /* ranks may see different states of a directory that is being removed or exchanged:
     * rank 0 reads the names from its directory, and the others remove them below
     * theirs */
    int64_t seen[] = {opens && x->folder < 0, opens && x->folder >= 0,
                      opens ? x->shared : INT64_MIN, opens ? -x->shared : INT64_MIN};
    rc = agree(job->world, rc, err);
    MPI_Allreduce(MPI_IN_PLACE, seen, 4, MPI_INT64_T, MPI_MAX, job->world);
    x->shared = seen[2] == -seen[3] ? seen[2] : OTHERS_ALL;
    x->shared = others_join_noted(x->shared, x->named);
    /* the map, which names the files, must not go before them */
    if (!rc && seen[0] && seen[1])
        rc = err_set(err, -ESTALE, "not all ranks see its directory");
    if (!rc && !seen[0]) rc = retention_remove_mapped(x, err);
    if ((rc && rc != SCR_FILE_REMOVAL_KEPT) || job->rank != 0 || x->folder < 0) return rc;
    const int failed = retention_remove_records(x, err);
    return failed ? failed : rc;
}

/* Collective. As retention_remove_opened. */
static int retention_remove_files(const retention *r, const scr_dataset *d, int64_t named,
                                  kvtree_error *err)
{
    deletion *x = calloc(1, sizeof *x);
    int rc =
        agree(r->prefix->job->world, x ? 0 : err_set(err, -ENOMEM, "no memory"), err);
    if (!rc) {
        *x = (deletion){.prefix = r->prefix,
                        .d = d,
                        .folder = -1,
                        .others = r->others,
                        .listed = r->listed,
                        .named = named,
                        .files.gone = r->gone};
        rc = retention_remove_opened(x, err);
        retention_close_place(x);
    }
    free(x);
    return rc;
}

/* Rank 0. Reports that the files in the map are removed, but other files of the same
 * names stay. */
static void retention_report_kept(const scr_prefix *prefix, const scr_dataset *d,
                                  const char *why)
{
    scr_say(
        prefix->job->report, SCR_MSG_PREFIX_FILES_REPLACED,
        "dataset %d (%s) is deleted, but other files have names of its files, and stay: "
        "%s",
        d->id, d->name, why);
}

/* Collective. Removes the files of the datasets that rank 0 has marked, newest first: a
 * file name that several of them have belongs to the newest. */
static void retention_remove_all(const retention *r)
{
    for (int i = r->count - 1; i >= 0; i--) {
        kvtree_error err = {""};
        scr_dataset d = {.id = 0};
        int64_t named = 0;
        if (r->prefix->job->rank == 0 && !r->list[i].rc) {
            d = r->list[i].d;
            named = r->list[i].named;
        }
        /* all ranks run the same program, so the struct has the same layout */
        MPI_Bcast(&d, sizeof d, MPI_BYTE, 0, r->prefix->job->world);
        if (!d.id) continue;
        MPI_Bcast(&named, 1, MPI_INT64_T, 0, r->prefix->job->world);
        int rc = retention_remove_files(r, &d, named, &err);
        if (r->prefix->job->rank != 0) continue;
        if (rc == SCR_FILE_REMOVAL_KEPT)
            retention_report_kept(r->prefix, &d, err.text);
        else if (rc)
            r->list[i].rc = err_set(&r->list[i].err, rc, "%s", err.text);
    }
}

/* ---- after the files are removed ---- */

/* Rank 0. Reports files that may be left because the dataset had no map: other files in
 * its directory stay, and files outside it are unknown. */
static void retention_report_rest(scr_prefix *prefix, const scr_dataset *d)
{
    struct stat st;
    if (!d->scattered && fstatat(prefix->fd, d->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    scr_say(prefix->job->report, SCR_MSG_PREFIX_FILES_KEPT,
            "%s had no map on the prefix directory; files of an incomplete flush may "
            "stay there",
            d->name);
}

static int retention_drop_entries(kvtree *index, void *arg)
{
    const retention *r = arg;
    int changed = 0;
    for (int i = 0; i < r->count; i++)
        changed |= !r->list[i].rc && scr_index_remove(index, &r->list[i].d) == 0;
    return changed;
}

/* Rank 0. Drops the entries of datasets that are removed. */
static void retention_finish(const retention *r)
{
    kvtree_error err = {""};
    scr_prefix *prefix = r->prefix;
    int rc =
        scr_index_rewrite(prefix, retention_drop_entries, (void *)(uintptr_t)r, &err);
    if (rc) retention_fail_all(r, rc, err.text);
    for (int i = 0; i < r->count; i++) {
        const doomed *x = &r->list[i];
        if (x->rc) continue;
        if (x->no_map) retention_report_rest(prefix, &x->d);
        if (scr_flush_file_has(prefix->flush_file, x->d.id, SCR_LOCATION_PFS))
            scr_location(prefix, &x->d, SCR_LOCATION_PFS, 0);
    }
}

/* Number of files removed, and of all files to remove. Another thread reads total, which
 * does not change meanwhile. */
struct retention_progress {
    uint64_t total;
    scr_file_count *gone;
};

static void retention_count(void *arg, uint64_t *done, uint64_t *total)
{
    const struct retention_progress *p = arg;
    *total = p->total;
    *done = *p->gone < p->total ? *p->gone : p->total;
}

/* Returns the number of files to remove, on rank 0. */
static uint64_t retention_files(const retention *r)
{
    uint64_t sum = 0;
    for (int i = 0; r->prefix->job->rank == 0 && i < r->count; i++)
        if (!r->list[i].rc) sum += (uint64_t)r->list[i].d.files;
    return sum;
}

/* Collective. Deletes the datasets in list of rank 0; listed: their names come from the
 * index. rc and err of each entry receive the result. */
static void retention_delete_list(scr_prefix *prefix, doomed *list, int count,
                                  bool listed)
{
    retention r = {.prefix = prefix, .list = list, .count = count, .listed = listed};
    scr_file_count gone = 0;
    struct retention_progress shown = {.gone = &gone};
    scr_progress_source source = {prefix->set->progress ? retention_count : NULL, &shown};
    scr_progress progress;
    scr_wait wait;
    r.gone = &gone;
    MPI_Bcast(&r.count, 1, MPI_INT, 0, prefix->job->world);
    if (r.count == 0) return;
    r.others = prefix->job->rank == 0 ? kvtree_new() : NULL;
    scr_wait_begin(prefix->job->report, &wait, SCR_MSG_PREFIX_REMOVAL_WAIT,
                   "waits for the removal of %d datasets from %.400s", r.count,
                   prefix->path);
    if (prefix->job->rank == 0) retention_prepare(&r);
    shown.total = retention_files(&r);
    scr_progress_begin(prefix->job->report, &progress, source, "files",
                       SCR_MSG_PREFIX_REMOVAL_PROGRESS, "deletion from %.400s",
                       prefix->path);
    retention_remove_all(&r);
    scr_progress_end(&progress);
    if (prefix->job->rank == 0) retention_finish(&r);
    scr_wait_end(&wait);
    kvtree_delete(&r.others);
}

int scr_retention_delete(scr_prefix *prefix, const scr_dataset *d, kvtree_error *err)
{
    doomed *x = calloc(1, sizeof *x);
    int rc = agree(prefix->job->world, x ? 0 : err_set(err, -ENOMEM, "no memory"), err);
    if (!rc) {
        x->d = *d;
        retention_delete_list(prefix, x, 1, false);
        /* the text is agreed already */
        MPI_Bcast(&x->rc, 1, MPI_INT, 0, prefix->job->world);
        MPI_Bcast(x->err.text, sizeof x->err.text, MPI_CHAR, 0, prefix->job->world);
        rc = x->rc ? err_set(err, x->rc, "%s", x->err.text) : 0;
    }
    free(x);
    return rc;
}

/* ---- retention ---- */

static void retention_report_deleted(const scr_prefix *prefix, const doomed *x,
                                     const char *reason)
{
    if (x->rc)
        scr_say(prefix->job->report, SCR_MSG_PREFIX_DATASET_NOT_DELETED,
                "dataset %d (%s) could not be deleted from the prefix directory (%s): %s",
                x->d.id, x->d.name, reason, x->err.text);
    else
        scr_say(prefix->job->report, SCR_MSG_PREFIX_DATASET_DELETED,
                "dataset %d (%s) is deleted from the prefix directory (%s)", x->d.id,
                x->d.name, reason);
}

/* Collective. Deletes the datasets in list of rank 0, and frees list. */
static void retention_delete_all(scr_prefix *prefix, scr_dataset *list, int count,
                                 const char *reason)
{
    doomed *all = count ? calloc((size_t)count, sizeof *all) : NULL;
    if (count && !all) {
        scr_say(prefix->job->report, SCR_MSG_PREFIX_DATASET_NOT_DELETED,
                "%d datasets could not be deleted from the prefix directory (%s): no "
                "memory",
                count, reason);
        count = 0;
    }
    for (int i = 0; i < count; i++)
        all[i].d = list[i];
    retention_delete_list(prefix, all, count, true);
    for (int i = 0; i < count; i++)
        retention_report_deleted(prefix, &all[i], reason);
    free(all);
    free(list);
}

/* Rank 0. Lists the datasets that plan/clean.h deletes at start. */
static int retention_list_start(const scr_prefix *prefix, const kvtree *index,
                                scr_dataset **list, int *count)
{
    int all = 0, rc = scr_index_list(index, list, &all);
    *count = 0;
    for (int i = 0; i < all && !rc; i++) {
        scr_index_state state = {.deleting = 0};
        scr_index_look(index, &(*list)[i], &state);
        const scr_clean_facts facts = {.is_indexed = true,
                                       .is_deleting = state.deleting != 0,
                                       .purge = prefix->set->prefix_purge != 0};
        if (scr_plan_clean(&facts).deletes) (*list)[(*count)++] = (*list)[i];
    }
    return rc;
}

/* Rank 0. Lists the datasets that are to be deleted; window NULL: at start. */
static int retention_list(scr_prefix *prefix, const scr_window *window,
                          scr_dataset **list)
{
    kvtree_error err = {""};
    const kvtree *index;
    int count = 0, rc = scr_index_view(prefix, &index, &err);
    if (!rc && window) rc = scr_index_leaving(index, window, list, &count);
    if (!rc && !window) rc = retention_list_start(prefix, index, list, &count);
    if (rc)
        scr_say(prefix->job->report, SCR_MSG_PREFIX_DATASET_NOT_DELETED,
                "older datasets could not be deleted from the prefix directory: %s",
                err.text[0] ? err.text : "no memory");
    return rc ? 0 : count;
}

void scr_retention_begin(scr_prefix *prefix)
{
    const bool purge = prefix->set->prefix_purge != 0;
    scr_dataset *list = NULL;
    int count = prefix->job->rank == 0 ? retention_list(prefix, NULL, &list) : 0;
    if (purge && count > 0)
        scr_say(prefix->job->report, SCR_MSG_PREFIX_PURGED,
                "SCR_PREFIX_PURGE: all %d datasets of %s are deleted", count,
                prefix->path);
    retention_delete_all(prefix, list, count,
                         purge ? "SCR_PREFIX_PURGE" : "as begun by an earlier run");
}

void scr_retention_flushed(scr_prefix *prefix, const scr_window *window)
{
    scr_dataset *list = NULL;
    if (window->keep == 0) return;
    int count = prefix->job->rank == 0 ? retention_list(prefix, window, &list) : 0;
    retention_delete_all(prefix, list, count, "SCR_PREFIX_SIZE");
}
