/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths as lists of components; see base/path.h. Each component is a string of its own.
 */
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scr_path {
    int count;
    char **parts;
};

/* Frees the components from first on. */
static void truncate_to(scr_path *path, int first)
{
    while (path->count > first)
        free(path->parts[--path->count]);
}

/* ---- making and freeing ---- */

scr_path *scr_path_new(void)
{
    return calloc(1, sizeof(scr_path));
}

void scr_path_delete(scr_path **path)
{
    if (!path || !*path) return;
    truncate_to(*path, 0);
    free((*path)->parts);
    free(*path);
    *path = NULL;
}

/* Room for `more` components behind those that there are. */
static int make_room(scr_path *path, size_t more)
{
    if (more > (size_t)(INT_MAX - path->count)) return -ENOMEM;
    size_t count = (size_t)path->count + more;
    char **parts = realloc(path->parts, (count ? count : 1) * sizeof *parts);
    if (!parts) return -ENOMEM;
    path->parts = parts;
    return 0;
}

static int split(scr_path *path, const char *str)
{
    size_t count = 1;
    for (const char *slash = str; (slash = strchr(slash, '/')); slash++)
        count++;
    int rc = make_room(path, count);
    for (size_t i = 0; i < count && !rc; i++) {
        size_t length = strcspn(str, "/");
        char *part = strndup(str, length);
        if (!part) return -ENOMEM;
        path->parts[path->count++] = part;
        str += length + 1;
    }
    return rc;
}

scr_path *scr_path_from_str(const char *str)
{
    scr_path *path = scr_path_new();
    if (path && str && split(path, str) != 0) scr_path_delete(&path);
    return path;
}

static scr_path *from_args(const char *format, va_list args)
{
    char *str = NULL;
    if (vasprintf(&str, format, args) < 0) return NULL;
    scr_path *path = scr_path_from_str(str);
    free(str);
    return path;
}

scr_path *scr_path_from_strf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    scr_path *path = from_args(format, args);
    va_end(args);
    return path;
}

scr_path *scr_path_dup(const scr_path *path)
{
    return scr_path_sub(path, 0, -1);
}

/* ---- asking ---- */

int scr_path_components(const scr_path *path)
{
    return path ? path->count : 0;
}

int scr_path_is_null(const scr_path *path)
{
    return scr_path_components(path) == 0;
}

int scr_path_is_absolute(const scr_path *path)
{
    return !scr_path_is_null(path) && !path->parts[0][0];
}

size_t scr_path_strlen(const scr_path *path)
{
    int count = scr_path_components(path);
    size_t length = count > 0 ? (size_t)count - 1 : 0;
    for (int i = 0; i < count; i++)
        length += strlen(path->parts[i]);
    return length;
}

int scr_path_strcpy(char *buf, size_t size, const scr_path *path)
{
    if (scr_path_strlen(path) >= size) return -ENAMETOOLONG;
    char *end = buf;
    for (int i = 0; i < scr_path_components(path); i++) {
        if (i > 0) *end++ = '/';
        end = stpcpy(end, path->parts[i]);
    }
    *end = 0;
    return 0;
}

char *scr_path_strdup(const scr_path *path)
{
    size_t size = scr_path_strlen(path) + 1;
    char *str = malloc(size);
    if (str) scr_path_strcpy(str, size, path);
    return str;
}

/* ---- putting together ---- */

/* Puts the components of taken, which is given up, before the one at offset. */
static int take_in(scr_path *path, int offset, scr_path *taken)
{
    int rc = !taken ? -ENOMEM : offset < 0 || offset > path->count ? -EINVAL : 0;
    rc = rc ? rc : make_room(path, (size_t)taken->count);
    if (!rc) {
        char **here = path->parts + offset;
        size_t behind = (size_t)(path->count - offset);
        memmove(here + taken->count, here, behind * sizeof *here);
        if (taken->count > 0)
            memcpy(here, taken->parts, (size_t)taken->count * sizeof *here);
        path->count += taken->count;
        taken->count = 0;
    }
    scr_path_delete(&taken);
    return rc;
}

int scr_path_insert(scr_path *path, int offset, const scr_path *other)
{
    return take_in(path, offset, scr_path_dup(other));
}

int scr_path_insert_str(scr_path *path, int offset, const char *str)
{
    return take_in(path, offset, scr_path_from_str(str));
}

int scr_path_insert_strf(scr_path *path, int offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = take_in(path, offset, from_args(format, args));
    va_end(args);
    return rc;
}

int scr_path_prepend(scr_path *path, const scr_path *other)
{
    return scr_path_insert(path, 0, other);
}

int scr_path_prepend_str(scr_path *path, const char *str)
{
    return scr_path_insert_str(path, 0, str);
}

int scr_path_prepend_strf(scr_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = take_in(path, 0, from_args(format, args));
    va_end(args);
    return rc;
}

int scr_path_append(scr_path *path, const scr_path *other)
{
    return scr_path_insert(path, path->count, other);
}

int scr_path_append_str(scr_path *path, const char *str)
{
    return scr_path_insert_str(path, path->count, str);
}

int scr_path_append_strf(scr_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = take_in(path, path->count, from_args(format, args));
    va_end(args);
    return rc;
}

