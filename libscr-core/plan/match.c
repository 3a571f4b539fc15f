/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file of a dataset a name means; see plan/match.h. */
#include "plan/match.h"

#include "base/path.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT, BY_END, AS_GIVEN, BY_PLACE };

/* The name without what led to it from the folder that was current at output. */
static void set_end(scr_match *m)
{
    char *reduced = m->name[0] == '/' ? NULL : scr_path_reduce(m->name);
    const char *end = reduced ? reduced : "";
    while (strncmp(end, "../", 3) == 0)
        end += 3;
    if (strcmp(end, "..") == 0) end = "";
    if (snprintf(m->end, sizeof m->end, "%s", end) >= (int)sizeof m->end) m->end[0] = 0;
    free(reduced);
}

void scr_match_begin(scr_match *m, const char *name, const char *below,
                     const char *prefix)
{
    *m = (scr_match){.name = name, .below = below, .prefix = prefix};
    set_end(m);
}

/* 1 when path ends with the n bytes of end, which are whole components. */
static int ends_with(const char *path, const char *end, size_t n)
{
    size_t size = strlen(path);
    return n > 0 && n <= size && memcmp(path + size - n, end, n) == 0 &&
           (n == size || path[size - n - 1] == '/');
}

/* The same for <prefix>/<file>. */
static int is_end(const scr_match *m, const char *file)
{
    size_t n = strlen(m->end), size = strlen(file);
    if (n <= size) return ends_with(file, m->end, n);
    return m->end[n - size - 1] == '/' && strcmp(m->end + n - size, file) == 0 &&
           ends_with(m->prefix, m->end, n - size - 1);
}

int scr_match_try(scr_match *m, const char *file, const char *orig)
{
    int fit = NOT;
    if (m->below && strcmp(m->below, file) == 0)
        fit = BY_PLACE;
    else if (orig && strcmp(m->name, orig) == 0)
        fit = AS_GIVEN;
    else if (is_end(m, file))
        fit = BY_END;
    if (fit == NOT || fit < m->fit) return 0;
    m->files = fit == m->fit ? m->files + 1 : 1;
    int better = fit > m->fit;
    m->fit = fit;
    return better;
}
