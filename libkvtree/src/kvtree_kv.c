/* SPDX-License-Identifier: BSD-3-Clause */
/* Two keys as key and value, such as RANK / 3. */
#include "src/kvtree_private.h"

#include <stdio.h>

const char *kvtree_int_text(char text[KVTREE_INT_SIZE], int value)
{
    snprintf(text, KVTREE_INT_SIZE, "%d", value);
    return text;
}

kvtree *kvtree_set_kv(kvtree *tree, const char *key, const char *val)
{
    if (!tree || !key || !val) return NULL;
    kvtree_elem *known = kvtree_elem_get(tree, key);
    kvtree_elem *outer = known ? known : kvtree_elem_append(tree, key);
    kvtree_elem *inner = outer ? kvtree_elem_ensure(outer->value, val) : NULL;
    if (!inner && outer && !known) kvtree_unset(tree, key);
    return kvtree_elem_hash(inner);
}

kvtree *kvtree_set_kv_int(kvtree *tree, const char *key, int val)
{
    char text[KVTREE_INT_SIZE];
    return kvtree_set_kv(tree, key, kvtree_int_text(text, val));
}

kvtree *kvtree_get_kv(const kvtree *tree, const char *key, const char *val)
{
    return kvtree_get(kvtree_get(tree, key), val);
}

kvtree *kvtree_get_kv_int(const kvtree *tree, const char *key, int val)
{
    char text[KVTREE_INT_SIZE];
    return kvtree_get_kv(tree, key, kvtree_int_text(text, val));
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
    char text[KVTREE_INT_SIZE];
    return kvtree_unset_kv(tree, key, kvtree_int_text(text, val));
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
