/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_USER_H
#define TOOL_USER_H

/* The user as whom a command works, and the programs that it may execute for that user
 * (docs/security.md). */

/* Root becomes the owner of the prefix folder, as common/owner.h tells. An exit code
 * (tool.h). */
int tool_user_enter(const char *prefix);

/* The program to which path leads, without links, to be freed. It may be executed: it and
 * all folders on the way to it belong to root or to this user, and not everybody may
 * change them, so that it stays what it is. Else -EPERM, or why it cannot be looked at,
 * with a text. */
int tool_user_program(const char *path, char **program, char *err);

#endif
