/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are renamed into place together; see batch.h. */
#include "common/batch.h"

#include "common/array.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Form of the temporary names of batch_open: ".", 16 hexadecimal digits and ".tmp". */
#define BATCH_DRAWN ".0000000000000000.tmp"

/* The kernel returns this number of bytes at once. */
int batch_draw(uint64_t *random)
{
    ssize_t n;
    do
        n = getrandom(random, sizeof *random, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n < (ssize_t)sizeof *random ? -EIO : 0;
}

/* ---- the list ---- */

int batch_add(batch *b, const batch_file *file, kvtree_error *err)
{
    batch_item *items = array_grow(b->items, b->count, sizeof *items);
    if (!items) return err_sys(err, -ENOMEM, "list %s", file->name);
    b->items = items;
    batch_item item = {.name = strdup(file->name),
                       .temporary = strdup(file->temporary),
                       .from = file->from,
                       .size = file->size,
                       .mode = file->mode,
                       .has_group = file->has_group,
                       .group = file->group,
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

/* ---- directories ---- */

/* Creates the directory of name if it is missing. Syncs it and those above it, even if
 * another process has just created them: a lost directory loses its files. */
static int batch_make_folder(const batch *b, const char *name, kvtree_error *err)
{
    char folder[BENEATH_NAME_MAX];
    size_t length = beneath_folder_length(name);
    int rc = beneath_check_name(name, err);
    if (rc || length == 0) return rc;
    memcpy(folder, name, length);
    folder[length - 1] = 0;
    return beneath_make_durable(b->dir, folder, b->folders, err);
}

/* Checks the deepest existing directory on the way to a name like the directory of a
 * file: in the new directories below it, others may have the rights already. */
static int batch_check_way(const batch *b, const char *name, kvtree_error *err)
{
    char folder[BENEATH_NAME_MAX], *slash;
    int there, rc = beneath_check_name(name, err);
    if (rc) return rc;
    strcpy(folder, name);
    do {
        slash = strrchr(folder, '/');
        *(slash ? slash : folder) = 0;
        rc = beneath_open_below(b->dir, folder, &there, err);
    } while (rc == -ENOENT && slash);
    if (rc) return rc;
    rc = others_reach(b->shared, b->dir, there, name, err);
    io_close(&there);
    return rc;
}

/* Opens the directory of a final name. */
static int batch_enter(const batch *b, const char *name, int *parent, const char **last,
                       kvtree_error *err)
{
    bool durable = b->folders && b->durability != BATCH_UNSYNCED && b->dir != AT_FDCWD;
    int rc = b->shared && b->folders ? batch_check_way(b, name, err) : 0;
    if (!rc && durable) rc = batch_make_folder(b, name, err);
    if (!rc) rc = folder_of(b->dir, name, durable ? 0 : b->folders, parent, last, err);
    if (!rc && b->shared &&
        (rc = others_reach(b->shared, b->dir, *parent, name, err)) != 0)
        io_close(parent);
    return rc;
}

static void batch_leave(const batch_item *item, int *parent)
{
    if (*parent != item->parent && *parent != item->from) io_close(parent);
}

/* Opens the directory of a temporary file, for batch_leave. */
static int batch_enter_source(const batch *b, const batch_item *item, int *parent,
                              const char **last, kvtree_error *err)
{
    int rc = 0;
    *last = item->temporary;
    *parent = item->from == BATCH_BESIDE ? item->parent : item->from;
    if (item->from == BATCH_BESIDE && *parent < 0) {
        rc = folder_of(b->dir, item->name, 0, parent, last, err);
        *last = item->temporary;
    } else if (strchr(item->temporary, '/')) {
        rc = beneath_open_parent(item->from, item->temporary, 0, parent, last, err);
    } else {
        rc = beneath_check_name(item->temporary, err);
    }
    /* moving a file out of a directory needs the same right as naming it in another */
    if (!rc && b->shared && item->from != BATCH_BESIDE && item->from != b->dir &&
        (rc = others_reach(b->shared, item->from, *parent, item->temporary, err)) != 0)
        batch_leave(item, parent);
    return rc;
}

/* ---- lock of a temporary file ---- */

/* -EAGAIN: a sweep considered the file abandoned between its creation and its lock. */
static int batch_hold(batch_item *item)
{
    struct stat st;
    int rc = io_lock(item->fd, F_OFD_SETLK, F_WRLCK) == -EAGAIN ? -EAGAIN : 0;
    item->lock = fcntl(item->fd, F_DUPFD_CLOEXEC, 0);
    if (item->lock < 0 || fstat(item->fd, &st) != 0)
        rc = -errno;
    else if (st.st_nlink == 0)
        rc = -EAGAIN;
    item->made = rc == 0;
    if (item->made) return 0;
    unlinkat(item->parent, item->temporary, 0);
    io_close(&item->fd);
    io_unlock(&item->lock);
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

/* A file with another name would change under that name, too. */
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
                    kvtree_error *err)
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

int batch_open(batch *b, const char *name, mode_t mode, int *fd, kvtree_error *err)
{
    return batch_open_over(b, name, mode, NULL, fd, err);
}

/* ---- files that are written by name ---- */

/* The owner can write the file, whatever its final mode. Others get only rights that do
 * not depend on the group of the file; if these are its final rights, no chmod is needed.
 */
static int batch_create_named(const batch_item *item, int parent, const char *temporary)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const mode_t others = beneath_mode_in_group(item->mode, 0, 1);
    return io_open(parent, temporary, flags,
                   item->mode ? S_IRUSR | S_IWUSR | others : 0666);
}

/* Opens the file of an earlier process, which may have died after it gave the file a
 * final mode without write permission. */
static int batch_open_named(const batch_item *item, int parent, const char *temporary)
{
    const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = io_open(parent, temporary, flags, 0);
    if (fd == -EACCES && item->mode &&
        beneath_chmod(parent, temporary, item->mode | S_IRUSR | S_IWUSR, NULL) == 0)
        fd = io_open(parent, temporary, flags, 0);
    return fd == -ELOOP || fd == -EISDIR || fd == -ENXIO ? -EEXIST : fd;
}

/* st describes the file that gets the mode. Mode 0 means 0666 less the umask, and is
 * kept. */
static void batch_limit_mode(batch_item *item, const struct stat *st)
{
    if (!item->has_group || !item->mode) return;
    item->mode = beneath_mode_in_group(item->mode, item->group, st->st_gid);
    if (!item->mode) item->mode = S_IRUSR;
}

/* Whether others have exactly the rights that the creator of the file gave them. With
 * fewer, the file has no data: the creator died at once, or a colleague has given the
 * name to a private file of the user. With more, others may have the file open. */
static bool batch_has_rights(const batch_item *item, const struct stat *st)
{
    const mode_t others = S_IRWXG | S_IRWXO;
    return !item->mode || ((st->st_mode ^ item->mode) & others) == 0;
}

/* Takes over the file of an earlier process: a regular file of this user, with one name
 * and with the rights that its creator gave it. Anything else except a directory is
 * replaced: a pipe is not written to, nor a file with another name, which a power loss
 * may leave after a rename. */
static int batch_take_over(batch_item *item, int parent, const char *temporary,
                           uint64_t *size)
{
    struct stat st;
    int fd = batch_open_named(item, parent, temporary);
    if (fd < 0 && fd != -EACCES && fd != -EEXIST) return fd;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1) {
        batch_limit_mode(item, &st);
        *size = (uint64_t)st.st_size;
        if (st.st_uid == geteuid() && batch_has_rights(item, &st)) return fd;
    }
    io_close(&fd);
    *size = 0;
    if (unlinkat(parent, temporary, 0) != 0) return errno == EISDIR ? -EEXIST : -errno;
    return batch_create_named(item, parent, temporary);
}

/* Sets the size and the mode of the open file, where its group counts, and records its
 * identity. */
static int batch_prepare(batch_item *item, int fd, bool sized)
{
    struct stat st;
    if (!sized && ftruncate(fd, (off_t)item->size) != 0) return -errno;
    if (fstat(fd, &st) != 0) return -errno;
    batch_limit_mode(item, &st);
    const mode_t mode = item->mode | S_IRUSR | S_IWUSR;
    if (item->mode && (st.st_mode & 07777) != mode && fchmod(fd, mode) != 0)
        return -errno;
    item->device = st.st_dev;
    item->inode = st.st_ino;
    item->owner = st.st_uid;
    return 0;
}

/* A file that is taken over keeps its bytes and times. A file that is held is empty. */
static int batch_make_temporary(const batch *b, batch_item *item, int parent,
                                const char *temporary, kvtree_error *err)
{
    uint64_t size = 0;
    int fd = batch_create_named(item, parent, temporary), rc = fd;
    if (fd == -EEXIST && b->resumed)
        rc = fd = batch_take_over(item, parent, temporary, &size);
    if (fd >= 0) {
        const bool hold = fd < b->hold && size == 0;
        rc = batch_prepare(item, fd, hold || size == item->size);
        if (!rc && hold) item->fd = fd;
        int closed = item->fd == fd ? 0 : io_close(&fd);
        if (!rc) rc = closed;
        if (rc) unlinkat(parent, temporary, 0);
    }
    return rc ? err_sys(err, rc, "create a temporary file for %s", item->name) : 0;
}

/* The rename would detect this as well, but only after all data was written and the files
 * before this one were renamed. from: -1 for a temporary file beside the final name. */
static int batch_check_rename(const batch *b, const batch_item *item, int from, int to,
                              const char *last, kvtree_error *err)
{
    struct stat source, target, st;
    if (from >= 0 && (fstat(from, &source) != 0 || fstat(to, &target) != 0))
        return err_sys(err, -errno, "stat the directory of %s", item->name);
    if (from >= 0 && source.st_dev != target.st_dev)
        return err_set(
            err, -EXDEV,
            "%s lies in another file system than the directory %s, in which it "
            "is written first",
            item->name, b->from ? b->from : item->temporary);
    if (fstatat(to, last, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "stat %s", item->name);
    return S_ISDIR(st.st_mode) ? err_set(err, -EISDIR, "%s is a directory", item->name)
                               : 0;
}

/* An open directory, or -1, and the final name of a file in it. */
typedef struct batch_way {
    int folder;
    const char *name;
} batch_way;

/* Moves on to the directory of the final name of item, which may be the current one. */
static int batch_go_on(const batch *b, const batch_item *item, batch_way *way,
                       const char **last, kvtree_error *err)
{
    if (way->folder >= 0 && !b->shared && beneath_is_same_folder(way->name, item->name)) {
        *last = item->name + beneath_folder_length(item->name);
        return beneath_check_name(b->dir == AT_FDCWD ? *last : item->name, err);
    }
    io_close(&way->folder);
    way->name = item->name;
    return batch_enter(b, item->name, &way->folder, last, err);
}

/* Opens and checks the directory of the final name, unless the commit must do this. */
static int batch_check_final(const batch *b, const batch_item *item, int from,
                             batch_way *way, kvtree_error *err)
{
    const char *last;
    if (from >= 0 && b->folders) return 0;
    int rc = batch_go_on(b, item, way, &last, err);
    return rc ? rc : batch_check_rename(b, item, from, way->folder, last, err);
}

static int batch_make_item(const batch *b, batch_item *item, batch_way *way,
                           kvtree_error *err)
{
    int from = -1;
    const char *temporary = item->temporary;
    bool beside = item->from == BATCH_BESIDE;
    int rc = beside ? 0 : batch_enter_source(b, item, &from, &temporary, err);
    if (rc) return rc;
    rc = batch_check_final(b, item, from, way, err);
    if (!rc)
        rc = batch_make_temporary(b, item, beside ? way->folder : from, temporary, err);
    item->made = rc == 0;
    batch_leave(item, &from);
    return rc;
}

int batch_make(batch *b, kvtree_error *err)
{
    batch_way way = {.folder = -1};
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++)
        if (!b->items[i].made) rc = batch_make_item(b, &b->items[i], &way, err);
    io_close(&way.folder);
    return rc;
}

static int batch_open_source(const batch *b, const batch_item *item, int flags)
{
    int parent;
    const char *last;
    int rc = batch_enter_source(b, item, &parent, &last, NULL);
    if (rc) return rc;
    int fd = io_open(parent, last, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    batch_leave(item, &parent);
    return fd;
}

/* An inode number may be reused, so the owner and the rights are compared as well. */
static int batch_check_made(const batch_item *item, int fd, kvtree_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_sys(err, -errno, "stat the temporary file of %s", item->name);
    if (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_dev == item->device &&
        st.st_ino == item->inode && st.st_uid == item->owner &&
        batch_has_rights(item, &st))
        return 0;
    return err_set(err, -ESTALE,
                   "another file is in the place of the temporary file of %s",
                   item->name);
}

int batch_open_made(const batch *b, size_t i, int flags, int *fd, kvtree_error *err)
{
    const batch_item *item = &b->items[i];
    int opened = batch_open_source(b, item, flags);
    if (opened < 0) return err_sys(err, opened, "open temporary file of %s", item->name);
    int rc = batch_check_made(item, opened, err);
    if (rc)
        io_close(&opened);
    else
        *fd = opened;
    return rc;
}

/* ---- commit ---- */

/* Whether an earlier process has already renamed a missing temporary file. */
static bool batch_is_done(const batch *b, const batch_item *item, int rc)
{
    return rc == -ENOENT && b->resumed && !item->made;
}

static int batch_sync_item(const batch *b, batch_item *item, kvtree_error *err)
{
    if (item->fd < 0) item->fd = batch_open_source(b, item, O_RDONLY);
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

int batch_sync(batch *b, kvtree_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < b->count && !rc; i++)
        if (!b->items[i].synced) rc = batch_sync_item(b, &b->items[i], err);
    return rc;
}

/* Not all file systems support the flag (NFS does not). A link does not replace either.
 */
static int batch_rename_new(int from, const char *old, int to, const char *new)
{
    if (renameat2(from, old, to, new, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    if (linkat(from, old, to, new, 0) != 0) return -errno;
    unlinkat(from, old, 0);
    return 0;
}

static int batch_rename(const batch *b, const batch_item *item, int to, const char *last,
                        kvtree_error *err)
{
    int source = to, rc = 0;
    const char *old = item->temporary;
    mode_t writable = item->mode | S_IRUSR | S_IWUSR;
    if (item->from != BATCH_BESIDE) rc = batch_enter_source(b, item, &source, &old, err);
    if (rc) return rc;
    if (item->made && item->mode && item->mode != writable)
        rc = beneath_chmod(source, old, item->mode, err);
    if (rc) {
        err_wrap(err, rc, "%s", item->name);
    } else {
        if (b->exclusive)
            rc = batch_rename_new(source, old, to, last);
        else if (renameat(source, old, to, last) != 0)
            rc = -errno;
        if (rc) err_sys(err, rc, "rename to %s", item->name);
    }
    if (source != to) batch_leave(item, &source);
    return rc;
}

static int batch_name_item(const batch *b, batch_item *item, int parent,
                           kvtree_error *err)
{
    int rc = io_close(&item->fd);
    if (rc) return err_sys(err, rc, "close %s", item->name);
    rc = batch_rename(b, item, parent, item->name + beneath_folder_length(item->name),
                      err);
    if (rc && !batch_is_done(b, item, rc)) return rc;
    item->named = true;
    io_unlock(&item->lock);
    return 0;
}

/* Renames the files from number *i on that share a directory, and syncs the directory. */
static int batch_name_folder(batch *b, size_t *i, kvtree_error *err)
{
    const char *last;
    batch_item *first = &b->items[*i], *item = first;
    int parent = first->parent, rc = 0;
    if (parent < 0 && first->from == BATCH_BESIDE)
        rc = folder_of(b->dir, first->name, 0, &parent, &last, err);
    else if (parent < 0)
        rc = batch_enter(b, first->name, &parent, &last, err);
    if (rc) return rc;
    do {
        rc = batch_name_item(b, item, parent, err);
        if (!rc && b->renamed) b->renamed(*i + 1, b->count);
    } while (!rc && ++*i < b->count && (item = &b->items[*i]) &&
             beneath_is_same_folder(first->name, item->name));
    const bool syncs = b->durability == BATCH_DURABLE || b->durability == BATCH_SYNCED;
    if (!rc && syncs && (rc = io_fsync(parent)) != 0)
        err_sys(err, rc, "fsync of the directory of %s (the file is in place)",
                first->name);
    if (parent != first->parent) io_close(&parent);
    return rc;
}

int batch_commit(batch *b, kvtree_error *err)
{
    const bool syncs = b->durability == BATCH_DURABLE || b->durability == BATCH_WHOLE;
    int rc = syncs ? batch_sync(b, err) : 0;
    for (size_t i = 0; i < b->count && !rc;)
        rc = batch_name_folder(b, &i, err);
    return rc;
}

/* ---- cleanup ---- */

static void batch_remove_temporary(const batch *b, const batch_item *item)
{
    int parent;
    const char *last;
    if (batch_enter_source(b, item, &parent, &last, NULL) != 0) return;
    unlinkat(parent, last, 0);
    batch_leave(item, &parent);
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
        io_unlock(&item->lock);
        io_close(&item->parent);
        free(item->name);
        free(item->temporary);
    }
    free(b->items);
    b->items = NULL;
    b->count = 0;
}

int batch_write(int dir, const char *name, mode_t mode, const void *data, size_t size,
                kvtree_error *err)
{
    batch b = {.dir = dir};
    int fd, rc = batch_open(&b, name, mode, &fd, err);
    if (!rc && (rc = io_write(fd, data, size)) != 0) err_sys(err, rc, "write %s", name);
    if (!rc) rc = batch_commit(&b, err);
    batch_drop(&b);
    return rc;
}
