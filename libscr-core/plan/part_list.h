/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PART_LIST_H
#define SCR_PART_LIST_H

/* The parts of a file, sorted by offset. Pure functions. */

#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of bytes of a file that ranks write together. */
typedef struct scr_part {
    uint64_t offset, length; /* the sum is at most INT64_MAX */
} scr_part;

/* Whether part contains all bytes of other. */
bool scr_part_has(const scr_part *part, const scr_part *other);

/* The sorted parts in a tree <offset>/<length>. The caller frees the list; NULL without
 * memory. No two parts have a byte in common. */
scr_part *scr_part_list(const kvtree *parts, size_t *count);

/* The first part that ends after offset; count if there is none. */
size_t scr_part_list_find(const scr_part list[], size_t count, uint64_t offset);

/* Caches the list of the last tree: of several queries about one file only the first one
 * sorts. */
typedef struct scr_part_memo {
    const kvtree *parts; /* NULL: none */
    scr_part *list;
    size_t count;
} scr_part_memo;

/* Like scr_part_list, but the memo owns the list. The tree must not change while the memo
 * is in use. */
const scr_part *scr_part_memo_list(scr_part_memo *memo, const kvtree *parts,
                                   size_t *count);
void scr_part_memo_forget(scr_part_memo *memo);

#endif
