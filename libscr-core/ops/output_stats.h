/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_TOTALS_H
#define SCR_TOTALS_H

/* Totals of the files of all ranks. */

#include "ops/context.h"

typedef struct scr_totals {
    long files;
    unsigned long bytes;
    int distinct; /* 1: no two ranks have a name in common; 0: two may have one */
    long parts;   /* files that are parts of other files (plan/part_name.h) */
} scr_totals;

/* Agrees on rc, and sums up the routed files of all ranks. bytes: the size of this rank's
 * files. 0 or -errno with a text. Takes one MPI operation unless a rank failed. */
int scr_totals_agree(struct scr *scr, int rc, unsigned long bytes, scr_totals *totals,
                     kvtree_error *err);

#endif
