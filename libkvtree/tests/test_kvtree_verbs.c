/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats, order and typed values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "comma.h"
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- formats ---- */

static void every_conversion(void **state)
{
    kvtree *tree = kvtree_new();
    kvtree *leaf = kvtree_setf(
        tree, NULL, "%s %d %u %ld %lu %lld %llu %zu %f %lf %x %lx end", "a b", -1, 2u,
        -3L, ULONG_MAX, LLONG_MIN, ULLONG_MAX, (size_t)4, 0.5, -1e300, 255u, 0xabcdefUL);
    assert_non_null(leaf);
    static const char *const keys[] = {"a b",
                                       "-1",
                                       "2",
                                       "-3",
                                       "18446744073709551615",
                                       "-9223372036854775808",
                                       "18446744073709551615",
                                       "4",
                                       "0.500000",
                                       NULL,
                                       "ff",
                                       "abcdef",
                                       "end"};
    kvtree *at = tree;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        kvtree_elem *e = kvtree_elem_first(at);
        assert_non_null(e);
        if (keys[i]) assert_string_equal(kvtree_elem_key(e), keys[i]);
        at = kvtree_elem_hash(e);
    }
    assert_ptr_equal(at, leaf);
    assert_ptr_equal(kvtree_getf(tree, "%s -1 2 %d", "a b", -3),
                     kvtree_getf(tree, "%s %d 2 -3", "a b", -1));
    assert_null(kvtree_getf(tree, "%s %d", "a b", 1));
    kvtree_delete(&tree);
}

static void words_with_a_conversion_inside(void **state)
{
    kvtree *tree = kvtree_new(), *value = kvtree_new();
    assert_ptr_equal(kvtree_setf(tree, value, "FILE rank_%d.ckpt.%lu", 3, 7UL), value);
    assert_ptr_equal(kvtree_get_kv(tree, "FILE", "rank_3.ckpt.7"), value);
    kvtree *other = kvtree_new();
    assert_ptr_equal(kvtree_setf(tree, other, "FILE %s", "rank_3.ckpt.7"), other);
    assert_int_equal(kvtree_size(kvtree_get(tree, "FILE")), 1);
    kvtree_delete(&tree);
}

static void bad_formats_change_nothing(void **state)
{
    static const char *const bad[] = {"",    " A",   "A ",    "A  B", "A %c",
                                      "A %", "A %%", "A %5d", "%",    "A B %n"};
    kvtree *tree = kvtree_new(), *value = kvtree_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(kvtree_setf(tree, value, bad[i], 1, 2));
        assert_null(kvtree_getf(tree, bad[i], 1, 2));
        assert_int_equal(kvtree_size(tree), 0);
    }
    assert_null(kvtree_setf(tree, value, "A %s", (char *)NULL));
    assert_null(kvtree_setf(tree, value, NULL));
    assert_null(kvtree_setf(NULL, value, "A"));
    assert_null(kvtree_getf(NULL, "A"));
    assert_int_equal(kvtree_size(tree), 0);
    /* a refused value leaves no empty path */
    kvtree *owned = kvtree_setf(tree, NULL, "A");
    assert_null(kvtree_setf(tree, owned, "B C D"));
    assert_null(kvtree_get(tree, "B"));
    kvtree_delete(&value);
    kvtree_delete(&tree);
}

/* ---- order ---- */

static kvtree *tree_of(const char *words)
{
    kvtree *tree = kvtree_new();
    char copy[256], *save = NULL;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        kvtree_set_kv(tree, word, "below");
    return tree;
}

static void check_order(kvtree *tree, int rc, const char *expected)
{
    char keys[256] = "";
    assert_int_equal(rc, 0);
    kvtree_set(tree, "last", NULL);
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e)) {
        strcat(keys, kvtree_elem_key(e));
        strcat(keys, kvtree_elem_next(e) ? " " : "");
    }
    assert_string_equal(keys, expected);
    kvtree_unset(tree, "last");
}

static void sorts(void **state)
{
    kvtree *tree = tree_of("10 9 -1 2 100 4294967297");
    check_order(tree, kvtree_sort(tree, KVTREE_SORT_ASCENDING),
                "-1 10 100 2 4294967297 9 last");
    check_order(tree, kvtree_sort(tree, KVTREE_SORT_DESCENDING),
                "9 4294967297 2 100 10 -1 last");
    check_order(tree, kvtree_sort_int(tree, KVTREE_SORT_ASCENDING),
                "-1 2 9 10 100 4294967297 last");
    check_order(tree, kvtree_sort_int(tree, KVTREE_SORT_DESCENDING),
                "4294967297 100 10 9 2 -1 last");
    assert_non_null(kvtree_get_kv(tree, "100", "below"));
    kvtree_unset(tree, "4294967297");
    kvtree_unset(tree, "-1");
    check_order(tree, kvtree_sort_int(tree, KVTREE_SORT_DESCENDING), "100 10 9 2 last");
    kvtree_delete(&tree);
    tree = tree_of("01 2 1 001");
    check_order(tree, kvtree_sort_int(tree, KVTREE_SORT_ASCENDING), "01 1 001 2 last");
    check_order(tree, kvtree_sort_int(tree, KVTREE_SORT_DESCENDING), "2 01 1 001 last");
    kvtree_delete(&tree);
}

