/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_KVTREE_UTIL_H
#define KVTREE_KVTREE_UTIL_H

/* Keys that hold one value. A setter replaces all existing values by the new value and
 * returns 0 or -errno. A getter returns 0 and the value when key has exactly one value
 * and its text is wholly of that type; otherwise -ENOENT (no such key) or -EINVAL (not
 * one value, not of that type, out of range), with *value unchanged. */

#include <kvtree/kvtree.h>
#include <stdint.h>

/* With the flags of scr-kvtree-compat, includes what KVTree's header includes. */
#if defined(KVTREE_COMPAT) && __has_include(<zlib.h>)
#include <zlib.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Decimal number of bytes. */
int kvtree_util_set_bytecount(kvtree *tree, const char *key, unsigned long count);
int kvtree_util_get_bytecount(const kvtree *tree, const char *key, unsigned long *count);

/* "0x%08lx": a fixed length, so that a tree keeps its packed size when a checksum is
 * filled in. */
int kvtree_util_set_crc32(kvtree *tree, const char *key, unsigned long crc);
int kvtree_util_get_crc32(const kvtree *tree, const char *key, unsigned long *crc);

/* Decimal integer that fits an int. */
int kvtree_util_set_int(kvtree *tree, const char *key, int value);
int kvtree_util_get_int(const kvtree *tree, const char *key, int *value);

/* Decimal integer of 64 bits. */
int kvtree_util_set_int64(kvtree *tree, const char *key, int64_t value);
int kvtree_util_get_int64(const kvtree *tree, const char *key, int64_t *value);

/* Decimal integer without sign. */
int kvtree_util_set_unsigned_long(kvtree *tree, const char *key, unsigned long value);
int kvtree_util_get_unsigned_long(const kvtree *tree, const char *key,
                                  unsigned long *value);

/* A finite number, as "%f" or, if that loses a bit, as "%.17g". The getter accepts any
 * finite decimal number. */
int kvtree_util_set_double(kvtree *tree, const char *key, double value);
int kvtree_util_get_double(const kvtree *tree, const char *key, double *value);

/* The string stays owned by the tree. */
int kvtree_util_set_str(kvtree *tree, const char *key, const char *value);
int kvtree_util_get_str(const kvtree *tree, const char *key, char **value);

/* An address, for use inside one process. */
int kvtree_util_set_ptr(kvtree *tree, const char *key, void *value);
int kvtree_util_get_ptr(const kvtree *tree, const char *key, void **value);

#ifdef __cplusplus
}
#endif
#endif
