/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_ENTER_H
#define SCAVENGE_ENTER_H

/* What the index of the prefix folder says of a dataset that is saved. */

#include "scavenge/settle.h"

/* 1 when that dataset is complete there, with its description; 0, or -errno with a text.
 */
int scavenge_is_complete(int prefix, const scavenge_key *key, scr_dataset *dataset,
                         char *err);

/* -ESTALE with a text when a newer dataset has that name, or may have files of the same
 * names: they stay. */
int scavenge_check_index(int prefix, const scr_dataset *d, char *err);

enum scavenge_step {
    SCAVENGE_BEGIN,      /* its files are about to get their names */
    SCAVENGE_END,        /* they have them */
    SCAVENGE_INCOMPLETE, /* some are lost, for that reason */
};

/* Changes the index under its lock; at the end also where the flush file says that the
 * dataset is, and makes a checkpoint CURRENT unless the index has a newer one (*current
 * tells). */
int scavenge_enter(int prefix, const scr_dataset *d, enum scavenge_step step,
                   const char *reason, int *current, char *err);

#endif
