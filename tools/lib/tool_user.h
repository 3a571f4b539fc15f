/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_USER_H
#define TOOL_USER_H

/* The user of a command, and the programs that it may execute for that user
 * (docs/security.md). */

#include <kvtree/kvtree_error.h>

/* Root becomes the owner of the prefix directory; see common/owner.h. An exit code. */
int tool_user_enter(const char *prefix);

/* The program to which path leads, without links, to be freed, if it and all directories
 * on the way belong to root or this user and others cannot change them. Else -EPERM or
 * another -errno, with a text. */
int tool_user_program(const char *path, char **program, kvtree_error *err);

#endif
