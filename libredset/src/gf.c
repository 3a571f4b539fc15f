/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic in GF(2^8), on single elements and on long buffers; see gf.h. */
#include "src/gf.h"

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

/* a^254: the 255 elements other than 0 are a group. */
uint8_t redset_gf_inverse(uint8_t a)
{
    uint8_t power = a, inverse = 1;
    for (int i = 1; i < 8; i++) {
        power = redset_gf_multiply(power, power);
        inverse = redset_gf_multiply(inverse, power);
    }
    return inverse;
}

static void scale(uint8_t *row, int width, uint8_t factor)
{
    for (int i = 0; i < width; i++)
        row[i] = redset_gf_multiply(row[i], factor);
}

static void add_scaled(uint8_t *row, const uint8_t *other, int width, uint8_t factor)
{
    for (int i = 0; i < width; i++)
        row[i] ^= redset_gf_multiply(other[i], factor);
}

static void swap_rows(uint8_t *a, uint8_t *b, int width)
{
    for (int i = 0; i < width; i++) {
        uint8_t kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

int redset_gf_invert(uint8_t *rows, int n)
{
    int width = 2 * n;
    for (int i = 0; i < n; i++) {
        int pivot = i;
        while (pivot < n && !rows[pivot * width + i])
            pivot++;
        if (pivot == n) return -1;
        if (pivot != i) swap_rows(&rows[i * width], &rows[pivot * width], width);
        scale(&rows[i * width], width, redset_gf_inverse(rows[i * width + i]));
        for (int r = 0; r < n; r++)
            if (r != i && rows[r * width + i])
                add_scaled(&rows[r * width], &rows[i * width], width,
                           rows[r * width + i]);
    }
    return 0;
}

/* ---- buffers ---- */

/* Blocks of fixed length let the compiler use the machine's vectors at any level of
 * optimisation. */
enum { WORDS = 8, BLOCK = WORDS * sizeof(uint64_t) };

void redset_xor(void *restrict into, const void *restrict from, size_t size)
{
    unsigned char *a = into;
    const unsigned char *b = from;
    for (; size >= BLOCK; size -= BLOCK) {
        uint64_t x[WORDS], y[WORDS];
        memcpy(x, a, BLOCK);
        memcpy(y, b, BLOCK);
        for (int i = 0; i < WORDS; i++)
            x[i] ^= y[i];
        memcpy(a, x, BLOCK);
        a += BLOCK;
        b += BLOCK;
    }
    while (size-- > 0)
        *a++ ^= *b++;
}

/* into ^= factor * from, for eight elements in each word: from is doubled again and
 * again, and added where factor has a one. */
static void add_block(uint8_t *into, const uint8_t *from, unsigned factor)
{
    uint64_t sum[WORDS], power[WORDS];
    memcpy(sum, into, BLOCK);
    memcpy(power, from, BLOCK);
    for (; factor; factor >>= 1) {
        uint64_t wanted = factor & 1 ? ~(uint64_t)0 : 0;
        for (int i = 0; i < WORDS; i++) {
            uint64_t high = power[i] >> 7 & 0x0101010101010101u;
            sum[i] ^= power[i] & wanted;
            power[i] = (power[i] & 0x7f7f7f7f7f7f7f7fu) << 1 ^ high * 0x1d;
        }
    }
    memcpy(into, sum, BLOCK);
}

static void add_multiple(uint8_t *into, const uint8_t *from, uint8_t factor, size_t size)
{
    if (factor == 1) {
        redset_xor(into, from, size);
        return;
    }
    for (; size >= BLOCK; size -= BLOCK) {
        add_block(into, from, factor);
        into += BLOCK;
        from += BLOCK;
    }
    for (size_t i = 0; i < size; i++)
        into[i] ^= redset_gf_multiply(from[i], factor);
}

void redset_add_product_portable(const redset_factors *factors, uint8_t *const sum[],
                                 const uint8_t *from, size_t size)
{
    for (int i = 0; i < factors->sums; i++)
        if (factors->each[i]) add_multiple(sum[i], from, factors->each[i], size);
}

/* ---- factors ---- */

/* Bytes of ISA-L's table for one factor. */
#define TABLE_SIZE 32

int redset_factors_init(redset_factors *factors, int sums)
{
    size_t count = (size_t)sums + 1;
    *factors =
        (redset_factors){.each = calloc(count, 1), .table = calloc(count, TABLE_SIZE)};
    if (factors->each && factors->table) return 0;
    redset_factors_done(factors);
    return -ENOMEM;
}

void redset_factors_done(redset_factors *factors)
{
    free(factors->each);
    free(factors->table);
    *factors = (redset_factors){0};
}

void redset_factors_set(redset_factors *factors, int sums, const uint8_t each[])
{
    factors->sums = sums;
    factors->plain = 1;
    for (int i = 0; i < sums; i++) {
        factors->each[i] = each[i];
        factors->plain = factors->plain && each[i] == 1;
    }
#ifdef HAVE_ISAL
    ec_init_tables(1, sums, factors->each, factors->table);
#endif
}

void redset_add_product(const redset_factors *factors, uint8_t *const sum[],
                        const uint8_t *from, size_t size)
{
#ifdef HAVE_ISAL
    if (!factors->plain && size <= 0x7fffffff) {
        ec_encode_data_update((int)size, 1, factors->sums, 0, factors->table,
                              (unsigned char *)from, (unsigned char **)sum);
        return;
    }
#endif
    redset_add_product_portable(factors, sum, from, size);
}
