/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic in GF(2^8), on single elements and on long buffers; see gf.h. */
#include "src/codec/gf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ISAL
#include <isa-l/erasure_code.h>
#endif

/* ---- elements ---- */

uint8_t redset_gf_multiply(uint8_t a, uint8_t b)
{
    unsigned product = 0, x = a;
    for (; b; b >>= 1) {
        if (b & 1) product ^= x;
        x = x << 1 ^ (x & 0x80 ? 0x11d : 0);
    }
    return (uint8_t)product;
}

/* The inverse is a^254, because the 255 elements other than 0 form a group. */
uint8_t redset_gf_inverse(uint8_t a)
{
    uint8_t power = a, inverse = 1;
    for (int i = 1; i < 8; i++) {
        power = redset_gf_multiply(power, power);
        inverse = redset_gf_multiply(inverse, power);
    }
    return inverse;
}

/* ---- buffers ---- */

/* gcc and clang split this vector into registers of the target, at any optimization
 * level.
 */
typedef uint64_t gf_block __attribute__((vector_size(64)));

/* into ^= from */
static void gf_xor(void *restrict into, const void *restrict from, size_t size)
{
    unsigned char *a = into;
    const unsigned char *b = from;
    for (; size >= sizeof(gf_block); size -= sizeof(gf_block)) {
        gf_block x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        x ^= y;
        memcpy(a, &x, sizeof x);
        a += sizeof x;
        b += sizeof x;
    }
    while (size-- > 0)
        *a++ ^= *b++;
}

/* into ^= factor * from, where multiple[x] is factor * x. */
static void gf_add_multiple(uint8_t *into, const uint8_t *from,
                            const uint8_t multiple[256], size_t size)
{
    for (size_t i = 0; i < size; i++)
        into[i] ^= multiple[from[i]];
}

void redset_factors_add_portable(const redset_factors *factors, uint8_t *const sum[],
                                 const uint8_t *from, size_t size)
{
    for (int i = 0; i < factors->sums; i++)
        if (factors->each[i] == 1)
            gf_xor(sum[i], from, size);
        else if (factors->each[i])
            gf_add_multiple(sum[i], from, factors->multiple + 256 * i, size);
}

void redset_factors_begin_portable(const redset_factors *factors, uint8_t *const sum[],
                                   const uint8_t *from, size_t size)
{
    for (int i = 0; i < factors->sums; i++)
        memset(sum[i], 0, size);
    redset_factors_add_portable(factors, sum, from, size);
}

/* ---- factors ---- */

/* Bytes of ISA-L's table for one factor. */
#define GF_TABLE_SIZE 32

int redset_factors_init(redset_factors *factors, int sums)
{
    size_t count = (size_t)sums + 1;
    *factors = (redset_factors){.each = calloc(count, 1),
                                .multiple = calloc(count, 256),
                                .table = calloc(count, GF_TABLE_SIZE)};
    if (factors->each && factors->multiple && factors->table) return 0;
    redset_factors_done(factors);
    return -ENOMEM;
}

void redset_factors_done(redset_factors *factors)
{
    free(factors->each);
    free(factors->multiple);
    free(factors->table);
    *factors = (redset_factors){0};
}

/* Sets multiple[x] to factor * x for every x: the product of the highest bit of x, plus
 * the product of the remaining bits, which is already in the table. */
static void gf_fill_multiples(uint8_t multiple[256], uint8_t factor)
{
    multiple[0] = 0;
    for (unsigned bit = 1; bit < 256; bit *= 2) {
        uint8_t high = redset_gf_multiply(factor, (uint8_t)bit);
        for (unsigned x = 0; x < bit; x++)
            multiple[bit + x] = high ^ multiple[x];
    }
}

void redset_factors_set(redset_factors *factors, int sums, const uint8_t each[])
{
    factors->sums = sums;
    for (int i = 0; i < sums; i++) {
        if (factors->each[i] == each[i]) continue; /* the common case */
        factors->each[i] = each[i];
        gf_fill_multiples(factors->multiple + 256 * i, each[i]);
    }
#ifdef HAVE_ISAL
    ec_init_tables(1, sums, factors->each, factors->table);
#endif
}

void redset_factors_begin(const redset_factors *factors, uint8_t *const sum[],
                          const uint8_t *from, size_t size)
{
#ifdef HAVE_ISAL
    ec_encode_data((int)size, 1, factors->sums, factors->table, (unsigned char **)&from,
                   (unsigned char **)sum);
#else
    redset_factors_begin_portable(factors, sum, from, size);
#endif
}

void redset_factors_add(const redset_factors *factors, uint8_t *const sum[],
                        const uint8_t *from, size_t size)
{
#ifdef HAVE_ISAL
    ec_encode_data_update((int)size, 1, factors->sums, 0, factors->table,
                          (unsigned char *)from, (unsigned char **)sum);
#else
    redset_factors_add_portable(factors, sum, from, size);
#endif
}
