/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_IO_H
#define COMMON_IO_H

/* Calls that are complete or fail: EINTR is retried, short transfers are continued. All
 * return 0 or -errno unless stated otherwise. */

#include "common/prefix.h"
#include <stddef.h>
#include <sys/types.h>

#define io_open COMMON(io_open)
#define io_read COMMON(io_read)
#define io_pread COMMON(io_pread)
#define io_write COMMON(io_write)
#define io_pwrite COMMON(io_pwrite)
#define io_fsync COMMON(io_fsync)
#define io_close COMMON(io_close)

/* openat. Returns a descriptor, or -errno. */
int io_open(int dir, const char *name, int flags, mode_t mode);

/* Reads until size bytes are there or the file ends. Returns the number of bytes, or
 * -errno. */
ssize_t io_read(int fd, void *buf, size_t size);
ssize_t io_pread(int fd, void *buf, size_t size, off_t offset);

int io_write(int fd, const void *buf, size_t size);
int io_pwrite(int fd, const void *buf, size_t size, off_t offset);

int io_fsync(int fd);

/* Closes *fd, if it is not -1, and sets it to -1. On Linux the descriptor is gone even on
 * an error; the error means that written data may be lost. */
int io_close(int *fd);

#endif
