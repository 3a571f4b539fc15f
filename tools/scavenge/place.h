/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_PLACE_H
#define SCAVENGE_PLACE_H

/* Files that were saved get the names that a flush would have given them. */

#include "scavenge/settle.h"

/* All files, or the containers of so many bytes (0: none) to their places, which is
 * durable then; the map of them, and the summary, in the dataset's folder. What has its
 * place already stays there. 0 or -errno. */
int scavenge_place(const scavenge_prefix *prefix, const scavenge_saved *saved,
                   uint64_t container, char *err);

#endif
