/* SPDX-License-Identifier: BSD-3-Clause */
/* Removal of the files of a dataset by several ranks; see prefix/file_removal.h. */
#include "prefix/file_removal.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "plan/dataset.h"
#include "plan/own_file.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE_TAG 1

/* Minimum number of files for which a rank opens the directory: the files of a piece. */
enum { REMOVAL_SHARE = 128 };

/* The description of a file in a piece. The name, with a NUL, follows. All ranks run the
 * same program, so the layout of the struct is the same. */
typedef struct described {
    uint64_t size;
    int64_t mtime;
    int has_mtime;
} described;

/* ---- removing ---- */

static int removal_compare(const scr_file_removal *r, int parent, const char *last,
                           const filo_file *file, kvtree_error *err)
{
    struct stat st;
    if (!r->compares) return 0;
    int rc = beneath_stat(parent, last, &st, err);
    return rc ? rc : scr_file_compare(file, &st, err) ? SCR_FILE_REMOVAL_KEPT : 0;
}

/* Removes a file. A file that others_reach refuses is not even compared: the message
 * would reveal facts about the file to the users who chose its name. */
static int removal_remove_file(const scr_file_removal *r, const filo_file *file,
                               kvtree_error *err)
{
    const char *last;
    int parent, rc = beneath_open_parent(r->dir, file->name, 0, &parent, &last, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    if (r->shared) rc = others_reach(r->shared, r->dir, parent, file->name, err);
    rc = rc ? rc : removal_compare(r, parent, last, file, err);
    if (!rc) rc = beneath_unlink(parent, last, err);
    io_close(&parent);
    return rc == -ENOENT ? 0 : rc;
}

/* Notes a result. A failure replaces SCR_FILE_REMOVAL_KEPT. */
static void removal_note(scr_file_removal *r, int rc, const kvtree_error *err)
{
    if (rc && (!r->rc || (r->rc > 0 && rc < 0)))
        r->rc = err_set(&r->err, rc, "%s", err->text);
}

/* Removes the directories that are now empty. */
static void removal_remove_folders(const scr_file_removal *r, const char *name)
{
    char folder[SCR_NAME_SIZE], *slash;
    snprintf(folder, sizeof folder, "%s", name);
    while ((slash = strrchr(folder, '/')) != NULL) {
        *slash = 0;
        if (beneath_rmdir(r->dir, folder, NULL) != 0) return;
    }
}

static bool removal_is_same_folder(const char *a, const char *b)
{
    const char *slash = strrchr(a, '/');
    size_t n = slash ? (size_t)(slash - a) + 1 : 0;
    return strncmp(a, b, n) == 0 && !strchr(b + n, '/');
}

/* Returns the file at *offset in the piece, and advances *offset to the next file. */
static filo_file removal_next(scr_file_removal *r, size_t *offset)
{
    described d;
    filo_file file = {.name = r->piece + *offset + sizeof d};
    memcpy(&d, r->piece + *offset, sizeof d);
    file.size = d.size;
    file.mtime = d.mtime;
    file.has_mtime = d.has_mtime;
    *offset += sizeof d + strlen(file.name) + 1;
    return file;
}

static void removal_remove_piece(scr_file_removal *r)
{
    for (size_t i = 0; i < r->used;) {
        kvtree_error err = {""};
        filo_file file = removal_next(r, &i);
        removal_note(r, removal_remove_file(r, &file, &err), &err);
        if (r->gone && r->job->rank == 0) ++*r->gone;
    }
    for (size_t i = 0; i < r->used && !r->compares;) {
        size_t after = i;
        filo_file file = removal_next(r, &after);
        i = after;
        if (i >= r->used ||
            !removal_is_same_folder(file.name, removal_next(r, &after).name))
            removal_remove_folders(r, file.name);
    }
    r->used = 0;
}

/* ---- pieces ---- */

/* Rank 0: hands out a piece that is full, or the last one. Waits if the helper is
 * busy. */
static void removal_hand_out(scr_file_removal *r)
{
    if (r->used == 0) return;
    if (r->helpers == 0) {
        removal_remove_piece(r);
        r->count = 0;
        return;
    }
    MPI_Ssend(r->piece, (int)r->used, MPI_CHAR, r->next, PIECE_TAG, r->job->world);
    if (r->gone) *r->gone += (uint64_t)r->count;
    r->next = r->next % r->helpers + 1;
    r->used = 0;
    r->count = 0;
}

static void removal_help(scr_file_removal *r)
{
    for (;;) {
        MPI_Status status;
        int size = 0;
        if (MPI_Recv(r->piece, sizeof r->piece, MPI_CHAR, 0, PIECE_TAG, r->job->world,
                     &status) != MPI_SUCCESS)
            return;
        MPI_Get_count(&status, MPI_CHAR, &size);
        if (size <= 0) return;
        r->used = (size_t)size;
        removal_remove_piece(r);
    }
}

void scr_file_removal_begin(scr_file_removal *r, int width, int64_t files)
{
    const int others = r->job->ranks - 1;
    r->helpers = others < width ? others : width;
    if (files / REMOVAL_SHARE < r->helpers) r->helpers = (int)(files / REMOVAL_SHARE) + 1;
    if (others == 0) r->helpers = 0;
    r->next = 1;
    r->used = 0;
    r->rc = 0;
}

bool scr_file_removal_takes_part(const scr_file_removal *r)
{
    return r->job->rank <= r->helpers;
}

void scr_file_removal_take(scr_file_removal *r, const filo_file *file)
{
    const described d = {file->size, file->mtime, file->has_mtime};
    const size_t n = strlen(file->name) + 1, size = sizeof d + n;
    if (size > sizeof r->piece) return; /* longer than any valid file name */
    if (r->used + size > sizeof r->piece) removal_hand_out(r);
    memcpy(r->piece + r->used, &d, sizeof d);
    memcpy(r->piece + r->used + sizeof d, file->name, n);
    r->used += size;
    r->count++;
}

int scr_file_removal_end(scr_file_removal *r, kvtree_error *err)
{
    if (r->job->rank == 0) {
        removal_hand_out(r);
        for (int i = 1; i <= r->helpers; i++)
            MPI_Send(NULL, 0, MPI_CHAR, i, PIECE_TAG, r->job->world);
    } else if (r->job->rank <= r->helpers) {
        removal_help(r);
    }
    return r->rc ? err_set(err, r->rc, "%s", r->err.text) : 0;
}
