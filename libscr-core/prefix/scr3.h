/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_SCR3_H
#define SCR_SCR3_H

/* Conversion of prefix directories that SCR 3 wrote (docs/formats/scr3.md). The index of
 * SCR 3 has version 2. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>

#define SCR3_ASIDE_SIZE 64

/* The result of a conversion. */
typedef struct scr3_result {
    bool converted;              /* the index was one of SCR 3 */
    char aside[SCR3_ASIDE_SIZE]; /* new name of the old index, below the prefix directory
                                  */
    int datasets;                /* number of datasets in the new index */
    int refused; /* number of complete datasets of SCR 3 that are unusable and not in the
                    index */
    kvtree_error why; /* text about the first of these */
} scr3_result;

/* Whether the index in the open prefix directory is an index of SCR 3. */
bool scr3_is_there(int prefix);

/* Converts an index of SCR 3 to this version. Each complete dataset gets a map and a
 * summary beside its files. The records of SCR 3 stay, the index under another name.
 * prefix is the open prefix directory, real its path without links. Nothing happens if
 * there is no index, or one of another version or form.
 *
 * Returns 0, or -errno with a text; after an error the index is unchanged. Works under
 * the lock of the index. If the process dies during the conversion, the next call repeats
 * it, or the index is rebuilt from the summaries. */
int scr3_convert(int prefix, const char *real, scr3_result *result, kvtree_error *err);

#endif
