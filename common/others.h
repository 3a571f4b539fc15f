/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_OTHERS_H
#define COMMON_OTHERS_H

/* What others, that is users other than root and the user of this process, may do to a
 * file (docs/security.md). */

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
 * (also with O_PATH), which belongs to one of these two and has the status st. Others are
 * everybody, the members of a group, or those that an access control list names. The
 * user's own group, which has the name of the user, no members, and no other user in
 * /etc/passwd, counts as the user. Groups of a file of root count as root. */
int others_write(int fd, const struct stat *st);

/* Whether others may give a name in the open directory to another file of root or the
 * user: they own the directory, or they may write to it and it has no sticky bit. */
int others_rename(int fd, const struct stat *st);

/* Whether others may put their own files into the open directory; -errno if this cannot
 * be determined. */
int others_put(int fd);

/* Whether others may put files into the directory but not replace existing files, because
 * it has a sticky bit. Also true if this cannot be determined. */
bool others_put_beside(const char *folder);

/* Opens (O_PATH) the file at path, to be executed or loaded as a part of the program or
 * library with the status own. Negative unless the file, and a link at path, belong to
 * root, the owner of own, or user, and can be changed only by those who can change own.
 */
int others_open_beside(const char *path, const struct stat *own, uid_t user);

/* Whether the access control lists of two open files give the same rights, within the
 * group bits of their modes, to the owning group and to all users and groups they name.
 * Also true if neither file has a list. */
bool others_have_same_list(int a, int b);

/* Reduces the permissions in *st, the status of an open file (also with O_PATH), to those
 * that a copy without the access control list may grant to its group and to others: the
 * rights that the list gives these and also every user and group it names. */
void others_limit_mode(int fd, struct stat *st);

/* Like others_limit_mode for the file at path, which may be a link. */
void others_limit_mode_at(const char *path, struct stat *st);

/* Instead of a group: everybody, or users of more than one group. */
#define OTHERS_ALL INT64_MAX
/* Added to a group: together with the users and groups of an access control list, which
 * equals that of the directory above the names. */
#define OTHERS_LISTED ((int64_t)1 << 40)

/* Returns which others may write to the record with that name below the open directory
 * dir, replace it by one of theirs, or exchange or create a directory on the way to it:
 * 0, none; the ID of a group plus 1, possibly with OTHERS_LISTED; OTHERS_ALL; or -errno
 * with a text. A name that ends with a slash, or "", stands for all files in that
 * directory. No link is followed. */
int64_t others_put_below(int dir, const char *name, kvtree_error *err);

/* Returns the others in either of two results of others_put_below. */
int64_t others_join(int64_t a, int64_t b);

/* Like others_join for the same record, or a record made from it: `noted` was found
 * earlier, and `now` now. The users of an access control list may have changed meanwhile.
 */
int64_t others_join_noted(int64_t now, int64_t noted);

/* Checks a name in a record that others (who, as returned by others_put_below) may have
 * written. The name is below the open directory top, and parent is the directory of the
 * file with that name. Such a name may only lead to a directory in which all of these
 * others may rename and remove files themselves, along a way that they may pass through.
 * Otherwise -EPERM, with a text that calls the file `name`. */
int others_reach(int64_t who, int top, int parent, const char *name, kvtree_error *err);

#endif
