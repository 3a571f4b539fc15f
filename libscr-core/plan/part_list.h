/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PART_LIST_H
#define SCR_PART_LIST_H

/* The parts of a file in the order of their bytes. Pure functions. */

#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a file that ranks write together. */
typedef struct scr_part {
    uint64_t offset, length; /* together at most INT64_MAX */
} scr_part;

/* Whether one has all bytes of the other. */
bool scr_part_has(const scr_part *part, const scr_part *other);

/* The parts in <offset>/<length>, sorted, to be freed; NULL without memory. No two have
 * the same byte. */
scr_part *scr_part_list(const kvtree *parts, size_t *count);

/* The first part that ends after offset; count if there is none. */
size_t scr_part_list_find(const scr_part list[], size_t count, uint64_t offset);

/* The list of the tree that was asked for last: of questions about one file, the first
 * one sorts. */
typedef struct scr_part_memo {
    const kvtree *parts; /* NULL: none */
    scr_part *list;
    size_t count;
} scr_part_memo;

/* scr_part_list, to be left alone; the tree must not change as long as the memo is in
 * use. */
const scr_part *scr_part_memo_list(scr_part_memo *memo, const kvtree *parts,
                                   size_t *count);
void scr_part_memo_forget(scr_part_memo *memo);

#endif
