/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of names beside the index; see scr_names.h. */
#include "records/scr_names.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line that was cut off by a crash is ended first, or the next one would be lost with
 * it. */
static int ends_within_a_line(int fd)
{
    char last = '\n';
    off_t size = lseek(fd, 0, SEEK_END);
    return size > 0 && io_pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

/* The folder of a file that is new keeps its name only when it is synced, too. */
static int sync_folder(int prefix, char *err)
{
    int folder;
    const char *last;
    int rc = beneath_open_parent(prefix, SCR_NAMES_NAME, 0, &folder, &last, err);
    if (rc) return rc;
    rc = io_fsync(folder);
    io_close(&folder);
    return rc ? err_sys(err, rc, "sync the folder of %s", SCR_NAMES_NAME) : 0;
}

int scr_names_add(int prefix, const char *name, int entered, char *err)
{
    int fd;
    char line[BENEATH_NAME_MAX + 8];
    int rc = beneath_check_name(name, err);
    rc = rc ? rc
            : beneath_open(prefix, SCR_NAMES_NAME, O_RDWR | O_CREAT | O_APPEND, 0600, &fd,
                           err);
    if (rc) return rc;
    int is_new = lseek(fd, 0, SEEK_END) == 0;
    int n = snprintf(line, sizeof line, "%s%c%s\n", ends_within_a_line(fd) ? "\n" : "",
                     entered ? '+' : '-', name);
    rc = io_write(fd, line, (size_t)n);
    rc = rc ? rc : io_fsync(fd);
    int closed = io_close(&fd);
    rc = rc ? rc : closed;
    if (rc) return err_sys(err, rc, "write %s", SCR_NAMES_NAME);
    return is_new ? sync_folder(prefix, err) : 0;
}

/* All of the file, with a NUL; to be freed. */
static int read_all(int fd, char **text, char *err)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0 || size > SCR_NAMES_MAX)
        return err_set(err, size < 0 ? -EIO : -EFBIG, "%s is longer than %d MB",
                       SCR_NAMES_NAME, SCR_NAMES_MAX >> 20);
    char *all = malloc((size_t)size + 1);
    if (!all) return err_set(err, -ENOMEM, "no memory for %s", SCR_NAMES_NAME);
    ssize_t n = io_pread(fd, all, (size_t)size, 0);
    if (n < 0) {
        free(all);
        return err_sys(err, (int)n, "read %s", SCR_NAMES_NAME);
    }
    for (ssize_t i = 0; i < n; i++) /* no line has a NUL */
        if (!all[i]) all[i] = 1;
    all[n] = 0;
    *text = all;
    return 0;
}

int scr_names_read(int prefix, kvtree *names, char *err)
{
    int fd;
    char *text = NULL, *line;
    int rc = beneath_open(prefix, SCR_NAMES_NAME, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = read_all(fd, &text, err);
    io_close(&fd);
    char *rest = text;
    while (!rc && (line = strsep(&rest, "\n"))) {
        if (!*line || !rest || beneath_check_name(line + 1, NULL) != 0) continue;
        if (*line == '-') kvtree_unset(names, line + 1);
        if (*line == '+' && !kvtree_get(names, line + 1) &&
            !kvtree_set(names, line + 1, NULL))
            rc = err_set(err, -ENOMEM, "no memory for %s", SCR_NAMES_NAME);
    }
    free(text);
    return rc;
}
