/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PATH_H
#define SCR_PATH_H

/* Paths, without looking at the file system: as a list of components, and below as text.
 *
 *     scr_path *path = scr_path_from_str("/hello/world/../foo/./bar");
 *     scr_path_reduce(path);                      /hello/foo/bar
 *     scr_path_dirname(path);                     /hello/foo
 *     int rc = scr_path_append_strf(path, "rank_%d.ckpt", rank);
 *     char *text = scr_path_strdup(path);
 *     scr_path_delete(&path);
 *
 * A component is what stands between two '/', and may be the empty string: "/hello" has
 * the components "" and "hello", "/" has "" and "", "" has one, "". They are numbered
 * from 0. A path of no components is the null path; as text it is the empty string, too.
 * A NULL where a path is only read counts as the null path.
 *
 * Offsets may be negative and then count from the end; one beyond either end is that end.
 * Functions that return a path or text return NULL where there is no memory, and what
 * they return is the caller's. Those that return int return 0 or a negative error, with
 * the path unchanged. */

#include <stddef.h>

typedef struct scr_path scr_path;

/* ---- making and freeing ---- */

scr_path *scr_path_new(void); /* the null path */
void scr_path_delete(scr_path **path);

/* str split at each '/'; NULL gives the null path. */
scr_path *scr_path_from_str(const char *str);
scr_path *scr_path_from_strf(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
scr_path *scr_path_dup(const scr_path *path);

/* ---- asking ---- */

int scr_path_components(const scr_path *path);
int scr_path_is_null(const scr_path *path);
int scr_path_is_absolute(const scr_path *path); /* 1: the first component is empty */

/* Bytes of the text, without its NUL. */
size_t scr_path_strlen(const scr_path *path);
char *scr_path_strdup(const scr_path *path);

/* The text, to buf of size bytes; -ENAMETOOLONG, with buf unchanged, where it and its NUL
 * need more. */
int scr_path_strcpy(char *buf, size_t size, const scr_path *path);

/* ---- putting together: all of other becomes part of path ---- */

int scr_path_prepend(scr_path *path, const scr_path *other);
int scr_path_prepend_str(scr_path *path, const char *str);
int scr_path_prepend_strf(scr_path *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int scr_path_append(scr_path *path, const scr_path *other);
int scr_path_append_str(scr_path *path, const char *str);
int scr_path_append_strf(scr_path *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Before the component at offset, which is 0 to the number of components (there: behind
 * the last one); -EINVAL for any other. */
int scr_path_insert(scr_path *path, int offset, const scr_path *other);
int scr_path_insert_str(scr_path *path, int offset, const char *str);
int scr_path_insert_strf(scr_path *path, int offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- taking apart ---- */

/* Keeps length components from offset on; a negative length: all of them. */
void scr_path_slice(scr_path *path, int offset, int length);
void scr_path_dirname(scr_path *path);  /* drops the last component */
void scr_path_basename(scr_path *path); /* keeps only the last component */

/* Ends path before offset, and returns the rest; on failure path is unchanged. */
scr_path *scr_path_cut(scr_path *path, int offset);

/* What scr_path_slice would keep; path stays as it is. */
scr_path *scr_path_sub(const scr_path *path, int offset, int length);

/* ---- simplifying ---- */

/* Takes away ".", "..", with the component before it, consecutive and trailing '/'. What
 * leads above the root is dropped, and a ".." that a relative path begins with stays.
 * "/a/.." becomes "/", and "a/.." the null path. */
void scr_path_reduce(scr_path *path);
char *scr_path_strdup_reduce_str(const char *str);

/* The way from src to dst, reduced: "../foo" from "/hello/world" to "/hello/foo"; the
 * null path where both are one. NULL also where no path can tell: from an absolute one to
 * a relative one or back, or up to a folder that only ".." names. */
scr_path *scr_path_relative(const scr_path *src, const scr_path *dst);

/* ---- paths as text, for callers that have text and need text ---- */

/* path made absolute (against cwd) and reduced. */
char *scr_path_absolute(const char *cwd, const char *path);

/* dir/name. */
char *scr_path_join(const char *dir, const char *name);

/* The part of path below dir (both absolute and reduced), inside path; NULL if path is
 * not below dir. */
const char *scr_path_below(const char *dir, const char *path);

/* The last component, inside path. */
const char *scr_path_basename_str(const char *path);

/* 1 when both are in one folder, by what stands before the last component. */
int scr_path_same_folder(const char *a, const char *b);

#endif
