/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories by path, created if missing; see folder.h. */
#include "common/folder.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directories on the way need only be passed through, not listed. */
#define PASS_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define USE_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static int folder_sync(int dir)
{
    int fd = io_open(dir, ".", USE_FLAGS, 0);
    if (fd < 0) return fd;
    int rc = io_fsync(fd);
    io_close(&fd);
    return rc;
}

/* Opens the directory name in dir. With a mode, creates it first if it is missing. */
static int folder_enter(int dir, const char *name, mode_t mode, int flags)
{
    int fd = io_open(dir, name, flags, 0);
    if (fd != -ENOENT || !mode) return fd;
    if (mkdirat(dir, name, mode) != 0 && errno != EEXIST) return -errno;
    /* even if another process was faster: it may not have reached its fsync yet */
    int rc = folder_sync(dir);
    return rc ? rc : io_open(dir, name, flags, 0);
}

/* Replaces a descriptor for passing through by one for use; passes on an error. */
static int folder_use(int pass)
{
    if (pass < 0) return pass;
    int fd = io_open(pass, ".", USE_FLAGS, 0);
    io_close(&pass);
    return fd;
}

/* Walks down path from the open directory here, which is closed. Returns a descriptor for
 * use of the last directory of path. */
static int folder_walk(int here, const char *path, mode_t mode, int no_follow)
{
    char name[NAME_MAX + 1];
    path += strspn(path, "/");
    if (!*path) return folder_use(here);
    while (here >= 0 && *path) {
        size_t length = strcspn(path, "/");
        const char *rest = path + length + strspn(path + length, "/");
        int next = -ENAMETOOLONG;
        if (length <= NAME_MAX) {
            memcpy(name, path, length);
            name[length] = 0;
            int leaves = no_follow && strcmp(name, "..") == 0;
            int flags = (*rest ? PASS_FLAGS : USE_FLAGS) | no_follow;
            next = leaves ? -EINVAL : folder_enter(here, name, mode, flags);
        }
        io_close(&here);
        here = next;
        path = rest;
    }
    return here;
}

static const char *folder_verb(mode_t mode)
{
    return mode ? "make" : "open";
}

int folder_make(const char *path, mode_t mode, int *fd, kvtree_error *err)
{
    int found = io_open(AT_FDCWD, *path ? path : ".", USE_FLAGS, 0);
    if (found == -ENOENT && mode) {
        int start = io_open(AT_FDCWD, *path == '/' ? "/" : ".", PASS_FLAGS, 0);
        found = folder_walk(start, path, mode, 0);
    }
    if (found < 0) return err_sys(err, found, "%s directory %s", folder_verb(mode), path);
    *fd = found;
    return 0;
}

int folder_make_beneath(int base, const char *name, mode_t mode, int *fd,
                        kvtree_error *err)
{
    int start = fcntl(base, F_DUPFD_CLOEXEC, 0);
    int found = start < 0 ? -errno : start;
    if (start >= 0 && *name) found = folder_walk(start, name, mode, O_NOFOLLOW);
    if (found == -ENOTDIR)
        return err_set(err, -ELOOP,
                       "%s directory %s: a link, or no directory, is on the way",
                       folder_verb(mode), name);
    if (found < 0) return err_sys(err, found, "%s directory %s", folder_verb(mode), name);
    *fd = found;
    return 0;
}

int folder_of(int dir, const char *name, mode_t mode, int *parent, const char **last,
              kvtree_error *err)
{
    if (dir != AT_FDCWD) return beneath_open_parent(dir, name, mode, parent, last, err);
    if (!name) return err_set(err, -EINVAL, "no path");
    const char *slash = strrchr(name, '/'), *start = slash ? slash + 1 : name;
    int rc = beneath_check_name(start, err);
    if (rc) return rc;
    size_t length = slash == name ? 1 : slash ? (size_t)(slash - name) : 0;
    char *path = length ? strndup(name, length) : strdup(".");
    if (!path) return err_sys(err, -ENOMEM, "open the directory of %s", name);
    rc = folder_make(path, mode, parent, err);
    free(path);
    if (!rc) *last = start;
    return rc;
}

const char *folder_rest(const char *base, const char *path)
{
    size_t length = strlen(base);
    if (strncmp(path, base, length) != 0) return NULL;
    if (path[length] && path[length] != '/' && base[length - 1] != '/') return NULL;
    return path + length + strspn(path + length, "/");
}

int folder_make_below(const char *base, const char *path, mode_t mode, int *fd,
                      kvtree_error *err)
{
    if (!base) return folder_make(path, mode, fd, err);
    const char *rest = folder_rest(base, path);
    if (!rest) return err_set(err, -EINVAL, "%s is not below directory %s", path, base);
    int start = io_open(AT_FDCWD, *base ? base : ".", *rest ? PASS_FLAGS : USE_FLAGS, 0);
    if (start < 0) return err_sys(err, start, "open directory %s", base);
    int rc = folder_make_beneath(start, rest, mode, fd, err);
    io_close(&start);
    return rc ? err_wrap(err, rc, "%s", base) : 0;
}
