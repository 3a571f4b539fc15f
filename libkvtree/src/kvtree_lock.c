/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees in files that several processes change, with a lock on the file itself.
 *
 * A file is replaced by renaming, so its name may lead to another file by the time a lock
 * is granted. The process that gets a lock therefore compares the locked file with the
 * file that has the name, and starts again if they differ. This makes every order of
 * events safe (docs/decisions/0010-locks-on-the-file-itself.md):
 *
 * - Replaced or removed between open and lock: the comparison fails.
 * - Replaced by the lock holder: the new file has no lock yet. Another process may lock
 *   it at once, since
 * the holder has no further change to make.
 * - The holder is killed: the kernel drops the lock. Before the rename the old file is in
 *   place, after it
 * the new one; waiting processes detect this by the comparison.
 * - Two processes create the file: only one can give it the name without replacing, and
 *   the file of the
 * other is removed. Both then compete for the lock on the first file.
 * - Replaced or removed without the lock: -ESTALE when the holder writes, unless this
 *   happens between the
 * last comparison and the rename. */
#include "src/kvtree_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_FOREVER = -1, LOCK_LONGEST_NAP = 50 /* ms */ };

/* ---- the lock ---- */

static bool lock_is_unsupported(int rc)
{
    return rc == -ENOLCK || rc == -ENOTSUP || rc == -ENOSYS || rc == -EINVAL;
}

static long lock_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

/* Polls for a lock, since only a signal would end a blocking wait. */
static int lock_poll(int fd, short type, long end)
{
    for (long nap = 1;; nap = nap < LOCK_LONGEST_NAP / 2 ? 2 * nap : LOCK_LONGEST_NAP) {
        int rc = io_lock(fd, F_OFD_SETLK, type);
        if (rc != -EAGAIN) return rc;
        if (lock_clock() >= end) return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = nap * 1000000L}, NULL);
    }
}

/* A request. name is the last component, in the open directory dir. Errors go to a buffer
 * that is copied to the caller only on failure, since some errors are followed by
 * success. */
struct lock_request {
    int dir;
    const char *name;
    uint64_t limit;
    int seconds;
    long end; /* end of the wait by lock_clock, however often the file is replaced */
    int *fd;
    bool may_be_new;     /* a missing file, or one of 0 bytes, is an empty tree */
    kvtree *tree;        /* tree to read into */
    const kvtree *write; /* tree to write */
    kvtree_error err;
};

static int lock_time_out(struct lock_request *r)
{
    return err_set(&r->err, -ETIMEDOUT,
                   "another process has had the lock for %d seconds; is one stopped that "
                   "works with this file?",
                   r->seconds);
}

/* Waits for a lock of the open file description, which ends with its last descriptor. A
 * lock of the process would end whenever the process closes any descriptor of the file.
 */
static int lock_wait(struct lock_request *r, int fd, short type)
{
    int rc =
        r->seconds < 0 ? io_lock(fd, F_OFD_SETLKW, type) : lock_poll(fd, type, r->end);
    if (rc == -ETIMEDOUT) return lock_time_out(r);
    if (lock_is_unsupported(rc))
        return err_sys(&r->err, rc,
                       "the file system has no locks (mount it with locks, or put the "
                       "file elsewhere)");
    return rc ? err_sys(&r->err, rc, "wait for the lock") : 0;
}

