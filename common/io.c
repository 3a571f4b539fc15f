/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that complete or fail; see io.h. */
#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int io_open(int dir, const char *name, int flags, mode_t mode)
{
    int fd;
    do
        fd = openat(dir, name, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* offset NULL: at the offset of the descriptor. */
static ssize_t io_read_all(int fd, char *buf, size_t size, const off_t *offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = offset ? pread(fd, buf + done, size - done, *offset + (off_t)done)
                           : read(fd, buf + done, size - done);
        if (n == 0) break;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return (ssize_t)done;
}

ssize_t io_read(int fd, void *buf, size_t size)
{
    return io_read_all(fd, buf, size, NULL);
}

ssize_t io_pread(int fd, void *buf, size_t size, off_t offset)
{
    return io_read_all(fd, buf, size, &offset);
}

static int io_write_all(int fd, const char *buf, size_t size, const off_t *offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = offset ? pwrite(fd, buf + done, size - done, *offset + (off_t)done)
                           : write(fd, buf + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            return -EIO;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int io_write(int fd, const void *buf, size_t size)
{
    return io_write_all(fd, buf, size, NULL);
}

int io_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    return io_write_all(fd, buf, size, &offset);
}

void *io_buffer(size_t size)
{
    enum { PAGE = 4096 };
    if (size > SIZE_MAX - PAGE) return NULL;
    return aligned_alloc(PAGE, (size / PAGE + 1) * PAGE);
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

int io_lock(int fd, int command, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    while (fcntl(fd, command, &all) != 0)
        if (errno != EINTR) return errno == EACCES ? -EAGAIN : -errno;
    return 0;
}

void io_unlock(int *fd)
{
    if (*fd >= 0) io_lock(*fd, F_OFD_SETLK, F_UNLCK);
    io_close(fd);
}

char *io_text_end(FILE *stream, char **text)
{
    const bool is_cut = ferror(stream);
    if (fclose(stream) == 0 && !is_cut) return *text;
    free(*text);
    *text = NULL;
    return NULL;
}
