/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PATH_H
#define SCR_PATH_H

/* Paths as text, without looking at the file system. Returned strings are the caller's;
 * NULL: no memory. */

#include <stddef.h>

/* path made absolute (against cwd) and without ".", "..", double or trailing slashes. */
char *scr_path_absolute(const char *cwd, const char *path);

/* dir/name. */
char *scr_path_join(const char *dir, const char *name);

/* The part of path below dir (both absolute and reduced), inside path; NULL if path is
 * not below dir. */
const char *scr_path_below(const char *dir, const char *path);

/* The last component, inside path. */
const char *scr_path_basename(const char *path);

#endif
