/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_INDEX_ENTRY_H
#define SCAVENGE_INDEX_ENTRY_H

/* The entry of a scavenged dataset in the index of the prefix directory. */

#include "scavenge/staging.h"

/* 1 with its description if the dataset is complete in the index; 0, or -errno with a
 * text. */
int scavenge_is_complete(int prefix, const scavenge_key *key, scr_dataset *dataset,
                         kvtree_error *err);

/* -ESTALE with a text if a newer dataset has the same name, whose files must not be
 * replaced. */
int scavenge_check_index(int prefix, const scr_dataset *d, kvtree_error *err);

/* -ESTALE with a text if a newer dataset with another name has files with the names of
 * saved files; or another -errno with a text. Only needed for a scattered dataset. */
int scavenge_check_names(const scavenge_prefix *prefix, const scavenge_scan *scan,
                         kvtree_error *err);

enum scavenge_step {
    SCAVENGE_BEGIN,      /* before its files are renamed */
    SCAVENGE_END,        /* after its files were renamed */
    SCAVENGE_INCOMPLETE, /* some files are lost; with a reason */
};

/* Updates the index under its lock. SCAVENGE_END also records in the flush file that the
 * dataset is on the prefix directory, and makes a checkpoint CURRENT unless the index has
 * a newer one. *current: whether it is CURRENT. */
int scavenge_update_index(int prefix, const scr_dataset *d, enum scavenge_step step,
                          const char *reason, bool *current, kvtree_error *err);

#endif
