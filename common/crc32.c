/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/crc32.h"

#ifdef HAVE_ISAL
#include <isa-l/crc.h>

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size)
{
    return crc32_gzip_refl(crc, bytes, size);
}
#else
#include <zlib.h>

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(crc, bytes, size);
}
#endif
