/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_SCR3_H
#define SCR_SCR3_H

/* Prefix directories that SCR 3 wrote (docs/formats/scr3.md). Its index has version 2. */

#include <kvtree/kvtree_error.h>
#include <stdbool.h>

#define SCR3_ASIDE_SIZE 64

/* What came of a conversion. */
typedef struct scr3_result {
    bool converted;              /* the index was one of SCR 3 */
    char aside[SCR3_ASIDE_SIZE]; /* its name now, below the prefix directory */
    int datasets;                /* that the index has now */
    int refused; /* complete ones of SCR 3 that cannot be used, and were not entered */
    kvtree_error why; /* of the first of these */
} scr3_result;

/* Whether the index in the open prefix directory is one of SCR 3. */
bool scr3_is_there(int prefix);

/* Makes an index of SCR 3 one of this version. Each complete dataset gets a map and a
 * summary beside its files; the records of SCR 3 stay, the index under another name.
 * prefix is the open prefix directory, real its path without links. Where there is no
 * index, or one of another version or of another form, nothing happens.
 *
 * 0, or -errno with a text: then the index is as before. Under the lock of the index. If
 * the process dies on the way, the next call does it again, or the index is rebuilt from
 * the summaries. */
int scr3_convert(int prefix, const char *real, scr3_result *result, kvtree_error *err);

#endif
