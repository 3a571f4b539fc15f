/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_TRACE_H
#define SCR_TRACE_H

/* What a flush leaves when it dies: temporary files with its id in their names, in one
 * folder or below it. Two files tell of each flush under way, the flush file and the
 * index, so that either may be lost (docs/formats/scr.md). */

#include "plan/dataset.h"
#include <kvtree/kvtree.h>
#include <stddef.h>
#include <stdint.h>

typedef struct scr_trace {
    uint64_t id;               /* not 0 */
    char below[SCR_NAME_SIZE]; /* the folder, in the prefix folder; "": that itself */
} scr_trace;

/* Bytes of the longest path of a folder, without the '/' behind it, that the file or
 * folder name lies in, and a dataset's name is or lies in: 0 for the prefix folder. */
size_t scr_trace_below(const char *dataset, const char *name);

/* Numbers as 16 hexadecimal digits; back: -EBADMSG for any other text, or NULL. */
enum { SCR_TRACE_DIGITS = 16 };
void scr_trace_print(uint64_t number, char text[SCR_TRACE_DIGITS + 1]);
int scr_trace_parse(const char *text, uint64_t *number);

/* Enters it into the tree, as FLUSH/<id>/BELOW/<folder>, in place of one of the same id.
 * Returns what is below the id, to which more can be added; NULL without memory. */
kvtree *scr_trace_enter(kvtree *tree, const scr_trace *trace);
void scr_trace_remove(kvtree *tree, uint64_t id);
void scr_trace_clear(kvtree *tree); /* of all ids */

/* The first of those in the tree, each an element; and what one of them says of a flush
 * of that dataset. -EBADMSG for an id that is none, or a folder that is not that of the
 * dataset, nor one that this lies in; without any it is the dataset's. */
const kvtree_elem *scr_trace_first(const kvtree *tree);
int scr_trace_read(const kvtree_elem *e, const char *dataset, scr_trace *trace);

#endif
