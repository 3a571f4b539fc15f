/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a user's folders are below a base; see cache/base.h. */
#include "cache/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A link or a folder of our own is reported when it is opened, if it cannot be used. A
 * file is no mistake of ours: whoever may write to one of our files can give it a name
 * here. */
static int is_taken(int base, const char *name)
{
    struct stat st;
    if (fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    return st.st_uid != geteuid() || S_ISREG(st.st_mode);
}

/* Whether there is one that we have made: it is private. Others can put a folder of ours
 * here to which they may write. */
static int has_private(int base, const char *name)
{
    struct stat st;
    return fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* "<user>.<uid>"; its length, 0 where it is too long. */
static size_t detour_of(const char *name, char detour[SCR_BASE_NAME])
{
    int n = snprintf(detour, SCR_BASE_NAME, "%.*s.%lu", (int)strcspn(name, "/"), name,
                     (unsigned long)geteuid());
    return n > 0 && n < SCR_BASE_NAME ? (size_t)n : 0;
}

static int uses_detour(const char *base, const char *user, const char *detour)
{
    int dir = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return 0;
    int uses = has_private(dir, detour) || is_taken(dir, user);
    close(dir);
    return uses;
}

int scr_base_name(const char *base, const char *name, char below[SCR_BASE_NAME])
{
    char detour[SCR_BASE_NAME], user[SCR_BASE_NAME];
    if (strlen(name) >= SCR_BASE_NAME || detour_of(name, detour) == 0)
        return -ENAMETOOLONG;
    snprintf(user, sizeof user, "%.*s", (int)strcspn(name, "/"), name);
    int uses = uses_detour(base, user, detour);
    int n = snprintf(below, SCR_BASE_NAME, "%s%s%s", uses ? detour : "", uses ? "/" : "",
                     name);
    return n < SCR_BASE_NAME ? uses : -ENAMETOOLONG;
}

int scr_base_is_unsafe(const char *base)
{
    struct stat st;
    return stat(base, &st) == 0 && st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX);
}

size_t scr_base_length(const char *path, size_t n, const char *name)
{
    char detour[SCR_BASE_NAME];
    size_t length = detour_of(name, detour);
    if (length == 0 || n <= length + 1) return n;
    const char *last = path + n - length;
    return last[-1] == '/' && memcmp(last, detour, length) == 0 ? n - length - 1 : n;
}
