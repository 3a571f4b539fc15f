/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys that hold one typed value; see kvtree_util.h. */
#include <kvtree/kvtree_util.h>

#include "common/number.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CRC_MAX 0xffffffffUL

/* Adds the new value before it removes the old ones: without memory the old ones stay. */
int kvtree_util_set_str(kvtree *tree, const char *key, const char *value)
{
    if (!tree || !key || !value) return -EINVAL;
    kvtree *values = kvtree_get(tree, key);
    if (!values) return kvtree_set_kv(tree, key, value) ? 0 : -ENOMEM;
    kvtree_elem *kept = kvtree_elem_ensure(values, value), *next;
    if (!kept) return -ENOMEM;
    for (kvtree_elem *e = values->first; e; e = next) {
        next = e->next;
        if (e != kept) kvtree_unset(values, e->key);
    }
    return kvtree_unset_all(kept->value);
}

int kvtree_util_get_str(const kvtree *tree, const char *key, char **value)
{
    const kvtree *values = kvtree_get(tree, key);
    if (!values) return -ENOENT;
    if (kvtree_size(values) != 1 || !value) return -EINVAL;
    *value = kvtree_elem_key(kvtree_elem_first(values));
    return 0;
}

static int kvtree_util_get_unsigned(const kvtree *tree, const char *key, int hex,
                                    unsigned long max, unsigned long *value)
{
    char *text;
    uint64_t number;
    int rc = kvtree_util_get_str(tree, key, &text);
    if (rc) return rc;
    if (!hex && text[strspn(text, "0123456789")]) return -EINVAL;
    if (!value || number_uint64(text, &number) != 0 || number > max) return -EINVAL;
    *value = (unsigned long)number;
    return 0;
}

int kvtree_util_set_unsigned_long(kvtree *tree, const char *key, unsigned long value)
{
    char text[NUMBER_TEXT_SIZE];
    return kvtree_util_set_str(tree, key, number_text_uint64(text, value));
}

int kvtree_util_get_unsigned_long(const kvtree *tree, const char *key,
                                  unsigned long *value)
{
    return kvtree_util_get_unsigned(tree, key, 0, ULONG_MAX, value);
}

int kvtree_util_set_bytecount(kvtree *tree, const char *key, unsigned long count)
{
    return kvtree_util_set_unsigned_long(tree, key, count);
}

int kvtree_util_get_bytecount(const kvtree *tree, const char *key, unsigned long *count)
{
    return kvtree_util_get_unsigned(tree, key, 0, ULONG_MAX, count);
}

int kvtree_util_set_crc32(kvtree *tree, const char *key, unsigned long crc)
{
    char text[24];
    if (crc > CRC_MAX) return -EINVAL;
    snprintf(text, sizeof text, "0x%08lx", crc);
    return kvtree_util_set_str(tree, key, text);
}

int kvtree_util_get_crc32(const kvtree *tree, const char *key, unsigned long *crc)
{
    return kvtree_util_get_unsigned(tree, key, 1, CRC_MAX, crc);
}

int kvtree_util_set_int64(kvtree *tree, const char *key, int64_t value)
{
    char text[NUMBER_TEXT_SIZE];
    return kvtree_util_set_str(tree, key, number_text_int64(text, value));
}

int kvtree_util_get_int64(const kvtree *tree, const char *key, int64_t *value)
{
    char *text;
    int rc = kvtree_util_get_str(tree, key, &text);
    if (rc) return rc;
    return value && number_int64(text, value) == 0 ? 0 : -EINVAL;
}

int kvtree_util_set_int(kvtree *tree, const char *key, int value)
{
    return kvtree_util_set_int64(tree, key, value);
}

int kvtree_util_get_int(const kvtree *tree, const char *key, int *value)
{
    int64_t number;
    int rc = kvtree_util_get_int64(tree, key, &number);
    if (rc) return rc;
    if (!value || number < INT_MIN || number > INT_MAX) return -EINVAL;
    *value = (int)number;
    return 0;
}

/* Writes six decimal places, as users and other programs expect, unless this loses
 * precision: 17 significant digits lose nothing. */
int kvtree_util_set_double(kvtree *tree, const char *key, double value)
{
    char text[KVTREE_DOUBLE_SIZE];
    double back;
    if (!isfinite(value)) return -EINVAL;
    kvtree_double_text(text, false, value);
    if (number_double(text, &back) != 0 || memcmp(&back, &value, sizeof back) != 0)
        kvtree_double_text(text, true, value);
    return kvtree_util_set_str(tree, key, text);
}

int kvtree_util_get_double(const kvtree *tree, const char *key, double *value)
{
    char *text;
    int rc = kvtree_util_get_str(tree, key, &text);
    if (rc) return rc;
    return value && number_double(text, value) == 0 ? 0 : -EINVAL;
}

int kvtree_util_set_ptr(kvtree *tree, const char *key, void *value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIxPTR, (uintptr_t)value);
    return kvtree_util_set_str(tree, key, text);
}

int kvtree_util_get_ptr(const kvtree *tree, const char *key, void **value)
{
    char *text;
    uint64_t number;
    int rc = kvtree_util_get_str(tree, key, &text);
    if (rc) return rc;
    if (!value || strncmp(text, "0x", 2) != 0 || number_uint64(text, &number) != 0 ||
        number > UINTPTR_MAX)
        return -EINVAL;
    *value = (void *)(uintptr_t)number;
    return 0;
}
