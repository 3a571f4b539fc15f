/* SPDX-License-Identifier: BSD-3-Clause */
/* Two keys as key and value, such as RANK / 3. */
#include "src/kvtree_private.h"

#include "common/number.h"

kvtree *kvtree_set_kv(kvtree *tree, const char *key, const char *val)
{
    if (!tree || !key || !val) return NULL;
    unsigned before = tree->count;
    kvtree_elem *outer = kvtree_elem_ensure(tree, key);
    kvtree_elem *inner = outer ? kvtree_elem_ensure(outer->value, val) : NULL;
    if (!inner && tree->count > before) kvtree_unset(tree, key);
    return kvtree_elem_hash(inner);
}

kvtree *kvtree_set_kv_int(kvtree *tree, const char *key, int val)
{
    char text[NUMBER_TEXT_SIZE];
    return kvtree_set_kv(tree, key, number_text_int64(text, val));
}

kvtree *kvtree_get_kv(const kvtree *tree, const char *key, const char *val)
{
    return kvtree_get(kvtree_get(tree, key), val);
}

kvtree *kvtree_get_kv_int(const kvtree *tree, const char *key, int val)
{
    char text[NUMBER_TEXT_SIZE];
    return kvtree_get_kv(tree, key, number_text_int64(text, val));
}

int kvtree_unset_kv(kvtree *tree, const char *key, const char *val)
{
    kvtree *values = kvtree_get(tree, key);
    if (!values || !val) return KVTREE_SUCCESS;
    kvtree_unset(values, val);
    return kvtree_size(values) == 0 ? kvtree_unset(tree, key) : KVTREE_SUCCESS;
}

int kvtree_unset_kv_int(kvtree *tree, const char *key, int val)
{
    char text[NUMBER_TEXT_SIZE];
    return kvtree_unset_kv(tree, key, number_text_int64(text, val));
}

char *kvtree_elem_get_first_val(const kvtree *tree, const char *key)
{
    return kvtree_elem_key(kvtree_elem_first(kvtree_get(tree, key)));
}

char *kvtree_get_val(const kvtree *tree, const char *key)
{
    const kvtree *values = kvtree_get(tree, key);
    return kvtree_size(values) == 1 ? kvtree_elem_key(kvtree_elem_first(values)) : NULL;
}
