/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VALUES_H
#define VALUES_H

/* Layers of configurations compared by what they say, whatever the places and the order.
 */

#include <kvtree/kvtree.h>

static inline void values_only(kvtree *layer)
{
    kvtree_unset(layer, "SOURCE");
    for (kvtree_elem *e = kvtree_elem_first(layer); e; e = kvtree_elem_next(e))
        values_only(kvtree_elem_hash(e));
    kvtree_sort(layer, KVTREE_SORT_ASCENDING);
}

#endif
