/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ONCE_H
#define SCR_ONCE_H

/* One line per node for what ranks meet alone: of the ranks of a node that fail for one
 * reason between two collective calls, the first one prints. It claims the reason by a
 * file in the control directory, which no other can make. How many ranks there are, and
 * of which reasons, is reported where they agree on the outcome. */

#include <stdbool.h>

typedef struct scr_once {
    const int *folder; /* the control directory of the node; NULL, or -1 in it: none */
    unsigned phase;    /* number of collective calls so far */
    char claimed[40];  /* the file of this process; "": none */
} scr_once;

/* How such files begin: those of a run that was killed are removed by the next one. */
#define SCR_ONCE_PREFIX "reported."

/* Whether this rank is to print text. True, too, if that cannot be found out, and for a
 * rank whose texts differ from the claimed one in names and numbers alone. */
bool scr_once_take(scr_once *once, const char *text);

/* Removes the file. */
void scr_once_end(scr_once *once);

#endif
