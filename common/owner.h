/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_OWNER_H
#define COMMON_OWNER_H

/* The user as which a command of root works in a directory (docs/security.md). For
 * programs only. */

#include "common/prefix.h"
#include <stdbool.h>

#define owner_enter COMMON(owner_enter)
#define owner_enter_of COMMON(owner_enter_of)
#define owner_is_entered COMMON(owner_is_entered)
#define owner_keep_folder_of COMMON(owner_keep_folder_of)

/* Root becomes the owner of the directory, for the rest of the process, before anything
 * in that directory is read. The process of root stays in front (relay.h); the one that
 * continues has no terminal, file or hidden working directory of root. For other users
 * nothing changes.
 *
 * Refused with a message, which calls the directory `what`: a way to it through a link
 * that root did not make; a directory, and .scr or a configuration file in it with
 * different owners; a directory of root that others may write to, in .scr too, or
 * exchange; an owner that no user database knows. An exit code (command.h). */
int owner_enter(const char *what, const char *folder);

/* The same for the directory that the path of a file leads to; what has the name of the
 * file in it, if it is there, has the same owner. */
int owner_enter_of(const char *path);

/* Whether the open directory is that of the user whom root became: others may have
 * exchanged it meanwhile. True where root did not become a user. */
bool owner_is_entered(int folder);

/* Where root became a user: *path, of a file, becomes one by a descriptor of its
 * directory, which stays open until the end of the process; its place may be taken by
 * another directory at any time. Else nothing changes. An exit code. */
int owner_keep_folder_of(const char **path);

#endif
