/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_OTHERS_H
#define COMMON_OTHERS_H

/* What others than root and the user of this process may do to a file (docs/security.md).
 */

#include "common/prefix.h"
#include <sys/stat.h>

#define others_write COMMON(others_write)
#define others_rename COMMON(others_rename)

/* Whether others than root and the effective user may write to the open file or folder
 * (also with O_PATH), which belongs to one of these, and is what st says: everybody, the
 * members of a group, or those that an access control list names. A group of the user's
 * own, which has the name of the user and no members, counts as the user; groups of what
 * is root's, as root. */
int others_write(int fd, const struct stat *st);

/* Whether they may give a name in the open folder to a file that is root's or the user's:
 * it is theirs, or they may write there and it has no sticky bit. */
int others_rename(int fd, const struct stat *st);

#endif
