/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_TESTS_READS_H
#define REDSET_TESTS_READS_H

/* Counts the bytes of files that this process reads; headers are read by other calls, and
 * not counted. */

#include <dlfcn.h>
#include <unistd.h>

static long bytes_read;

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pread64");
    ssize_t n = real(fd, buf, size, offset);
    if (n > 0) bytes_read += n;
    return n;
}

#endif
