/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_CRC32_H
#define COMMON_CRC32_H

/* The checksum of zlib's crc32_z, by ISA-L where the build found it: ten times as fast.
 */

#include "common/prefix.h"
#include <stddef.h>
#include <stdint.h>

#define crc32_add COMMON(crc32_add)
#define crc32_add_zeros COMMON(crc32_add_zeros)

/* crc, 0 at first, with size more bytes, which are there even if size is 0. */
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size);

/* crc with that many zero bytes more, in about log(count) steps. */
uint32_t crc32_add_zeros(uint32_t crc, uint64_t count);

#endif
