/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of parts of files: valid names, invalid names, and false claims of a map. */
#include "plan/part_name.h"
#include "records.h"
#include <errno.h>

#define LAST "9223372036854775807" /* 2^63 - 1 */

static void assert_part(const char *name, const char *file, uint64_t offset)
{
    uint64_t found = 77;
    assert_int_equal(scr_part_parse(name, &found), strlen(file));
    assert_int_equal(strncmp(name, file, strlen(file)), 0);
    assert_int_equal(found, offset);
}

static void parts(void **state)
{
    assert_part("a.scr-part.0", "a", 0);
    assert_part("dir/sub/x.h5.scr-part.120", "dir/sub/x.h5", 120);
    assert_part("a.scr-part." LAST, "a", INT64_MAX);
    assert_part("a b\n.scr-part.3", "a b\n", 3);
    /* the last mark counts */
    assert_part("a.scr-part.5.scr-part.7", "a.scr-part.5", 7);
    assert_part("a.scr-part.x.scr-part.7", "a.scr-part.x", 7);
    assert_part("a.scr-part.3/b.scr-part.4", "a.scr-part.3/b", 4);
    assert_part("a.scr-part.scr-part.3", "a.scr-part", 3);
    assert_part("..scr-part.3", ".", 3);
}

static void no_parts(void **state)
{
    static const char *const names[] = {
        /* nothing before the mark, no mark, other characters after it */
        "", "a", ".scr-part.5", "dir/.scr-part.5", "scr-part.5", "a.scr-part5",
        "a.Scr-part.5", "a.scr_part.5", "a.scr-part.5/b", "a.scr-part.5.xor",
        "a.scr-part.7.scr-part.",
        /* numbers that scr_part_name does not write */
        "a.scr-part.", "a.scr-part.00", "a.scr-part.07", "a.scr-part.+1", "a.scr-part.-1",
        "a.scr-part. 1", "a.scr-part.1 ", "a.scr-part.1x", "a.scr-part.0x1",
        "a.scr-part.1.5", "a.scr-part.9223372036854775808",
        "a.scr-part.9999999999999999999", "a.scr-part.18446744073709551616",
        "a.scr-part.100000000000000000000000000000000"};
    uint64_t offset;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (scr_part_parse(names[i], &offset) != 0)
            fail_msg("\"%s\" is a part", names[i]);
}

static void there_and_back(void **state)
{
    static const char *const files[] = {"a",          "d/e/f.h5",    "a.scr-part.5",
                                        "a.scr-part", "a.scr-part.", "7"};
    static const uint64_t offsets[] = {0,        1, 9, 10, UINT32_MAX, UINT32_MAX + 1ull,
                                       INT64_MAX};
    char name[64];
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++) {
            assert_int_equal(scr_part_name(files[f], offsets[o], sizeof name, name), 0);
            assert_part(name, files[f], offsets[o]);
        }
}

static void limits(void **state)
{
    char name[64];
    const size_t size = strlen("a.scr-part.123") + 1;
    assert_int_equal(scr_part_name("a", 123, size, name), 0);
    assert_string_equal(name, "a.scr-part.123");
    assert_int_equal(scr_part_name("a", 123, size - 1, name), -ENAMETOOLONG);
    assert_int_equal(scr_part_name("a", 1234, size, name), -ENAMETOOLONG);
    assert_int_equal(scr_part_name("a", 0, 1, name), -ENAMETOOLONG);
}

static void placed(void **state)
{
    filo_file part = {.name = (char *)"d/a.scr-part.40", .size = 9},
              empty = {.name = (char *)"d/a.scr-part.0"}, other = {.name = (char *)"d/a"};
    assert_int_equal(scr_part_place(&part), 0);
    assert_int_equal(part.packed, 1);
    assert_int_equal(part.segments, 1);
    assert_string_equal(part.segment->container, "d/a");
    assert_int_equal(part.segment->offset, 40);
    assert_int_equal(part.segment->length, 9);
    assert_true(scr_part_is(&part));
    assert_int_equal(scr_part_place(&empty), 0);
    assert_int_equal(empty.segment->length, 0);
    assert_true(scr_part_is(&empty));
    assert_int_equal(scr_part_place(&other), 0);
    assert_true(!other.packed && !other.segments && !other.segment);
    free(part.segment->container);
    free(part.segment);
    free(empty.segment->container);
    free(empty.segment);
}

/* A file in a map; container NULL: it has no segment. */
static bool is_part(const char *name, const char *container, uint64_t offset,
                    int segments)
{
    filo_segment segment[2] = {{(char *)container, offset, 5},
                               {(char *)container, offset, 5}};
    const filo_file file = {.name = (char *)name,
                            .size = 5,
                            .packed = 1,
                            .segments = segments,
                            .segment = container ? segment : NULL};
    return scr_part_is(&file);
}

/* Files in containers may have any names. */
static void claims(void **state)
{
    assert_true(is_part("d/all.scr-part.7", "d/all", 7, 1));
    assert_false(is_part("d/all.scr-part.7", "d/al", 7, 1));
    assert_false(is_part("d/all.scr-part.7", "d/all2", 7, 1));
    assert_false(is_part("d/all.scr-part.7", "d/", 7, 1));
    assert_false(is_part("d/all.scr-part.7", "", 7, 1));
    assert_false(is_part("d/all.scr-part.7", "e/all", 7, 1));
    assert_false(is_part("d/all.scr-part.7", ".scr/ctr.0.scr", 7, 1));
    /* bytes at another place */
    assert_false(is_part("d/all.scr-part.7", "d/all", 8, 1));
    assert_false(is_part("d/all.scr-part.7", "d/all", 0, 1));
    assert_false(is_part("d/all.scr-part.7", "d/all", UINT64_MAX, 1));
    /* several pieces, or none */
    assert_false(is_part("d/all.scr-part.7", "d/all", 7, 2));
    assert_false(is_part("d/all.scr-part.7", NULL, 0, 0));
    /* names that are not those of a part */
    assert_false(is_part("d/all", "d/all", 0, 1));
    assert_false(is_part("d/all.scr-part.07", "d/all", 7, 1));
    assert_false(is_part(".scr-part.7", "", 7, 1));
    /* a file that is not packed, whatever its name */
    const filo_file plain = {.name = (char *)"d/all.scr-part.7", .size = 5};
    assert_false(scr_part_is(&plain));
}

static void shared_dropped(void **state)
{
    static const char *const names[] = {"all", "rank_0", "all.scr-part.0", "all2", "z"};
    filo_file *files = calloc(5, sizeof *files);
    for (int i = 0; i < 5; i++) {
        files[i].name = strdup(names[i]);
        files[i].local = strdup("/x");
        files[i].shared = i == 0 || i == 3;
    }
    assert_int_equal(scr_part_drop_shared(5, files), 3);
    assert_string_equal(files[0].name, "rank_0");
    assert_string_equal(files[1].name, "all.scr-part.0");
    assert_string_equal(files[2].name, "z");
    filo_files_free(3, files);
    assert_int_equal(scr_part_drop_shared(0, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),          cmocka_unit_test(no_parts),
        cmocka_unit_test(there_and_back), cmocka_unit_test(limits),
        cmocka_unit_test(placed),         cmocka_unit_test(claims),
        cmocka_unit_test(shared_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
