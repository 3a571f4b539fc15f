/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file of a dataset a name refers to; see plan/file_match.h. */
#include "plan/file_match.h"

#include "base/path.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATCH_NONE, MATCH_BY_END, MATCH_AS_GIVEN, MATCH_BY_PLACE };

/* Stores the name without leading "..": the part that does not depend on the directory
 * that was current at output. */
static void file_match_set_end(scr_file_match *m)
{
    char *reduced = m->name[0] == '/' ? NULL : scr_path_reduce(m->name);
    const char *end = reduced ? reduced : "";
    while (strncmp(end, "../", 3) == 0)
        end += 3;
    if (strcmp(end, "..") == 0) end = "";
    if (snprintf(m->end, sizeof m->end, "%s", end) >= (int)sizeof m->end) m->end[0] = 0;
    free(reduced);
}

void scr_file_match_begin(scr_file_match *m, const char *name, const char *below,
                          const char *prefix)
{
    *m = (scr_file_match){.name = name, .below = below, .prefix = prefix};
    file_match_set_end(m);
}

/* Whether path ends with the n bytes of end, which are whole components. */
static bool file_match_has_end(const char *path, const char *end, size_t n)
{
    size_t size = strlen(path);
    return n > 0 && n <= size && memcmp(path + size - n, end, n) == 0 &&
           (n == size || path[size - n - 1] == '/');
}

/* Whether <prefix>/<file> ends with the end of the name. */
static bool file_match_is_end(const scr_file_match *m, const char *file)
{
    size_t n = strlen(m->end), size = strlen(file);
    if (n <= size) return file_match_has_end(file, m->end, n);
    return m->end[n - size - 1] == '/' && strcmp(m->end + n - size, file) == 0 &&
           file_match_has_end(m->prefix, m->end, n - size - 1);
}

bool scr_file_match_try(scr_file_match *m, const char *file, const char *orig)
{
    int fit = MATCH_NONE;
    if (m->below && strcmp(m->below, file) == 0)
        fit = MATCH_BY_PLACE;
    else if (orig && strcmp(m->name, orig) == 0)
        fit = MATCH_AS_GIVEN;
    else if (file_match_is_end(m, file))
        fit = MATCH_BY_END;
    if (fit == MATCH_NONE || fit < m->fit) return false;
    bool better = fit > m->fit;
    m->files = better ? 1 : m->files + 1;
    m->fit = fit;
    return better;
}