/* ---- taking apart ---- */

/* Where a piece of a path begins and ends. */
static void find_range(const scr_path *path, int offset, int length, int *from, int *to)
{
    int count = scr_path_components(path);
    if (offset < 0) offset = offset < -count ? 0 : offset + count;
    *from = offset < count ? offset : count;
    *to = length >= 0 && length < count - *from ? *from + length : count;
}

void scr_path_slice(scr_path *path, int offset, int length)
{
    int from, to;
    find_range(path, offset, length, &from, &to);
    truncate_to(path, to);
    for (int i = 0; i < from; i++)
        free(path->parts[i]);
    if (from > 0)
        memmove(path->parts, path->parts + from,
                (size_t)(to - from) * sizeof *path->parts);
    path->count = to - from;
}

void scr_path_dirname(scr_path *path)
{
    if (path->count > 0) truncate_to(path, path->count - 1);
}

void scr_path_basename(scr_path *path)
{
    scr_path_slice(path, -1, 1);
}

scr_path *scr_path_sub(const scr_path *path, int offset, int length)
{
    int from, to;
    find_range(path, offset, length, &from, &to);
    scr_path *sub = scr_path_new();
    if (sub && make_room(sub, (size_t)(to - from)) != 0) scr_path_delete(&sub);
    for (; sub && from < to; from++) {
        char *part = strdup(path->parts[from]);
        if (part)
            sub->parts[sub->count++] = part;
        else
            scr_path_delete(&sub);
    }
    return sub;
}

scr_path *scr_path_cut(scr_path *path, int offset)
{
    int from, to;
    find_range(path, offset, -1, &from, &to);
    scr_path *rest = scr_path_sub(path, from, -1);
    if (rest) truncate_to(path, from);
    return rest;
}

/* ---- simplifying ---- */

static int is_up(const char *part)
{
    return strcmp(part, "..") == 0;
}

/* Moves the components that a reduced path has to the front and returns their number; the
 * root has one, "". The others come behind them. */
static int sort_out(scr_path *path)
{
    int kept = 0, least = scr_path_is_absolute(path);
    for (int i = 0; i < path->count; i++) {
        char *part = path->parts[i];
        int keep = i == 0 && least; /* what makes it absolute */
        if (!keep && is_up(part)) {
            if (kept > least && !is_up(path->parts[kept - 1]))
                kept--;
            else
                keep = !least;
        } else if (!keep) {
            keep = part[0] && strcmp(part, ".") != 0;
        }
        if (!keep) continue;
        path->parts[i] = path->parts[kept];
        path->parts[kept++] = part;
    }
    return kept;
}

void scr_path_reduce(scr_path *path)
{
    int kept = sort_out(path);
    if (kept == 1 && path->count > 1 && scr_path_is_absolute(path))
        path->parts[kept++][0] = 0; /* the text of the root is "/", not "" */
    truncate_to(path, kept);
}

char *scr_path_strdup_reduce_str(const char *str)
{
    scr_path *path = scr_path_from_str(str);
    if (!path) return NULL;
    scr_path_reduce(path);
    char *reduced = scr_path_strdup(path);
    scr_path_delete(&path);
    return reduced;
}

/* The way from one to the other, both absolute or both relative, in place of to. */
static int find_way(scr_path *from, scr_path *to)
{
    int common = 0, rc = 0;
    truncate_to(from, sort_out(from));
    truncate_to(to, sort_out(to));
    while (common < from->count && common < to->count &&
           strcmp(from->parts[common], to->parts[common]) == 0)
        common++;
    scr_path_slice(to, common, -1);
    for (int i = common; i < from->count && !rc; i++)
        rc = is_up(from->parts[i]) ? -EINVAL : scr_path_prepend_str(to, "..");
    return rc;
}

scr_path *scr_path_relative(const scr_path *src, const scr_path *dst)
{
    if (scr_path_is_absolute(src) != scr_path_is_absolute(dst)) return NULL;
    scr_path *from = scr_path_dup(src), *to = scr_path_dup(dst);
    if (!from || !to || find_way(from, to) != 0) scr_path_delete(&to);
    scr_path_delete(&from);
    return to;
}

/* ---- paths as text ---- */

char *scr_path_absolute(const char *cwd, const char *path)
{
    char *full = NULL;
    if (asprintf(&full, "/%s/%s", path[0] == '/' ? "" : cwd, path) < 0) return NULL;
    char *reduced = scr_path_strdup_reduce_str(full);
    free(full);
    return reduced;
}

char *scr_path_join(const char *dir, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s%s%s", dir, dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/",
                 name) < 0)
        return NULL;
    return path;
}

const char *scr_path_below(const char *dir, const char *path)
{
    size_t n = strlen(dir);
    if (n == 1 && dir[0] == '/') return path[0] == '/' && path[1] ? path + 1 : NULL;
    if (strncmp(dir, path, n) != 0 || path[n] != '/' || !path[n + 1]) return NULL;
    return path + n + 1;
}

const char *scr_path_basename_str(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int scr_path_same_folder(const char *a, const char *b)
{
    size_t n = (size_t)(scr_path_basename_str(a) - a);
    return n == (size_t)(scr_path_basename_str(b) - b) && strncmp(a, b, n) == 0;
}
