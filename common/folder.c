/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders by path, created where missing; see folder.h. */
#include "common/folder.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* On the way only the right to pass through is needed, not the right to list. */
#define PASS_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define USE_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static int sync_folder(int dir)
{
    int fd = io_open(dir, ".", USE_FLAGS, 0);
    if (fd < 0) return fd;
    int rc = io_fsync(fd);
    io_close(&fd);
    return rc;
}

/* Opens the folder name in dir; creates it first where it is missing. */
static int enter(int dir, const char *name, mode_t mode)
{
    int fd = io_open(dir, name, PASS_FLAGS, 0);
    if (fd != -ENOENT) return fd;
    if (mkdirat(dir, name, mode) != 0 && errno != EEXIST) return -errno;
    /* also where another process was faster: it may not have come to its fsync yet */
    int rc = sync_folder(dir);
    return rc ? rc : io_open(dir, name, PASS_FLAGS, 0);
}

/* Walks down path from the root or from the working folder. Returns a descriptor of its
 * end. */
static int walk(const char *path, mode_t mode)
{
    char name[NAME_MAX + 1];
    int here = io_open(AT_FDCWD, *path == '/' ? "/" : ".", PASS_FLAGS, 0);
    while (here >= 0) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        if (length == 0) break;
        int next = -ENAMETOOLONG;
        if (length <= NAME_MAX) {
            memcpy(name, path, length);
            name[length] = 0;
            next = enter(here, name, mode);
        }
        io_close(&here);
        here = next;
        path += length;
    }
    return here;
}

int folder_make(const char *path, mode_t mode, int *fd, char *err)
{
    int found = io_open(AT_FDCWD, *path ? path : ".", USE_FLAGS, 0);
    if (found == -ENOENT && mode) {
        int end = walk(path, mode);
        found = end < 0 ? end : io_open(end, ".", USE_FLAGS, 0);
        if (end >= 0) io_close(&end);
    }
    if (found < 0)
        return err_sys(err, found, "%s folder %s", mode ? "make" : "open", path);
    *fd = found;
    return 0;
}
