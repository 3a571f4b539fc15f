/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_OTHERS_H
#define COMMON_OTHERS_H

/* What others than root and the user of this process may do to a file (docs/security.md).
 */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define others_write COMMON(others_write)
#define others_rename COMMON(others_rename)
#define others_put COMMON(others_put)
#define others_put_beside COMMON(others_put_beside)
#define others_open_beside COMMON(others_open_beside)
#define others_put_below COMMON(others_put_below)
#define others_join COMMON(others_join)
#define others_join_noted COMMON(others_join_noted)
#define others_limit_mode COMMON(others_limit_mode)
#define others_limit_mode_at COMMON(others_limit_mode_at)
#define others_reach COMMON(others_reach)
#define others_have_same_list COMMON(others_have_same_list)

/* Whether others than root and the effective user may write to the open file or directory
 * (also with O_PATH), which belongs to one of these, and is what st says: everybody, the
 * members of a group, or those that an access control list names. A group of the user's
 * own, which has the name of the user, no members, and no other user in /etc/passwd,
 * counts as the user; groups of what is root's, as root. */
int others_write(int fd, const struct stat *st);

/* Whether they may give a name in the open directory to a file that is root's or the
 * user's: it is theirs, or they may write there and it has no sticky bit. */
int others_rename(int fd, const struct stat *st);

/* Whether they may put a file of theirs into the open directory; -errno where that cannot
 * be told. */
int others_put(int fd);

/* Whether they may put files into the directory without being able to replace those that
 * are there: it has a sticky bit. Also where that cannot be told. */
bool others_put_beside(const char *folder);

/* Opens (O_PATH) the file at path, to be executed or loaded as a part of the program or
 * library that own describes. Negative unless it, and a link at path, belong to root, the
 * owner of own, or user, and only those who can change own can change it. */
int others_open_beside(const char *path, const struct stat *own, uid_t user);

/* Whether the access control lists of two open files give the same rights, as far as the
 * modes of their groups allow, to the owning group and to all that they name; also if
 * neither has a list. */
bool others_have_same_list(int a, int b);

/* Reduces the permissions in *st, which are those of an open file (also with O_PATH), to
 * what a copy without its access control list may give to the group and to others: what
 * the list gives to these, and to all that it names. */
void others_limit_mode(int fd, struct stat *st);

/* The same for the file at path, also if that is a link. */
void others_limit_mode_at(const char *path, struct stat *st);

/* In place of a group: everybody, or users with more than one group. */
#define OTHERS_ALL INT64_MAX
/* Added to a group: together with the users and groups of an access control list, which
 * is that of the directory of names. */
#define OTHERS_LISTED ((int64_t)1 << 40)

/* Those who may write to the record of that name below the open directory dir, put one of
 * theirs in its place, or exchange or create a directory on the way to it: 0, none; the
 * id of a group plus 1, and maybe OTHERS_LISTED; OTHERS_ALL; or -errno with a text. A
 * name that ends with a slash, or "", stands for all files in that directory. No link is
 * followed. */
int64_t others_put_below(int dir, const char *name, kvtree_error *err);

/* Those who are among the first or the second, as others_put_below finds them. */
int64_t others_join(int64_t a, int64_t b);

/* The same where `noted` was found at an earlier time, and `now` now, for the same record
 * or what was made of it. An access control list may have other users since. */
int64_t others_join_noted(int64_t now, int64_t noted);

/* For a name below the open directory top that is in a record which others (who, as
 * others_put_below finds them) may have put there; parent is the directory of what has
 * that name. Such names reach only directories in which all of these may rename and
 * remove files themselves, along a way that they may go. Otherwise -EPERM, with a text
 * that calls the file `name`. */
int others_reach(int64_t who, int top, int parent, const char *name, kvtree_error *err);

#endif
