/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ONCE_H
#define SCR_ONCE_H

/* Few lines per node for what ranks meet alone: of the ranks of a node that fail for one
 * reason between two collective calls, the first one prints. Texts that differ in more
 * than digits, so also those about different files, are different reasons. A node prints
 * 16 such lines at most. Each is claimed by an entry in the control directory, which no
 * other rank can make. How many ranks there are, and of which reasons, is reported where
 * they agree on the outcome. */

#include <stdbool.h>

typedef struct scr_once {
    const int *folder;   /* the control directory of the node; NULL, or -1 in it: none */
    unsigned phase;      /* number of collective calls so far */
    unsigned claimed_in; /* the phase of ... */
    unsigned claimed;    /* the lines of this process, a bit for each */
} scr_once;

#define SCR_ONCE_LINES 16

/* How the entries begin: those of a run that was killed are removed by the next one. */
#define SCR_ONCE_PREFIX "reported."

/* Whether this rank is to print text. True, too, if that cannot be found out, and for a
 * rank whose own line has the same reason: it is about another number. */
bool scr_once_take(scr_once *once, const char *text);

/* Removes the entries of this process. */
void scr_once_end(scr_once *once);

#endif
