/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_FOLDER_H
#define COMMON_FOLDER_H

/* Folders by a path that the caller chose (names out of files belong to beneath.h): links
 * on the way are followed, as people lay out their file systems with them. */

#include "common/prefix.h"
#include <sys/types.h>

#define folder_make COMMON(folder_make)

/* Opens the folder at path (absolute, or relative to the working folder; "" is that
 * folder) for fsync and for use as `dir` in beneath.h. With a mode other than 0, missing
 * folders of the path are created with it, less the umask, and each one is synced into
 * its parent. Folders that are there already may be made by others at the same time.
 * Returns 0 or -errno and fills err. */
int folder_make(const char *path, mode_t mode, int *fd, char *err);

#endif
