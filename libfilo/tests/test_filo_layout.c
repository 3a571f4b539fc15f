/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of bytes in containers: the documented example, borders, and random lists of
 * files, in which every byte must have exactly one place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "src/filo_layout.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void release(filo_file *file)
{
    for (int i = 0; i < file->segments; i++)
        free(file->segment[i].container);
    free(file->segment);
    file->segments = 0;
    file->segment = NULL;
}

static void expect_segment(const filo_file *file, int i, const char *container,
                           uint64_t offset, uint64_t length)
{
    assert_true(i < file->segments);
    assert_string_equal(file->segment[i].container, container);
    assert_int_equal(file->segment[i].offset, offset);
    assert_int_equal(file->segment[i].length, length);
}

/* SCR Developer Guide 1.2, section 2.12. */
static void test_documented_example(void **state)
{
    const filo_layout layout = {".scr/rank2file.scr", 300000, 2097182};
    filo_file file = {.size = 75705 + 300000 + 148591};
    assert_int_equal(filo_layout_pack(&layout, 300000 + 224295, &file), 0);
    assert_int_equal(file.packed, 1);
    assert_int_equal(file.segments, 3);
    expect_segment(&file, 0, ".scr/ctr.1.scr", 224295, 75705);
    expect_segment(&file, 1, ".scr/ctr.2.scr", 0, 300000);
    expect_segment(&file, 2, ".scr/ctr.3.scr", 0, 148591);
    release(&file);
}

static void test_borders(void **state)
{
    const filo_layout layout = {"map", 10, 30};
    filo_file fits = {.size = 10}, empty = {0}, last = {.size = 1};
    assert_int_equal(filo_layout_pack(&layout, 10, &fits), 0);
    assert_int_equal(fits.segments, 1);
    expect_segment(&fits, 0, "ctr.1.scr", 0, 10);
    assert_int_equal(filo_layout_pack(&layout, 10, &empty), 0);
    assert_int_equal(empty.packed, 1);
    assert_int_equal(empty.segments, 0);
    assert_int_equal(filo_layout_pack(&layout, 29, &last), 0);
    expect_segment(&last, 0, "ctr.2.scr", 9, 1);
    assert_int_equal(filo_layout_containers(&layout), 3);
    assert_int_equal(filo_layout_size(&layout, 2), 10);
    release(&fits);
    release(&empty);
    release(&last);
}

static void test_nothing(void **state)
{
    uint64_t first, end;
    const filo_layout layout = {"map", 10, 0};
    assert_int_equal(filo_layout_containers(&layout), 0);
    filo_layout_begins(&layout, 0, 0, &first, &end);
    assert_int_equal(first, end);
}

