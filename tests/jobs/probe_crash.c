/* SPDX-License-Identifier: BSD-3-Clause */
/* Death at a chosen moment: the functions below stand in front of those of the C library,
 * count, and at the n-th call end the process as a power failure would, before anything
 * is done. */
#include "probe.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int calls, last;

int probe_crash_at(int n)
{
    int before = calls;
    calls = 0;
    last = n;
    return before;
}

static void count(void)
{
    if (++calls == last) raise(SIGKILL);
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
    return real(from_dir, from, to_dir, to);
}

int unlinkat(int dir, const char *name, int flags)
{
    REAL("unlinkat", int, const char *, int);
    return real(dir, name, flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    REAL("mkdirat", int, const char *, mode_t);
    return real(dir, name, mode);
}
