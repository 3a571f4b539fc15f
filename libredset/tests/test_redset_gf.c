/* SPDX-License-Identifier: BSD-3-Clause */
/* The field GF(2^8): its laws, and sums over buffers, with each implementation. */
#include "src/codec/gf.h"

#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

/* The definition of the product: multiply polynomials, reduce modulo x^8 + x^4 + x^3 +
 * x^2 + 1. */
static uint8_t product_of(unsigned a, unsigned b)
{
    unsigned product = 0;
    for (int i = 0; i < 8; i++)
        if (b >> i & 1) product ^= a << i;
    for (int i = 14; i >= 8; i--)
        if (product >> i & 1) product ^= 0x11du << (i - 8);
    return (uint8_t)product;
}

static void products_and_inverses(void **state)
{
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++)
            assert_int_equal(redset_gf_multiply((uint8_t)a, (uint8_t)b),
                             product_of(a, b));
    for (unsigned a = 1; a < 256; a++)
        assert_int_equal(product_of(a, redset_gf_inverse((uint8_t)a)), 1);
}

enum { SIZE = 700, SUMS = 5 };

typedef void adder(const redset_factors *factors, uint8_t *const sum[],
                   const uint8_t *from, size_t size);

/* Adds one source to some sums of size bytes, at any alignment. begins: earlier contents
 * of the sums are ignored. */
static void check_sums(adder *add, bool begins, const uint8_t each[], int sums,
                       size_t size, size_t shift)
{
    static uint8_t got[SUMS][SIZE], expected[SUMS][SIZE], from[SIZE];
    uint8_t *sum[SUMS];
    redset_factors factors;
    assert_int_equal(redset_factors_init(&factors, SUMS), 0);
    redset_factors_set(&factors, sums, each);
    scratch_bytes(from, SIZE, 9);
    for (int i = 0; i < SUMS; i++) {
        scratch_bytes(got[i], SIZE, (unsigned)i);
        memcpy(expected[i], got[i], SIZE);
        sum[i] = got[i] + shift;
        for (size_t b = 0; b < size && i < sums; b++)
            expected[i][shift + b] = (begins ? 0 : expected[i][shift + b]) ^
                                     product_of(each[i], from[shift / 2 + b]);
    }
    add(&factors, sum, from + shift / 2, size);
    assert_memory_equal(got, expected, sizeof got); /* and nothing around it */
    redset_factors_done(&factors);
}

static void check_adders(const uint8_t each[], int sums, size_t size, size_t shift)
{
    check_sums(redset_factors_add, false, each, sums, size, shift);
    check_sums(redset_factors_add_portable, false, each, sums, size, shift);
    check_sums(redset_factors_begin, true, each, sums, size, shift);
    check_sums(redset_factors_begin_portable, true, each, sums, size, shift);
}

static void sums_of_products(void **state)
{
    static const uint8_t factors[][SUMS] = {
        {1, 1, 1, 1, 1}, {1, 2, 3, 4, 5}, {0, 255, 1, 0, 142}, {0, 0, 0, 0, 0}};
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++)
        for (int sums = 0; sums <= SUMS; sums++)
            for (size_t size = 0; size < 300; size += size < 70 ? 1 : 23)
                for (size_t shift = 0; shift < 20; shift += 3)
                    check_adders(factors[f], sums, size, shift);
}

static void every_factor(void **state)
{
    for (unsigned f = 0; f < 256; f++) {
        uint8_t each[] = {(uint8_t)f, (uint8_t)(f * 7), 1};
        check_adders(each, 3, 257, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_and_inverses),
                                       cmocka_unit_test(sums_of_products),
                                       cmocka_unit_test(every_factor)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
