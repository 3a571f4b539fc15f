/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_BENEATH_H
#define COMMON_BENEATH_H

/* Access to files below a directory without ever following a symbolic link.
 *
 * Names come from files that others may have written, and cache directories lie in places
 * where anyone may create a link. Therefore a name is checked first, and each of its
 * components is opened with O_NOFOLLOW, relative to the descriptor of the component
 * before. All functions return 0 or -errno and fill err. */

#include "common/prefix.h"
#include <dirent.h>
#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Longest accepted name, in bytes with its NUL (SCR_MAX_FILENAME). */
#define BENEATH_NAME_MAX 1024

#define beneath_check_name COMMON(beneath_check_name)
#define beneath_open_folder COMMON(beneath_open_folder)
#define beneath_open COMMON(beneath_open)
#define beneath_open_parent COMMON(beneath_open_parent)
#define beneath_open_below COMMON(beneath_open_below)
#define beneath_open_private COMMON(beneath_open_private)
#define beneath_mkdirs COMMON(beneath_mkdirs)
#define beneath_make_durable COMMON(beneath_make_durable)
#define beneath_unlink COMMON(beneath_unlink)
#define beneath_unlink_durable COMMON(beneath_unlink_durable)
#define beneath_rmdir COMMON(beneath_rmdir)
#define beneath_stat COMMON(beneath_stat)
#define beneath_stat_source COMMON(beneath_stat_source)
#define beneath_chmod COMMON(beneath_chmod)
#define beneath_mode_in_group COMMON(beneath_mode_in_group)
#define beneath_has_group COMMON(beneath_has_group)
#define beneath_lock_mode COMMON(beneath_lock_mode)
#define beneath_record_mode COMMON(beneath_record_mode)
#define beneath_open_log COMMON(beneath_open_log)
#define beneath_list COMMON(beneath_list)
#define beneath_remove_tree COMMON(beneath_remove_tree)
#define beneath_is_temporary COMMON(beneath_is_temporary)
#define beneath_private_folder COMMON(beneath_private_folder)
#define beneath_private_folder_at COMMON(beneath_private_folder_at)

/* Returns the length of the directory part of a name or path, with its slash. */
static inline size_t beneath_folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* Whether two names or paths have the same directory part. */
static inline bool beneath_is_same_folder(const char *a, const char *b)
{
    size_t length = beneath_folder_length(a);
    return length == beneath_folder_length(b) && memcmp(a, b, length) == 0;
}

/* -EINVAL unless name is relative, shorter than BENEATH_NAME_MAX, has no empty, "." or
 * ".." component and no control character. */
int beneath_check_name(const char *name, kvtree_error *err);

/* Opens a directory by path for use as `dir` below. The last component may not be a link.
 */
int beneath_open_folder(const char *path, int *dir, kvtree_error *err);

/* Opens the regular file name below dir; any other type is -EINVAL. O_CLOEXEC, O_NOFOLLOW
 * and O_NONBLOCK are added to flags. With O_CREAT, which is for files that are changed in
 * place, a file with several names is -EPERM: it may belong to another user. */
int beneath_open(int dir, const char *name, int flags, mode_t mode, int *fd,
                 kvtree_error *err);

/* Opens the directory that holds name; *last points to the last component of name. With a
 * mode other than 0, missing directories are created with this mode. */
int beneath_open_parent(int dir, const char *name, mode_t mode, int *parent,
                        const char **last, kvtree_error *err);

/* Opens the directory name below dir; "" is dir itself. */
int beneath_open_below(int dir, const char *name, int *folder, kvtree_error *err);

/* Like beneath_open_below, for a directory that must belong to the effective user and
 * grant group and others nothing, else -EPERM. Only that user can create, rename or open
 * a file in such a directory, no matter who can change the directories above it, so files
 * below the descriptor need no check of their own. */
int beneath_open_private(int dir, const char *name, int *folder, kvtree_error *err);

