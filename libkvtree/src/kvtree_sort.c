/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting the elements of a tree. */
#include "src/kvtree_private.h"

#include "common/number.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct sort_item {
    kvtree_elem *elem;
    int64_t number; /* the key as an integer; 0 for a sort by string */
    unsigned place; /* position before the sort: equal numbers ("1", "01") keep their
                     * order */
};

struct sort_order {
    bool numbers;
    int direction;
};

static int sort_compare(const void *x, const void *y, void *arg)
{
    const struct sort_item *a = x, *b = y;
    const struct sort_order *by = arg;
    int order = by->numbers ? (a->number > b->number) - (a->number < b->number)
                            : strcmp(a->elem->key, b->elem->key);
    if (order == 0) return a->place < b->place ? -1 : 1;
    return by->direction == KVTREE_SORT_ASCENDING ? order : -order;
}

static int sort_elements(kvtree *tree, struct sort_order by)
{
    unsigned count = 0;
    if (by.direction != KVTREE_SORT_ASCENDING && by.direction != KVTREE_SORT_DESCENDING)
        return -EINVAL;
    if (kvtree_size(tree) == 0) return KVTREE_SUCCESS;
    struct sort_item *items = calloc(tree->count, sizeof *items);
    if (!items) return -ENOMEM;
    for (kvtree_elem *e = tree->first; e; e = e->next, count++) {
        items[count] = (struct sort_item){.elem = e, .place = count};
        if (by.numbers && number_int64(e->key, &items[count].number) != 0) {
            free(items);
            return -EINVAL;
        }
    }
    qsort_r(items, count, sizeof *items, sort_compare, &by);
    for (unsigned i = 0; i < count; i++) {
        items[i].elem->prev = items[i ? i - 1 : count - 1].elem;
        items[i].elem->next = i + 1 < count ? items[i + 1].elem : NULL;
    }
    tree->first = items[0].elem;
    free(items);
    return KVTREE_SUCCESS;
}

int kvtree_sort(kvtree *tree, int direction)
{
    return sort_elements(tree, (struct sort_order){false, direction});
}

int kvtree_sort_int(kvtree *tree, int direction)
{
    return sort_elements(tree, (struct sort_order){true, direction});
}

static int sort_compare_ints(const void *x, const void *y)
{
    int a = *(const int *)x, b = *(const int *)y;
    return (a > b) - (a < b);
}

int kvtree_list_int(const kvtree *tree, int *count, int **list)
{
    if (!count || !list) return -EINVAL;
    size_t size = (size_t)kvtree_size(tree), i = 0;
    int *numbers = size ? malloc(size * sizeof *numbers) : NULL;
    if (size && !numbers) return -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = e->next) {
        int64_t number;
        if (number_int64(e->key, &number) != 0 || number < INT_MIN || number > INT_MAX) {
            free(numbers);
            return -EINVAL;
        }
        numbers[i++] = (int)number;
    }
    if (size) qsort(numbers, size, sizeof *numbers, sort_compare_ints);
    *count = (int)size;
    *list = numbers;
    return KVTREE_SUCCESS;
}
