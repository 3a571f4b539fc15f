/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_OWNER_H
#define COMMON_OWNER_H

/* Changing from root to the user for whom a command works in a directory
 * (docs/security.md). For programs only. */

#include "common/prefix.h"
#include <stdbool.h>

#define owner_enter COMMON(owner_enter)
#define owner_enter_of COMMON(owner_enter_of)
#define owner_is_entered COMMON(owner_is_entered)
#define owner_keep_folder_of COMMON(owner_keep_folder_of)

/* Lets root become the owner of the directory, for the rest of the process, before
 * anything in the directory is read. The process of root stays in front (relay.h); the
 * process that continues has no terminal, file or hidden working directory of root. For
 * other users nothing changes.
 *
 * Refused with a message, which calls the directory `what`: a way to the directory
 * through a link that root did not create; a directory with a .scr or a configuration
 * file of another owner; a directory of root that others may write to, also in .scr, or
 * exchange; an owner that no user database knows. Returns an exit code (command.h). */
int owner_enter(const char *what, const char *folder);

/* Like owner_enter for the directory of the file at path. The file, if it exists, must
 * have the same owner as the directory. */
int owner_enter_of(const char *path);

/* Whether the open directory is the one that was entered: others may have exchanged it.
 * True if root did not become a user. */
bool owner_is_entered(int folder);

/* If root became a user, replaces *path, the path of a file, by a path through the
 * descriptor of its directory, which stays open until the process ends: another directory
 * may take its place at any time. Otherwise nothing changes. Returns an exit code. */
int owner_keep_folder_of(const char **path);

#endif
