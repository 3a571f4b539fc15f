/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_USER_H
#define TOOL_USER_H

/* The user as whom a command works, and the programs that it may execute for that user
 * (docs/security.md). */

/* Root becomes the owner of the prefix folder, as common/owner.h tells. An exit code
 * (tool.h). */
int tool_user_enter(const char *prefix);

/* 0 when the file may be executed: it belongs to root or to this user, and not everybody
 * may change it. Else -EPERM, or why it cannot be looked at, with a text. */
int tool_user_may_run(const char *path, char *err);

#endif
