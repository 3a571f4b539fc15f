/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ONCE_H
#define SCR_ONCE_H

/* Limits the lines per node about failures that ranks see alone. If several ranks of a
 * node fail for the same reason between two collective calls, only the first one prints.
 * Texts that differ in more than digits are different reasons, so texts about different
 * files are, too. A node prints at most 16 such lines. A rank claims a line by an entry
 * in the control directory, which no other rank can then make. The numbers of failed
 * ranks and reasons are reported when the ranks agree on the outcome. */

#include <stdbool.h>

typedef struct scr_once {
    const int *folder;   /* the control directory of the node; NULL, or -1 in it: none */
    unsigned phase;      /* number of collective calls so far */
    unsigned claimed_in; /* the phase in which ... */
    unsigned claimed;    /* ... this process claimed these lines, one bit each */
} scr_once;

#define SCR_ONCE_LINES 16

/* Prefix of the entries. The next run removes entries of a killed run. */
#define SCR_ONCE_PREFIX "reported."

/* Whether this rank must print text. Also true if that cannot be determined, and for a
 * rank that printed a line for the same reason: the new text has another number. */
bool scr_once_take(scr_once *once, const char *text);

/* Removes the entries of this process. */
void scr_once_end(scr_once *once);

#endif
