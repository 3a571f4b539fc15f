/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/crc32.h"

#include <zlib.h>

uint32_t crc32_add_zeros(uint32_t crc, uint64_t count)
{
    uLong of_power = crc32(0, (const Bytef *)"", 1), sum = crc;
    for (uint64_t power = 1; count; power *= 2, count /= 2) {
        if (count & 1) sum = crc32_combine(sum, of_power, (z_off_t)power);
        of_power = crc32_combine(of_power, of_power, (z_off_t)power);
    }
    return (uint32_t)sum;
}

#ifdef HAVE_ISAL
#include <isa-l/crc.h>

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size)
{
    return crc32_gzip_refl(crc, bytes, size);
}
#else
uint32_t crc32_add(uint32_t crc, const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(crc, bytes, size);
}
#endif
