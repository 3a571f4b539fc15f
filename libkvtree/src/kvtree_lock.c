/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees in files that several processes change, with a lock on the file itself.
 *
 * A file is replaced by renaming, so its name may lead to another file by the time a lock
 * is granted. Whoever gets a lock therefore compares what he locked with what has the
 * name, and starts again if that is not the same; with that, whatever happens in between
 * ends well (docs/decisions/0010-locks-on-the-file-itself.md):
 *
 * - Replaced or removed between open and lock: the comparison tells.
 * - Replaced while a lock is held, by its holder: the new file has no lock yet. Who opens
 *   it may lock it at once, for the holder has nothing left to change.
 * - The holder is killed: the kernel drops the lock. Before the rename the old file is in
 *   place, after it the new one; those who waited find out by the comparison.
 * - Two create the file: only one name can be given without replacing, and the other
 *   one's file goes. Both then compete for the lock on the first.
 * - Replaced or removed by somebody without the lock: -ESTALE when the holder writes,
 *   unless it happens between that last look and the rename. */
#include "src/kvtree_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FOR_EVER = -1, LONGEST_NAP = 50 /* ms */ };

/* Opens the folder of name, for io_close; *last is what follows below it. */
static int open_folder(int dir, const char *name, int *folder, const char **last,
                       char *err)
{
    if (dir == AT_FDCWD) return kvtree_open_folder_of(name, folder, last, err);
    int fd = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return err_sys(err, -errno, "open the folder");
    *folder = fd;
    *last = name;
    return 0;
}

static int is_without_locks(int rc)
{
    return rc == -ENOLCK || rc == -ENOTSUP || rc == -ENOSYS || rc == -EINVAL;
}

static int try_lock(int fd, int command, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    int rc;
    do
        rc = fcntl(fd, command, &all) == 0 ? 0 : -errno;
    while (rc == -EINTR);
    return rc;
}

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

/* Nothing but a signal ends the wait for a lock, so this one asks again and again. */
static int try_until(int fd, short type, long end)
{
    for (long nap = 1;; nap = nap < LONGEST_NAP / 2 ? 2 * nap : LONGEST_NAP) {
        int rc = try_lock(fd, F_OFD_SETLK, type);
        if (rc != -EAGAIN && rc != -EACCES) return rc;
        if (milliseconds() >= end) return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = nap * 1000000L}, NULL);
    }
}

/* Waits for a lock of the open file description, which ends with its last descriptor;
 * locks of the process would end with any close of the file in it. */
static int wait_for_lock(int fd, short type, int seconds, char *err)
{
    int rc = seconds < 0 ? try_lock(fd, F_OFD_SETLKW, type)
                         : try_until(fd, type, milliseconds() + seconds * 1000L);
    if (rc == -ETIMEDOUT)
        return err_set(err, rc,
                       "another process has had the lock for %d seconds; is one stopped "
                       "that works with this file?",
                       seconds);
    if (is_without_locks(rc))
        return err_sys(err, rc,
                       "the file system has no locks (mount it with locks, or put the "
                       "file elsewhere)");
    return rc ? err_sys(err, rc, "wait for the lock") : 0;
}

/* Closing alone would leave the lock to a process that was forked meanwhile. */
static void unlock(int *fd)
{
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(*fd, F_OFD_SETLK, &all);
    io_close(fd);
}

