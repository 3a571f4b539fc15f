/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_FOLDER_H
#define COMMON_FOLDER_H

/* Directories by a path that the caller chose (names out of files belong to beneath.h):
 * links on the way are followed, as people lay out their file systems with them. */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <sys/types.h>

#define folder_make COMMON(folder_make)
#define folder_make_beneath COMMON(folder_make_beneath)
#define folder_make_below COMMON(folder_make_below)
#define folder_of COMMON(folder_of)
#define folder_rest COMMON(folder_rest)

/* Opens the directory at path (absolute, or relative to the working directory; "" is that
 * directory) for fsync and for use as `dir` in beneath.h. With a mode other than 0,
 * missing directories of the path are created with it, less the umask, and each one is
 * synced into its parent. Directories that are there already may be made by others at the
 * same time. Returns 0 or -errno and fills err. */
int folder_make(const char *path, mode_t mode, int *fd, kvtree_error *err);

/* The same for the directory name below the open directory base, where no component of
 * name may be a link (-ELOOP) or ".." (-EINVAL). "" is base itself. */
int folder_make_beneath(int base, const char *name, mode_t mode, int *fd,
                        kvtree_error *err);

/* The same for a path below the directory base, which is there: links are followed on the
 * way to base, none after it. With base NULL: folder_make. -EINVAL for a path that is not
 * below base. */
int folder_make_below(const char *base, const char *path, mode_t mode, int *fd,
                      kvtree_error *err);

/* Opens the directory of a file; *last points to the file's name in it, inside name. With
 * dir AT_FDCWD name is such a path; else name is below the open directory dir, and no
 * link is followed (beneath_open_parent). mode as above. */
int folder_of(int dir, const char *name, mode_t mode, int *parent, const char **last,
              kvtree_error *err);

/* The part of path after the directory base, "" for base itself; NULL where path is not
 * below it. Compares letters only. */
const char *folder_rest(const char *base, const char *path);

#endif