/* Creates the directory name below dir, and missing directories above it. */
int beneath_mkdirs(int dir, const char *name, mode_t mode, kvtree_error *err);

/* Like beneath_mkdirs, but durable: syncs dir and the directories between it and name,
 * even if other processes created them, so that name survives a power loss. */
int beneath_make_durable(int dir, const char *name, mode_t mode, kvtree_error *err);

/* Remove a file or an empty directory. A missing one is no error. beneath_rmdir of a
 * directory that is not empty: -ENOTEMPTY. */
int beneath_unlink(int dir, const char *name, kvtree_error *err);
int beneath_rmdir(int dir, const char *name, kvtree_error *err);

/* Removes a file and syncs its directory, even if the file is already gone, so that the
 * name does not reappear after a power loss. */
int beneath_unlink_durable(int dir, const char *name, kvtree_error *err);

/* Removes the directory name with all its content; links in it are removed, not followed.
 * Continues after a failure and returns the first one. Only for private directories:
 * where others can put entries, they may have moved a directory of the user. */
int beneath_remove_tree(int dir, const char *name, kvtree_error *err);

/* Whether name is a temporary name that only SCR uses: ".<16 hex digits>.tmp", optionally
 * with numbers after the digits, "-<i>". */
bool beneath_is_temporary(const char *name);

/* Returns the lstat of name below dir. */
int beneath_stat(int dir, const char *name, struct stat *st, kvtree_error *err);

/* Like beneath_stat, for a file to be copied: *st has the permissions that a copy may
 * have (others_limit_mode). */
int beneath_stat_source(int dir, const char *name, struct stat *st, kvtree_error *err);

/* Sets the mode of the entry name (one component) of dir. -EPERM unless the entry belongs
 * to the effective user and is neither a link nor a file with several names. Also -EPERM
 * if others would gain rights: the entry may be a private file that another user has
 * given this name. */
int beneath_chmod(int dir, const char *name, mode_t mode, kvtree_error *err);

/* Returns the permissions of a copy in group `to`, where mode is that of the source in
 * group `from`. If the groups differ, some users may be in only one of them, so group and
 * others get the rights that both have in mode. */
mode_t beneath_mode_in_group(mode_t mode, gid_t from, gid_t to);

/* Whether the open prefix directory passes its group to entries created in it (it is
 * setgid). Then permissions that an application grants to "the group" in a private cache
 * are meant for this group. */
bool beneath_has_group(int dir, gid_t *group);

/* Returns the mode of a new record in the open directory dir, to be reduced by the umask:
 * 0600; readable for those who can read the directory; writable for a group that shares
 * the directory, which is then setgid and group-writable. A directory that another user
 * created counts as shared only if the directory above it is shared by the same group. */
mode_t beneath_record_mode(int dir);

/* Like beneath_record_mode for a lock file, without rights for those who may only read:
 * anyone who can open a file for reading can keep others from locking it. */
mode_t beneath_lock_mode(int dir);

/* Opens a file for appending lines below the open prefix directory, and creates it with
 * the mode of its records; flags is O_RDWR or O_WRONLY. -EPERM for a file of another
 * user, who could read the lines, unless a group shares the prefix directory. */
int beneath_open_log(int prefix, const char *name, int flags, int *fd, kvtree_error *err);

/* Opens a stream over the names in the open directory dir, from the first one, for
 * readdir and closedir; dir stays open. NULL on failure, with errno set. */
DIR *beneath_list(int dir);

/* Creates (0700) and opens base/name; base must exist and may be world-writable. Each
 * component of name must be a real directory, owned by the effective user and not
 * writable by other users; otherwise -EPERM with a text that names the owner. */
int beneath_private_folder(const char *base, const char *name, int *dir,
                           kvtree_error *err);

/* Like beneath_private_folder in the open directory opened; texts call its path base. */
int beneath_private_folder_at(int opened, const char *base, const char *name, int *dir,
                              kvtree_error *err);

#endif
