/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening sources and destinations. A file is written to a temporary file beside its
 * destination, which is renamed when it is complete and on disk. A part is written to the
 * destination itself. */
#include "src/axl_private.h"

#include "common/beneath.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- sources ---- */

/* Opens name in the directory dir. path is for error texts. */
static int place_open_regular(int dir, const char *name, const char *path, int mode,
                              int *fd, struct stat *st, axl_error *err)
{
    /* O_NONBLOCK: opening a pipe must not wait for its other end; -ENXIO: no other end */
    int opened = io_open(dir, name, mode | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (opened == -ELOOP)
        return err_set(err, -ELOOP, "%s is a symbolic link, or lies in a loop of them",
                       path);
    if (opened == -ENXIO) return err_set(err, -EINVAL, "%s is not a regular file", path);
    if (opened < 0) return err_sys(err, opened, "open %s", path);
    int rc = fstat(opened, st) == 0 ? 0 : err_sys(err, -errno, "stat %s", path);
    if (rc == 0 && !S_ISREG(st->st_mode))
        rc = err_set(err, S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL,
                     "%s is not a regular file", path);
    if (rc) {
        io_close(&opened);
        return rc;
    }
    *fd = opened;
    return 0;
}

int axl_open_source(const char *path, int *fd, struct stat *st, axl_error *err)
{
    return place_open_regular(AT_FDCWD, path, path, O_RDONLY, fd, st, err);
}

static bool place_is_unchanged(const axl_item *item, const struct stat *st)
{
    return (uint64_t)st->st_size == item->source_size &&
           st->st_mtim.tv_sec == item->mtime.tv_sec &&
           st->st_mtim.tv_nsec == item->mtime.tv_nsec;
}

/* A directory on the way to the source may have been replaced since the caller checked
 * it. */
static int place_check_identity(const axl_item *item, const struct stat *st,
                                axl_error *err)
{
    if (!item->checked_inode ||
        (st->st_dev == item->checked_device && st->st_ino == item->checked_inode))
        return 0;
    return err_set(err, -ESTALE, "another file is in the place of %s", item->file.source);
}

bool axl_is_dense(const struct stat *st)
{
    return (uint64_t)st->st_blocks * 512 >= (uint64_t)st->st_size;
}

int axl_check_range(const axl_item *item, axl_error *err)
{
    if (item->from + item->size <= item->source_size) return 0;
    return err_set(err, -ENODATA, "%s has %llu bytes, not %llu from byte %llu on",
                   item->file.source, (unsigned long long)item->source_size,
                   (unsigned long long)item->size, (unsigned long long)item->from);
}

static void place_take_facts(axl_item *item, const struct stat *st)
{
    item->source_size = (uint64_t)st->st_size;
    item->device = st->st_dev;
    item->inode = st->st_ino;
    item->mode = st->st_mode;
    item->dense = axl_is_dense(st);
    item->atime = st->st_atim;
    item->mtime = st->st_mtim;
}

void axl_take_seen(axl_item *item, const struct stat *seen)
{
    place_take_facts(item, seen);
    item->checked_device = seen->st_dev;
    item->checked_inode = seen->st_ino;
    item->seen = true;
}

int axl_look(const char *source, struct stat *seen, axl_error *err)
{
    int fd, rc = axl_open_source(source, &fd, seen, err);
    if (!rc) io_close(&fd);
    return rc;
}

int axl_look_at_source(axl_item *item, bool *unchanged, axl_error *err)
{
    struct stat st;
    int fd, rc = axl_open_source(item->file.source, &fd, &st, err);
    if (rc) return rc;
    others_limit_mode(fd, &st);
    io_close(&fd);
    rc = place_check_identity(item, &st, err);
    if (rc) return rc;
    *unchanged = place_is_unchanged(item, &st);
    place_take_facts(item, &st);
    if (!item->part) item->size = item->source_size;
    return axl_check_range(item, err);
}

bool axl_has_same_source(const axl_item *item, const axl_item *other)
{
    return item->part && other->part && item->checked_device == other->checked_device &&
           item->checked_inode == other->checked_inode &&
           strcmp(item->file.source, other->file.source) == 0;
}

int axl_look_as_before(axl_item *item, const axl_item *before, axl_error *err)
{
    item->source_size = before->source_size;
    item->device = before->device;
    item->inode = before->inode;
    item->mode = before->mode;
    item->dense = before->dense;
    item->atime = before->atime;
    item->mtime = before->mtime;
    return axl_check_range(item, err);
}

static int place_check_facts(const axl_item *item, const struct stat *st, axl_error *err)
{
    int rc = place_check_identity(item, st, err);
    if (rc || place_is_unchanged(item, st)) return rc;
    return err_set(err, -ESTALE, "%s changed while it was read", item->file.source);
}

int axl_check_source(const axl_item *item, int fd, axl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat %s", item->file.source);
    return place_check_facts(item, &st, err);
}

int axl_open_looked_at(const axl_item *item, int *fd, axl_error *err)
{
    struct stat st;
    int rc = axl_open_source(item->file.source, fd, &st, err);
    if (rc) return rc;
    rc = place_check_facts(item, &st, err);
    if (rc) io_close(fd);
    return rc;
}

/* ---- directories ---- */

void axl_folder_done(axl_folder *folder)
{
    if (folder->path) io_close(&folder->fd);
    free(folder->path);
    folder->path = NULL;
}

const char *axl_place_top(const axl_transfer *transfer)
{
    return transfer->private_folder ? transfer->private_folder : transfer->base;
}

int axl_place_begin(axl_transfer *transfer, axl_error *err)
{
    const char *base = transfer->base;
    int dir;
    if (!base || transfer->top_dir >= 0) return 0;
    if (!transfer->private_folder) return folder_make(base, 0, &transfer->top_dir, err);
    int rc = folder_make(base, 0, &dir, err);
    if (rc) return rc;
    rc = beneath_open_private(dir, folder_rest(base, transfer->private_folder),
                              &transfer->top_dir, err);
    io_close(&dir);
    return rc ? err_wrap(err, rc, "%s", base) : 0;
}

/* Opens a directory of destinations. A missing directory is created if mode is not 0. */
static int place_open_folder(const axl_transfer *t, const char *path, mode_t mode,
                             int *fd, axl_error *err)
{
    const char *top = axl_place_top(t);
    if (!top) return folder_make(path, mode, fd, err);
    int rc = folder_make_beneath(t->top_dir, folder_rest(top, path), mode, fd, err);
    return rc ? err_wrap(err, rc, "%s", top) : 0;
}

/* Opens the directory of an item. A missing directory is created, except for a part.
 * *last is the name in the directory. */
static int place_enter(const axl_transfer *t, const axl_item *item, axl_folder *folder,
                       const char **last, axl_error *err)
{
    const char *path = item->file.destination;
    size_t length = beneath_folder_length(path);
    *last = path + length;
    if (!path[length]) return err_set(err, -EISDIR, "\"%s\" is not a file name", path);
    if (folder->path && strlen(folder->path) == length &&
        memcmp(folder->path, path, length) == 0)
        return 0;
    axl_folder_done(folder);
    char *parent = strndup(path, length);
    if (!parent) return err_sys(err, -ENOMEM, "open the directory of %s", path);
    int rc = place_open_folder(t, parent, item->part ? 0 : 0777, &folder->fd, err);
    if (rc)
        free(parent);
    else
        folder->path = parent;
    return rc;
}

/* Opens an existing destination. */
static int place_open_named(const axl_transfer *t, const axl_item *item,
                            axl_folder *folder, int mode, int *fd, struct stat *st,
                            axl_error *err)
{
    const char *last;
    int rc = place_enter(t, item, folder, &last, err);
    if (rc) return err_wrap(err, rc, "%s", item->file.destination);
    return place_open_regular(folder->fd, last, item->file.destination, mode, fd, st,
                              err);
}

int axl_place_open_named(const axl_transfer *transfer, const axl_item *item, int *fd,
                         struct stat *st, axl_error *err)
{
    axl_folder folder = {0};
    int rc = place_open_named(transfer, item, &folder, O_RDONLY, fd, st, err);
    axl_folder_done(&folder);
    return rc;
}

/* ---- temporary files ---- */

static void place_temporary_name(const axl_transfer *t, size_t i, char name[64])
{
    snprintf(name, 64, ".%016llx-%zu.tmp", (unsigned long long)t->id, i);
}

/* Refuses a destination that is a directory. A rename would fail as well, but only after
 * all the data was written. */
static int place_refuse_folder(const axl_folder *folder, const char *last,
                               const char *path, axl_error *err)
{
    struct stat st;
    if (fstatat(folder->fd, last, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, -EISDIR, "%s is a directory", path);
}

static int place_create(const axl_transfer *t, size_t i, const axl_folder *folder,
                        int *fd, axl_error *err)
{
    char name[64];
    const axl_item *item = &t->items[i];
    place_temporary_name(t, i, name);
    *fd = io_open(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  t->flags & AXL_KEEP_MODE ? 0600 : 0666);
    if (*fd < 0)
        return err_sys(err, *fd, "create a temporary file for %s",
                       item->file.destination);
    if (ftruncate(*fd, (off_t)item->size) == 0) return 0;
    int rc = err_sys(err, -errno, "write %s", item->file.destination);
    io_close(fd);
    unlinkat(folder->fd, name, 0);
    return rc;
}

/* Other processes may write to the same file now. Therefore the file is extended only by
 * writing, never by truncation: the last byte of the part is written, and gets its value
 * later. */
int axl_place_reach_end(const axl_item *item, const struct stat *st, int fd,
                        axl_error *err)
{
    const char *path = item->file.destination;
    uint64_t end = item->to + item->size;
    if (st->st_dev == item->device && st->st_ino == item->inode)
        return err_set(err, -EINVAL, "%s is source and destination of a part", path);
    if (item->made || item->size == 0 || (uint64_t)st->st_size >= end) return 0;
    int rc = io_pwrite(fd, "", 1, (off_t)(end - 1));
    return rc ? err_sys(err, rc, "write %s", path) : 0;
}

static int place_open_part(const axl_transfer *t, const axl_item *item,
                           axl_folder *folder, int *fd, axl_error *err)
{
    struct stat st;
    int rc = place_open_named(t, item, folder, O_WRONLY, fd, &st, err);
    if (rc) return rc;
    rc = axl_place_reach_end(item, &st, *fd, err);
    if (rc) io_close(fd);
    return rc;
}

/* Whether only this user can have created and opened an existing file. */
static bool place_is_own(const axl_folder *folder, const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid() &&
           others_put(folder->fd) == 0;
}

static int place_open_any(const axl_transfer *t, size_t i, const axl_folder *folder,
                          int mode, int *fd, struct stat *st, axl_error *err)
{
    char name[64];
    place_temporary_name(t, i, name);
    int rc = place_open_regular(folder->fd, name, name, mode, fd, st, err);
    return rc && rc != -ENOENT
               ? err_wrap(err, rc, "temporary file of %s", t->items[i].file.destination)
               : rc;
}

/* Opens the temporary file that an earlier process left. A file that others may have put
 * in its place, such as a pipe or a hard link, is refused. */
static int place_open_temporary(const axl_transfer *t, size_t i, const axl_folder *folder,
                                int mode, int *fd, axl_error *err)
{
    struct stat st;
    const char *path = t->items[i].file.destination;
    int rc = place_open_any(t, i, folder, mode, fd, &st, err);
    if (rc) return rc;
    if (place_is_own(folder, &st)) return 0;
    io_close(fd);
    return err_set(err, -EINVAL, "the temporary file of %s may be one of others", path);
}

int axl_place_open(const axl_transfer *transfer, size_t i, axl_folder *folder, int *fd,
                   axl_error *err)
{
    const axl_item *item = &transfer->items[i];
    const char *last, *path = item->file.destination;
    if (item->part) return place_open_part(transfer, item, folder, fd, err);
    int rc = place_enter(transfer, item, folder, &last, err);
    if (rc) return rc;
    if (!item->made) {
        rc = place_refuse_folder(folder, last, path, err);
        return rc ? rc : place_create(transfer, i, folder, fd, err);
    }
    return place_open_temporary(transfer, i, folder, O_WRONLY, fd, err);
}

int axl_place_open_again(const axl_transfer *transfer, size_t i, axl_folder *folder,
                         int *fd)
{
    const char *last;
    const axl_item *item = &transfer->items[i];
    struct stat st;
    if (item->part)
        return place_open_named(transfer, item, folder, O_RDONLY, fd, &st, NULL);
    int rc = place_enter(transfer, item, folder, &last, NULL);
    return rc ? rc : place_open_temporary(transfer, i, folder, O_RDONLY, fd, NULL);
}

int axl_place_sync(const axl_transfer *transfer, size_t i, axl_folder *folder,
                   axl_error *err)
{
    const axl_item *item = &transfer->items[i];
    const char *last;
    struct stat st;
    int fd, rc = place_enter(transfer, item, folder, &last, err);
    if (!rc && item->part) rc = place_open_part(transfer, item, folder, &fd, err);
    if (!rc && !item->part)
        rc = place_open_any(transfer, i, folder, O_WRONLY, &fd, &st, err);
    if (rc == -ENOENT && !item->part) return 0; /* it was renamed meanwhile */
    if (rc) return rc;
    rc = io_fsync(fd);
    io_close(&fd);
    return rc ? err_sys(err, rc, "fsync %s", item->file.destination) : 0;
}

/* The destination of a part that was begun reaches the end of the part. */
bool axl_place_reaches(const axl_transfer *transfer, const axl_item *item)
{
    struct stat st;
    int fd;
    axl_folder folder = {0};
    int rc = place_open_named(transfer, item, &folder, O_PATH, &fd, &st, NULL);
    axl_folder_done(&folder);
    if (rc) return false;
    io_close(&fd);
    return (uint64_t)st.st_size >= item->to + item->size;
}

int axl_place_find(const axl_transfer *transfer, size_t i, axl_folder *folder, bool *fits,
                   axl_error *err)
{
    char name[64];
    const char *last;
    struct stat st;
    const axl_item *item = &transfer->items[i];
    *fits = item->part && axl_place_reaches(transfer, item);
    if (item->part) return 0;
    int rc = place_enter(transfer, item, folder, &last, NULL);
    if (rc == -ENOMEM) return err_sys(err, rc, "open %s", item->file.destination);
    if (rc) return 0;
    place_temporary_name(transfer, i, name);
    if (fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    *fits = (uint64_t)st.st_size == item->size && place_is_own(folder, &st);
    return 1;
}

void axl_place_drop(const axl_transfer *transfer, size_t i, const axl_folder *folder)
{
    char name[64];
    place_temporary_name(transfer, i, name);
    unlinkat(folder->fd, name, 0);
}

void axl_place_remove(const axl_transfer *transfer, size_t i)
{
    const char *last;
    axl_folder folder = {0};
    if (transfer->items[i].part) return;
    if (place_enter(transfer, &transfer->items[i], &folder, &last, NULL) == 0)
        axl_place_drop(transfer, i, &folder);
    axl_folder_done(&folder);
}

/* ---- names ---- */

static int place_keep_attributes(const axl_transfer *t, const axl_item *item, int fd,
                                 axl_error *err)
{
    const char *path = item->file.destination;
    struct timespec times[2] = {item->atime, item->mtime};
    if (item->part) return 0;
    if (t->flags & AXL_KEEP_MODE && fchmod(fd, item->mode & 0777) != 0)
        return err_sys(err, -errno, "set the mode of %s", path);
    if (t->flags & AXL_KEEP_TIMES && futimens(fd, times) != 0)
        return err_sys(err, -errno, "set the times of %s", path);
    return 0;
}

/* Sets the attributes kept from the source, then syncs and closes the file. */
static int place_finish_file(const axl_transfer *t, const axl_item *item, int *fd,
                             axl_error *err)
{
    const char *path = item->file.destination;
    int rc = place_keep_attributes(t, item, *fd, err);
    if (rc) return rc;
    rc = io_fsync(*fd);
    if (rc) return err_sys(err, rc, "fsync %s", path);
    rc = io_close(fd);
    return rc ? err_sys(err, rc, "close %s", path) : 0;
}

static int place_give_name(const axl_transfer *t, size_t i, axl_folder *folder,
                           axl_error *err)
{
    char name[64];
    const char *last, *path = t->items[i].file.destination;
    if (t->items[i].part) return 0;
    int rc = place_enter(t, &t->items[i], folder, &last, err);
    if (rc) return rc;
    place_temporary_name(t, i, name);
    if (renameat(folder->fd, name, folder->fd, last) == 0) return 0;
    return err_sys(err, -errno, "rename to %s", path);
}

int axl_place_sync_named(const axl_transfer *transfer, const axl_item *item,
                         axl_error *err)
{
    const char *last;
    axl_folder folder = {0};
    int rc = place_enter(transfer, item, &folder, &last, err);
    if (!rc && (rc = io_fsync(folder.fd)) != 0)
        err_sys(err, rc, "fsync of the directory of %s (the file is in place)",
                item->file.destination);
    axl_folder_done(&folder);
    return rc;
}

/* Syncs the directories of renamed files, once per run of files with one directory. */
static int place_sync_folders(const axl_transfer *t, const axl_batch *batch, int placed,
                              axl_error *err)
{
    int rc = 0;
    for (int k = 0; k < placed && !rc; k++) {
        const axl_item *item = &t->items[batch->items[k]];
        const axl_item *next = k + 1 < placed ? &t->items[batch->items[k + 1]] : NULL;
        bool last =
            !next || next->part ||
            !beneath_is_same_folder(item->file.destination, next->file.destination);
        if (!item->part && last) rc = axl_place_sync_named(t, item, err);
    }
    return rc;
}

int axl_place_sync_folder(const char *path, axl_error *err)
{
    const char *last;
    int folder, rc = folder_of(AT_FDCWD, path, 0, &folder, &last, err);
    if (rc) return rc;
    rc = io_fsync(folder);
    io_close(&folder);
    return rc ? err_sys(err, rc, "fsync of the directory of %s", path) : 0;
}

int axl_place_batch(const axl_transfer *transfer, axl_batch *batch, int *placed,
                    axl_error *err)
{
    axl_folder folder = {0};
    int rc = 0;
    *placed = 0;
    /* start writing all files, before waiting for the first one */
    const bool waits = batch->count > 1 && !axl_is_in_memory(batch->fds[0]);
    for (int k = 0; k < batch->count && waits; k++)
        sync_file_range(batch->fds[k], 0, 0, SYNC_FILE_RANGE_WRITE);
    for (int k = 0; k < batch->count && !rc; k++)
        rc = place_finish_file(transfer, &transfer->items[batch->items[k]],
                               &batch->fds[k], err);
    for (int k = 0; k < batch->count; k++)
        io_close(&batch->fds[k]);
    for (int k = 0; k < batch->count && !rc; k++) {
        rc = place_give_name(transfer, batch->items[k], &folder, err);
        *placed += rc == 0;
    }
    axl_folder_done(&folder);
    int synced = place_sync_folders(transfer, batch, *placed, rc ? NULL : err);
    batch->count = 0;
    if (synced) *placed = 0; /* a power loss may undo the renames */
    return rc ? rc : synced;
}
