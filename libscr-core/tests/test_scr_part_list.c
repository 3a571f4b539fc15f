/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorted parts: for every set of parts of up to nine bytes, every query is compared with
 * a search through all parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/part_list.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 9 };

static void add(kvtree *parts, unsigned offset, unsigned length)
{
    char key[16], value[16];
    snprintf(key, sizeof key, "%u", offset);
    snprintf(value, sizeof value, "%u", length);
    assert_non_null(kvtree_set_kv(parts, key, value));
}

/* Makes a tree of parts, added from the last to the first. A part ends before each byte
 * whose bit is set in cuts. holes 0: every second part, from the last but one, is a hole;
 * 1: every second part, from the last; 2: none. */
static kvtree *parts_of(unsigned cuts, unsigned holes)
{
    kvtree *parts = kvtree_new();
    unsigned end = BYTES, number = holes;
    for (unsigned at = BYTES; at-- > 0;) {
        if (at > 0 && !(cuts >> at & 1)) continue;
        if (number++ % 2 == 0 || holes > 1) add(parts, at, end - at);
        end = at;
    }
    return parts;
}

/* The lowest offset of a part that ends after byte; UINT64_MAX: there is none. */
static uint64_t search(const kvtree *parts, uint64_t byte)
{
    uint64_t found = UINT64_MAX;
    const kvtree_elem *e = kvtree_elem_first(parts);
    for (; e; e = kvtree_elem_next(e)) {
        const char *length = kvtree_elem_get_first_val(parts, kvtree_elem_key(e));
        const uint64_t offset = strtoull(kvtree_elem_key(e), NULL, 10);
        if (offset + strtoull(length, NULL, 10) > byte && offset < found) found = offset;
    }
    return found;
}

static void every_small_file(void **state)
{
    (void)state;
    for (unsigned cuts = 0; cuts < 1u << BYTES; cuts += 2)
        for (unsigned holes = 0; holes < 3; holes++) {
            size_t count;
            kvtree *parts = parts_of(cuts, holes);
            scr_part *list = scr_part_list(parts, &count);
            assert_non_null(list);
            assert_int_equal(count, kvtree_size(parts));
            for (size_t i = 1; i < count; i++)
                assert_true(list[i - 1].offset + list[i - 1].length <= list[i].offset);
            for (uint64_t byte = 0; byte <= BYTES; byte++) {
                size_t i = scr_part_list_find(list, count, byte);
                assert_true((i < count ? list[i].offset : UINT64_MAX) ==
                            search(parts, byte));
            }
            free(list);
            kvtree_delete(&parts);
        }
}

static void large_numbers(void **state)
{
    size_t count;
    kvtree *parts = kvtree_new();
    (void)state;
    kvtree_set_kv(parts, "9223372036854775800", "7");
    kvtree_set_kv(parts, "0", "9223372036854775800");
    kvtree_set(parts, "17", NULL); /* without a length: not a part */
    scr_part *list = scr_part_list(parts, &count);
    assert_int_equal(count, 2);
    assert_int_equal(scr_part_list_find(list, count, INT64_MAX - 8), 0);
    assert_int_equal(scr_part_list_find(list, count, INT64_MAX - 7), 1);
    assert_int_equal(scr_part_list_find(list, count, INT64_MAX), 2);
    free(list);
    kvtree_delete(&parts);
    list = scr_part_list(NULL, &count);
    assert_int_equal(count, 0);
    free(list);
}

/* Byte for byte. */
static void one_in_another(void **state)
{
    (void)state;
    for (unsigned n = 0; n < BYTES * BYTES * BYTES * BYTES; n++) {
        const scr_part a = {n % BYTES, n / BYTES % BYTES},
                       b = {n / BYTES / BYTES % BYTES, 1 + n / BYTES / BYTES / BYTES};
        bool has = true;
        for (uint64_t byte = b.offset; byte < b.offset + b.length; byte++)
            has = has && byte >= a.offset && byte < a.offset + a.length;
        assert_int_equal(scr_part_has(&a, &b), has);
    }
    const scr_part all = {0, INT64_MAX}, last = {INT64_MAX - 1, 1},
                   behind = {INT64_MAX, 1};
    assert_true(scr_part_has(&all, &last));
    assert_false(scr_part_has(&all, &behind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_small_file),
                                       cmocka_unit_test(one_in_another),
                                       cmocka_unit_test(large_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
