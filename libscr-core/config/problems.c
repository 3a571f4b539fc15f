/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of mistakes, and search for similar names; see config/problems.h. */
#include "config/problems.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Whether text contains the given line. */
static bool problems_contain(const char *text, const char *line)
{
    size_t n = strlen(line);
    while (text && *text) {
        const char *end = strchr(text, '\n');
        if (!end) return false;
        if ((size_t)(end - text) == n && memcmp(text, line, n) == 0) return true;
        text = end + 1;
    }
    return false;
}

/* Appends line and frees it. Returns false if the line was there already. */
static bool problems_append(char **lines, char *line)
{
    char *longer = NULL;
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    bool is_new = !problems_contain(*lines, line);
    if (is_new && asprintf(&longer, "%s%s\n", *lines ? *lines : "", line) >= 0) {
        free(*lines);
        *lines = longer;
    }
    free(line);
    return is_new;
}

static int problems_count_lines(const char *text)
{
    int lines = 0;
    for (; text && *text; text++)
        lines += *text == '\n';
    return lines;
}

void scr_problems_warn(scr_problems *problems, const char *format, ...)
{
    char *line = NULL;
    va_list args;
    if (problems_count_lines(problems->warnings) >= SCR_PROBLEMS_SHOWN) return;
    va_start(args, format);
    int n = vasprintf(&line, format, args);
    va_end(args);
    if (n >= 0) problems_append(&problems->warnings, line);
}

void scr_problems_add(scr_problems *problems, const char *format, ...)
{
    char *line = NULL;
    int n, room = problems->count++ - SCR_PROBLEMS_SHOWN;
    if (room > 0) return;
    va_list args;
    va_start(args, format);
    n = room < 0 ? vasprintf(&line, format, args)
                 : asprintf(&line, "further problems are not shown");
    va_end(args);
    if (n >= 0 && !problems_append(&problems->text, line)) problems->count--;
}

void scr_problems_done(scr_problems *problems)
{
    free(problems->text);
    free(problems->warnings);
    *problems = (scr_problems){.count = 0};
}

bool scr_problems_full(const scr_problems *problems)
{
    return problems->count > SCR_PROBLEMS_SHOWN;
}

/* Returns the Levenshtein distance of the first 64 bytes, ignoring case. */
static int problems_distance(const char *a, const char *b)
{
    int row[65], n = (int)strnlen(b, 64), m = (int)strnlen(a, 64);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; i <= m; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int change = diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);
            diagonal = row[j];
            int step = (row[j - 1] < row[j] ? row[j - 1] : row[j]) + 1;
            row[j] = change < step ? change : step;
        }
    }
    return row[n];
}

void scr_nearest_try(scr_nearest *nearest, const char *candidate)
{
    int d = problems_distance(nearest->name, candidate);
    if (nearest->best && d >= nearest->least) return;
    nearest->least = d;
    nearest->best = candidate;
}
