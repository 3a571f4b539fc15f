/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a node; see node_check.h. */
#include "nodes/node_check.h"

#include "cache/base.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "lib/tool_run.h"
#include "lib/tool_user.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    SAMPLE = 4096,    /* bytes of a test file */
    OUTPUT = 1 << 20, /* maximum bytes of the output of a test, and of its reason */
    REASON = 200
};

/* ---- directories ---- */

static int node_check_access(const node_folder *folder, const char *path,
                             kvtree_error *err)
{
    struct stat st;
    DIR *dir = opendir(path);
    int rc = dir ? 0 : -errno;
    if (dir) {
        errno = 0;
        if (!readdir(dir) && errno) rc = -errno;
        closedir(dir);
    }
    if (!rc && stat(path, &st) != 0) rc = -errno;
    return rc ? err_sys(err, rc, "%s", path) : 0;
}

static int node_check_capacity(const node_folder *folder, const char *path,
                               kvtree_error *err)
{
    struct statvfs fs;
    if (folder->bytes == 0) return 0;
    if (statvfs(path, &fs) != 0) return err_sys(err, -errno, "%s", path);
    uint64_t bytes = (uint64_t)(folder->free ? fs.f_bavail : fs.f_blocks) * fs.f_frsize;
    if (bytes >= folder->bytes) return 0;
    return err_set(err, -ENOSPC,
                   "%s: its file system has %" PRIu64 "%s bytes, not %" PRIu64, path,
                   bytes, folder->free ? " free" : "", folder->bytes);
}

/* Writes a sample and reads it back. */
static int node_check_try_file(int fd)
{
    char sample[SAMPLE], back[SAMPLE];
    memset(sample, 0x5a, sizeof sample);
    ssize_t n = io_write(fd, sample, sizeof sample);
    if (n < 0) return (int)n;
    if (fsync(fd) != 0) return -errno;
    n = pread(fd, back, sizeof back, 0);
    if (n < 0) return -errno;
    return n == SAMPLE && memcmp(sample, back, SAMPLE) == 0 ? 0 : -EIO;
}

/* Opens a new file without a name, so that a killed check leaves no file. If the file
 * system does not support such files, removes the name before anything is written. */
static int node_check_open_file(const char *path, char *name)
{
    int fd = io_open(AT_FDCWD, path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd != -EOPNOTSUPP && fd != -EISDIR && fd != -EINVAL) return fd;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0 || unlink(name) == 0) return fd < 0 ? -errno : fd;
    int rc = -errno;
    io_close(&fd);
    return rc;
}

static int node_check_write(const node_folder *folder, const char *path,
                            kvtree_error *err)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/scr-check-XXXXXX", path);
    (void)folder;
    if (n < 0 || (size_t)n >= sizeof name)
        return err_sys(err, -ENAMETOOLONG, "%.100s...", path);
    int fd = node_check_open_file(path, name);
    if (fd < 0) return err_sys(err, fd, "%s: a new file", path);
    int rc = node_check_try_file(fd), closed = io_close(&fd);
    if (!rc) rc = closed;
    return rc ? err_sys(err, rc, "%s: a new file", path) : 0;
}

/* Checks that existing directories of the user are private; a run makes missing ones. */
static int node_check_private(const node_folder *folder, const char *path,
                              kvtree_error *err)
{
    char below[SCR_BASE_NAME];
    struct stat st;
    int base, dir = -1, rc;
    if (!folder->user || strcmp(path, folder->path) != 0) return 0;
    rc = scr_base_name(path, folder->user, below);
    if (rc < 0) return err_sys(err, rc, "%s", folder->user);
    rc = folder_make(path, 0, &base, err);
    if (rc) return rc;
    below[strcspn(below, "/")] = 0;
    if (fstatat(base, below, &st, AT_SYMLINK_NOFOLLOW) == 0)
        rc = beneath_private_folder(path, below, &dir, err);
    io_close(&base);
    if (dir >= 0) io_close(&dir);
    return rc;
}

const node_check node_checks[] = {
    {"access", "the directory is there and can be listed", node_check_access},
    {"capacity", "its file system is as large as it should be", node_check_capacity},
    {"write", "a file can be written, read back and removed", node_check_write},
    {"private", "directories of the user in it are private", node_check_private},
    {NULL, NULL, NULL},
};

/* Shortens path to the nearest existing directory. */
static void node_check_go_up(char *path)
{
    while (access(path, F_OK) != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        slash[slash == path] = 0;
        if (slash == path) return;
    }
}

int node_check_folder(const node_folder *folder, kvtree_error *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s", folder->path), rc = 0;
    if (n < 0 || (size_t)n >= sizeof path)
        return err_sys(err, -ENAMETOOLONG, "%.100s...", folder->path);
    if (folder->made) node_check_go_up(path);
    for (const node_check *c = node_checks; c->name && !rc; c++) {
        rc = c->run(folder, path, err);
        if (rc) err_wrap(err, rc, "%s", c->name);
    }
    return rc;
}

/* ---- programs ---- */

/* Finds the last line that is not blank; returns its length. */
static int node_check_last_line(const char *text, const char **line)
{
    static const char blank[] = " \t\r\n";
    size_t end = strlen(text), begin;
    while (end > 0 && strchr(blank, text[end - 1]))
        end--;
    for (begin = end; begin > 0 && text[begin - 1] != '\n';)
        begin--;
    *line = text + begin;
    return (int)(end - begin);
}

static int node_check_run_program(const char *folder, const char *name, double seconds,
                                  kvtree_error *err)
{
    char path[PATH_MAX], *program;
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_sys(err, -ENAMETOOLONG, "test %.60s", name);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111)) return 0;
    int rc = tool_user_program(path, &program, err);
    if (rc) return err_wrap(err, rc, "test %.60s", name);
    const char *const argv[] = {program, NULL};
    const tool_limits limits = {.seconds = seconds, .bytes = OUTPUT, .joined = true};
    tool_answer a = {0};
    const char *line = "";
    rc = tool_run_answer(argv, &limits, &a, err);
    int size = rc ? 0 : node_check_last_line(a.output, &line);
    if (a.code > 0 && size > 0)
        rc = err_set(err, -EIO, "test %s: %.*s", name, size < REASON ? size : REASON,
                     line);
    else if (a.code)
        rc = err_set(err, a.code < 0 ? a.code : -EIO, "test %s", a.err.text);
    free(a.output);
    free(program);
    return rc;
}

static int node_check_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int node_check_programs(const char *folder, double seconds, kvtree_error *err)
{
    struct dirent **list;
    int n = scandir(folder, &list, node_check_visible, alphasort), rc = 0;
    if (n < 0) return err_sys(err, -errno, "tests %s", folder);
    for (int i = 0; i < n; i++) {
        if (!rc) rc = node_check_run_program(folder, list[i]->d_name, seconds, err);
        free(list[i]);
    }
    free(list);
    return rc;
}
