/* SPDX-License-Identifier: BSD-3-Clause */
/* Temporary files of a flush, ".<16 hex digits>-<more>.tmp", as filo_stage.c names them:
 * told from others, and removed when nobody needs them. */
#include "common/errtext.h"
#include "common/io.h"
#include "common/replace.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 16 };
#define SUFFIX ".tmp"

int filo_temporary_id(const char *path, uint64_t *id)
{
    char digits[DIGITS + 1];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name), end = strlen(SUFFIX);
    if (name[0] != '.' || strspn(name + 1, "0123456789abcdef") != DIGITS ||
        name[DIGITS + 1] != '-' || length < DIGITS + 2 + 1 + end ||
        strcmp(name + length - end, SUFFIX) != 0)
        return -ENOENT;
    memcpy(digits, name + 1, DIGITS);
    digits[DIGITS] = 0;
    *id = strtoull(digits, NULL, 16);
    return 0;
}

typedef struct sweep {
    uint64_t id;
    int deep;
    int rc; /* the first failure */
    char *err;
} sweep;

static void fail(sweep *s, int rc, const char *name)
{
    if (rc && rc != -ENOENT && !s->rc)
        s->rc = err_sys(s->err, rc, "remove temporary files: %s", name);
}

static void visit(sweep *s, int fd);

static void enter(sweep *s, int parent, const struct dirent *item)
{
    struct stat st;
    if (item->d_type != DT_DIR && item->d_type != DT_UNKNOWN) return;
    if (fstatat(parent, item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(st.st_mode))
        return;
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = io_open(parent, item->d_name, flags, 0);
    if (fd < 0)
        fail(s, fd, item->d_name);
    else
        visit(s, fd);
}

/* Takes over the folder fd. */
static void visit(sweep *s, int fd)
{
    DIR *stream = fdopendir(fd);
    const struct dirent *item;
    uint64_t id;
    if (!stream) {
        fail(s, -errno, "read a folder");
        io_close(&fd);
        return;
    }
    while ((item = readdir(stream)) != NULL) {
        const char *name = item->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        int rc = replace_remove_abandoned(fd, name); /* of the map, or the summary */
        if (rc == 0 && filo_temporary_id(name, &id) == 0 && (!s->id || id == s->id))
            rc = unlinkat(fd, name, 0) == 0 ? 1 : -errno;
        if (rc < 0)
            fail(s, rc, name);
        else if (rc == 0 && s->deep)
            enter(s, fd, item);
    }
    closedir(stream);
}

int filo_remove_temporaries(int dir, uint64_t id, int deep, char *err)
{
    sweep s = {.id = id, .deep = deep, .err = err};
    int fd = io_open(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        fail(&s, fd, "open the folder");
    else
        visit(&s, fd);
    return s.rc;
}
