/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_TESTS_CALLS_H
#define FILO_TESTS_CALLS_H

/* For tests that count system calls of a flush and a fetch: while `counting` is set, each
 * call about a file below `prefix`, or about a local file, is counted. */

#include "flushed.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

static atomic_int counting;

/* Calls below the prefix directory that reach a shared file system: calls with names,
 * calls that open a container for writing, and calls that sync one. */
static atomic_long named, opened, synced;

/* Opens of local files that are copied, and of their directory; calls about local files
 * that neither read nor write. */
static atomic_long sources, folders, local;

/* A file that cannot be opened. */
static const char *unreadable;

/* The path of an open file or directory, or of a name in it. */
static inline void get_path(int dir, const char *name, char path[1024])
{
    char link[64];
    ssize_t n = 0;
    if (dir != AT_FDCWD && *name != '/') {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        n = readlink(link, path, 512);
        if (n < 0) n = 0;
        if (*name) path[n++] = '/';
    }
    snprintf(path + n, 512, "%s", name);
}

/* Whether a path is the prefix directory, or below it. */
static inline int is_prefix(const char *path)
{
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Whether a path is a local file: local files lie beside the prefix directory. */
static inline int is_local(const char *path)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/' &&
           strcmp(path + length, "/.") != 0 && !is_prefix(path);
}

/* Counts a call if it is about a local file, by name or by descriptor. Returns whether it
 * is about a name below the prefix directory. */
static inline int note_call(int dir, const char *name)
{
    char path[1024];
    if (!counting) return 0;
    get_path(dir, name, path);
    local += is_local(path);
    if (*name != '/') get_path(dir, "", path);
    return is_prefix(path);
}

int openat(int dir, const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (note_call(dir, name)) {
        named++;
        if (strstr(name, "ctr.") && (flags & O_ACCMODE) == O_WRONLY) opened++;
    } else if (flags & O_DIRECTORY) {
        folders += counting && strncmp(name, folder, strlen(folder)) == 0;
    } else if (flags & O_NOFOLLOW) {
        sources += counting && strncmp(name, folder, strlen(folder)) == 0;
    }
    if (unreadable && strcmp(name, unreadable) == 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    named += note_call(dir, name);
    return (int)syscall(SYS_mkdirat, dir, name, mode);
}

int unlinkat(int dir, const char *name, int flags)
{
    named += note_call(dir, name);
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

int renameat(int from, const char *old, int to, const char *name)
{
    named += note_call(to, name);
    return (int)syscall(SYS_renameat2, from, old, to, name, 0);
}

int fstatat(int dir, const char *name, struct stat *st, int flags)
{
    named += note_call(dir, name);
    return (int)syscall(SYS_newfstatat, dir, name, st, flags);
}

int lstat(const char *name, struct stat *st)
{
    note_call(AT_FDCWD, name);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, name, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
    note_call(fd, "");
    return (int)syscall(SYS_fstat, fd, st);
}

int fstatfs(int fd, struct statfs *fs)
{
    note_call(fd, "");
    return (int)syscall(SYS_fstatfs, fd, fs);
}

int ftruncate(int fd, off_t size)
{
    note_call(fd, "");
    return (int)syscall(SYS_ftruncate, fd, size);
}

/* Counted in memory only, where the call is useless; on a disk it is useful. */
int sync_file_range(int fd, off64_t from, off64_t size, unsigned flags)
{
    if (strncmp(folder, "/dev/shm/", 9) == 0) note_call(fd, "");
    return (int)syscall(SYS_sync_file_range, fd, from, size, flags);
}

int close(int fd)
{
    note_call(fd, "");
    return (int)syscall(SYS_close, fd);
}

int fsync(int fd)
{
    char path[1024];
    note_call(fd, "");
    if (counting) get_path(fd, "", path);
    synced += counting && strstr(path, "/ctr.") != NULL;
    return (int)syscall(SYS_fsync, fd);
}

#endif
