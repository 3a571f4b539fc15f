/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PATH_H
#define SCR_PATH_H

/* Paths as text. No function here accesses the file system. A returned `char *` belongs
 * to the caller and is NULL when memory runs out. */

/* Removes ".", "..", together with the component before it, consecutive and trailing '/'.
 * A ".." that leads above the root is dropped; one at the beginning of a relative path
 * stays. "/a/.." becomes "/", and "a/.." the empty string. */
char *scr_path_reduce(const char *path);

/* path, made absolute (against cwd) and reduced. */
char *scr_path_absolute(const char *cwd, const char *path);

/* dir/name. */
char *scr_path_join(const char *dir, const char *name);

/* The part of path below dir (both absolute and reduced), inside path; NULL if path is
 * not below dir. */
const char *scr_path_below(const char *dir, const char *path);

/* The last component, inside path. */
const char *scr_path_basename(const char *path);

#endif