/* Returns 1 if name leads to the open file, 0 if it leads to another file or to none. */
static int lock_compare(int fd, int dir, const char *name, kvtree_error *err)
{
    struct stat file, there;
    if (fstat(fd, &file) != 0) return err_sys(err, -errno, "stat");
    int rc = beneath_stat(dir, name, &there, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    return io_is_same_file(&file, &there);
}

/* Opens and locks the file that has the name at the time when the lock is granted. */
static int lock_current(struct lock_request *r, short type, int *fd)
{
    for (;;) {
        int file, flags = type == F_RDLCK ? O_RDONLY : O_RDWR;
        int rc = beneath_open(r->dir, r->name, flags, 0, &file, &r->err);
        if (rc) return rc;
        rc = lock_wait(r, file, type);
        if (!rc) rc = lock_compare(file, r->dir, r->name, &r->err);
        if (rc == 1) {
            *fd = file;
            return 0;
        }
        io_unlock(&file);
        if (rc) return rc;
        if (r->seconds > 0 && lock_clock() >= r->end) return lock_time_out(r);
    }
}

/* ---- work with a locked file ---- */

static int lock_read(struct lock_request *r, int fd)
{
    return r->may_be_new ? kvtree_read_or_empty(fd, r->tree, &r->err)
                         : kvtree_read_whole(fd, r->limit, r->tree, NULL, &r->err);
}

static int lock_and_read_shared(struct lock_request *r)
{
    int fd, rc = lock_current(r, F_RDLCK, &fd);
    if (rc == -ENOENT && r->may_be_new) return 0;
    if (rc) return rc;
    rc = lock_read(r, fd);
    io_unlock(&fd);
    return rc;
}

static int lock_and_write(struct lock_request *r)
{
    int fd, rc;
    do {
        rc = lock_current(r, F_WRLCK, &fd);
        if (!rc) {
            rc = kvtree_write_below(r->dir, r->name, r->limit, r->write, KVTREE_LOCKED,
                                    &r->err);
            io_unlock(&fd);
        } else if (rc == -ENOENT) { /* no file to lock */
            rc = kvtree_write_below(r->dir, r->name, r->limit, r->write,
                                    KVTREE_NEW_LOCKED, &r->err);
        }
    } while (rc == -EEXIST);
    return rc;
}

/* Creates an empty file, or finds one that another process created. The umask is ignored:
 * a user who may write to the directory could replace the file, and must not be locked
 * out. Another user of the group who opens the file before it has its mode is refused. */
static int lock_make_empty(struct lock_request *r)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL;
    const mode_t mode = beneath_lock_mode(r->dir);
    int fd, rc = beneath_open(r->dir, r->name, flags, mode, &fd, &r->err);
    if (rc) return rc == -EEXIST ? 0 : rc;
    if (fchmod(fd, mode) != 0) rc = err_sys(&r->err, -errno, "set the mode");
    io_close(&fd);
    return rc;
}

static int lock_only(struct lock_request *r)
{
    int rc;
    while ((rc = lock_current(r, F_WRLCK, r->fd)) == -ENOENT)
        if ((rc = lock_make_empty(r)) != 0) break;
    return rc;
}

static int lock_and_read(struct lock_request *r)
{
    int fd, rc;
    for (;;) {
        rc = lock_current(r, F_WRLCK, &fd);
        if (rc != -ENOENT) break;
        rc = kvtree_write_below(r->dir, r->name, KVTREE_ANY_SIZE, NULL, KVTREE_NEW_LOCKED,
                                &r->err);
        if (rc && rc != -EEXIST) break;
    }
    if (rc) return rc;
    rc = lock_read(r, fd);
    if (rc)
        io_unlock(&fd);
    else
        *r->fd = fd;
    return rc;
}

static int lock_write_if_in_place(struct lock_request *r)
{
    int rc = lock_compare(*r->fd, r->dir, r->name, &r->err);
    if (rc < 0) return rc;
    if (rc == 0)
        return err_set(&r->err, -ESTALE,
                       "nothing written: the file was replaced or removed without its "
                       "lock");
    return kvtree_write_below(r->dir, r->name, r->limit, r->write, KVTREE_LOCKED,
                              &r->err);
}

