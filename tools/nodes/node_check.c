/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a node; see node_check.h. */
#include "nodes/node_check.h"

#include "cache/base.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "lib/tool_tasks.h"
#include "lib/tool_user.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    SAMPLE = 4096, /* bytes of a file that is written */
    TRIES = 16,
    OUTPUT = 1 << 20, /* bytes that a test may say, and of its reason */
    REASON = 200
};

/* The name of that file; letters and digits follow. */
#define SAMPLE_NAME "scr-check-"
#define SAMPLE_MORE "XXXXXX"

/* ---- folders ---- */

static int check_access(const node_folder *folder, const char *path, char *err)
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

static int check_capacity(const node_folder *folder, const char *path, char *err)
{
    struct statvfs fs;
    if (folder->bytes == 0) return 0;
    if (statvfs(path, &fs) != 0) return err_sys(err, -errno, "%s", path);
    uint64_t bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
    if (bytes >= folder->bytes) return 0;
    return err_set(err, -ENOSPC,
                   "%s: its file system has %" PRIu64 " bytes, not %" PRIu64, path, bytes,
                   folder->bytes);
}

/* What was written must be there again. */
static int try_file(int fd)
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

/* A check has its file locked: one that is not was left by a check that was killed. */
static int lock_sample(int fd)
{
    const struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &all) == 0 ? 0 : -errno;
}

static void remove_left(int dir, const char *name)
{
    struct stat st;
    int fd = io_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        lock_sample(fd) == 0)
        unlinkat(dir, name, 0);
    io_close(&fd);
}

/* Whether that can be done is no property of the folder. */
static void sweep(const char *path)
{
    DIR *stream = opendir(path);
    const struct dirent *item;
    const size_t n = sizeof SAMPLE_NAME - 1;
    while (stream && (item = readdir(stream)) != NULL)
        if (strncmp(item->d_name, SAMPLE_NAME, n) == 0 &&
            strlen(item->d_name + n) == sizeof SAMPLE_MORE - 1)
            remove_left(dirfd(stream), item->d_name);
    if (stream) closedir(stream);
}

/* A new file, locked; its name is completed. Between both another check may take it for
 * one that was left. */
static int make_sample(char *name, int *fd)
{
    struct stat st;
    char *more = name + strlen(name) - (sizeof SAMPLE_MORE - 1);
    for (int i = 0; i < TRIES; i++) {
        strcpy(more, SAMPLE_MORE);
        *fd = mkostemp(name, O_CLOEXEC);
        if (*fd < 0) return -errno;
        int rc =
            lock_sample(*fd); /* where there are no locks, nothing is swept, either */
        if (rc != -EAGAIN && rc != -EACCES && fstat(*fd, &st) == 0 && st.st_nlink > 0)
            return 0;
        unlink(name);
        io_close(fd);
    }
    return -EAGAIN;
}

static int check_write(const node_folder *folder, const char *path, char *err)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/" SAMPLE_NAME SAMPLE_MORE, path), fd;
    if (n < 0 || (size_t)n >= sizeof name)
        return err_sys(err, -ENAMETOOLONG, "%.100s...", path);
    sweep(path); /* a full folder may have room then */
    int rc = make_sample(name, &fd);
    if (rc) return err_sys(err, rc, "%s: a new file", path);
    rc = try_file(fd);
    /* while it is locked: otherwise another check may be the one that removes it */
    if (unlink(name) != 0 && !rc) rc = -errno;
    int closed = io_close(&fd);
    if (!rc) rc = closed;
    return rc ? err_sys(err, rc, "%s: a new file", path) : 0;
}

/* Whatever others have made there; where nothing is, a run can make its own. */
static int check_private(const node_folder *folder, const char *path, char *err)
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
    {"access", "the folder is there and can be listed", check_access},
    {"capacity", "its file system is as large as it should be", check_capacity},
    {"write", "a file can be written, read back and removed", check_write},
    {"private", "nobody has taken the name of the user in it", check_private},
    {NULL, NULL, NULL},
};

/* Cuts path to the folder that is there. */
static void go_up(char *path)
{
    while (access(path, F_OK) != 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (!slash) return;
        slash[slash == path] = 0;
        if (slash == path) return;
    }
}

int node_check_folder(const node_folder *folder, char *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s", folder->path), rc = 0;
    if (n < 0 || (size_t)n >= sizeof path)
        return err_sys(err, -ENAMETOOLONG, "%.100s...", folder->path);
    if (folder->made) go_up(path);
    for (const node_check *c = node_checks; c->name && !rc; c++) {
        rc = c->run(folder, path, err);
        if (rc) err_wrap(err, rc, "%s", c->name);
    }
    return rc;
}

/* ---- programs ---- */

typedef struct verdict {
    int rc;
    const char *name;
    char *err;
} verdict;

/* The last line that has something in it; its length. */
static int last_line(const char *text, const char **line)
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

static void judge(int task, const tool_end *end, void *arg)
{
    verdict *v = arg;
    if (!end->code) return;
    v->rc = end->code < 0 ? end->code : -EIO;
    const char *line;
    int size = last_line(end->output, &line);
    if (end->code > 0 && size > 0)
        err_set(v->err, v->rc, "test %s: %.*s", v->name, size < REASON ? size : REASON,
                line);
    else
        err_set(v->err, v->rc, "test %s", end->text);
}

static int run_one(const char *folder, const char *name, double seconds, char *err)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_sys(err, -ENAMETOOLONG, "test %.60s", name);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111)) return 0;
    char *program;
    int rc = tool_user_program(path, &program, err);
    if (rc) return err_wrap(err, rc, "test %.60s", name);
    const char *const argv[] = {program, NULL};
    const tool_task task = {argv, 1};
    const tool_limits limits = {.seconds = seconds, .bytes = OUTPUT, .most = 1};
    verdict v = {0, name, err};
    rc = tool_tasks_run(&task, 1, &limits, judge, &v, err);
    free(program);
    return rc ? rc : v.rc;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int node_check_programs(const char *folder, double seconds, char *err)
{
    struct dirent **list;
    int n = scandir(folder, &list, is_visible, alphasort), rc = 0;
    if (n < 0) return err_sys(err, -errno, "tests %s", folder);
    for (int i = 0; i < n; i++) {
        if (!rc) rc = run_one(folder, list[i]->d_name, seconds, err);
        free(list[i]);
    }
    free(list);
    return rc;
}
