/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PROBLEMS_H
#define SCR_PROBLEMS_H

/* Mistakes in the configuration. Reading continues after a mistake. Each mistake is added
 * to a list with its place and, for an unknown name, the most similar valid one, so that
 * all are reported together. */

#include <stdbool.h>

/* Maximum number of lines. Further problems are only counted; further warnings are
 * dropped. */
#define SCR_PROBLEMS_SHOWN 100

typedef struct scr_problems {
    int count;
    char *text; /* one line per problem, each ended by a newline; NULL when count is 0 */
    char *warnings; /* the same for text that is ignored or replaced and is no mistake */
} scr_problems;

/* Adds a line. Control characters, which may come from a file, are replaced by '?'. */
void scr_problems_add(scr_problems *problems, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void scr_problems_warn(scr_problems *problems, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void scr_problems_done(scr_problems *problems);

/* Whether further lines are no longer shown, so that the caller need not make their
 * text. */
bool scr_problems_full(const scr_problems *problems);

/* Searches for the valid name most similar to a wrong one:
 *
 *     scr_nearest nearest = {.name = wrong};
 *     for each valid name: scr_nearest_try(&nearest, it);
 *
 * nearest.best is the first of the names with the least distance; NULL without names. */
typedef struct scr_nearest {
    const char *name, *best;
    int least;
} scr_nearest;
void scr_nearest_try(scr_nearest *nearest, const char *candidate);

#endif
