/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_BASE_H
#define SCR_BASE_H

/* Location of a user's directories below a base (SCR_CACHE_BASE, SCR_CNTL_BASE, STORE),
 * which everybody may write to.
 *
 * They are in <base>/<user> or, if another user has taken that name, in
 * <base>/<user>.<uid>/<user>. As long as the user has a directory <user>.<uid>, it is
 * used, so that its contents are found again after the obstacle is gone. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stddef.h>

/* Maximum size of a name below a base, in bytes with its NUL. */
#define SCR_BASE_NAME 1024

/* below gets the location of name, "<user>/...", relative to base. Changes nothing on
 * disk. 1 if it is in <user>.<uid>, 0 if not, -ENAMETOOLONG. */
int scr_base_name(const char *base, const char *name, char below[SCR_BASE_NAME]);

/* Who else may rename and remove this user's files in a world-writable base. 1:
 * everybody, as it has no sticky bit; 2: its owner, a user other than root; 0: nobody. */
int scr_base_is_unsafe(const char *base);

/* The length of the base in the first n bytes of path: these bytes name the directory
 * that contains the directory name, "<user>/...". */
size_t scr_base_length(const char *path, size_t n, const char *name);

/* Opens a directory that is private to this user, in a place that every user may write
 * to. The caller frees *path; 0 or -errno with a text. */
typedef struct scr_private {
    const char *what; /* parameter that named the place */
    const char *base; /* the place, ... */
    int make;         /* ... created if missing */
    const char *name; /* of the directory in base */
} scr_private;
int scr_open_private(const scr_private *where, char **path, int *fd, kvtree_error *err);

/* Removes the directory name below base, and the directories above it, as far as they are
 * empty. */
void scr_remove_private(const char *base, const char *name);

/* Whether the open file or directory was removed. */
bool scr_is_removed(int fd);

#endif
