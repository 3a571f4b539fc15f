/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees and their elements: creating, finding, adding, extracting, freeing, walking,
 * merging. No function recurses: each value points to its owner, and every walk climbs
 * back through these pointers. */
#include "src/kvtree_private.h"

#include "common/number.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

kvtree *kvtree_new(void)
{
    return calloc(1, sizeof(kvtree));
}

static kvtree_elem *kvtree_elem_of_own(kvtree *own)
{
    return (void *)((char *)own - offsetof(kvtree_elem, own));
}

/* Frees a tree that has no elements left. */
static void kvtree_free(kvtree *tree)
{
    free(tree->index);
    if (tree->inside)
        kvtree_elem_free(kvtree_elem_of_own(tree));
    else
        free(tree);
}

/* Frees an element that is in no tree and has an empty value. */
static void kvtree_elem_drop(kvtree_elem *elem)
{
    if (elem->value != &elem->own)
        kvtree_free(elem->value);
    else
        free(elem->own.index);
    kvtree_elem_free(elem);
}

/* Empties root from the leaves upwards. The index of a tree is freed as a whole, so
 * elements need not be removed from it one by one. */
static void kvtree_clear(kvtree *root)
{
    for (kvtree *tree = root;;) {
        kvtree_elem *elem = tree->first;
        if (elem && elem->value->first) {
            tree = elem->value;
        } else if (elem) {
            tree->first = elem->next;
            kvtree_elem_drop(elem);
        } else if (tree != root) {
            tree = tree->owner->tree;
        } else {
            break;
        }
    }
    free(root->index);
    root->index = NULL;
    root->count = 0;
}

int kvtree_delete(kvtree **tree)
{
    if (!tree || !*tree) return KVTREE_SUCCESS;
    if ((*tree)->owner) return -EINVAL;
    kvtree_clear(*tree);
    kvtree_free(*tree);
    *tree = NULL;
    return KVTREE_SUCCESS;
}

int kvtree_size(const kvtree *tree)
{
    return tree ? (int)tree->count : 0;
}

/* ---- elements of one tree ---- */

/* Whether tree has an index, which is created on the first search of a wide tree. Callers
 * see no change, so the tree may be const. */
static bool kvtree_has_index(const kvtree *tree)
{
    if (tree->index || tree->count <= KVTREE_NARROW) return tree->index != NULL;
    return kvtree_index_reserve((kvtree *)tree, tree->count) == 0;
}

kvtree_elem *kvtree_elem_find(const kvtree *tree, const char *key, uint64_t *hash)
{
    if (kvtree_has_index(tree)) {
        *hash = kvtree_index_hash(tree->index, key);
        return kvtree_index_find(tree->index, key, *hash);
    }
    kvtree_elem *elem = tree->first;
    while (elem && strcmp(elem->key, key) != 0)
        elem = elem->next;
    return elem;
}

kvtree_elem *kvtree_elem_get(const kvtree *tree, const char *key)
{
    uint64_t hash;
    return tree && key ? kvtree_elem_find(tree, key, &hash) : NULL;
}

kvtree_elem *kvtree_elem_ensure(kvtree *tree, const char *key)
{
    uint64_t hash = 0;
    kvtree_elem *known = kvtree_elem_find(tree, key, &hash);
    if (known) return known;
    size_t size = strlen(key) + 1;
    kvtree_elem *elem = kvtree_elem_new(size);
    if (!elem || kvtree_elem_append(tree, elem, key, size, hash) == 0) return elem;
    kvtree_elem_free(elem);
    return NULL;
}

kvtree_elem *kvtree_elem_extract_by_addr(kvtree *tree, kvtree_elem *elem)
{
    if (!tree || !elem || elem->tree != tree) return NULL;
    if (tree->index) kvtree_index_remove(tree->index, elem);
    if (elem->next)
        elem->next->prev = elem->prev;
    else
        tree->first->prev = elem->prev;
    if (elem == tree->first)
        tree->first = elem->next;
    else
        elem->prev->next = elem->next;
    elem->next = elem->prev = NULL;
    elem->tree = NULL;
    if (--tree->count == 0) {
        free(tree->index);
        tree->index = NULL;
    }
    return elem;
}

kvtree_elem *kvtree_elem_extract(kvtree *tree, const char *key)
{
    return kvtree_elem_extract_by_addr(tree, kvtree_elem_get(tree, key));
}

kvtree_elem *kvtree_elem_extract_int(kvtree *tree, int key)
{
    char text[NUMBER_TEXT_SIZE];
    return kvtree_elem_extract(tree, number_text_int64(text, key));
}

int kvtree_elem_delete(kvtree_elem **elem)
{
    if (!elem || !*elem) return KVTREE_SUCCESS;
    if ((*elem)->tree) return -EINVAL;
    kvtree_clear((*elem)->value);
    kvtree_elem_drop(*elem);
    *elem = NULL;
    return KVTREE_SUCCESS;
}

kvtree_elem *kvtree_elem_first(const kvtree *tree)
{
    return tree ? tree->first : NULL;
}

kvtree_elem *kvtree_elem_next(const kvtree_elem *elem)
{
    return elem ? elem->next : NULL;
}

char *kvtree_elem_key(const kvtree_elem *elem)
{
    return elem ? (char *)elem->key : NULL;
}

