/* SPDX-License-Identifier: BSD-3-Clause */
/* Rights of other users; see others.h. */
#include "common/others.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/mount.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    TEXT_SIZE = 16384, /* bytes of an entry of the user or group database */
    LIST_SIZE = 4096   /* bytes of an access control list: 511 entries */
};

/* Whether another user in /etc/passwd has the group as primary group: the member list of
 * a group does not include such users. A directory service is not queried for all of its
 * users. */
static bool others_is_primary_group(gid_t gid)
{
    char text[TEXT_SIZE];
    struct passwd room, *user = NULL;
    FILE *file = fopen("/etc/passwd", "re");
    bool found = false;
    while (file && !found && fgetpwent_r(file, &room, text, sizeof text, &user) == 0)
        found = user->pw_gid == gid && user->pw_uid != geteuid();
    if (file) fclose(file);
    return found;
}

/* Whether the group is the user's own. Safe in a thread of an application. A group that
 * does not fit into the buffers has members. */
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
           (!group->gr_mem || !*group->gr_mem) && !others_is_primary_group(gid);
}

static const char OTHERS_LIST[] = "system.posix_acl_access";

/* An access control list is a header, followed by entries of a tag, rights and an ID. */
enum { OWNER = 1, NAMED_USER = 2, GROUP = 4, NAMED_GROUP = 8, MOST = 16, EVERYBODY = 32 };
enum { HEADER = 4, ENTRY = 8 };

/* Like getxattr: -1 without a list. fd may be opened with O_PATH. */
static ssize_t others_get_list(int fd, unsigned char *list, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return getxattr(path, OTHERS_LIST, list, size);
}

/* With a list, the group bits of the mode limit the rights of everybody in the list. */
static int others_has_list(int fd)
{
    return others_get_list(fd, NULL, 0) > 0;
}

/* Reads the entries of groups and named users: 8 bytes each, a tag, rights and an ID.
 * Returns their size in bytes, 0 without a list, -1 if the list cannot be read. */
static ssize_t others_read_list(int fd, unsigned char list[LIST_SIZE])
{
    ssize_t kept = 0, n = others_get_list(fd, list, LIST_SIZE);
    if (n < 0) return errno == ENODATA || errno == ENOTSUP ? 0 : -1;
    for (ssize_t at = HEADER; at + ENTRY <= n; at += ENTRY) {
        int tag = list[at]; /* little-endian on all machines */
        if (tag == OWNER || tag == MOST || tag == EVERYBODY) continue;
        memmove(list + kept, list + at, ENTRY);
        kept += ENTRY;
    }
    return kept;
}

