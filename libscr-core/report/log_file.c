/* SPDX-License-Identifier: BSD-3-Clause */
/* A file to which lines are appended. Each line is one write, so that lines of several
 * processes do not mix and a killed process leaves whole lines; see report/log.h. */
#include "report/log_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whether the file does not end with a newline, because a full disk cut off the last
 * line. */
static bool log_file_is_torn(int fd)
{
    struct stat st;
    char last;
    return fstat(fd, &st) == 0 && st.st_size > 0 &&
           io_pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

static int log_file_open(scr_log_file *file, kvtree_error *err)
{
    /* read access: to check the end, and so that the open of a pipe does not wait */
    int rc = beneath_open_log(file->prefix, file->name, O_RDWR, &file->fd, err);
    if (rc)
        file->fd = -1;
    else
        file->is_torn = log_file_is_torn(file->fd);
    return rc;
}

int scr_log_file_open(scr_log_file *file, int prefix, const char *name, uint64_t most,
                      kvtree_error *err)
{
    *file = (scr_log_file){.prefix = prefix, .fd = -1, .name = name, .most = most};
    return log_file_open(file, err);
}

/* Whether the name still leads to the open file. */
static bool log_file_is_current(const scr_log_file *file, struct stat *st)
{
    kvtree_error err;
    struct stat named;
    if (file->fd < 0 || fstat(file->fd, st) != 0) return false;
    int rc = beneath_stat(file->prefix, file->name, &named, &err);
    /* if the name cannot be inspected now, assume that it leads to the same file */
    if (rc && rc != -ENOENT) return st->st_nlink > 0;
    return !rc && named.st_dev == st->st_dev && named.st_ino == st->st_ino;
}

/* Renames the file, so that at least one of the two files exists whenever the process
 * dies. The lock keeps processes that put the file aside at the same time from renaming
 * the new file, too. Without locks, or without permission to rename, the file grows. */
static void log_file_put_aside(scr_log_file *file)
{
    kvtree_error err;
    struct stat st;
    int parent;
    const char *last;
    char before[SCR_LOG_NAME_SIZE];
    if (io_lock(file->fd, F_OFD_SETLK, F_WRLCK) != 0) return;
    if (log_file_is_current(file, &st) &&
        beneath_open_parent(file->prefix, file->name, 0, &parent, &last, &err) == 0) {
        snprintf(before, sizeof before, "%s" SCR_LOG_BEFORE, last);
        (void)renameat(parent, last, parent, before);
        io_close(&parent);
    }
    io_lock(file->fd, F_OFD_SETLK, F_UNLCK);
}

/* Opens a new file if the old one was removed, put aside, or is full. */
static int log_file_renew(scr_log_file *file, kvtree_error *err)
{
    struct stat st;
    bool is_current = log_file_is_current(file, &st);
    if (is_current && (!file->most || (uint64_t)st.st_size < file->most)) return 0;
    if (is_current) log_file_put_aside(file);
    io_close(&file->fd);
    return log_file_open(file, err);
}

int scr_log_file_write(scr_log_file *file, const char *line, size_t size,
                       kvtree_error *err)
{
    int rc = log_file_renew(file, err);
    if (rc) return rc;
    /* terminates a line that was cut off, so that it stays separate */
    struct iovec parts[2] = {{(void *)(uintptr_t) "\n", (size_t)file->is_torn},
                             {(void *)(uintptr_t)line, size}};
    ssize_t n;
    do
        n = writev(file->fd, parts, 2);
    while (n < 0 && errno == EINTR);
    if (n < 0) return err_sys(err, -errno, "write %s", file->name);
    size_t before = (size_t)file->is_torn, all = size + before;
    if ((size_t)n != all) {
        file->is_torn = (size_t)n > before || (before && n == 0);
        return err_sys(err, -ENOSPC, "write %s", file->name);
    }
    file->is_torn = false;
    return 0;
}
