/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_RENAME_INTO_PREFIX_H
#define SCAVENGE_RENAME_INTO_PREFIX_H

/* Renames the files of a staging directory to the names that a flush would have given
 * them. */

#include "scavenge/staging.h"

/* Durably renames all files, or the containers of `container` bytes (0: none), and writes
 * the map and the summary into the dataset's directory. Skips files that were renamed
 * before. 0 or -errno. */
int scavenge_rename_into_prefix(const scavenge_prefix *prefix,
                                const scavenge_saved *saved, uint64_t container,
                                kvtree_error *err);

#endif
