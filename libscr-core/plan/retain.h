/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PLAN_RETAIN_H
#define SCR_PLAN_RETAIN_H

/* Which datasets retention deletes from the prefix directory (SCR_PREFIX_SIZE). A pure
 * function of the entries of the index.
 *
 * The rule: a checkpoint leaves if at least `keep` newer ones are usable, unless it is
 * also an output, incomplete, or pinned. An interrupted deletion is always finished. */

#include <stdbool.h>

typedef struct scr_retain_row {
    bool checkpoint; /* a checkpoint that is not also an output */
    bool complete;   /* all of it is on the prefix directory */
    bool usable;     /* a restart may begin from it */
    bool deleting;   /* an earlier deletion of it was interrupted */
    bool pinned;     /* the current one, the one that was just flushed, or one in use */
    bool leaves;     /* the result */
} scr_retain_row;

/* Sets leaves of each row. rows: all datasets, the oldest first; keep: number of usable
 * checkpoints that stay, 0: all. */
void scr_plan_retain(scr_retain_row *rows, int count, int keep);

#endif
