/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are complete or fail; see io.h. */
#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int io_open(int dir, const char *name, int flags, mode_t mode)
{
    int fd;
    do
        fd = openat(dir, name, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

ssize_t io_read(int fd, void *buf, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, (char *)buf + done, size - done);
        if (n == 0) break;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return (ssize_t)done;
}

ssize_t io_pread(int fd, void *buf, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, (char *)buf + done, size - done, offset + (off_t)done);
        if (n == 0) break;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return (ssize_t)done;
}

int io_write(int fd, const void *buf, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = write(fd, (const char *)buf + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            return -EIO;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int io_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n =
            pwrite(fd, (const char *)buf + done, size - done, offset + (off_t)done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            return -EIO;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int io_fsync(int fd)
{
    while (fsync(fd) != 0)
        if (errno != EINTR) return -errno;
    return 0;
}

int io_close(int *fd)
{
    if (*fd == -1) return 0;
    int rc = close(*fd) == 0 || errno == EINTR ? 0 : -errno;
    *fd = -1;
    return rc;
}
