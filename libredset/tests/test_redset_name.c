/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of schemes and of redundancy files. */
#include "src/header/header.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_schemes(void **state)
{
    redset_scheme scheme = REDSET_SINGLE;
    assert_string_equal(redset_scheme_name(REDSET_SINGLE), "SINGLE");
    assert_string_equal(redset_scheme_name(REDSET_XOR), "XOR");
    assert_string_equal(redset_scheme_name(REDSET_PARTNER), "PARTNER");
    assert_string_equal(redset_scheme_name(REDSET_RS), "RS");
    assert_null(redset_scheme_name((redset_scheme)0));
    assert_null(redset_scheme_name((redset_scheme)99));
    assert_int_equal(redset_scheme_from_name("xor", &scheme), 0);
    assert_int_equal(scheme, REDSET_XOR);
    assert_int_equal(redset_scheme_from_name("Single", &scheme), 0);
    assert_int_equal(scheme, REDSET_SINGLE);
    assert_int_equal(redset_scheme_from_name("XORR", &scheme), -EINVAL);
    assert_int_equal(redset_scheme_from_name("", &scheme), -EINVAL);
    assert_int_equal(redset_scheme_from_name(NULL, &scheme), -EINVAL);
    assert_int_equal(scheme, REDSET_SINGLE);
}

static void test_file_names(void **state)
{
    char name[REDSET_NAME_SIZE];
    redset_place place = {REDSET_XOR, 2, 1, 1, 4, 2, 1};
    assert_int_equal(redset_file_name(&place, name), 0);
    assert_string_equal(name, "3_of_4_in_1.xor");
    place = (redset_place){REDSET_SINGLE, 8, 5, 5, 1, 0, 0};
    assert_int_equal(redset_file_name(&place, name), 0);
    assert_string_equal(name, "1_of_1_in_5.single");
    place = (redset_place){REDSET_XOR, 1, 0, INT_MAX, INT_MAX, INT_MAX - 1, 1};
    assert_int_equal(redset_file_name(&place, name), 0);
    assert_string_equal(name, "2147483647_of_2147483647_in_2147483647.xor");
    place = (redset_place){REDSET_PARTNER, 2, 1, 1, 4, 0, 3};
    assert_int_equal(redset_file_name(&place, name), 0);
    assert_string_equal(name, "1_of_4_in_1.partner");
    place = (redset_place){REDSET_RS, 2, 1, 1, 255, 9, 254};
    assert_int_equal(redset_file_name(&place, name), 0);
    assert_string_equal(name, "10_of_255_in_1.rs");
}

static void test_refused(void **state)
{
    static const redset_place bad[] = {
        {(redset_scheme)9, 1, 0, 0, 4, 0, 1}, /* no such scheme */
        {REDSET_XOR, 1, 0, -1, 4, 0, 1},      /* id */
        {REDSET_XOR, 1, 0, 0, 4, 4, 1},       /* member */
        {REDSET_XOR, 1, 0, 0, 4, -1, 1},      {REDSET_XOR, 1, 0, 0, 0, 0, 1},
        {REDSET_XOR, 1, 0, 0, 1, 0, 1}, /* XOR alone */
        {REDSET_XOR, 1, 0, 0, 4, 0, 2}, /* failures */
        {REDSET_RS, 1, 0, 0, 4, 0, 4},        {REDSET_RS, 1, 0, 0, 256, 0, 1},
        {REDSET_PARTNER, 1, 0, 0, 4, 0, 0},   {REDSET_SINGLE, 1, 0, 0, 2, 0, 0},
    };
    char name[REDSET_NAME_SIZE] = "as before";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(redset_file_name(&bad[i], name), -EINVAL);
    assert_string_equal(name, "as before");
}

static void test_parse(void **state)
{
    static const redset_place good[] = {{REDSET_XOR, 2, 1, 1, 4, 2, 1},
                                        {REDSET_SINGLE, 8, 5, 5, 1, 0, 0},
                                        {REDSET_XOR, 1, 0, INT_MAX, INT_MAX, 7, 1},
                                        {REDSET_PARTNER, 2, 1, 1, 4, 0, 3},
                                        {REDSET_RS, 2, 1, 1, 255, 9, 254}};
    static const char *const bad[] = {"",
                                      "3_of_4_in_1",
                                      "3_of_4_in_1.",
                                      "3_of_4_in_1.xyz",
                                      "3_of_4_in_1.XOR",
                                      "3_of_4_in_1.xor ",
                                      "3_of_4_in_1.xor.tmp",
                                      " 3_of_4_in_1.xor",
                                      "+3_of_4_in_1.xor",
                                      "03_of_4_in_1.xor",
                                      "0_of_4_in_1.xor",
                                      "5_of_4_in_1.xor",
                                      "3_of_4_in_-1.xor",
                                      "1_of_1_in_0.xor",
                                      "1_of_2_in_0.single",
                                      "1_of_256_in_0.rs",
                                      "2147483648_of_2147483648_in_0.xor",
                                      "99999999999_of_99999999999_in_0.xor",
                                      "folder/3_of_4_in_1.xor"};
    char name[REDSET_NAME_SIZE];
    redset_place place = {.sets = 99, .set = 98, .failures = 97};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(redset_file_name(&good[i], name), 0);
        assert_int_equal(redset_file_name_parse(name, &place), 0);
        assert_int_equal(place.scheme, good[i].scheme);
        assert_int_equal(place.id, good[i].id);
        assert_int_equal(place.members, good[i].members);
        assert_int_equal(place.member, good[i].member);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(redset_file_name_parse(bad[i], &place), -EINVAL);
    assert_int_equal(place.members, 255);
    assert_int_equal(place.sets, 99); /* not part of any name */
    assert_int_equal(place.set, 98);
    assert_int_equal(place.failures, 97);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemes), cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_parse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
