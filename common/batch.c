/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are renamed into place together; see batch.h. */
#include "common/batch.h"

#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Of batch_open: "." and 16 hexadecimal digits and ".tmp". */
#define BATCH_DRAWN ".0000000000000000.tmp"

/* The kernel returns this number of bytes in one piece. */
int batch_draw(uint64_t *random)
{
    ssize_t n;
    do
        n = getrandom(random, sizeof *random, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n < (ssize_t)sizeof *random ? -EIO : 0;
}

/* ---- the list ---- */

/* Length of the folder part of name, with its slash. */
static size_t batch_folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

static bool batch_is_same_folder(const char *a, const char *b)
{
    size_t length = batch_folder_length(a);
    return length == batch_folder_length(b) && memcmp(a, b, length) == 0;
}

static int batch_reserve(batch *b)
{
    if (b->count < b->room) return 0;
    size_t room = b->room ? 2 * b->room : 1;
    batch_item *items = reallocarray(b->items, room, sizeof *items);
    if (!items) return -ENOMEM;
    b->items = items;
    b->room = room;
    return 0;
}

int batch_add(batch *b, const batch_file *file, char *err)
{
    int rc = batch_reserve(b);
    if (rc) return err_sys(err, rc, "list %s", file->name);
    batch_item item = {.name = strdup(file->name),
                       .temporary = strdup(file->temporary),
                       .from = file->from,
                       .size = file->size,
                       .mode = file->mode,
                       .fd = -1,
                       .lock = -1,
                       .parent = -1};
    if (!item.name || !item.temporary) {
        free(item.name);
        free(item.temporary);
        return err_sys(err, -ENOMEM, "list %s", file->name);
    }
    b->items[b->count++] = item;
    return 0;
}

/* ---- folders ---- */

/* Opens the folder of name, which is made where it is missing. Folders that are made, or
 * that another process may have just made, are synced: files in them are lost with them.
 */
static int batch_enter(const batch *b, const char *name, int *parent, const char **last,
                       char *err)
{
    size_t length = batch_folder_length(name);
    bool durable = b->folders && b->durability != BATCH_UNSYNCED && length > 0;
    if (b->dir == AT_FDCWD || !durable)
        return folder_of(b->dir, name, b->folders, parent, last, err);
    char folder[BENEATH_NAME_MAX];
    int rc = beneath_check_name(name, err);
    if (rc) return rc;
    memcpy(folder, name, length);
    folder[length - 1] = 0;
    rc = beneath_make_durable(b->dir, folder, b->folders, err);
    return rc ? rc : beneath_open_parent(b->dir, name, 0, parent, last, err);
}

/* Opens the folder of a temporary file. */
static int batch_enter_source(const batch *b, const batch_item *item, int *parent,
                              const char **last, char *err)
{
    if (item->from != BATCH_BESIDE)
        return beneath_open_parent(item->from, item->temporary, 0, parent, last, err);
    int rc = folder_of(b->dir, item->name, 0, parent, last, err);
    *last = item->temporary;
    return rc;
}

/* ---- the lock ---- */

/* Does not wait. -EAGAIN: another process has it; -ENOLCK: there are no locks here. */
static int batch_lock(int fd, short type)
{
    const struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) == 0) return 0;
    return errno == EAGAIN || errno == EACCES ? -EAGAIN : -ENOLCK;
}

/* Closing alone would leave the lock to a process that was forked meanwhile. */
static void batch_unlock(batch_item *item)
{
    if (item->lock >= 0) batch_lock(item->lock, F_UNLCK);
    io_close(&item->lock);
}

/* -EAGAIN: a sweep took the file for abandoned between its creation and its lock. */
static int batch_hold(batch_item *item)
{
    struct stat st;
    int rc = batch_lock(item->fd, F_WRLCK) == -EAGAIN ? -EAGAIN : 0;
    item->lock = fcntl(item->fd, F_DUPFD_CLOEXEC, 0);
    if (item->lock < 0 || fstat(item->fd, &st) != 0)
        rc = -errno;
    else if (st.st_nlink == 0)
        rc = -EAGAIN;
    item->made = rc == 0;
    if (item->made) return 0;
    unlinkat(item->parent, item->temporary, 0);
    io_close(&item->fd);
    batch_unlock(item);
    return rc;
}

