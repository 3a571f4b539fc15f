/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths as text; see scr_path.h. */
#include "records/scr_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Drops the last component of the length bytes at out; "/" is the empty path. */
static size_t parent_length(const char *out, size_t length)
{
    while (length > 0 && out[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

char *scr_path_absolute(const char *cwd, const char *path)
{
    char *full = NULL;
    if (asprintf(&full, "/%s/%s", path[0] == '/' ? "" : cwd, path) < 0) return NULL;
    size_t length = 0;
    /* each component has a slash before it, so the reduced path is never longer than what
     * was read of it, and is built in place */
    for (const char *part = full; *part;) {
        part += strspn(part, "/");
        size_t n = strcspn(part, "/");
        if (n == 2 && part[0] == '.' && part[1] == '.') {
            length = parent_length(full, length);
        } else if (n > 0 && !(n == 1 && part[0] == '.')) {
            full[length] = '/';
            memmove(full + length + 1, part, n);
            length += n + 1;
        }
        part += n;
    }
    if (length == 0) full[length++] = '/';
    full[length] = 0;
    return full;
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
