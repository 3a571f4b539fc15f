/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_BASE_H
#define SCR_BASE_H

/* Location of a user's directories below a base (SCR_CACHE_BASE, SCR_CNTL_BASE, STORE),
 * to which everybody may write.
 *
 * They are in <base>/<user> or, if another user has taken that name, in
 * <base>/<user>.<uid>/<user>. As long as a directory <user>.<uid> of the user is there,
 * it is used, so that what is in it is found again after the obstacle is gone. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>
#include <stddef.h>

/* Largest name below a base, in bytes with its NUL. */
#define SCR_BASE_NAME 1024

/* below gets the place of name, "<user>/...", relative to base. Only looks. 1 where it is
 * in <user>.<uid>, 0 where it is not, -ENAMETOOLONG. */
int scr_base_name(const char *base, const char *name, char below[SCR_BASE_NAME]);

/* Who may rename and remove what this user has in base, to which all may write: 1:
 * everybody, as it has no sticky bit; 2: its owner, a user other than root. */
int scr_base_is_unsafe(const char *base);

/* The length of the base in the first n bytes of path, which are the place in which the
 * directory name, "<user>/...", is. */
size_t scr_base_length(const char *path, size_t n, const char *name);

/* A directory that is private to this user, in a place that every user may write to.
 * *path is to be freed; 0 or -errno with a text. */
typedef struct scr_private {
    const char *what; /* parameter that named the place */
    const char *base; /* the place, ... */
    int make;         /* ... made where it is missing */
    const char *name; /* of the directory in it */
} scr_private;
int scr_open_private(const scr_private *where, char **path, int *fd, kvtree_error *err);

/* Removes the directory name below base, and those above it, as far as they are empty. */
void scr_remove_private(const char *base, const char *name);

/* Whether the open file or directory was removed. */
bool scr_is_removed(int fd);

#endif