static void refuses_to_sort(void **state)
{
    kvtree *tree = tree_of("3 two 1");
    assert_int_equal(kvtree_sort_int(tree, KVTREE_SORT_ASCENDING), -EINVAL);
    assert_int_equal(kvtree_sort(tree, 7), -EINVAL);
    assert_int_equal(kvtree_sort_int(tree, -1), -EINVAL);
    check_order(tree, 0, "3 two 1 last");
    assert_int_equal(kvtree_sort(NULL, KVTREE_SORT_ASCENDING), 0);
    assert_int_equal(kvtree_sort_int(NULL, KVTREE_SORT_ASCENDING), 0);
    kvtree_delete(&tree);
}

static void lists_numbers(void **state)
{
    int count = 7, dummy = 0, *list = &dummy;
    kvtree *tree = tree_of("30 -5 2147483647 7");
    assert_int_equal(kvtree_list_int(tree, &count, &list), 0);
    assert_int_equal(count, 4);
    assert_memory_equal(list, ((int[]){-5, 7, 30, INT_MAX}), 4 * sizeof(int));
    free(list);
    check_order(tree, 0, "30 -5 2147483647 7 last");
    list = &dummy;
    kvtree_set(tree, "2147483648", NULL);
    assert_int_equal(kvtree_list_int(tree, &count, &list), -EINVAL);
    kvtree_unset(tree, "2147483648");
    kvtree_set(tree, "x", NULL);
    assert_int_equal(kvtree_list_int(tree, &count, &list), -EINVAL);
    assert_int_equal(count, 4);
    assert_ptr_equal(list, &dummy);
    assert_int_equal(kvtree_list_int(NULL, &count, &list), 0);
    assert_int_equal(count, 0);
    assert_null(list);
    assert_int_equal(kvtree_list_int(tree, NULL, &list), -EINVAL);
    kvtree_delete(&tree);
}

/* ---- typed values ---- */

