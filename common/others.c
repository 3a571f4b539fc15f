/* SPDX-License-Identifier: BSD-3-Clause */
/* Others; see others.h. */
#include "common/others.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { TEXT_SIZE = 16384 /* bytes of an entry of a user or group */ };

/* In a thread beside those of an application. What does not fit has members. */
static int others_is_own_group(gid_t gid)
{
    char user_text[TEXT_SIZE], group_text[TEXT_SIZE];
    struct passwd user_room, *user = NULL;
    struct group group_room, *group = NULL;
    if (getpwuid_r(geteuid(), &user_room, user_text, sizeof user_text, &user) != 0 ||
        !user || user->pw_gid != gid)
        return 0;
    if (getgrgid_r(gid, &group_room, group_text, sizeof group_text, &group) != 0 ||
        !group)
        return 0;
    return strcmp(group->gr_name, user->pw_name) == 0 &&
           (!group->gr_mem || !*group->gr_mem);
}

/* With one, the mode of the group is the most that anybody in the list may do. */
static int others_has_list(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

static int others_group_writes(int fd, const struct stat *st)
{
    return st->st_mode & S_IWGRP &&
           (!others_is_own_group(st->st_gid) || others_has_list(fd));
}

static int others_is_foreign(const struct stat *st)
{
    return st->st_uid != 0 && st->st_uid != geteuid();
}

int others_write(int fd, const struct stat *st)
{
    return st->st_mode & S_IWOTH || (st->st_uid != 0 && others_group_writes(fd, st));
}

int others_rename(int fd, const struct stat *st)
{
    if (others_is_foreign(st)) return 1;
    if (st->st_mode & S_ISVTX) return 0;
    return st->st_mode & S_IWOTH || others_group_writes(fd, st);
}

int others_put(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return -errno;
    return others_is_foreign(&st) || st.st_mode & S_IWOTH || others_group_writes(fd, &st);
}

/* Whether they can give the name of the first directory in name, which *next gets, to
 * another one. */
static int others_exchange(int here, const char *name, int *next)
{
    char part[NAME_MAX + 1];
    struct stat st;
    snprintf(part, sizeof part, "%.*s", (int)strcspn(name, "/"), name);
    *next = io_open(here, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (*next < 0) return *next == -ENOENT ? others_put(here) : *next;
    return fstat(here, &st) != 0 ? -errno : others_rename(here, &st);
}

int others_put_below(int dir, const char *name, kvtree_error *err)
{
    const char *rest = name, *slash;
    int here = io_open(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int rc = here < 0 ? here : 0;
    while (rc == 0 && here >= 0 && (slash = strchr(rest, '/')) != NULL) {
        int next;
        rc = others_exchange(here, rest, &next);
        io_close(&here);
        here = next;
        rest = slash + 1;
    }
    if (rc == 0 && here >= 0) rc = others_put(here);
    io_close(&here);
    return rc < 0 ? err_sys(err, rc, "check who can change %s", name) : rc;
}

/* ---- reach ---- */

static int others_enter(int fd, const struct stat *st)
{
    if (others_is_foreign(st) || st->st_mode & S_IXOTH) return 1;
    return st->st_mode & S_IXGRP &&
           (!others_is_own_group(st->st_gid) || others_has_list(fd));
}

/* Puts the open directory above *here into its place. */
static int others_go_up(int *here, struct stat *st)
{
    int up = io_open(*here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (up < 0) return up;
    struct stat below = *st;
    io_close(here);
    *here = up;
    if (fstat(up, st) != 0) return -errno;
    return io_is_same_file(st, &below) ? -EPERM : 0; /* it is the root */
}

/* From the directory here, which it closes, up to top: a directory on the way can be
 * exchanged only by users who may change the one above it. */
static int others_check_upwards(const struct stat *top, int here)
{
    struct stat st;
    int rc = fstat(here, &st) != 0 ? -errno : others_rename(here, &st) ? 0 : -EPERM;
    while (!rc && !io_is_same_file(&st, top)) {
        rc = others_go_up(&here, &st);
        if (!rc && !io_is_same_file(&st, top) && !others_enter(here, &st)) rc = -EPERM;
    }
    io_close(&here);
    return rc;
}

int others_reach(int top, int parent, const char *name, kvtree_error *err)
{
    struct stat st;
    if (fstat(top, &st) != 0)
        return err_sys(err, -errno, "inspect the directory of names");
    int here = io_open(parent, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int rc = here < 0 ? here : others_check_upwards(&st, here);
    if (rc != -EPERM)
        return rc ? err_sys(err, rc, "inspect the directory of %s", name) : 0;
    return err_set(
        err, rc,
        "%s is in a directory that others may not change, but in a record that "
        "they may",
        name);
}
