/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_IO_H
#define COMMON_IO_H

/* Calls that are complete or fail: EINTR is retried, short transfers are continued. All
 * return 0 or -errno unless stated otherwise. */

#include "common/prefix.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#define io_open COMMON(io_open)
#define io_read COMMON(io_read)
#define io_pread COMMON(io_pread)
#define io_write COMMON(io_write)
#define io_pwrite COMMON(io_pwrite)
#define io_fsync COMMON(io_fsync)
#define io_close COMMON(io_close)
#define io_lock COMMON(io_lock)
#define io_unlock COMMON(io_unlock)
#define io_text_end COMMON(io_text_end)
#define io_buffer COMMON(io_buffer)

/* openat. Returns a descriptor, or -errno. */
int io_open(int dir, const char *name, int flags, mode_t mode);

/* Reads until size bytes are there or the file ends. Returns the number of bytes, or
 * -errno. */
ssize_t io_read(int fd, void *buf, size_t size);
ssize_t io_pread(int fd, void *buf, size_t size, off_t offset);

int io_write(int fd, const void *buf, size_t size);
int io_pwrite(int fd, const void *buf, size_t size, off_t offset);

int io_fsync(int fd);

/* Memory for size bytes of files, to be freed; NULL if there is none. It begins at a
 * page: processors copy slowly to a place a few bytes behind that of the source in its
 * page, and memory of malloc is such a place (docs/decisions/0041). */
void *io_buffer(size_t size);

/* Closes *fd, if it is not -1, and sets it to -1. On Linux the descriptor is gone even on
 * an error; the error means that written data may be lost. */
int io_close(int *fd);

/* Locks the whole file by fcntl: F_OFD_SETLKW waits, F_OFD_SETLK does not (-EAGAIN:
 * another process has a lock). type: F_RDLCK, F_WRLCK, F_UNLCK. */
int io_lock(int fd, int command, short type);

/* Removes the lock of the open file, and closes it if it is not -1. Closing alone would
 * leave the lock to a process that was forked meanwhile. */
void io_unlock(int *fd);

/* Closes a stream of open_memstream, and returns its text, to be freed. NULL, with the
 * text freed, if there was no memory for all of it. */
char *io_text_end(FILE *stream, char **text);

static inline bool io_is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

#endif
