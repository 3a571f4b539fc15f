/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that lines are appended to, each in one write, so that those of several
 * processes do not mix and a killed process leaves whole lines; see report/log.h. */
#include "report/log_private.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whether the file does not end with a newline: a full disk cut off the last line. */
static bool log_file_is_torn(int fd)
{
    struct stat st;
    char last;
    return fstat(fd, &st) == 0 && st.st_size > 0 &&
           io_pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

int scr_log_file_open(scr_log_file *file, int prefix, const char *name, kvtree_error *err)
{
    file->prefix = prefix;
    file->name = name;
    file->fd = -1;
    /* also readable: its end is checked, and opening a pipe does not wait for a reader */
    int rc = beneath_open_log(prefix, name, O_RDWR, &file->fd, err);
    if (rc)
        file->fd = -1;
    else
        file->is_torn = log_file_is_torn(file->fd);
    return rc;
}

/* A removed file gets a successor. */
static int log_file_reopen(scr_log_file *file, kvtree_error *err)
{
    struct stat st;
    if (file->fd >= 0 && fstat(file->fd, &st) == 0 && st.st_nlink > 0) return 0;
    io_close(&file->fd);
    return scr_log_file_open(file, file->prefix, file->name, err);
}

int scr_log_file_write(scr_log_file *file, const char *line, size_t size,
                       kvtree_error *err)
{
    int rc = log_file_reopen(file, err);
    if (rc) return rc;
    /* a line that was cut off stays a line of its own */
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