static void values_come_back(void **state)
{
    kvtree *tree = kvtree_new();
    unsigned long u;
    int i;
    int64_t l;
    double d;
    char *s;
    void *p;
    kvtree_set_kv(tree, "A", "old");
    kvtree_set_kv(tree, "A", "older");
#define ROUND(set, get, type_value, variable)                                            \
    assert_int_equal(kvtree_util_set_##set(tree, "A", type_value), 0);                   \
    assert_int_equal(kvtree_util_get_##get(tree, "A", &variable), 0);                    \
    assert_true(variable == (type_value))
    ROUND(bytecount, bytecount, ULONG_MAX, u);
    ROUND(unsigned_long, unsigned_long, 0UL, u);
    ROUND(int, int, INT_MIN, i);
    ROUND(int64, int64, INT64_MIN, l);
    ROUND(int64, int64, INT64_MAX, l);
    ROUND(double, double, -0.25, d);
    ROUND(double, double, 1e300, d);
    ROUND(ptr, ptr, (void *)&d, p);
    ROUND(ptr, ptr, NULL, p);
    ROUND(crc32, crc32, 0xfffffffful, u);
    ROUND(crc32, crc32, 0x1aul, u);
#undef ROUND
    assert_string_equal(kvtree_get_val(tree, "A"), "0x0000001a");
    assert_int_equal(kvtree_util_set_str(tree, "A", "text"), 0);
    assert_int_equal(kvtree_util_get_str(tree, "A", &s), 0);
    assert_string_equal(s, "text");
    assert_int_equal(kvtree_util_set_str(tree, "A", s), 0);
    assert_string_equal(kvtree_get_val(tree, "A"), "text");
    assert_int_equal(kvtree_size(tree), 1);
    kvtree_delete(&tree);
}

static void getters_refuse_junk(void **state)
{
    static const char *const junk[] = {
        "", " 1", "1 ", "1x", "x", "0x", "--1", "99999999999999999999999", "nan", "1,5"};
    kvtree *tree = kvtree_new();
    unsigned long u = 77;
    int i = 77;
    int64_t l = 77;
    double d = 77;
    void *p = tree;
    for (size_t n = 0; n < sizeof junk / sizeof *junk; n++) {
        kvtree_util_set_str(tree, "A", junk[n]);
        assert_int_equal(kvtree_util_get_bytecount(tree, "A", &u), -EINVAL);
        assert_int_equal(kvtree_util_get_unsigned_long(tree, "A", &u), -EINVAL);
        assert_int_equal(kvtree_util_get_crc32(tree, "A", &u), -EINVAL);
        assert_int_equal(kvtree_util_get_int(tree, "A", &i), -EINVAL);
        assert_int_equal(kvtree_util_get_int64(tree, "A", &l), -EINVAL);
        assert_int_equal(kvtree_util_get_ptr(tree, "A", &p), -EINVAL);
        if (n != 7) assert_int_equal(kvtree_util_get_double(tree, "A", &d), -EINVAL);
    }
    kvtree_util_set_str(tree, "A", "-1");
    assert_int_equal(kvtree_util_get_bytecount(tree, "A", &u), -EINVAL);
    kvtree_util_set_str(tree, "A", "0x10");
    assert_int_equal(kvtree_util_get_unsigned_long(tree, "A", &u), -EINVAL);
    kvtree_util_set_str(tree, "A", "0x100000000");
    assert_int_equal(kvtree_util_get_crc32(tree, "A", &u), -EINVAL);
    kvtree_util_set_str(tree, "A", "2147483648");
    assert_int_equal(kvtree_util_get_int(tree, "A", &i), -EINVAL);
    assert_true(u == 77 && i == 77 && l == 77 && d == 77 && p == tree);
    kvtree_delete(&tree);
}

static void numbers_near_zero(void **state)
{
    kvtree *tree = kvtree_new();
    double d = 77;
    kvtree_util_set_str(tree, "A", "4.9406564584124654e-324"); /* the smallest of all */
    assert_int_equal(kvtree_util_get_double(tree, "A", &d), 0);
    assert_true(d > 0 && d / 2 == 0);
    kvtree_util_set_str(tree, "A", "-1e-400");
    assert_int_equal(kvtree_util_get_double(tree, "A", &d), 0);
    assert_true(d == 0);
    kvtree_util_set_str(tree, "A", "1e400");
    assert_int_equal(kvtree_util_get_double(tree, "A", &d), -EINVAL);
    kvtree_util_set_str(tree, "A", "-1e400");
    assert_int_equal(kvtree_util_get_double(tree, "A", &d), -EINVAL);
    assert_true(d == 0);
    kvtree_delete(&tree);
}

static void one_value_or_none(void **state)
{
    kvtree *tree = kvtree_new();
    int i = 77;
    assert_int_equal(kvtree_util_get_int(tree, "A", &i), -ENOENT);
    assert_int_equal(kvtree_util_get_int(NULL, "A", &i), -ENOENT);
    kvtree_set(tree, "A", NULL);
    assert_int_equal(kvtree_util_get_int(tree, "A", &i), -EINVAL);
    kvtree_set_kv(tree, "A", "1");
    kvtree_set_kv(tree, "A", "2");
    assert_int_equal(kvtree_util_get_int(tree, "A", &i), -EINVAL);
    assert_int_equal(i, 77);
    assert_int_equal(kvtree_util_set_int(NULL, "A", 1), -EINVAL);
    assert_int_equal(kvtree_util_set_str(tree, "A", NULL), -EINVAL);
    assert_int_equal(kvtree_util_set_double(tree, "A", INFINITY), -EINVAL);
    assert_int_equal(kvtree_util_set_crc32(tree, "A", 0x100000000UL), -EINVAL);
    assert_int_equal(kvtree_size(kvtree_get(tree, "A")), 2);
    kvtree_delete(&tree);
}

/* A tree written under one locale is read under another. */
static void numbers_do_not_depend_on_the_locale(void **state)
{
    if (!use_decimal_comma()) {
        print_message("no definitions of locales here\n");
        skip();
    }
    kvtree *tree = kvtree_new();
    double d = 0;
    assert_int_equal(kvtree_util_set_double(tree, "A", 1.5), 0);
    kvtree_setf(tree, NULL, "%f", 2.5);
    assert_int_equal(kvtree_util_get_double(tree, "A", &d), 0);
    setlocale(LC_NUMERIC, "C");
    assert_true(d == 1.5);
    assert_string_equal(kvtree_get_val(tree, "A"), "1.500000");
    assert_non_null(kvtree_get(tree, "2.500000"));
    kvtree_delete(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_conversion),
        cmocka_unit_test(words_with_a_conversion_inside),
        cmocka_unit_test(bad_formats_change_nothing),
        cmocka_unit_test(sorts),
        cmocka_unit_test(refuses_to_sort),
        cmocka_unit_test(lists_numbers),
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(getters_refuse_junk),
        cmocka_unit_test(numbers_near_zero),
        cmocka_unit_test(one_value_or_none),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