bool others_have_same_list(int a, int b)
{
    unsigned char one[LIST_SIZE], other[LIST_SIZE];
    ssize_t n = others_read_list(a, one);
    return n >= 0 && n == others_read_list(b, other) &&
           memcmp(one, other, (size_t)n) == 0;
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

bool others_put_beside(const char *folder)
{
    struct stat st;
    int fd = io_open(AT_FDCWD, folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    bool found =
        fd < 0 || fstat(fd, &st) != 0 || (st.st_mode & S_ISVTX && others_put(fd) != 0);
    io_close(&fd);
    return found;
}

/* Whether some others may write to the open file who may not write to own. */
static bool others_write_more(const struct stat *own, int fd, const struct stat *st)
{
    bool same = own->st_mode & S_IWGRP && own->st_gid == st->st_gid &&
                !(st->st_mode & S_IWOTH) && !others_has_list(fd);
    return !same && others_write(fd, st);
}

static int others_open_one_beside(const char *path, int flags, const struct stat *own,
                                  uid_t user)
{
    struct stat st;
    int fd = io_open(AT_FDCWD, path, O_PATH | O_CLOEXEC | flags, 0);
    if (fd < 0) return fd;
    if (fstat(fd, &st) == 0 &&
        (st.st_uid == 0 || st.st_uid == own->st_uid || st.st_uid == user) &&
        (S_ISLNK(st.st_mode) ||
         (S_ISREG(st.st_mode) && !others_write_more(own, fd, &st))))
        return fd;
    io_close(&fd);
    return -EPERM;
}

int others_open_beside(const char *path, const struct stat *own, uid_t user)
{
    int link = others_open_one_beside(path, O_NOFOLLOW, own, user);
    if (link < 0) return link;
    io_close(&link);
    return others_open_one_beside(path, 0, own, user);
}

/* ---- members of groups ---- */

/* The last result of others_is_member. */
typedef struct others_member {
    bool known, is_member;
    uid_t uid;
    gid_t gid;
} others_member;

static bool others_look_up_member(uid_t uid, gid_t gid)
{
    enum { GROUPS_MAX = 1024 };
    char user_text[TEXT_SIZE], group_text[TEXT_SIZE];
    struct passwd user_room, *user = NULL;
    struct group group_room, *group = NULL;
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;
    int rc = getgrgid_r(gid, &group_room, group_text, sizeof group_text, &group);
    if (!rc && !group) return true;
    rc = getpwuid_r(uid, &user_room, user_text, sizeof user_text, &user);
    if (rc || !user) return !rc;
    if (getgrouplist(user->pw_name, user->pw_gid, groups, &count) < 0) return false;
    while (count > 0)
        if (groups[--count] == gid) return true;
    return false;
}

/* Whether the user is in the group, or this machine does not know one of them. A user
 * whom an access control list admits to a directory may create entries with the group of
 * the directory without being a member. */
static bool others_is_member(uid_t uid, gid_t gid, others_member *last)
{
    if (!last->known || last->uid != uid || last->gid != gid)
        *last = (others_member){true, others_look_up_member(uid, gid), uid, gid};
    return last->is_member;
}

/* ---- modes ---- */

/* Returns the mode of a file with a list of n bytes. The group bits of the given mode
 * limit the rights that the list gives to all but the owner and others. */
static mode_t others_mode_by_list(mode_t mode, const unsigned char *list, ssize_t n)
{
    unsigned all = mode >> 3 & S_IRWXO, group = all; /* rights of all named users and
                                                      * groups */
    for (ssize_t at = HEADER; at + ENTRY <= n; at += ENTRY) {
        const unsigned tag = list[at], rights = list[at + 2];
        if (tag == GROUP) group &= rights;
        if (tag == NAMED_USER || tag == NAMED_GROUP) all &= rights;
    }
    const bool named = n > HEADER + 4 * ENTRY;
    if (!named) all = S_IRWXO;
    return (mode & ~(mode_t)(S_IRWXG | S_IRWXO)) | (group & all) << 3 |
           (mode & S_IRWXO & all);
}

/* Reduces the mode in *st by the list. n is the result of getxattr, which has set errno.
 * With a list that cannot be read, group and others get no rights. */
static void others_take_list(struct stat *st, const unsigned char *list, ssize_t n)
{
    if (n >= 0)
        st->st_mode = others_mode_by_list(st->st_mode, list, n);
    else if (errno != ENODATA && errno != ENOTSUP)
        st->st_mode &= ~(mode_t)(S_IRWXG | S_IRWXO);
}

void others_limit_mode(int fd, struct stat *st)
{
    unsigned char list[LIST_SIZE];
    if (st->st_mode & (S_IRWXG | S_IRWXO))
        others_take_list(st, list, others_get_list(fd, list, sizeof list));
}

void others_limit_mode_at(const char *path, struct stat *st)
{
    unsigned char list[LIST_SIZE];
    if (st->st_mode & (S_IRWXG | S_IRWXO))
        others_take_list(st, list, lgetxattr(path, OTHERS_LIST, list, sizeof list));
}

/* ---- records ---- */

/* Returns the others who may write to the open file, or put entries into the open
 * directory, fd. The users of an access control list count as a group if the list is that
 * of the directory top, from which it is inherited. An owner who is a member of the group
 * counts as one of the group. */
static int64_t others_find(int top, int fd, const struct stat *st, others_member *last)
{
    const bool group = others_group_writes(fd, st), foreign = others_is_foreign(st);
    if (!group && !(st->st_mode & S_IWOTH) && !foreign) return 0;
    const bool listed = group && others_has_list(fd);
    if (st->st_mode & S_IWOTH || (listed && !others_have_same_list(top, fd)) ||
        (foreign && !listed && !others_is_member(st->st_uid, st->st_gid, last)) ||
        (!listed && others_is_own_group(st->st_gid)))
        return OTHERS_ALL;
    return ((int64_t)st->st_gid + 1) | (listed ? OTHERS_LISTED : 0);
}

int64_t others_join(int64_t a, int64_t b)
{
    return !a || a == b ? b : !b ? a : OTHERS_ALL;
}

int64_t others_join_noted(int64_t now, int64_t noted)
{
    return noted & OTHERS_LISTED && noted != now ? OTHERS_ALL : others_join(now, noted);
}

/* Returns OTHERS_ALL if the open directory is on a file system that another user mounted
 * and that reports a different owner: its content belongs to that user. 0 otherwise. */
static int64_t others_mount(int fd, const struct stat *st)
{
    uid_t user = (uid_t)-1;
    int rc = mount_owner(fd, st, &user);
    if (rc) return rc;
    return user != st->st_uid && user != geteuid() ? OTHERS_ALL : 0;
}

/* Like others_mount for a directory below top, if it is on another file system than top.
 */
static int64_t others_mount_below(int top, int fd, const struct stat *st)
{
    struct stat over;
    if (fstat(top, &over) != 0) return -errno;
    return over.st_dev != st->st_dev ? others_mount(fd, st) : 0;
}

/* Returns the others who can give the name of the first directory in name to another
 * directory. *next becomes that first directory. */
static int64_t others_exchange(int top, int here, const char *name, int *next)
{
    char part[NAME_MAX + 1];
    struct stat st;
    snprintf(part, sizeof part, "%.*s", (int)strcspn(name, "/"), name);
    *next = io_open(here, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (*next < 0 && *next != -ENOENT) return *next;
    if (fstat(here, &st) != 0) return -errno;
    int64_t mount = others_mount_below(top, here, &st);
    if (mount) return mount;
    others_member last = {.known = false};
    return *next < 0 || others_rename(here, &st) ? others_find(top, here, &st, &last) : 0;
}

/* Returns the others who may write to the regular file of that name in the open directory
 * here; 0 if there is none: only regular files are read as records. */
static int64_t others_write_file(int top, int here, const char *name, others_member *last)
{
    struct stat st;
    int fd = io_open(here, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) return fd == -ENOENT ? 0 : fd;
    int64_t found = fstat(fd, &st) != 0   ? -errno
                    : S_ISREG(st.st_mode) ? others_find(top, fd, &st, last)
                                          : 0;
    io_close(&fd);
    return found;
}

/* Like others_write_file, for all files in the directory. */
static int64_t others_write_files(int top, int here, others_member *last)
{
    int64_t all = 0, some = 0;
    int fd = io_open(here, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    DIR *stream = fdopendir(fd);
    if (!stream) {
        some = -errno;
        io_close(&fd);
        return some;
    }
    const struct dirent *item;
    for (errno = 0; all != OTHERS_ALL && (item = readdir(stream)) != NULL; errno = 0) {
        some = others_write_file(top, fd, item->d_name, last);
        if (some < 0) break;
        all = others_join(all, some);
    }
    if (some >= 0 && errno) some = -errno;
    closedir(stream);
    return some < 0 ? some : all;
}

/* Returns the others who may change the record rest in the open directory here. */
static int64_t others_put_here(int top, int here, const char *rest)
{
    struct stat st;
    others_member last = {.known = false};
    if (fstat(here, &st) != 0) return -errno;
    int64_t all = others_mount_below(top, here, &st);
    if (all) return all;
    all = others_find(top, here, &st, &last);
    int64_t some = *rest ? others_write_file(top, here, rest, &last)
                         : others_write_files(top, here, &last);
    return some < 0 ? some : others_join(all, some);
}

int64_t others_put_below(int dir, const char *name, kvtree_error *err)
{
    const char *rest = name, *slash;
    struct stat st;
    int64_t all = 0, some = 0;
    int here = io_open(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (here < 0)
        some = here;
    else
        some = all = fstat(here, &st) != 0 ? -errno : others_mount(here, &st);
    while (some >= 0 && here >= 0 && (slash = strchr(rest, '/')) != NULL) {
        int next;
        some = others_exchange(dir, here, rest, &next);
        all = others_join(all, some);
        io_close(&here);
        here = next;
        rest = slash + 1;
    }
    if (some >= 0 && here >= 0) some = others_put_here(dir, here, rest);
    io_close(&here);
    if (some < 0) return err_sys(err, (int)some, "check who can change %s", name);
    return others_join(all, some);
}

/* ---- reach ---- */

/* The rights of a class of users in a directory. */
enum { ENTER = S_IXOTH, CHANGE = S_IWOTH | S_IXOTH };

/* Whether all of the others in who have these rights in the open directory fd. An access
 * control list may give the group fewer rights than the mode shows. */
static bool others_can(int64_t who, int rights, int top, int fd, const struct stat *st)
{
    const int64_t listed = who & OTHERS_LISTED;
    int group = st->st_mode / (S_IXGRP / S_IXOTH);
    if ((st->st_mode & (mode_t)rights) == (mode_t)rights) return true;
    return who == (((int64_t)st->st_gid + 1) | listed) && (group & rights) == rights &&
           (listed ? others_have_same_list(top, fd) : !others_has_list(fd));
}

/* Replaces *here by the open directory above it. */
static int others_go_up(int *here, struct stat *st)
{
    int up = io_open(*here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (up < 0) return up;
    struct stat below = *st;
    io_close(here);
    *here = up;
    if (fstat(up, st) != 0) return -errno;
    return io_is_same_file(st, &below) ? -EPERM : 0; /* this is the root */
}

/* Checks the way from the directory here, which is closed, up to top, which end
 * describes: a directory on the way can be exchanged only by users who may change the one
 * above it. */
static int others_check_upwards(int64_t who, int top, const struct stat *end, int here)
{
    struct stat st;
    int rc = fstat(here, &st) != 0 ? -errno : 0;
    if (!rc && (st.st_mode & S_ISVTX || !others_can(who, CHANGE, top, here, &st)))
        rc = -EPERM;
    while (!rc && !io_is_same_file(&st, end)) {
        rc = others_go_up(&here, &st);
        if (!rc && !io_is_same_file(&st, end) && !others_can(who, ENTER, top, here, &st))
            rc = -EPERM;
    }
    io_close(&here);
    return rc;
}

int others_reach(int64_t who, int top, int parent, const char *name, kvtree_error *err)
{
    struct stat st;
    if (fstat(top, &st) != 0)
        return err_sys(err, -errno, "inspect the directory of names");
    /* then owners of directories below top need not be members of their groups */
    if (st.st_mode & S_IWOTH) who = OTHERS_ALL;
    int here = io_open(parent, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int rc = here < 0 ? here : others_check_upwards(who, top, &st, here);
    if (rc != -EPERM)
        return rc ? err_sys(err, rc, "inspect the directory of %s", name) : 0;
    return err_set(
        err, rc,
        "%s is in a directory that others may not change, but in a record that "
        "they may",
        name);
}
