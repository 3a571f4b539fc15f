/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a file, sorted by offset; see plan/part_list.h. */
#include "plan/part_list.h"

#include <stdlib.h>

bool scr_part_has(const scr_part *part, const scr_part *other)
{
    return other->offset >= part->offset && other->length <= part->length &&
           other->offset - part->offset <= part->length - other->length;
}

static int part_list_compare(const void *a, const void *b)
{
    const scr_part *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

scr_part *scr_part_list(const kvtree *parts, size_t *count)
{
    scr_part *list = calloc((size_t)kvtree_size(parts) + 1, sizeof *list);
    const kvtree_elem *e = kvtree_elem_first(parts);
    *count = 0;
    for (; list && e; e = kvtree_elem_next(e)) {
        const kvtree_elem *length = kvtree_elem_first(kvtree_elem_hash(e));
        if (!length) continue;
        list[(*count)++] = (scr_part){strtoull(kvtree_elem_key(e), NULL, 10),
                                      strtoull(kvtree_elem_key(length), NULL, 10)};
    }
    if (list) qsort(list, *count, sizeof *list, part_list_compare);
    return list;
}

size_t scr_part_list_find(const scr_part list[], size_t count, uint64_t offset)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list[middle].offset + list[middle].length > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void scr_part_memo_forget(scr_part_memo *memo)
{
    free(memo->list);
    *memo = (scr_part_memo){.parts = NULL};
}

const scr_part *scr_part_memo_list(scr_part_memo *memo, const kvtree *parts,
                                   size_t *count)
{
    if (!memo->list || memo->parts != parts) {
        free(memo->list);
        memo->parts = parts;
        memo->list = scr_part_list(parts, &memo->count);
    }
    *count = memo->list ? memo->count : 0;
    return memo->list;
}
