/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of elements in a tree. */
#include "src/kvtree_private.h"

#include "common/number.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct item {
    kvtree_elem *elem;
    int64_t number; /* the key as an integer; 0 for a sort by string */
    unsigned place; /* before the sort: equal numbers ("1", "01") keep their order */
};

static int compare(const struct item *a, const struct item *b)
{
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return 0;
}

static int by_place(const struct item *a, const struct item *b)
{
    return a->place < b->place ? -1 : 1;
}

static int by_string(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    return strcmp(a->elem->key, b->elem->key);
}

static int by_string_down(const void *x, const void *y)
{
    return by_string(y, x);
}

static int by_number(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = compare(a, b);
    return order ? order : by_place(a, b);
}

static int by_number_down(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    int order = compare(b, a);
    return order ? order : by_place(a, b);
}

static int collect(const kvtree *tree, int numbers, struct item **items)
{
    unsigned i = 0;
    int rc = 0;
    struct item *list = calloc(tree->count, sizeof *list);
    if (!list) return -ENOMEM;
    for (kvtree_elem *e = tree->first; e && !rc; e = e->next, i++) {
        list[i].elem = e;
        list[i].place = i;
        if (numbers) rc = number_int64(e->key, &list[i].number);
    }
    if (rc) {
        free(list);
        return -EINVAL;
    }
    *items = list;
    return 0;
}

static void relink(kvtree *tree, const struct item *items)
{
    kvtree_elem *last = NULL;
    for (unsigned i = 0; i < tree->count; i++) {
        kvtree_elem *elem = items[i].elem;
        elem->prev = last;
        elem->next = NULL;
        if (last)
            last->next = elem;
        else
            tree->first = elem;
        last = elem;
    }
    tree->first->prev = last;
}

static int sort(kvtree *tree, int numbers, int (*order)(const void *, const void *))
{
    struct item *items;
    if (kvtree_size(tree) == 0) return KVTREE_SUCCESS;
    int rc = collect(tree, numbers, &items);
    if (rc) return rc;
    qsort(items, tree->count, sizeof *items, order);
    relink(tree, items);
    free(items);
    return KVTREE_SUCCESS;
}

static int known(int direction)
{
    return direction == KVTREE_SORT_ASCENDING || direction == KVTREE_SORT_DESCENDING;
}

int kvtree_sort(kvtree *tree, int direction)
{
    if (!known(direction)) return -EINVAL;
    return sort(tree, 0, direction == KVTREE_SORT_ASCENDING ? by_string : by_string_down);
}

int kvtree_sort_int(kvtree *tree, int direction)
{
    if (!known(direction)) return -EINVAL;
    return sort(tree, 1, direction == KVTREE_SORT_ASCENDING ? by_number : by_number_down);
}

int kvtree_list_int(const kvtree *tree, int *count, int **list)
{
    struct item *items;
    if (!count || !list) return -EINVAL;
    unsigned size = (unsigned)kvtree_size(tree);
    if (size == 0) {
        *count = 0;
        *list = NULL;
        return KVTREE_SUCCESS;
    }
    int rc = collect(tree, 1, &items);
    if (rc) return rc;
    qsort(items, size, sizeof *items, by_number);
    int *numbers = malloc(size * sizeof *numbers);
    if (!numbers) rc = -ENOMEM;
    for (unsigned i = 0; i < size && !rc; i++) {
        if (items[i].number < INT_MIN || items[i].number > INT_MAX)
            rc = -EINVAL;
        else
            numbers[i] = (int)items[i].number;
    }
    free(items);
    if (rc) {
        free(numbers);
        return rc;
    }
    *count = (int)size;
    *list = numbers;
    return KVTREE_SUCCESS;
}
