/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_USER_H
#define TOOL_USER_H

/* The user as which a command runs, and the programs that it may execute as that user
 * (docs/security.md). */

#include <kvtree/kvtree_error.h>

/* If the user is root, becomes the owner of the prefix directory; see common/owner.h. An
 * exit code. */
int tool_user_enter(const char *prefix);

/* Gets the program to which path leads, without symbolic links, to be freed. The program
 * and all directories on the way must belong to root or this user, and others must not be
 * able to change them. Otherwise -EPERM or another -errno, with a text. */
int tool_user_program(const char *path, char **program, kvtree_error *err);

#endif
