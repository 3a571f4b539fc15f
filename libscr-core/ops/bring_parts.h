/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_OPS_BRING_PARTS_H
#define SCR_OPS_BRING_PARTS_H

/* SCR_Fetch_file_parts: brings bytes of files that ranks wrote in parts to the ranks that
 * want them, of a checkpoint in the cache. On the prefix directory such a file is one,
 * and every rank reads it there.
 *
 *  1. Once per restart each rank tells the homes of these files which parts it has; the
 *     home of a file is the rank that the hash of its name selects.
 *  2. In each call a rank asks the home of a file which parts have the bytes that it
 *     wants.
 *  3. These parts are brought as files are (ops/bring.h).
 *  4. Bytes of several parts are joined in a file of their own, beside what was brought.
 */

#include "ops/route.h"

/* Collective; an SCR code. */
int scr_bring_parts(struct scr *scr, int count, const char *const names[],
                    const uint64_t offsets[], const uint64_t lengths[]);

/* Where bytes of the file name (below the prefix directory) are that were brought: 0 and
 * *at, or -ENOENT. Local. */
int scr_bring_find_part(struct scr *scr, const char *name, const scr_part *part,
                        char path[SCR_MAX_FILENAME], uint64_t *at);

#endif
