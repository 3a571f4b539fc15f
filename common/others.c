/* SPDX-License-Identifier: BSD-3-Clause */
/* Others; see others.h. */
#include "common/others.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static int is_own_group(gid_t gid)
{
    const struct passwd *user = getpwuid(geteuid());
    const struct group *group = user && user->pw_gid == gid ? getgrgid(gid) : NULL;
    return group && strcmp(group->gr_name, user->pw_name) == 0 &&
           (!group->gr_mem || !*group->gr_mem);
}

/* With one, the mode of the group is the most that anybody in the list may do. */
static int has_list(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

static int group_writes(int fd, const struct stat *st)
{
    return st->st_mode & S_IWGRP && (!is_own_group(st->st_gid) || has_list(fd));
}

int others_write(int fd, const struct stat *st)
{
    return st->st_mode & S_IWOTH || (st->st_uid != 0 && group_writes(fd, st));
}

int others_rename(int fd, const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid()) return 1;
    if (st->st_mode & S_ISVTX) return 0;
    return st->st_mode & S_IWOTH || group_writes(fd, st);
}
