/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths as text, without access to the file system; see base/path.h. */
#include "base/path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a component, n bytes at part, to out. Every component in out is preceded by
 * '/'. *length: length of out, updated. *fixed: length of the leading ".." components of
 * a relative path, which a further ".." does not remove. */
static void path_append(char *out, size_t *length, size_t *fixed, const char *part,
                        size_t n, bool absolute)
{
    bool is_up = n == 2 && memcmp(part, "..", 2) == 0;
    if (n == 0 || (n == 1 && part[0] == '.')) return;
    if (is_up && *length > *fixed) {
        while (out[--*length] != '/') {
        }
        return;
    }
    if (is_up && absolute) return;
    out[(*length)++] = '/';
    memcpy(out + *length, part, n);
    *length += n;
    if (is_up) *fixed = *length;
}

char *scr_path_reduce(const char *path)
{
    bool absolute = path[0] == '/';
    size_t length = 0, fixed = 0;
    char *out = malloc(strlen(path) + 2);
    if (!out) return NULL;
    while (*path) {
        size_t n = strcspn(path, "/");
        path_append(out, &length, &fixed, path, n, absolute);
        path += n + (path[n] == '/');
    }
    if (absolute && length == 0) out[length++] = '/';
    if (!absolute && length > 0) memmove(out, out + 1, --length);
    out[length] = 0;
    return out;
}

char *scr_path_absolute(const char *cwd, const char *path)
{
    char *full = NULL;
    if (asprintf(&full, "/%s/%s", path[0] == '/' ? "" : cwd, path) < 0) return NULL;
    char *reduced = scr_path_reduce(full);
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

const char *scr_path_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
