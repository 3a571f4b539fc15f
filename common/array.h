/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_ARRAY_H
#define COMMON_ARRAY_H

/* Arrays that grow by one item at a time, without storing their capacity. */

#include <stddef.h>
#include <stdlib.h>

/* Makes room for one more item in an array of count items of size bytes, like realloc.
 * The capacity is 1, 3, 7, ... items, so that n items cost O(n) steps. Returns NULL
 * without memory; the array is then unchanged. */
static inline void *array_grow(void *array, size_t count, size_t size)
{
    return count & (count + 1) ? array : reallocarray(array, 2 * count + 1, size);
}

#endif
