/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_CRC32_H
#define COMMON_CRC32_H

/* The checksum of zlib's crc32_z; computed by ISA-L, ten times as fast, if the build
 * found it. */

#include "common/prefix.h"
#include <stddef.h>
#include <stdint.h>

#define crc32_add COMMON(crc32_add)
#define crc32_add_zeros COMMON(crc32_add_zeros)

/* Returns crc (0 at first) extended by size bytes. bytes must be valid even if size is 0.
 */
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size);

/* Returns crc extended by count zero bytes, in about log(count) steps. */
uint32_t crc32_add_zeros(uint32_t crc, uint64_t count);

#endif
