/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_FOLDER_H
#define COMMON_FOLDER_H

/* Directories by a path that the user chose (for names from files use beneath.h). Links
 * on the way are followed, since users lay out their file systems with links. */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <sys/types.h>

#define folder_make COMMON(folder_make)
#define folder_make_beneath COMMON(folder_make_beneath)
#define folder_make_below COMMON(folder_make_below)
#define folder_of COMMON(folder_of)
#define folder_rest COMMON(folder_rest)

/* Opens the directory at path (absolute, or relative to the working directory; "" is the
 * working directory) for fsync and for use as `dir` in beneath.h. With a mode other than
 * 0, missing directories of the path are created with it, less the umask, and each one is
 * synced into its parent. Other processes may create the same directories at the same
 * time. Returns 0 or -errno and fills err. */
int folder_make(const char *path, mode_t mode, int *fd, kvtree_error *err);

/* Like folder_make, for the directory name below the open directory base. No component of
 * name may be a link (-ELOOP) or ".." (-EINVAL). "" is base itself. */
int folder_make_beneath(int base, const char *name, mode_t mode, int *fd,
                        kvtree_error *err);

/* Like folder_make, for a path below the existing directory base: links are followed on
 * the way to base, but not below it. base NULL: folder_make. -EINVAL for a path that is
 * not below base. */
int folder_make_below(const char *base, const char *path, mode_t mode, int *fd,
                      kvtree_error *err);

/* Opens the directory of a file; *last points to the file's name at the end of name. With
 * dir AT_FDCWD, name is a path as in folder_make; otherwise name is below the open
 * directory dir, and no link is followed (beneath_open_parent). mode as above. */
int folder_of(int dir, const char *name, mode_t mode, int *parent, const char **last,
              kvtree_error *err);

/* Returns the part of path after the directory base, "" for base itself, or NULL if path
 * is not below base. Compares only characters. */
const char *folder_rest(const char *base, const char *path);

#endif