/* Numbers beyond 32 bits, and a file with more segments than an int can count. */
static void test_large(void **state)
{
    const uint64_t gb = (uint64_t)1 << 30;
    const filo_layout layout = {".scr/m", 100 * gb, 100000 * gb}, tiny = {".scr/m", 1, 0};
    filo_file file = {.size = 3 * gb}, huge = {.size = 4 * gb};
    assert_int_equal(filo_layout_pack(&layout, 99999 * gb - gb, &file), 0);
    expect_segment(&file, 0, ".scr/ctr.999.scr", 98 * gb, 2 * gb);
    assert_int_equal(file.segments, 2);
    release(&file);
    assert_int_equal(filo_layout_pack(&tiny, 0, &huge), -EFBIG);
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* The segments of all files, in order, fill all containers without a gap, and each
 * container begins with exactly one file. */
static void check_list(uint64_t seed)
{
    enum { FILES = 20 };
    uint64_t size[FILES], at = 0, first, end, begun = 0;
    filo_layout layout = {"a/b/map.scr", 1 + draw(&seed) % 500, 0};
    for (int i = 0; i < FILES; i++)
        layout.total += size[i] = draw(&seed) % 4 ? draw(&seed) % 900 : 0;
    for (int i = 0; i < FILES; i++) {
        char name[BENEATH_NAME_MAX];
        filo_file file = {.size = size[i]};
        filo_layout_begins(&layout, at, size[i], &first, &end);
        assert_int_equal(first, begun);
        begun = end;
        assert_int_equal(filo_layout_pack(&layout, at, &file), 0);
        for (int s = 0; s < file.segments; s++) {
            assert_int_equal(filo_container_name(layout.map, at / layout.limit, name), 0);
            expect_segment(&file, s, name, at % layout.limit, file.segment[s].length);
            assert_true(file.segment[s].length > 0);
            at += file.segment[s].length;
            assert_true(file.segment[s].offset + file.segment[s].length <=
                        filo_layout_size(&layout, (at - 1) / layout.limit));
            size[i] -= file.segment[s].length;
        }
        assert_int_equal(size[i], 0);
        release(&file);
    }
    assert_int_equal(at, layout.total);
    assert_int_equal(begun, filo_layout_containers(&layout));
}

static void test_random_lists(void **state)
{
    for (uint64_t seed = 1; seed <= 500; seed++)
        check_list(seed);
}

static void test_names(void **state)
{
    const char *map = ".scr/rank2file.scr";
    assert_true(filo_container_owns(map, ".scr/ctr.0.scr"));
    assert_true(filo_container_owns(map, ".scr/ctr.123456789.scr"));
    assert_true(filo_container_owns("map", "ctr.7.scr"));
    assert_false(filo_container_owns(map, "ctr.0.scr"));
    assert_false(filo_container_owns(map, ".scr/ctr..scr"));
    assert_false(filo_container_owns(map, ".scr/ctr.0.scr.old"));
    assert_false(filo_container_owns(map, ".scr/ctr.x.scr"));
    assert_false(filo_container_owns(map, ".scr/sub/ctr.0.scr"));
    assert_false(filo_container_owns("map", "a/ctr.7.scr"));
}

static void test_long_name(void **state)
{
    char map[BENEATH_NAME_MAX], name[BENEATH_NAME_MAX];
    memset(map, 'x', sizeof map);
    memcpy(map + sizeof map - 6, "/m", 3);
    assert_int_equal(filo_container_name(map, 0, name), -ENAMETOOLONG);
    const filo_layout layout = {map, 10, 10};
    filo_file file = {.size = 5};
    assert_int_equal(filo_layout_pack(&layout, 0, &file), -ENAMETOOLONG);
    release(&file);
}

/* ---- containers of nodes ---- */

static void test_align(void **state)
{
    const uint64_t sizes[] = {10, 0, 16, 1, 0, 17};
    uint64_t offsets[6], end = 1;
    assert_int_equal(filo_layout_align(16, 6, sizes, offsets, &end), 0);
    assert_int_equal(offsets[0], 0);
    assert_int_equal(offsets[2], 16);
    assert_int_equal(offsets[3], 32);
    assert_int_equal(offsets[5], 48);
    assert_int_equal(end, 65);
    assert_int_equal(filo_layout_align(1, 6, sizes, offsets, &end), 0);
    assert_int_equal(offsets[5], 27);
    assert_int_equal(end, 44);
    assert_int_equal(filo_layout_align(3, 6, sizes, offsets, &end), 0);
    assert_int_equal(offsets[2], 12);
    assert_int_equal(filo_layout_align(16, 0, NULL, NULL, &end), 0);
    assert_int_equal(end, 0);
    const uint64_t none[] = {0, 0};
    assert_int_equal(filo_layout_align(16, 2, none, offsets, &end), 0);
    assert_int_equal(end, 0);
}

/* Every block begins at the first multiple of align at or after the end of the blocks
 * before. */
static void test_align_random(void **state)
{
    enum { COUNT = 50 };
    uint64_t sizes[COUNT], offsets[COUNT], end;
    for (unsigned run = 0, seed = 1; run < 1000; run++) {
        const uint64_t align = (uint64_t)rand_r(&seed) % 100 + 1;
        uint64_t at = 0;
        for (int i = 0; i < COUNT; i++)
            sizes[i] = rand_r(&seed) % 3 ? (uint64_t)rand_r(&seed) % 300 : 0;
        assert_int_equal(filo_layout_align(align, COUNT, sizes, offsets, &end), 0);
        for (int i = 0; i < COUNT; i++) {
            if (sizes[i] == 0) continue;
            assert_int_equal(offsets[i] % align, 0);
            assert_true(offsets[i] >= at && offsets[i] - at < align);
            at = offsets[i] + sizes[i];
        }
        assert_int_equal(end, at);
    }
}

static void test_align_limits(void **state)
{
    const uint64_t most = INT64_MAX, half = most / 2 + 1;
    uint64_t offsets[2], end = 7;
    const uint64_t fits[] = {most - 5, 5}, over[] = {most - 5, 6}, huge[] = {UINT64_MAX},
                   far[] = {1, 1};
    assert_int_equal(filo_layout_align(1, 2, fits, offsets, &end), 0);
    assert_int_equal(end, most);
    end = 7;
    assert_int_equal(filo_layout_align(1, 2, over, offsets, &end), -EFBIG);
    assert_int_equal(filo_layout_align(16, 2, fits, offsets, &end), -EFBIG);
    assert_int_equal(filo_layout_align(1, 1, huge, offsets, &end), -EFBIG);
    assert_int_equal(end, 7);
    assert_int_equal(filo_layout_align(half, 2, far, offsets, &end), 0);
    assert_int_equal(offsets[1], half);
    assert_int_equal(filo_layout_align(most, 2, far, offsets, &end), -EFBIG);
}

static void test_place(void **state)
{
    filo_file file = {.size = 77}, empty = {.size = 0};
    assert_int_equal(filo_layout_place(".scr/rank2file.scr", 3, 4096, &file), 0);
    assert_int_equal(file.packed, 1);
    assert_int_equal(file.segments, 1);
    expect_segment(&file, 0, ".scr/ctr.3.scr", 4096, 77);
    release(&file);
    assert_int_equal(filo_layout_place("map", 0, 4096, &empty), 0);
    assert_int_equal(empty.packed, 1);
    assert_int_equal(empty.segments, 0);
    release(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_example),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_align),
        cmocka_unit_test(test_align_random),
        cmocka_unit_test(test_align_limits),
        cmocka_unit_test(test_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