/* Runs a request for name below dir (AT_FDCWD: a path). */
static int lock_run(int dir, const char *name, const char *verb, struct lock_request *r,
                    int (*work)(struct lock_request *r), kvtree_error *err)
{
    if (!name) return err_set(err, -EINVAL, "%s a tree file: no file name", verb);
    r->end = lock_clock() + r->seconds * 1000L;
    int rc = folder_of(dir, name, 0, &r->dir, &r->name, &r->err);
    if (!rc) {
        rc = work(r);
        io_close(&r->dir);
    }
    return rc ? err_set(err, rc, "%s %s: %s", verb, name, r->err.text) : KVTREE_SUCCESS;
}

/* ---- public functions ---- */

int kvtree_file_read_with_lock(int dir, const char *name, uint64_t limit, kvtree *tree,
                               kvtree_error *err)
{
    struct lock_request r = {.limit = limit, .seconds = LOCK_FOREVER, .tree = tree};
    if (!tree) return err_set(err, -EINVAL, "read a tree: no tree");
    return lock_run(dir, name, "read", &r, lock_and_read_shared, err);
}

int kvtree_file_write_with_lock(int dir, const char *name, uint64_t limit,
                                const kvtree *tree, kvtree_error *err)
{
    struct lock_request r = {.limit = limit, .seconds = LOCK_FOREVER, .write = tree};
    return lock_run(dir, name, "write", &r, lock_and_write, err);
}

int kvtree_file_lock_within(int dir, const char *name, uint64_t limit, int seconds,
                            int *fd, kvtree *tree, kvtree_error *err)
{
    struct lock_request r = {.limit = limit, .seconds = seconds, .fd = fd, .tree = tree};
    if (!fd || !tree)
        return err_set(err, -EINVAL, "lock a tree file: no %s",
                       fd ? "tree" : "place for its descriptor");
    return lock_run(dir, name, "lock", &r, lock_and_read, err);
}

int kvtree_file_lock_only(int dir, const char *name, int seconds, int *fd,
                          kvtree_error *err)
{
    struct lock_request r = {.seconds = seconds, .fd = fd};
    if (!fd)
        return err_set(err, -EINVAL, "lock a tree file: no place for its descriptor");
    return lock_run(dir, name, "lock", &r, lock_only, err);
}

int kvtree_file_lock_open_read(int dir, const char *name, uint64_t limit, int *fd,
                               kvtree *tree, kvtree_error *err)
{
    return kvtree_file_lock_within(dir, name, limit, LOCK_FOREVER, fd, tree, err);
}

int kvtree_file_write_close_unlock(int dir, const char *name, uint64_t limit, int *fd,
                                   const kvtree *tree, kvtree_error *err)
{
    struct lock_request r = {.limit = limit, .fd = fd, .write = tree};
    if (!fd) return err_set(err, -EINVAL, "write a locked tree file: no descriptor");
    int rc = lock_run(dir, name, "write", &r, lock_write_if_in_place, err);
    io_unlock(fd);
    return rc;
}

/* ---- by path ---- */

int kvtree_read_with_lock(const char *path, kvtree *tree)
{
    struct lock_request r = {.seconds = LOCK_FOREVER, .may_be_new = true, .tree = tree};
    if (!tree) return -EINVAL;
    return lock_run(AT_FDCWD, path, "read", &r, lock_and_read_shared, NULL);
}

int kvtree_write_with_lock(const char *path, const kvtree *tree)
{
    return kvtree_file_write_with_lock(AT_FDCWD, path, KVTREE_ANY_SIZE, tree, NULL);
}

int kvtree_lock_open_read(const char *path, int *fd, kvtree *tree)
{
    struct lock_request r = {
        .seconds = LOCK_FOREVER, .may_be_new = true, .fd = fd, .tree = tree};
    if (!fd || !tree) return -EINVAL;
    return lock_run(AT_FDCWD, path, "lock", &r, lock_and_read, NULL);
}

int kvtree_write_close_unlock(const char *path, int *fd, const kvtree *tree)
{
    return kvtree_file_write_close_unlock(AT_FDCWD, path, KVTREE_ANY_SIZE, fd, tree,
                                          NULL);
}
