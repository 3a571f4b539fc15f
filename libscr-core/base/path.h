/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PATH_H
#define SCR_PATH_H

/* Paths as text. No function here accesses the file system. A returned `char *` belongs
 * to the caller and is NULL when memory runs out. */

/* Removes "."; ".." together with the component before it; and repeated and trailing '/'.
 * Drops a ".." that leads above the root, and keeps a ".." at the beginning of a relative
 * path. "/a/.." becomes "/", and "a/.." the empty string. */
char *scr_path_reduce(const char *path);

/* Returns path, made absolute (relative to cwd) and reduced. */
char *scr_path_absolute(const char *cwd, const char *path);

/* Returns dir/name. */
char *scr_path_join(const char *dir, const char *name);

/* Returns the part of path below dir (both absolute and reduced), a pointer into path;
 * NULL if path is not below dir. */
const char *scr_path_below(const char *dir, const char *path);

/* Returns the last component, a pointer into path. */
const char *scr_path_basename(const char *path);

#endif
