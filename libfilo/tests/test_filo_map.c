/* SPDX-License-Identifier: BSD-3-Clause */
/* One file of the map, made and taken apart; without MPI and without a disk. What is
 * refused is tested through filo_read_map, in test_filo_hostile_mpi.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "src/filo_private.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

static void test_names(void **state)
{
    char name[BENEATH_NAME_MAX], large[BENEATH_NAME_MAX];
    assert_int_equal(filo_map_name(FILO_MAP, 0, 12, name), 0);
    assert_string_equal(name, ".scr/rank2file.0.12.scr");
    assert_int_equal(filo_map_name("map", 3, 4, name), 0);
    assert_string_equal(name, "map.3.4.scr");
    assert_int_equal(filo_map_name(".scr", 3, 4, name), 0);
    assert_string_equal(name, ".scr.3.4.scr");
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    assert_int_equal(filo_map_name(large, 0, 0, name), -ENAMETOOLONG);
}

static void test_own_names(void **state)
{
    assert_int_equal(filo_map_owns(FILO_MAP, FILO_MAP), 1);
    assert_int_equal(filo_map_owns(FILO_MAP, ".scr/rank2file.0.12.scr"), 1);
    assert_int_equal(filo_map_owns(FILO_MAP, ".scr/rank2files"), 0);
    assert_int_equal(filo_map_owns(FILO_MAP, ".scr/reddesc.er.0"), 0);
    assert_int_equal(filo_map_owns("map", "mapped"), 0);
    assert_int_equal(filo_map_owns("map", "map"), 1);
}

static kvtree *sample_entry(void)
{
    char plain[] = "rank_0.ckpt", odd[] = "a/b c";
    const filo_file files[] = {
        {.name = plain, .size = 524294, .crc = 0x6697d4ef, .has_crc = 1},
        {.name = odd, .size = UINT64_MAX, .crc = 5},
    };
    kvtree *entry = filo_map_entry(2, files);
    assert_non_null(entry);
    return entry;
}

/* The keys of the documented sample. */
static void test_lowest_level(void **state)
{
    kvtree *items = kvtree_new();
    assert_non_null(kvtree_set(items, "0", sample_entry()));
    kvtree *tree = filo_map_make(0, 1, items);
    assert_non_null(kvtree_getf(tree, "RANK2FILE LEVEL 0"));
    assert_non_null(kvtree_getf(tree, "RANK2FILE RANKS 1"));
    assert_non_null(kvtree_getf(tree, "RANK2FILE RANK 0 FILE rank_0.ckpt SIZE 524294"));
    assert_non_null(
        kvtree_getf(tree, "RANK2FILE RANK 0 FILE rank_0.ckpt CRC 0x6697d4ef"));
    assert_int_equal(kvtree_size(tree), 1);

    filo_map_part part;
    assert_int_equal(filo_map_take(tree, 0, &part, NULL), 0);
    assert_int_equal(part.level, 0);
    assert_int_equal(part.ranks, 1);
    int count = 0;
    filo_file *files = NULL;
    assert_int_equal(filo_map_files(kvtree_get(part.items, "0"), &count, &files), 0);
    assert_int_equal(count, 2);
    assert_string_equal(files[0].name, "rank_0.ckpt");
    assert_int_equal(files[0].crc, 0x6697d4ef);
    assert_int_equal(files[0].has_crc, 1);
    assert_string_equal(files[1].name, "a/b c");
    assert_true(files[1].size == UINT64_MAX);
    assert_int_equal(files[1].has_crc, 0);
    assert_null(filo_files_free(count, files));
    kvtree_delete(&part.items);
    kvtree_delete(&tree);
}

static void test_upper_level(void **state)
{
    kvtree *items = kvtree_new();
    assert_non_null(kvtree_set(items, "7", filo_map_pointer(".scr/rank2file.0.7.scr")));
    kvtree *tree = filo_map_make(1, 12, items);
    assert_non_null(kvtree_getf(tree, "LEVEL 1"));
    assert_non_null(kvtree_getf(tree, "RANKS 12"));
    assert_non_null(kvtree_getf(tree, "RANK 7 OFFSET 0"));
    filo_map_part part;
    assert_int_equal(filo_map_take(tree, -1, &part, NULL), 0);
    assert_int_equal(part.level, 1);
    assert_int_equal(part.ranks, 12);
    assert_string_equal(filo_map_lower(kvtree_get(part.items, "7")),
                        ".scr/rank2file.0.7.scr");
    kvtree_delete(&part.items);
    kvtree_delete(&tree);
}

/* What is refused stays as it was, and the outputs do, too. */
static void test_refused(void **state)
{
    char err[ERRTEXT_SIZE] = "";
    filo_map_part part = {.level = 77};
    kvtree *items = kvtree_new();
    assert_non_null(kvtree_set(items, "7", filo_map_pointer("../x")));
    kvtree *tree = filo_map_make(1, 12, items);
    assert_int_equal(filo_map_take(tree, 1, &part, err), FILO_DAMAGED);
    assert_string_equal(err, "reader 7: file name \"../x\" has a component \"..\"");
    assert_int_equal(part.level, 77);
    assert_int_equal(kvtree_size(kvtree_get(tree, "RANK")), 1);
    assert_int_equal(filo_map_take(NULL, 0, &part, NULL), FILO_DAMAGED);
    kvtree_delete(&tree);
}

/* The bounds that the writer computes with are not too small. */
static void test_bounds(void **state)
{
    char name[BENEATH_NAME_MAX];
    kvtree *items = kvtree_new();
    assert_int_equal(filo_map_name(FILO_MAP, FILO_LEVEL_MAX, 2147483647, name), 0);
    kvtree *pointer = filo_map_pointer(name);
    assert_true(kvtree_pack_size(pointer) + sizeof "2147483647" <=
                filo_map_pointer_max(FILO_MAP));
    size_t bytes = kvtree_pack_size(pointer);
    assert_non_null(kvtree_set(items, "", pointer));
    for (int level = 0; level <= 1; level++) {
        kvtree *tree = filo_map_make(level, 2147483647, kvtree_new());
        assert_true(24 + kvtree_pack_size(tree) <= FILO_MAP_OVERHEAD);
        kvtree_delete(&tree);
    }
    assert_true(bytes > 0);
    kvtree_delete(&items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_own_names),
        cmocka_unit_test(test_lowest_level), cmocka_unit_test(test_upper_level),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
