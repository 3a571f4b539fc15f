/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_MOUNT_H
#define COMMON_MOUNT_H

/* File systems that a user serves by a process (FUSE): they show whatever owners that
 * user likes. */

#include "common/prefix.h"
#include <sys/stat.h>
#include <sys/types.h>

#define mount_owner COMMON(mount_owner)
#define mount_user_of COMMON(mount_user_of)

/* The user whom the open file (also with O_PATH), which is what st says, really belongs
 * to: in a file system that a user mounted that user, even if st tells another one;
 * (uid_t)-1 where mounts do not show who did. 0 or a negative errno. */
int mount_owner(int fd, const struct stat *st, uid_t *owner);

/* The same from a line of /proc/self/mountinfo: the user who serves that device; root for
 * virtiofs, which the host of a virtual machine serves. (uid_t)-1 where the line is of
 * another device, or does not say who. */
uid_t mount_user_of(const char *line, dev_t device);

#endif
