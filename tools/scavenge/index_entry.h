/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_INDEX_ENTRY_H
#define SCAVENGE_INDEX_ENTRY_H

/* The entry of a scavenged dataset in the index of the prefix directory. */

#include "scavenge/staging.h"

/* 1 when the dataset is complete there, with its description; 0, or -errno with a text.
 */
int scavenge_is_complete(int prefix, const scavenge_key *key, scr_dataset *dataset,
                         kvtree_error *err);

/* -ESTALE with a text when a newer dataset has the name: its files must not be replaced.
 */
int scavenge_check_index(int prefix, const scr_dataset *d, kvtree_error *err);

/* The same when a newer dataset, of another name, has files with names of those that were
 * saved; or another -errno with a text. Only needed for a scattered dataset. */
int scavenge_check_names(const scavenge_prefix *prefix, const scavenge_scan *scan,
                         kvtree_error *err);

enum scavenge_step {
    SCAVENGE_BEGIN,      /* before its files are renamed */
    SCAVENGE_END,        /* after that */
    SCAVENGE_INCOMPLETE, /* some files are lost, for a reason */
};

/* Updates the index under its lock. SCAVENGE_END also records in the flush file that the
 * dataset is on the prefix directory, and makes a checkpoint CURRENT unless the index has
 * a newer one; *current returns whether it is CURRENT. */
int scavenge_update_index(int prefix, const scr_dataset *d, enum scavenge_step step,
                          const char *reason, bool *current, kvtree_error *err);

#endif
