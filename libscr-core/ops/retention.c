/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves the prefix folder: datasets that are deleted, and the window of checkpoints
 * that are kept.
 *
 * The map of a dataset may be larger than a process wants to have in memory, and be of
 * more ranks than this run has. So rank 0 reads it file by file, and hands the names out
 * in pieces to a limited number of ranks, which remove the files. */
#include "ops/context.h"
#include "report/wait.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
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

/* Names of files, one after the other with their NULs. */
#define PIECE 4096
#define PIECE_TAG 1

struct deletion {
    struct scr *scr;
    const scr_dataset *d;
    scr_place place;
    int dir;              /* place.folder, open; -1 when there is none */
    const kvtree *others; /* on rank 0: names of files that stay */
    int helpers;          /* ranks 1 to helpers remove files; 0: rank 0 does */
    int next;             /* the helper to get the next piece */
    size_t used;
    char piece[PIECE];
    int rc; /* the first failure to remove a file, and its text */
    char err[SCR_ERR_TEXT];
};

/* ---- removing files ---- */

/* Folders of the dataset that are empty now go, too. */
static void remove_folders(const struct deletion *x, const char *name)
{
    char folder[SCR_NAME_SIZE], *slash;
    if (x->d->scattered) return; /* these are the application's */
    snprintf(folder, sizeof folder, "%s", name);
    while ((slash = strrchr(folder, '/')) != NULL) {
        *slash = 0;
        if (beneath_rmdir(x->dir, folder, NULL) != 0) return;
    }
}

static int same_folder(const char *a, const char *b)
{
    const char *slash = strrchr(a, '/');
    size_t n = slash ? (size_t)(slash - a) + 1 : 0;
    return strncmp(a, b, n) == 0 && !strchr(b + n, '/');
}

static void remove_piece(struct deletion *x, size_t size)
{
    const char *name, *next;
    for (name = x->piece; name < x->piece + size; name += strlen(name) + 1) {
        char err[SCR_ERR_TEXT] = "";
        int rc = beneath_unlink(x->dir, name, err);
        if (rc && !x->rc) x->rc = err_set(x->err, rc, "%s", err);
    }
    for (name = x->piece; name < x->piece + size; name = next) {
        next = name + strlen(name) + 1;
        if (next >= x->piece + size || !same_folder(name, next)) remove_folders(x, name);
    }
}

/* Rank 0: the piece is full, or the last. A helper that is busy is waited for. */
static void hand_out(struct deletion *x)
{
    if (x->used == 0) return;
    if (x->helpers == 0) {
        remove_piece(x, x->used);
    } else {
        MPI_Ssend(x->piece, (int)x->used, MPI_CHAR, x->next, PIECE_TAG,
                  x->scr->job.world);
        x->next = x->next % x->helpers + 1;
    }
    x->used = 0;
}

static void dismiss_helpers(struct deletion *x)
{
    for (int i = 1; i <= x->helpers; i++)
        MPI_Send(NULL, 0, MPI_CHAR, i, PIECE_TAG, x->scr->job.world);
}

static void help(struct deletion *x)
{
    for (;;) {
        MPI_Status status;
        int size = 0;
        if (MPI_Recv(x->piece, PIECE, MPI_CHAR, 0, PIECE_TAG, x->scr->job.world,
                     &status) != MPI_SUCCESS)
            return;
        MPI_Get_count(&status, MPI_CHAR, &size);
        if (size <= 0) return;
        remove_piece(x, (size_t)size);
    }
}

/* Those that are packed go with their containers, which lie among the records. */
static int take(void *arg, int rank, int count, const filo_file files[], char *err)
{
    struct deletion *x = arg;
    (void)rank;
    (void)err;
    for (int i = 0; i < count; i++) {
        size_t n = strlen(files[i].name) + 1;
        if (files[i].packed || n > PIECE || kvtree_get(x->others, files[i].name))
            continue;
        if (x->used + n > PIECE) hand_out(x);
        memcpy(x->piece + x->used, files[i].name, n);
        x->used += n;
    }
    return 0;
}

/* Rank 0. Nothing is touched before all of the map has been read once: of a dataset with
 * a damaged map files would stay that nobody knows. One without a map has none to remove:
 * *none. */
static int check_map(struct scr *scr, const scr_dataset *d, int *none, char *err)
{
    scr_place place = {.folder = NULL};
    if (scr_place_of(scr, d, &place) != 0) return err_set(err, -ENOMEM, "no memory");
    const filo_place from = {.folder = place.folder, .map = place.map};
    int rc = filo_map_read(&from, NULL, NULL, NULL, err);
    free(place.folder);
    *none = rc == -ENOENT;
    return *none ? 0 : rc;
}

