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

int others_write(int fd, const struct stat *st)
{
    if (st->st_mode & S_IWOTH) return 1;
    if (!(st->st_mode & S_IWGRP) || st->st_uid == 0) return 0;
    return !is_own_group(st->st_gid) || has_list(fd);
}