/* ---- files that are written through a descriptor ---- */

static int batch_draw_name(batch_item *item)
{
    uint64_t random;
    int rc = batch_draw(&random);
    if (rc) return rc;
    snprintf(item->temporary, sizeof BATCH_DRAWN, ".%016llx.tmp",
             (unsigned long long)random);
    return 0;
}

static int batch_create(batch_item *item, mode_t mode)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int rc = -EEXIST;
    for (int tries = 0; tries < 16 && (rc == -EEXIST || rc == -EAGAIN); tries++) {
        rc = batch_draw_name(item);
        if (rc) return rc;
        rc = item->fd = io_open(item->parent, item->temporary, flags, mode);
        if (rc >= 0) rc = batch_hold(item);
    }
    return rc;
}

/* Written to under another name, the file would change there, too. */
static bool batch_is_ours_alone(int fd, mode_t mode)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           st.st_uid == geteuid() && (st.st_mode & 07777) == mode;
}

static bool batch_has_adopted(batch_item *item, const batch_spare *spare, mode_t mode)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    if (batch_draw_name(item) != 0 || renameat2(spare->dir, spare->name, item->parent,
                                                item->temporary, RENAME_NOREPLACE) != 0)
        return false;
    item->fd = io_open(item->parent, item->temporary, flags, 0);
    if (item->fd >= 0 && batch_is_ours_alone(item->fd, mode))
        return batch_hold(item) == 0;
    io_close(&item->fd);
    unlinkat(item->parent, item->temporary, 0);
    return false;
}

int batch_open_over(batch *b, const char *name, mode_t mode, batch_spare *spare, int *fd,
                    char *err)
{
    const char *last;
    const batch_file drawn = {
        .name = name, .from = BATCH_BESIDE, .temporary = BATCH_DRAWN};
    int rc = batch_add(b, &drawn, err);
    if (rc) return rc;
    batch_item *item = &b->items[b->count - 1];
    rc = batch_enter(b, name, &item->parent, &last, err);
    if (rc) return rc;
    bool reused = spare && batch_has_adopted(item, spare, mode);
    if (spare) spare->reused = reused;
    if (!reused) rc = batch_create(item, mode ? mode : beneath_record_mode(item->parent));
    if (rc) return err_sys(err, rc, "create a temporary file for %s", name);
    *fd = item->fd;
    return 0;
}

int batch_open(batch *b, const char *name, mode_t mode, int *fd, char *err)
{
    return batch_open_over(b, name, mode, NULL, fd, err);
}

/* ---- files that are written by name ---- */

/* The process that makes it may write it, whatever mode it gets. */
static int batch_make_new(const batch_item *item, int parent, const char *temporary)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = io_open(parent, temporary, flags, item->mode ? 0600 : 0666);
    if (fd < 0) return fd;
    int rc = ftruncate(fd, (off_t)item->size) == 0 ? 0 : -errno;
    if (!rc && item->mode && fchmod(fd, item->mode | S_IRUSR | S_IWUSR) != 0) rc = -errno;
    int closed = io_close(&fd);
    if (!rc) rc = closed;
    if (rc) unlinkat(parent, temporary, 0);
    return rc;
}

/* What an earlier process may have written there stays. It may have died before the file
 * had its size, or after it got its final mode. A file with fewer rights for others has
 * no data of the batch: that process died at once, or it is another file of the user, to
 * which a colleague has given the name. */
