/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic, durable replacement of a file; see replace.h. */
#include "common/replace.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel gives so few bytes all at once. */
int replace_draw(uint64_t *random)
{
    ssize_t n;
    do
        n = getrandom(random, sizeof *random, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n < (ssize_t)sizeof *random ? -EIO : 0;
}

/* Without waiting. -EAGAIN: somebody else has it; -ENOLCK: there are no locks here. */
static int lock(int fd, short type)
{
    const struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) == 0) return 0;
    return errno == EAGAIN || errno == EACCES ? -EAGAIN : -ENOLCK;
}

/* A process forked meanwhile may have the descriptor, too, and would keep the lock. */
static void let_go(replacement *r)
{
    if (r->hold >= 0) lock(r->hold, F_UNLCK);
    io_close(&r->hold);
}

/* Between creation and lock somebody who sweeps may take the file for abandoned: -EAGAIN
 * then. */
static int hold_temporary(replacement *r)
{
    struct stat st;
    r->hold = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
    int rc = r->hold < 0 ? -errno : lock(r->fd, F_WRLCK) == -EAGAIN ? -EAGAIN : 0;
    if (!rc && fstat(r->fd, &st) != 0) rc = -errno;
    if (!rc && st.st_nlink == 0) rc = -EAGAIN;
    if (!rc) return 0;
    unlinkat(r->parent, r->temporary, 0);
    io_close(&r->fd);
    let_go(r);
    return rc;
}

static int draw_name(replacement *r)
{
    uint64_t random;
    int rc = replace_draw(&random);
    snprintf(r->temporary, sizeof r->temporary, ".%016llx.tmp",
             rc ? 0 : (unsigned long long)random);
    return rc;
}

static int create_temporary(replacement *r, mode_t mode)
{
    int rc = -EEXIST;
    for (int tries = 0; tries < 16 && (rc == -EEXIST || rc == -EAGAIN); tries++) {
        rc = draw_name(r);
        if (rc) return rc;
        r->fd = io_open(r->parent, r->temporary,
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        rc = r->fd < 0 ? r->fd : hold_temporary(r);
    }
    return rc;
}

/* Written to under another name, the file would change there, too. */
static int is_ours_alone(int fd, mode_t mode)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           st.st_uid == geteuid() && (st.st_mode & 07777) == mode;
}

/* Takes the file old of the folder from as the temporary one. */
static int adopt_temporary(replacement *r, int from, const char *old, mode_t mode)
{
    int rc = draw_name(r);
    if (rc) return rc;
    if (renameat2(from, old, r->parent, r->temporary, RENAME_NOREPLACE) != 0)
        return -errno;
    r->fd =
        io_open(r->parent, r->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (r->fd >= 0 && is_ours_alone(r->fd, mode)) return hold_temporary(r);
    io_close(&r->fd);
    unlinkat(r->parent, r->temporary, 0);
    return -EINVAL;
}

int replace_begin_over(int dir, const char *name, int from, const char *old, mode_t mode,
                       replacement *r, int *reused, char *err)
{
    const char *last;
    int rc = beneath_open_parent(dir, name, 0, &r->parent, &last, err);
    if (rc) return rc;
    snprintf(r->final, sizeof r->final, "%s", last);
    *reused = old && adopt_temporary(r, from, old, mode) == 0;
    if (!*reused) rc = create_temporary(r, mode ? mode : beneath_record_mode(r->parent));
    if (rc) {
        io_close(&r->parent);
        return err_sys(err, rc, "create a temporary file for %s", name);
    }
    return 0;
}

int replace_begin(int dir, const char *name, mode_t mode, replacement *r, char *err)
{
    int reused;
    return replace_begin_over(dir, name, -1, NULL, mode, r, &reused, err);
}

static int rename_over(const replacement *r)
{
    return renameat(r->parent, r->temporary, r->parent, r->final) ? -errno : 0;
}

/* Not every file system knows the flag (NFS does not); a link does not replace either. */
static int rename_new(const replacement *r)
{
    if (renameat2(r->parent, r->temporary, r->parent, r->final, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    if (linkat(r->parent, r->temporary, r->parent, r->final, 0) != 0) return -errno;
    unlinkat(r->parent, r->temporary, 0);
    return 0;
}

/* Closes the file and gives it its name. */
static int put_in_place(replacement *r, int (*put)(const replacement *), char *err)
{
    int rc = io_close(&r->fd);
    if (rc) {
        replace_abort(r);
        return err_sys(err, rc, "close %s", r->final);
    }
    rc = put(r);
    if (rc) {
        replace_abort(r);
        return err_sys(err, rc, "rename to %s", r->final);
    }
    let_go(r);
    return 0;
}

/* The same for a file that is synced. */
static int finish(replacement *r, int (*put)(const replacement *), char *err)
{
    int rc = put_in_place(r, put, err);
    if (rc) return rc;
    rc = io_fsync(r->parent);
    io_close(&r->parent);
    return rc ? err_sys(err, rc, "fsync of the folder of %s (the file is in place)",
                        r->final)
              : 0;
}

static int commit(replacement *r, int (*put)(const replacement *), char *err)
{
    int rc = io_fsync(r->fd);
    if (rc) {
        replace_abort(r);
        return err_sys(err, rc, "fsync %s", r->final);
    }
    return finish(r, put, err);
}

int replace_commit(replacement *r, char *err)
{
    return commit(r, rename_over, err);
}

int replace_commit_new(replacement *r, char *err)
{
    return commit(r, rename_new, err);
}

int replace_commit_synced(replacement *r, char *err)
{
    return finish(r, rename_over, err);
}

int replace_commit_unsynced(replacement *r, char *err)
{
    int rc = put_in_place(r, rename_over, err);
    if (!rc) io_close(&r->parent);
    return rc;
}

void replace_abort(replacement *r)
{
    io_close(&r->fd);
    unlinkat(r->parent, r->temporary, 0);
    let_go(r);
    io_close(&r->parent);
}

/* ".<16 hex digits>.tmp" */
static int is_temporary(const char *name)
{
    return name[0] == '.' && strspn(name + 1, "0123456789abcdef") == 16 &&
           strcmp(name + 17, ".tmp") == 0;
}

int replace_remove_abandoned(int dir, const char *name)
{
    if (!is_temporary(name)) return 0;
    int fd = io_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return fd == -ENOENT || fd == -ELOOP ? 0 : fd;
    struct stat st;
    int ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lock(fd, F_WRLCK) == 0;
    int rc = !ours ? 0 : unlinkat(dir, name, 0) == 0 ? 1 : -errno;
    io_close(&fd);
    return rc == -ENOENT ? 0 : rc;
}

int replace_sweep(int dir, char *err)
{
    int first = 0;
    DIR *stream = beneath_list(dir);
    if (!stream) return err_sys(err, -errno, "list the folder");
    const struct dirent *item;
    while ((item = readdir(stream)) != NULL) {
        int rc = replace_remove_abandoned(dir, item->d_name);
        if (rc < 0 && !first) first = err_sys(err, rc, "remove %s", item->d_name);
    }
    closedir(stream);
    return first;
}

int replace_bytes(int dir, const char *name, mode_t mode, const void *data, size_t size,
                  char *err)
{
    replacement r;
    int rc = replace_begin(dir, name, mode, &r, err);
    if (rc) return rc;
    rc = io_write(r.fd, data, size);
    if (rc) {
        replace_abort(&r);
        return err_sys(err, rc, "write %s", name);
    }
    return replace_commit(&r, err);
}
