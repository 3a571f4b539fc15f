/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_IO_H
#define COMMON_IO_H

/* System calls that complete or fail: EINTR is retried, short transfers are continued.
 * All functions return 0 or -errno unless stated otherwise. */

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

/* Read size bytes, or up to the end of the file. Return the number of bytes, or -errno.
 */
ssize_t io_read(int fd, void *buf, size_t size);
ssize_t io_pread(int fd, void *buf, size_t size, off_t offset);

int io_write(int fd, const void *buf, size_t size);
int io_pwrite(int fd, const void *buf, size_t size, off_t offset);

int io_fsync(int fd);

/* Allocates memory for size bytes of files, which the caller frees; NULL without memory.
 * The memory starts at a page boundary: processors copy slowly to an address a few bytes
 * after that of the source within its page, and memory from malloc often has such an
 * address (docs/decisions/0041). */
void *io_buffer(size_t size);

/* Closes *fd unless it is -1, and sets it to -1. On Linux an error also closes the
 * descriptor; it means that written data may be lost. */
int io_close(int *fd);

/* Locks the whole file with fcntl: F_OFD_SETLKW waits, F_OFD_SETLK does not (-EAGAIN:
 * another process holds a lock). type: F_RDLCK, F_WRLCK, F_UNLCK. */
int io_lock(int fd, int command, short type);

/* Removes the lock of the open file, and closes it unless it is -1. Closing alone would
 * leave the lock to a process that was forked meanwhile. */
void io_unlock(int *fd);

/* Closes a stream of open_memstream and returns its text, which the caller frees. Returns
 * NULL, with the text freed, if memory ran out. */
char *io_text_end(FILE *stream, char **text);

static inline bool io_is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

#endif
