/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_TESTS_FAULT_H
#define REDSET_TESTS_FAULT_H

/* Makes the n-th call of one kind fail: a test program that includes this header defines
 * the system calls itself, so that the library in it calls these. Include in one source
 * only.
 *
 *     fault_arm(FAULT_WRITE, 3, ENOSPC);
 *     rc = redset_encode(...);
 *     if (!fault_disarm()) ... there were fewer than three calls */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault_call {
    FAULT_NONE,
    FAULT_OPEN,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_RENAME,
    FAULT_CUT,
    FAULT_CALLS
};

static struct {
    enum fault_call call;
    int countdown, error, fired;
    void (*instead)(void); /* called instead of failing; NULL: fail */
} fault;

static inline void fault_arm(enum fault_call call, int number, int error)
{
    fault.call = call;
    fault.countdown = number;
    fault.error = error;
    fault.fired = 0;
    fault.instead = NULL;
}

/* Calls a function just before the n-th call, which then proceeds. */
static inline void fault_arm_event(enum fault_call call, int number, void (*event)(void))
{
    fault_arm(call, number, 0);
    fault.instead = event;
}

/* Whether the fault happened. */
static inline int fault_disarm(void)
{
    fault.call = FAULT_NONE;
    return fault.fired;
}

static inline int fault_now(enum fault_call call)
{
    if (fault.call != call || --fault.countdown != 0) return 0;
    fault.fired = 1;
    fault.call = FAULT_NONE;
    errno = fault.error;
    if (fault.instead) fault.instead();
    return !fault.instead;
}

/* Only calls on files count: MPI writes to sockets and pipes. */
static inline int fault_is_file(int fd)
{
    struct stat st;
    return fault.call != FAULT_NONE && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
    if (fault_now(FAULT_READ)) return -1;
    return syscall(SYS_pread64, fd, buf, size, offset);
}

ssize_t pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    if (fault_now(FAULT_WRITE)) return -1;
    return syscall(SYS_pwrite64, fd, buf, size, offset);
}

ssize_t write(int fd, const void *buf, size_t size)
{
    if (fault_is_file(fd) && fault_now(FAULT_WRITE)) return -1;
    return syscall(SYS_write, fd, buf, size);
}

int fsync(int fd)
{
    if (fault_now(FAULT_SYNC)) return -1;
    return (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t size)
{
    if (fault_now(FAULT_CUT)) return -1;
    return (int)syscall(SYS_ftruncate, fd, size);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    if (fault_now(FAULT_RENAME)) return -1;
    return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fault_now(FAULT_OPEN)) return -1;
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

#endif