/* 1 if name leads to the open file, 0 if to another one or nowhere. */
static int has_name(int fd, int dir, const char *name, char *err)
{
    struct stat file, there;
    if (fstat(fd, &file) != 0) return err_sys(err, -errno, "stat");
    int rc = beneath_stat(dir, name, &there, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    return file.st_dev == there.st_dev && file.st_ino == there.st_ino;
}

/* Opens and locks the file that has the name once the lock is there. */
static int lock_name(int dir, const char *name, short type, int seconds, int *fd,
                     char *err)
{
    for (;;) {
        int file;
        int rc =
            beneath_open(dir, name, type == F_RDLCK ? O_RDONLY : O_RDWR, 0, &file, err);
        if (rc) return rc;
        rc = wait_for_lock(file, type, seconds, err);
        if (!rc) rc = has_name(file, dir, name, err);
        if (rc == 1) {
            *fd = file;
            return 0;
        }
        unlock(&file);
        if (rc) return rc;
    }
}

static int lock_or_create(int dir, const char *name, int seconds, int *fd, char *err)
{
    for (;;) {
        int rc = lock_name(dir, name, F_WRLCK, seconds, fd, err);
        if (rc != -ENOENT) return rc;
        rc = kvtree_write_below(dir, name, NULL, true, err);
        if (rc && rc != -EEXIST) return rc;
    }
}

static int read_locked(int dir, const char *name, kvtree *tree, char *err)
{
    int fd;
    int rc = lock_name(dir, name, F_RDLCK, FOR_EVER, &fd, err);
    if (rc) return rc;
    rc = kvtree_read_whole(fd, tree, err);
    unlock(&fd);
    return rc;
}

int kvtree_file_read_with_lock(int dir, const char *name, kvtree *tree, char *err)
{
    int folder;
    const char *last;
    char why[ERRTEXT_SIZE];
    if (!name || !tree)
        return err_set(err, -EINVAL, "read a tree: no %s", name ? "tree" : "file name");
    int rc = open_folder(dir, name, &folder, &last, why);
    if (!rc) {
        rc = read_locked(folder, last, tree, why);
        io_close(&folder);
    }
    return rc ? err_set(err, rc, "read %s: %s", name, why) : KVTREE_SUCCESS;
}

static int write_locked(int dir, const char *name, const kvtree *tree, char *err)
{
    int fd, rc;
    do {
        rc = lock_name(dir, name, F_WRLCK, FOR_EVER, &fd, err);
        if (!rc) {
            rc = kvtree_write_below(dir, name, tree, false, err);
            unlock(&fd);
        } else if (rc == -ENOENT) { /* nothing there to be locked by anyone */
            rc = kvtree_write_below(dir, name, tree, true, err);
        }
    } while (rc == -EEXIST);
    return rc;
}

int kvtree_file_write_with_lock(int dir, const char *name, const kvtree *tree, char *err)
{
    int folder;
    const char *last;
    char why[ERRTEXT_SIZE];
    if (!name) return err_set(err, -EINVAL, "write a tree: no file name");
    int rc = open_folder(dir, name, &folder, &last, why);
    if (!rc) {
        rc = write_locked(folder, last, tree, why);
        io_close(&folder);
    }
    return rc ? err_set(err, rc, "write %s: %s", name, why) : KVTREE_SUCCESS;
}

static int lock_and_read(int dir, const char *name, int seconds, int *fd, kvtree *tree,
                         char *err)
{
    int file;
    int rc = lock_or_create(dir, name, seconds, &file, err);
    if (rc) return rc;
    rc = kvtree_read_whole(file, tree, err);
    if (rc)
        unlock(&file);
    else
        *fd = file;
    return rc;
}

int kvtree_file_lock_within(int dir, const char *name, int seconds, int *fd, kvtree *tree,
                            char *err)
{
    int folder;
    const char *last;
    char why[ERRTEXT_SIZE];
    if (!name || !fd || !tree)
        return err_set(err, -EINVAL, "lock a tree file: no %s",
                       !name ? "file name"
                       : fd  ? "tree"
                             : "place for its descriptor");
    int rc = open_folder(dir, name, &folder, &last, why);
    if (!rc) {
        rc = lock_and_read(folder, last, seconds, fd, tree, why);
        io_close(&folder);
    }
    return rc ? err_set(err, rc, "lock %s: %s", name, why) : KVTREE_SUCCESS;
}

int kvtree_file_lock_only(int dir, const char *name, int seconds, int *fd, char *err)
{
    int folder;
    const char *last;
    char why[ERRTEXT_SIZE];
    if (!name || !fd)
        return err_set(err, -EINVAL, "lock a tree file: no %s",
                       name ? "place for its descriptor" : "file name");
    int rc = open_folder(dir, name, &folder, &last, why);
    if (!rc) {
        rc = lock_name(folder, last, F_WRLCK, seconds, fd, why);
        io_close(&folder);
    }
    return rc ? err_set(err, rc, "lock %s: %s", name, why) : KVTREE_SUCCESS;
}

int kvtree_file_lock_open_read(int dir, const char *name, int *fd, kvtree *tree,
                               char *err)
{
    return kvtree_file_lock_within(dir, name, FOR_EVER, fd, tree, err);
}

static int write_if_in_place(int dir, const char *name, int fd, const kvtree *tree,
                             char *err)
{
    int rc = has_name(fd, dir, name, err);
    if (rc < 0) return rc;
    if (rc == 0)
        return err_set(err, -ESTALE,
                       "nothing written: somebody replaced or removed the file without "
                       "its lock");
    return kvtree_write_below(dir, name, tree, false, err);
}

int kvtree_file_write_close_unlock(int dir, const char *name, int *fd, const kvtree *tree,
                                   char *err)
{
    int folder;
    const char *last;
    char why[ERRTEXT_SIZE];
    if (!fd) return err_set(err, -EINVAL, "write a locked tree file: no descriptor");
    int rc = name ? open_folder(dir, name, &folder, &last, why)
                  : err_set(why, -EINVAL, "no file name");
    if (!rc) {
        rc = write_if_in_place(folder, last, *fd, tree, why);
        io_close(&folder);
    }
    unlock(fd);
    return rc ? err_set(err, rc, "write %s: %s", name ? name : "a locked tree file", why)
              : KVTREE_SUCCESS;
}

/* ---- by path ---- */

int kvtree_read_with_lock(const char *path, kvtree *tree)
{
    return kvtree_file_read_with_lock(AT_FDCWD, path, tree, NULL);
}

int kvtree_write_with_lock(const char *path, const kvtree *tree)
{
    return kvtree_file_write_with_lock(AT_FDCWD, path, tree, NULL);
}

int kvtree_lock_open_read(const char *path, int *fd, kvtree *tree)
{
    return kvtree_file_lock_open_read(AT_FDCWD, path, fd, tree, NULL);
}

int kvtree_write_close_unlock(const char *path, int *fd, const kvtree *tree)
{
    return kvtree_file_write_close_unlock(AT_FDCWD, path, fd, tree, NULL);
}
