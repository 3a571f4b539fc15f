/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_MOUNT_H
#define COMMON_MOUNT_H

/* File systems that a process of a user serves (FUSE): they report whatever owners that
 * user chooses. */

#include "common/prefix.h"
#include <sys/stat.h>
#include <sys/types.h>

#define mount_owner COMMON(mount_owner)
#define mount_user_of COMMON(mount_user_of)

/* Returns the real owner of an open file (also with O_PATH) with the status st. In a file
 * system that a user mounted, this is that user, whatever owner st reports; (uid_t)-1 if
 * the list of mounts does not show who mounted it. 0 or a negative errno. */
int mount_owner(int fd, const struct stat *st, uid_t *owner);

/* Returns the user who serves the device, from a line of /proc/self/mountinfo: root for
 * virtiofs, which the host of a virtual machine serves; (uid_t)-1 if the line is about
 * another device or does not name a user. */
uid_t mount_user_of(const char *line, dev_t device);

#endif
