/* SPDX-License-Identifier: BSD-3-Clause */
/* Location of a user's directories below a base; see cache/base.h. */
#include "cache/base.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether another user has taken the name. An unusable link or directory of this user
 * does not count: opening it reports the error. A file does count: any user who may write
 * to one of our files can link it here. */
static int base_is_taken(int base, const char *name)
{
    struct stat st;
    if (fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    return st.st_uid != geteuid() || S_ISREG(st.st_mode);
}

/* Whether this user has created such a directory, which is private. Other users can move
 * a directory of this user here, but only one that they may write to. */
static int base_has_private(int base, const char *name)
{
    struct stat st;
    return fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Sets detour to "<user>.<uid>"; returns its length, 0 if it is too long. */
static size_t base_detour(const char *name, char detour[SCR_BASE_NAME])
{
    int n = snprintf(detour, SCR_BASE_NAME, "%.*s.%lu", (int)strcspn(name, "/"), name,
                     (unsigned long)geteuid());
    return n > 0 && n < SCR_BASE_NAME ? (size_t)n : 0;
}

/* As scr_base_name, with an open base; -1: it could not be opened. */
static int base_name_in(int base, const char *name, char below[SCR_BASE_NAME])
{
    char detour[SCR_BASE_NAME], user[SCR_BASE_NAME];
    if (strlen(name) >= SCR_BASE_NAME || base_detour(name, detour) == 0)
        return -ENAMETOOLONG;
    snprintf(user, sizeof user, "%.*s", (int)strcspn(name, "/"), name);
    const int uses =
        base >= 0 && (base_has_private(base, detour) || base_is_taken(base, user));
    int n = snprintf(below, SCR_BASE_NAME, "%s%s%s", uses ? detour : "", uses ? "/" : "",
                     name);
    return n < SCR_BASE_NAME ? uses : -ENAMETOOLONG;
}

int scr_base_name(const char *base, const char *name, char below[SCR_BASE_NAME])
{
    int dir = io_open(AT_FDCWD, base, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    const int uses = base_name_in(dir, name, below);
    io_close(&dir);
    return uses;
}

int scr_base_is_unsafe(const char *base)
{
    struct stat st;
    if (stat(base, &st) != 0 || !(st.st_mode & S_IWOTH)) return 0;
    if (!(st.st_mode & S_ISVTX)) return 1;
    return st.st_uid != 0 && st.st_uid != geteuid() ? 2 : 0;
}

size_t scr_base_length(const char *path, size_t n, const char *name)
{
    char detour[SCR_BASE_NAME];
    size_t length = base_detour(name, detour);
    if (length == 0 || n <= length + 1) return n;
    const char *last = path + n - length;
    return last[-1] == '/' && memcmp(last, detour, length) == 0 ? n - length - 1 : n;
}

int scr_open_private(const scr_private *where, char **path, int *fd, kvtree_error *err)
{
    const char *what = where->what, *base = where->base;
    char below[SCR_BASE_NAME];
    int opened = -1, rc = -ENOENT;
    if (base[0] != '/')
        return err_set(err, -EINVAL, "%s=%s is not an absolute path", what, base);
    /* paths of cached files are compared as text later, so the base is reduced first */
    char *reduced = scr_path_reduce(base);
    if (!reduced) return err_set(err, -ENOMEM, "no memory");
    /* a run that ends successfully may be removing empty directories at this moment */
    for (int i = 0; i < 3 && rc == -ENOENT; i++) {
        rc = folder_make(reduced, where->make ? 0700 : 0, &opened, err);
        if (!rc && base_name_in(opened, where->name, below) < 0)
            rc = err_sys(err, -ENAMETOOLONG, "%s", where->name);
        rc = rc ? rc : beneath_private_folder_at(opened, reduced, below, fd, err);
        io_close(&opened);
    }
    if (rc)
        err_wrap(err, rc, "%s=%s", what, base);
    else if (!(*path = scr_path_join(reduced, below)))
        rc = err_set(err, -ENOMEM, "no memory");
    free(reduced);
    return rc;
}

void scr_remove_private(const char *base, const char *name)
{
    char part[SCR_BASE_NAME];
    int dir, rc = 0;
    if (scr_base_name(base, name, part) < 0 || beneath_open_folder(base, &dir, NULL) != 0)
        return;
    while (!rc && part[0]) {
        char *slash = strrchr(part, '/');
        rc = beneath_rmdir(dir, part, NULL);
        *(slash ? slash : part) = 0;
    }
    io_close(&dir);
}

bool scr_is_removed(int fd)
{
    struct stat st;
    return fstat(fd, &st) != 0 ? errno == ESTALE : st.st_nlink == 0;
}
