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
#include <stdbool.h>
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

enum { DEEPEST = 64 }; /* folders within each other, each of which is open meanwhile */

typedef struct sweep {
    filo_unwanted *unwanted;
    void *arg;
    bool deep, replacements; /* whether such of maps go, too */
    long limit, seen;        /* names; 0: no limit */
    int depth;
    int rc; /* the first failure */
    char *err;
} sweep;

static void fail(sweep *s, int rc, const char *name)
{
    if (rc && rc != -ENOENT && !s->rc)
        s->rc = err_sys(s->err, rc, "remove temporary files: %s", name);
}

/* Others are left where there is more than can be looked at. */
static void stop_short(sweep *s, const char *more, long than)
{
    if (!s->rc)
        s->rc = err_set(s->err, -E2BIG, "not all was looked at: more than %ld %s", than,
                        more);
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
    if (s->depth >= DEEPEST) {
        stop_short(s, "folders within each other", DEEPEST);
        return;
    }
    int fd = io_open(parent, item->d_name, flags, 0);
    if (fd < 0) {
        fail(s, fd, item->d_name);
        return;
    }
    s->depth++;
    visit(s, fd);
    s->depth--;
}

/* 1 when it was one, and is gone; 0 for any other; or -errno. */
static int remove_one(const sweep *s, int fd, const char *name)
{
    uint64_t id;
    int rc = s->replacements ? replace_remove_abandoned(fd, name) : 0;
    if (rc || filo_temporary_id(name, &id) != 0 || !s->unwanted(s->arg, id)) return rc;
    return unlinkat(fd, name, 0) == 0 ? 1 : -errno;
}

/* Takes over the folder fd. */
static void visit(sweep *s, int fd)
{
    DIR *stream = fdopendir(fd);
    const struct dirent *item;
    if (!stream) {
        fail(s, -errno, "read a folder");
        io_close(&fd);
        return;
    }
    while ((item = readdir(stream)) != NULL) {
        const char *name = item->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (s->limit && s->seen++ >= s->limit) {
            stop_short(s, "files and folders", s->limit);
            break;
        }
        int rc = remove_one(s, fd, name);
        if (rc < 0)
            fail(s, rc, name);
        else if (rc == 0 && s->deep)
            enter(s, fd, item);
    }
    closedir(stream);
}

static int start(sweep *s, int dir)
{
    int fd = io_open(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        fail(s, fd, "open the folder");
    else
        visit(s, fd);
    return s->rc;
}

static int has_id(void *arg, uint64_t id)
{
    const uint64_t *wanted = arg;
    return !*wanted || id == *wanted;
}

int filo_remove_temporaries(int dir, uint64_t id, int deep, char *err)
{
    sweep s = {.unwanted = has_id,
               .arg = &id,
               .deep = deep != 0,
               .replacements = true,
               .err = err};
    return start(&s, dir);
}

int filo_remove_temporaries_below(int dir, filo_unwanted *unwanted, void *arg, long limit,
                                  char *err)
{
    sweep s = {
        .unwanted = unwanted, .arg = arg, .deep = true, .limit = limit, .err = err};
    return start(&s, dir);
}
