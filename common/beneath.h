/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_BENEATH_H
#define COMMON_BENEATH_H

/* Files below a directory, reached without ever following a symbolic link.
 *
 * Names come out of files that others may have written, and cache directories lie in
 * places where anyone may create a link. So a name is checked first, and each of its
 * components is opened relative to the descriptor of the one before, with O_NOFOLLOW. All
 * functions return 0 or -errno and fill err. */

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

/* Bytes of the directory part of a name or path, with its slash. */
static inline size_t beneath_folder_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* Whether two files have the same directory, by their names. */
static inline bool beneath_is_same_folder(const char *a, const char *b)
{
    size_t length = beneath_folder_length(a);
    return length == beneath_folder_length(b) && memcmp(a, b, length) == 0;
}

/* -EINVAL unless name is relative, shorter than BENEATH_NAME_MAX, has no empty, "." or
 * ".." component and no control character. */
int beneath_check_name(const char *name, kvtree_error *err);

/* Opens a directory by path for use as `dir` below; the last component may not be a link.
 */
int beneath_open_folder(const char *path, int *dir, kvtree_error *err);

/* Opens name below dir. O_CLOEXEC, O_NOFOLLOW and O_NONBLOCK are added; anything but a
 * regular file is refused with -EINVAL, and with O_CREAT, for files that are changed
 * where they are, one of several names with -EPERM: it may be a file of another user. */
int beneath_open(int dir, const char *name, int flags, mode_t mode, int *fd,
                 kvtree_error *err);

/* Opens the directory that holds name; *last points to its last component inside name.
 * With a mode other than 0 missing directories are created with it. */
int beneath_open_parent(int dir, const char *name, mode_t mode, int *parent,
                        const char **last, kvtree_error *err);

/* Opens the directory name below dir; "" is dir itself. */
int beneath_open_below(int dir, const char *name, int *folder, kvtree_error *err);

/* The same for a directory that must belong to the effective user and grant group and
 * others nothing, else -EPERM. Only that user can put, rename or open a file in it, no
 * matter who can change the directories above it, so files below the descriptor need no
 * check of their own. */
int beneath_open_private(int dir, const char *name, int *folder, kvtree_error *err);

/* Creates the directory name below dir, and those above it, where missing. */
int beneath_mkdirs(int dir, const char *name, mode_t mode, kvtree_error *err);

/* The same, durably: syncs dir and the directories between it and name, even if other
 * processes made them, so that name is still there after a power cut. */
int beneath_make_durable(int dir, const char *name, mode_t mode, kvtree_error *err);

/* Removes; what is already gone is no error. rmdir of a directory that is not empty:
 * -ENOTEMPTY. */
int beneath_unlink(int dir, const char *name, kvtree_error *err);
int beneath_rmdir(int dir, const char *name, kvtree_error *err);

/* Removes a file and syncs its directory, also where it is already gone: the name does
 * not come back after a power cut. */
int beneath_unlink_durable(int dir, const char *name, kvtree_error *err);

/* Removes the directory name with all in it; links in it are removed, not followed.
 * Continues after a failure and returns the first one. For private directories: where
 * others can put entries, they may have moved a directory of the user's there. */
int beneath_remove_tree(int dir, const char *name, kvtree_error *err);

/* Whether only SCR gives a file that name: a temporary one, ".<16 hex digits>.tmp", maybe
 * with numbers after the digits, "-<i>". */
bool beneath_is_temporary(const char *name);

/* lstat of name below dir. */
int beneath_stat(int dir, const char *name, struct stat *st, kvtree_error *err);

/* The same for what is to be copied: with the permissions that a copy may have
 * (others_limit_mode). */
int beneath_stat_source(int dir, const char *name, struct stat *st, kvtree_error *err);

/* Sets the mode of the entry name (one component) of dir, which must belong to the
 * effective user, and be no link and no file of several names: otherwise -EPERM. The same
 * where others would get rights: it may be a private file, to which another user has
 * given that name. */
int beneath_chmod(int dir, const char *name, mode_t mode, kvtree_error *err);

/* The permissions of a copy in group `to`, where mode is that of its source in group
 * `from`. If the two differ, users may be in one group alone, so that group and others
 * get what both have in mode. */
mode_t beneath_mode_in_group(mode_t mode, gid_t from, gid_t to);

/* Whether the open directory, a prefix directory, gives its group to what is created in
 * it (it is setgid): permissions that an application gives "the group" in a private cache
 * are meant for that group. */
bool beneath_has_group(int dir, gid_t *group);

/* The mode of a new record in the open directory dir, less the umask: 0600; readable for
 * those who can read the directory; writable for a group that shares the directory, which
 * is setgid and writable for it. One that another user made counts as shared only if the
 * one above it is, by the same group. */
mode_t beneath_record_mode(int dir);

/* The same for a file that is locked: without the rights of those who may only read, as
 * who can open a file for reading can keep others from locking it. */
mode_t beneath_lock_mode(int dir);

/* Opens a file below the open prefix directory for lines that are appended, made with the
 * mode of its records; flags is O_RDWR or O_WRONLY. -EPERM for one of another user, who
 * could read what is appended, unless the prefix directory is one that a group shares. */
int beneath_open_log(int prefix, const char *name, int flags, int *fd, kvtree_error *err);

/* The names in the open directory dir, from the first one on, for readdir and closedir;
 * dir stays open. NULL on failure, with errno set. */
DIR *beneath_list(int dir);

/* Creates (0700) and opens base/name, where base exists and may be world-writable. Each
 * component of name must be a real directory, owned by the effective user, and writable
 * by no other user; otherwise -EPERM and a text that names the owner. */
int beneath_private_folder(const char *base, const char *name, int *dir,
                           kvtree_error *err);

/* The same in the open directory opened, whose path is base in texts. */
int beneath_private_folder_at(int opened, const char *base, const char *name, int *dir,
                              kvtree_error *err);

#endif
