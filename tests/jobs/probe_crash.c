/* SPDX-License-Identifier: BSD-3-Clause */
/* Death at a chosen moment: the functions below precede those of the C library, count,
 * and at the n-th call end the process before the call, as a power failure would. Or a
 * chosen name has no room: calls that would make or remove it fail; or it cannot be
 * read. */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int calls, last;
static char no_room_for[256], unreadable[256]; /* last components of names */
static long slow;                              /* milliseconds */

int probe_crash_at(int n)
{
    int before = calls;
    calls = 0;
    last = n;
    return before;
}

void probe_no_room_for(const char *name)
{
    snprintf(no_room_for, sizeof no_room_for, "%s", name);
}

void probe_unreadable(const char *name)
{
    snprintf(unreadable, sizeof unreadable, "%s", name);
}

/* Sets errno to error if name is the last component of path; "" is the name of no
 * file. */
static int is_called(const char *path, const char *name, int error)
{
    const char *slash = strrchr(path, '/');
    if (!name[0] || strcmp(slash ? slash + 1 : path, name) != 0) return 0;
    errno = error;
    return 1;
}

static int has_no_room(const char *path)
{
    return is_called(path, no_room_for, ENOSPC);
}

/* Threads of the library are counted, too. */
static void count(void)
{
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == last) raise(SIGKILL);
}

/* ISO C does not convert a data pointer to a function; POSIX does. */
#define REAL(name, ...)                                                                  \
    int (*real)(__VA_ARGS__);                                                            \
    *(void **)&real = dlsym(RTLD_NEXT, name);                                            \
    count()

int fsync(int fd)
{
    REAL("fsync", int);
    return real(fd);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    REAL("renameat", int, const char *, int, const char *);
    return has_no_room(to) ? -1 : real(from_dir, from, to_dir, to);
}

void probe_slow(long milliseconds)
{
    slow = milliseconds;
}

int unlinkat(int dir, const char *name, int flags)
{
    const struct timespec nap = {slow / 1000, slow % 1000 * 1000000};
    REAL("unlinkat", int, const char *, int);
    if (slow) nanosleep(&nap, NULL);
    return has_no_room(name) ? -1 : real(dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    REAL("mkdirat", int, const char *, mode_t);
    return has_no_room(name) ? -1 : real(dir, name, mode);
}

int openat(int dir, const char *name, int flags, ...)
{
    int (*real)(int, const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    /* the name of the function for large files */
    *(void **)&real = dlsym(RTLD_NEXT, "openat64");
    return is_called(name, unreadable, EIO) ? -1 : real(dir, name, flags, mode);
}