int kvtree_elem_key_int(const kvtree_elem *elem)
{
    int64_t value;
    if (!elem || number_int64(elem->key, &value) != 0) return 0;
    return value < INT_MIN || value > INT_MAX ? 0 : (int)value;
}

kvtree *kvtree_elem_hash(const kvtree_elem *elem)
{
    return elem ? elem->value : NULL;
}

/* ---- keys and their values ---- */

kvtree *kvtree_get(const kvtree *tree, const char *key)
{
    return kvtree_elem_hash(kvtree_elem_get(tree, key));
}

static const kvtree *kvtree_root_of(const kvtree *tree)
{
    while (tree->owner && tree->owner->tree)
        tree = tree->owner->tree;
    return tree;
}

/* A value must have no owner, and must not contain the tree that it becomes a part of. An
 * empty value contains nothing, so deep trees need no climb. */
static bool kvtree_can_hold(const kvtree *tree, const kvtree *value)
{
    if (value->owner || value == tree) return false;
    return value->count == 0 || kvtree_root_of(tree) != value;
}

/* Makes value the value of elem, whose earlier value was emptied. */
static void kvtree_elem_adopt(kvtree_elem *elem, kvtree *value)
{
    if (elem->value != &elem->own) kvtree_free(elem->value);
    elem->value = value;
    value->owner = elem;
}

kvtree *kvtree_set(kvtree *tree, const char *key, kvtree *value)
{
    if (!tree || !key) return NULL;
    if (value && value->owner && value->owner == kvtree_elem_get(tree, key)) return value;
    if (value && !kvtree_can_hold(tree, value)) return NULL;
    kvtree_elem *elem = kvtree_elem_ensure(tree, key);
    if (!elem) return NULL;
    kvtree_clear(elem->value);
    if (value) kvtree_elem_adopt(elem, value);
    return elem->value;
}

int kvtree_unset(kvtree *tree, const char *key)
{
    kvtree_elem *elem = kvtree_elem_extract(tree, key);
    return kvtree_elem_delete(&elem);
}

int kvtree_unset_all(kvtree *tree)
{
    if (tree) kvtree_clear(tree);
    return KVTREE_SUCCESS;
}

kvtree *kvtree_extract(kvtree *tree, const char *key)
{
    kvtree_elem *elem = kvtree_elem_extract(tree, key);
    if (!elem) return NULL;
    kvtree *value = elem->value;
    value->owner = NULL;
    /* A value inside its element keeps the memory of the element; both are freed with the
     * value. */
    if (value != &elem->own) kvtree_elem_free(elem);
    return value;
}

/* ---- whole trees ---- */

void kvtree_replace(kvtree *tree, kvtree *from)
{
    kvtree_clear(tree);
    for (kvtree_elem *e = from->first; e; e = e->next)
        e->tree = tree;
    tree->first = from->first;
    tree->index = from->index;
    tree->count = from->count;
    from->first = NULL;
    from->index = NULL;
    from->count = 0;
}

static bool kvtree_is_below(const kvtree *tree, const kvtree *above)
{
    while (tree && tree != above)
        tree = tree->owner ? tree->owner->tree : NULL;
    return tree == above;
}

/* The state of a merge. At levels from `copied` on, `into` has only elements from source,
 * key for key, so no search is needed. */
struct merge {
    kvtree *into; /* target of the next elements, and its level */
    size_t level, copied;
    struct kvtree_blocks blocks; /* memory for copies into an empty tree */
    size_t rest;                 /* packed bytes still to copy; 0: the tree was not empty
                                  */
};

static kvtree_elem *merge_copy(struct merge *m, const char *key)
{
    size_t size = strlen(key) + 1;
    kvtree_elem *elem;
    if (m->rest)
        elem = kvtree_blocks_elem(&m->blocks, size, m->rest -= size + KVTREE_COUNT_SIZE);
    else
        elem = kvtree_elem_new(size);
    if (!elem || kvtree_elem_append(m->into, elem, key, size, 0) == 0) return elem;
    kvtree_elem_free(elem);
    return NULL;
}

static kvtree_elem *merge_key(struct merge *m, const char *key)
{
    if (m->level >= m->copied) return merge_copy(m, key);
    unsigned before = m->into->count;
    kvtree_elem *elem = kvtree_elem_ensure(m->into, key);
    m->copied = m->into->count > before ? m->level + 1 : SIZE_MAX;
    return elem;
}

static int merge_all(struct merge *m, const kvtree *source)
{
    size_t level = 0;
    kvtree_elem *last = NULL;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(source, e, &level));) {
        if (level > m->level) {
            m->into = last->value;
            m->level++;
        }
        for (; m->level > level; m->level--)
            m->into = m->into->owner->tree;
        last = merge_key(m, e->key);
        if (!last) return -ENOMEM;
    }
    return KVTREE_SUCCESS;
}

int kvtree_merge(kvtree *tree, const kvtree *source)
{
    if (!source || source->count == 0 || tree == source) return KVTREE_SUCCESS;
    if (!tree || kvtree_is_below(tree, source) || kvtree_is_below(source, tree))
        return -EINVAL;
    struct merge m = {.into = tree, .copied = SIZE_MAX};
    if (tree->count == 0) {
        m.copied = 0;
        m.rest = kvtree_pack_size(source);
    }
    int rc = merge_all(&m, source);
    kvtree_blocks_close(&m.blocks);
    return rc;
}