/* Rank 0. A dataset without a map was deleted: what else is in its folder stays, and
 * where its files lie elsewhere, that is not known. */
static void tell_rest(struct scr *scr, const scr_dataset *d)
{
    struct stat st;
    if (!d->scattered && fstatat(scr->prefix.fd, d->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    scr_say(&scr->report, 0,
            "warning: %s had no map on the prefix folder; if its flush did not end, "
            "files of it may stay there",
            d->name);
}

static int note_names(void *arg, int rank, int count, const filo_file files[], char *err)
{
    (void)rank;
    for (int i = 0; i < count; i++)
        if (!kvtree_get(arg, files[i].name) && !kvtree_set(arg, files[i].name, NULL))
            return err_set(err, -ENOMEM, "no memory");
    return 0;
}

/* Rank 0. Datasets that lie scattered may have files of the same names; those that a
 * newer one replaced are not the older one's any more. others gets the names that all but
 * this dataset have. One whose map is damaged has none: nobody can restart from it. */
static int find_others(struct scr *scr, const scr_dataset *d, kvtree *others, char *err)
{
    scr_dataset *list = NULL;
    kvtree *index = kvtree_new();
    int count = 0, rc = others ? scr_index_load(scr, index, err) : -ENOMEM;
    if (!rc) rc = scr_index_list(index, &list, &count);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    for (int i = 0; i < count && !rc; i++) {
        scr_place place;
        if (!list[i].scattered || strcmp(list[i].name, d->name) == 0) continue;
        if (scr_place_of(scr, &list[i], &place) != 0)
            rc = err_set(err, -ENOMEM, "no memory");
        const filo_place from = {.folder = place.folder, .map = place.map};
        rc = rc ? rc : filo_map_read(&from, NULL, note_names, others, err);
        if (rc == -ENOENT || rc == FILO_DAMAGED) rc = 0;
        free(place.folder);
    }
    kvtree_delete(&index);
    free(list);
    return rc;
}

static int deal(struct deletion *x)
{
    char err[SCR_ERR_TEXT] = "";
    const filo_place from = {.folder = x->place.folder, .map = x->place.map};
    int rc = filo_map_read(&from, NULL, take, x, err);
    hand_out(x);
    dismiss_helpers(x);
    return rc && rc != -ENOENT ? err_set(x->err, rc, "%s", err) : x->rc;
}

/* Opens the folder that the map's names are below; no link leads there. */
static int open_place(struct deletion *x, char *err)
{
    char inside[SCR_NAME_SIZE + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s%sx", x->d->scattered ? "" : x->d->name,
             x->d->scattered ? "" : "/");
    return beneath_open_parent(x->scr->prefix.fd, inside, 0, &x->dir, &last, err);
}

/* Collective, agreed. */
static int remove_files(struct deletion *x, char *err)
{
    struct scr *scr = x->scr;
    int width = scr->set.flush_width, rc = scr_place_of(scr, x->d, &x->place);
    if (rc) err_set(err, rc, "no memory");
    if (!rc && (rc = open_place(x, err)) == -ENOENT) rc = 0;
    /* ranks may differ in what they see of a folder that goes away */
    int gone = x->dir < 0;
    rc = agree(scr->job.world, rc, err);
    MPI_Allreduce(MPI_IN_PLACE, &gone, 1, MPI_INT, MPI_MAX, scr->job.world);
    if (rc || gone) return rc;
    x->helpers = scr->job.ranks - 1 < width ? scr->job.ranks - 1 : width;
    x->next = 1;
    if (scr->job.rank == 0)
        rc = deal(x);
    else if (scr->job.rank <= x->helpers)
        help(x);
    rc = rc ? rc : x->rc;
    if (rc) err_set(err, rc, "%s", x->err);
    return agree(scr->job.world, rc, err);
}

/* Rank 0 removes the records in the dataset's folder and, if nothing else is in it, the
 * folder. */
static int remove_records(struct scr *scr, const scr_dataset *d, char *err)
{
    char hidden[SCR_NAME_SIZE + 8];
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    int rc = beneath_remove_tree(scr->prefix.fd, hidden, err);
    if (!rc) beneath_rmdir(scr->prefix.fd, d->name, NULL);
    return rc;
}

/* The index stops offering the dataset before its first file goes, but names it until
 * the last is gone, so that nothing is left that nobody knows. */
static int delete_one(struct scr *scr, const scr_dataset *d, char *err)
{
    kvtree *others = kvtree_new();
    int none = 0, rc = scr->job.rank ? 0 : check_map(scr, d, &none, err);
    if (!rc && scr->job.rank == 0 && d->scattered) rc = find_others(scr, d, others, err);
    if (!rc && scr->job.rank == 0)
        rc = scr_index_change(scr, d, scr_index_mark_deleting, err);
    struct deletion *x = calloc(1, sizeof *x);
    if (!rc && !x) rc = err_set(err, -ENOMEM, "no memory");
    rc = agree(scr->job.world, rc, err);
    if (!rc) {
        *x = (struct deletion){.scr = scr, .d = d, .dir = -1, .others = others};
        rc = remove_files(x, err);
        if (x->dir >= 0) close(x->dir);
        free(x->place.folder);
    }
    free(x);
    kvtree_delete(&others);
    if (rc) return rc;
    if (scr->job.rank == 0) {
        rc = remove_records(scr, d, err);
        rc = rc ? rc : scr_index_drop(scr, d, err);
        if (!rc && none) tell_rest(scr, d);
        if (!rc && scr_flush_file_has(scr->prefix.flush_file, d->id, SCR_LOCATION_PFS))
            scr_location(scr, d, SCR_LOCATION_PFS, 0);
    }
    return agree(scr->job.world, rc, err);
}

int scr_flushed_delete(struct scr *scr, const scr_dataset *d, char *err)
{
    scr_wait wait;
    scr_wait_begin(&scr->report, &wait,
                   "waits for the removal of dataset %d (%.150s) from %.250s", d->id,
                   d->name, scr->prefix.path);
    int rc = delete_one(scr, d, err);
    scr_wait_end(&wait);
    return rc;
}

/* ---- several ---- */

/* What rank 0 has in list goes. */
static void delete_all(struct scr *scr, const scr_dataset *list, int count,
                       const char *reason)
{
    MPI_Bcast(&count, 1, MPI_INT, 0, scr->job.world);
    for (int i = 0; i < count; i++) {
        char err[SCR_ERR_TEXT] = "";
        scr_dataset d;
        double start = MPI_Wtime();
        if (scr->job.rank == 0) d = list[i];
        /* all ranks run the same program, so the struct has the same layout */
        MPI_Bcast(&d, sizeof d, MPI_BYTE, 0, scr->job.world);
        if (scr_flushed_delete(scr, &d, err) != 0)
            scr_say(
                &scr->report, 0,
                "warning: dataset %d (%s) could not be deleted from the prefix folder "
                "(%s): %s",
                d.id, d.name, reason, err);
        else
            scr_say(&scr->report, 1,
                    "dataset %d (%s) is deleted from the prefix folder (%s): %.3f s",
                    d.id, d.name, reason, MPI_Wtime() - start);
    }
}

static void warn(const struct scr *scr, const char *err)
{
    scr_say(&scr->report, 0, "warning: nothing is deleted from the prefix folder: %s",
            err);
}

void scr_window_begin(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    const scr_window none = {.keep = 0};
    scr_dataset *list = NULL;
    int count = 0;
    if (scr->job.rank == 0) {
        kvtree *index = kvtree_new();
        int rc = scr_index_load(scr, index, err);
        if (!rc)
            rc = scr->set.prefix_purge ? scr_index_list(index, &list, &count)
                                       : scr_index_leaving(index, &none, &list, &count);
        if (rc) warn(scr, err[0] ? err : "no memory");
        if (rc) count = 0;
        kvtree_delete(&index);
    }
    if (scr->set.prefix_purge && count > 0)
        scr_say(&scr->report, 0, "SCR_PREFIX_PURGE: all %d datasets of %s are deleted",
                count, scr->prefix.path);
    delete_all(scr, list, count,
               scr->set.prefix_purge ? "SCR_PREFIX_PURGE" : "as begun by an earlier run");
    free(list);
}

void scr_window_move(struct scr *scr, int id)
{
    char err[SCR_ERR_TEXT] = "";
    const scr_window window = {.keep = scr->set.prefix_size,
                               .flushed = id,
                               .reading = scr->lifecycle.state == SCR_STATE_RESTART
                                              ? scr->lifecycle.open.id
                                              : scr->restart.offered,
                               .stay = kvtree_get(scr->restart.spared, "ID")};
    scr_dataset *list = NULL;
    int count = 0;
    if (window.keep == 0) return;
    if (scr->job.rank == 0) {
        kvtree *index = kvtree_new();
        int rc = scr_index_load(scr, index, err);
        if (!rc) rc = scr_index_leaving(index, &window, &list, &count);
        if (rc) warn(scr, err[0] ? err : "no memory");
        if (rc) count = 0;
        kvtree_delete(&index);
    }
    delete_all(scr, list, count, "SCR_PREFIX_SIZE");
    free(list);
}
