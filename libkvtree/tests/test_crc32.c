/* SPDX-License-Identifier: BSD-3-Clause */
/* The checksum of all libraries: that of zlib, whatever computes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/crc32.h"
#include <cmocka.h>
#include <string.h>
#include <zlib.h>

/* The check value of the polynomial's catalogue entry (CRC-32/ISO-HDLC). */
static void the_known_value(void **state)
{
    assert_int_equal(crc32_add(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32_add(0, "", 0), 0);
    assert_int_equal(crc32_add(77, "", 0), 77);
}

static void as_zlib_has_it(void **state)
{
    enum { SIZE = 3000 };
    static unsigned char bytes[SIZE + 16];
    unsigned random = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        random = random * 1103515245u + 12345u;
        bytes[i] = random >> 16 & 0xff;
    }
    for (size_t size = 0; size <= SIZE; size += size < 600 ? 1 : 97)
        for (size_t at = 0; at < 16; at++) {
            uint32_t seed = random * (uint32_t)(size + at);
            assert_int_equal(crc32_add(seed, bytes + at, size),
                             crc32_z(seed, bytes + at, size));
        }
    for (size_t cut = 0; cut <= SIZE; cut += 31)
        assert_int_equal(crc32_add(crc32_add(0, bytes, cut), bytes + cut, SIZE - cut),
                         crc32_add(0, bytes, SIZE));
}

static void zeros(void **state)
{
    static const unsigned char none[5000];
    for (size_t count = 0; count <= sizeof none; count += count < 70 ? 1 : 493)
        for (uint32_t crc = 0; crc < 3; crc++)
            assert_int_equal(crc32_add_zeros(crc * 0x9e3779b9u, count),
                             crc32_z(crc * 0x9e3779b9u, none, count));
    /* 4 GiB and more: in two halves and at once */
    const uint64_t many = ((uint64_t)5 << 30) + 3;
    assert_int_equal(crc32_add_zeros(crc32_add_zeros(77, many / 3), many - many / 3),
                     crc32_add_zeros(77, many));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_known_value),
                                       cmocka_unit_test(as_zlib_has_it),
                                       cmocka_unit_test(zeros)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
