/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_BRING_PARTS_H
#define SCR_OPS_BRING_PARTS_H

/* SCR_Fetch_file_parts: brings bytes of files that several ranks wrote in parts, from a
 * checkpoint in the cache, to the ranks that want them. On the prefix directory such a
 * file is one file, and every rank reads it there.
 *
 *  1. Once per restart each rank reports its parts to the homes of their files; the home
 *     of a file is the rank that a hash of its name selects.
 *  2. In each call a rank asks the home of a file which parts contain the bytes that it
 *     wants.
 *  3. These parts are brought like files (ops/bring.h).
 *  4. If the bytes are in several parts, they are joined in a new file beside the brought
 *     files. */

#include "ops/route.h"

/* Executes SCR_Fetch_file_parts. Collective; an SCR code. */
int scr_bring_parts(struct scr *scr, int count, const char *const names[],
                    const uint64_t offsets[], const uint64_t lengths[]);

/* Finds brought bytes of the file name (relative to the prefix directory): 0, with path
 * and the offset *at in that file, or -ENOENT or another -errno. Local. */
int scr_bring_find_part(struct scr *scr, const char *name, const scr_part *part,
                        char path[SCR_MAX_FILENAME], uint64_t *at);

#endif
