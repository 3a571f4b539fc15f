/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_USER_H
#define TOOL_USER_H

/* The user as whom a command works, and the programs that it may execute for that user
 * (docs/security.md). */

/* Root becomes the owner of the prefix folder, for the rest of the process, before
 * anything in that folder is read. This process stays behind as root: it forwards
 * signals, waits, and exits as the child does, which goes on from here in a session of
 * its own, without root's terminal. Other users than root go on as they are.
 *
 * Refused with a message: a way to the folder through a link that root did not make; a
 * folder, .scr or configuration file in it with different owners; a folder of root that
 * others may write to; an owner that no user database knows. An exit code (tool.h). */
int tool_user_enter(const char *prefix);

/* 0 when the file may be executed: it belongs to root or to this user, and not everybody
 * may change it. Else -EPERM, or why it cannot be looked at, with a text. */
int tool_user_may_run(const char *path, char *err);

#endif