static int batch_take_over(const batch_item *item, int parent, const char *temporary)
{
    struct stat st;
    if (fstatat(parent, temporary, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? batch_make_new(item, parent, temporary) : -errno;
    if (!S_ISREG(st.st_mode)) return -EEXIST;
    if (beneath_gives_others(&st, item->mode) && unlinkat(parent, temporary, 0) == 0)
        return batch_make_new(item, parent, temporary);
    mode_t mode = item->mode ? item->mode : st.st_mode & 07777;
    int rc = beneath_chmod(parent, temporary, mode | S_IRUSR | S_IWUSR, NULL);
    if (rc || (uint64_t)st.st_size == item->size) return rc;
    int fd =
        io_open(parent, temporary, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    rc = ftruncate(fd, (off_t)item->size) == 0 ? 0 : -errno;
    int closed = io_close(&fd);
    return rc ? rc : closed;
}

/* A rename would find this out as well, but only after all the data was written, and
 * files before this one have their names. */
static int batch_check_final(int parent, const batch_item *item, char *err)
{
    struct stat st;
    const char *last = item->name + batch_folder_length(item->name);
    if (fstatat(parent, last, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "stat %s", item->name);
    return S_ISDIR(st.st_mode) ? err_set(err, -EISDIR, "%s is a folder", item->name) : 0;
}

static int batch_make_item(const batch *b, batch_item *item, char *err)
{
    int parent, rc;
    const char *last = item->temporary;
    if (item->from == BATCH_BESIDE) {
        const char *final;
        rc = batch_enter(b, item->name, &parent, &final, err);
        if (!rc) {
            rc = batch_check_final(parent, item, err);
            if (rc) io_close(&parent);
        }
    } else {
        rc = batch_enter_source(b, item, &parent, &last, err);
    }
    if (rc) return rc;
    rc = (b->resumed ? batch_take_over : batch_make_new)(item, parent, last);
    item->made = rc == 0;
    io_close(&parent);
    return rc ? err_sys(err, rc, "create a temporary file for %s", item->name) : 0;
}

int batch_make(batch *b, char *err)
{
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++)
        if (!b->items[i].made) rc = batch_make_item(b, &b->items[i], err);
    return rc;
}

/* ---- commit ---- */

static int batch_open_source(const batch *b, const batch_item *item)
{
    int parent;
    const char *last;
    int rc = batch_enter_source(b, item, &parent, &last, NULL);
    if (rc) return rc;
    int fd = io_open(parent, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    io_close(&parent);
    return fd;
}

/* Whether an earlier process has renamed what is missing. */
static bool batch_is_done(const batch *b, const batch_item *item, int rc)
{
    return rc == -ENOENT && b->resumed && !item->made;
}

static int batch_sync_item(const batch *b, batch_item *item, char *err)
{
    if (item->fd < 0) item->fd = batch_open_source(b, item);
    if (item->fd < 0) {
        int rc = item->fd;
        item->fd = -1;
        return batch_is_done(b, item, rc) ? 0 : err_sys(err, rc, "open %s", item->name);
    }
    int rc = io_fsync(item->fd);
    if (rc) return err_sys(err, rc, "fsync %s", item->name);
    item->synced = true;
    rc = io_close(&item->fd);
    return rc ? err_sys(err, rc, "close %s", item->name) : 0;
}

int batch_sync(batch *b, char *err)
{
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++)
        if (!b->items[i].synced) rc = batch_sync_item(b, &b->items[i], err);
    return rc;
}

/* Not every file system knows the flag (NFS does not); a link does not replace either. */
static int batch_rename_new(int from, const char *old, int to, const char *new)
{
    if (renameat2(from, old, to, new, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    if (linkat(from, old, to, new, 0) != 0) return -errno;
    unlinkat(from, old, 0);
    return 0;
}

static int batch_rename(const batch *b, const batch_item *item, int to, const char *last,
                        char *err)
{
    int source = to, rc = 0;
    const char *old = item->temporary;
    mode_t writable = item->mode | S_IRUSR | S_IWUSR;
    if (item->from != BATCH_BESIDE) rc = batch_enter_source(b, item, &source, &old, err);
    if (rc) return rc;
    if (item->made && item->mode && item->mode != writable)
        rc = beneath_chmod(source, old, item->mode, err);
    if (!rc) {
        if (b->exclusive)
            rc = batch_rename_new(source, old, to, last);
        else if (renameat(source, old, to, last) != 0)
            rc = -errno;
        if (rc) err_sys(err, rc, "rename to %s", item->name);
    }
    if (source != to) io_close(&source);
    return rc;
}

static int batch_name_item(const batch *b, batch_item *item, int parent, char *err)
{
    int rc = io_close(&item->fd);
    if (rc) return err_sys(err, rc, "close %s", item->name);
    rc = batch_rename(b, item, parent, item->name + batch_folder_length(item->name), err);
    if (rc && !batch_is_done(b, item, rc)) return rc;
    item->named = true;
    batch_unlock(item);
    return 0;
}

/* Renames the files from number *i on that share a folder, and syncs it. */
static int batch_name_folder(batch *b, size_t *i, char *err)
{
    const char *last;
    batch_item *first = &b->items[*i], *item = first;
    int parent = first->parent, rc = 0;
    if (parent < 0 && first->from == BATCH_BESIDE)
        rc = folder_of(b->dir, first->name, 0, &parent, &last, err);
    else if (parent < 0)
        rc = batch_enter(b, first->name, &parent, &last, err);
    if (rc) return rc;
    do
        rc = batch_name_item(b, item, parent, err);
    while (!rc && ++*i < b->count && (item = &b->items[*i]) &&
           batch_is_same_folder(first->name, item->name));
    if (!rc && b->durability != BATCH_UNSYNCED && (rc = io_fsync(parent)) != 0)
        err_sys(err, rc, "fsync of the folder of %s (the file is in place)", first->name);
    if (parent != first->parent) io_close(&parent);
    return rc;
}

int batch_commit(batch *b, char *err)
{
    int rc = b->durability == BATCH_DURABLE ? batch_sync(b, err) : 0;
    for (size_t i = 0; i < b->count && !rc;)
        rc = batch_name_folder(b, &i, err);
    return rc;
}

/* ---- the end ---- */

static void batch_remove_temporary(const batch *b, const batch_item *item)
{
    int parent = item->parent;
    const char *last = item->temporary;
    if (parent < 0 && batch_enter_source(b, item, &parent, &last, NULL) != 0) return;
    unlinkat(parent, last, 0);
    if (parent != item->parent) io_close(&parent);
}

void batch_remove(batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        batch_item *item = &b->items[i];
        const char *last;
        int parent;
        if (!item->made && !b->resumed) continue;
        if (!item->named) batch_remove_temporary(b, item);
        item->made = false;
        if (folder_of(b->dir, item->name, 0, &parent, &last, NULL) != 0) continue;
        unlinkat(parent, last, 0);
        io_close(&parent);
    }
}

void batch_drop(batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        batch_item *item = &b->items[i];
        io_close(&item->fd);
        if (item->made && !item->named) batch_remove_temporary(b, item);
        batch_unlock(item);
        io_close(&item->parent);
        free(item->name);
        free(item->temporary);
    }
    free(b->items);
    b->items = NULL;
    b->count = b->room = 0;
}

int batch_write(int dir, const char *name, mode_t mode, const void *data, size_t size,
                char *err)
{
    batch b = {.dir = dir};
    int fd, rc = batch_open(&b, name, mode, &fd, err);
    if (!rc && (rc = io_write(fd, data, size)) != 0) err_sys(err, rc, "write %s", name);
    if (!rc) rc = batch_commit(&b, err);
    batch_drop(&b);
    return rc;
}

/* ---- abandoned files ---- */

static bool batch_is_drawn(const char *name)
{
    return name[0] == '.' && strspn(name + 1, "0123456789abcdef") == 16 &&
           strcmp(name + 17, ".tmp") == 0;
}

int batch_remove_abandoned(int dir, const char *name)
{
    if (!batch_is_drawn(name)) return 0;
    int fd = io_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return fd == -ENOENT || fd == -ELOOP ? 0 : fd;
    struct stat st;
    bool abandoned =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && batch_lock(fd, F_WRLCK) == 0;
    int rc = !abandoned ? 0 : unlinkat(dir, name, 0) == 0 ? 1 : -errno;
    io_close(&fd);
    return rc == -ENOENT ? 0 : rc;
}

int batch_sweep(int dir, char *err)
{
    int first = 0;
    DIR *stream = beneath_list(dir);
    if (!stream) return err_sys(err, -errno, "list the folder");
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        int rc = batch_remove_abandoned(dir, entry->d_name);
        if (rc < 0 && !first) first = err_sys(err, rc, "remove %s", entry->d_name);
    }
    closedir(stream);
    return first;
}
