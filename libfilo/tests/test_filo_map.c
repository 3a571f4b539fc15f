/* SPDX-License-Identifier: BSD-3-Clause */
/* What the map says about one rank, made and taken apart; without MPI and without a disk.
 * The map as a whole: test_filo_map_mpi.c; what is refused: test_filo_hostile_mpi.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "src/filo_private.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

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
static void test_entry(void **state)
{
    kvtree *entry = sample_entry();
    assert_non_null(kvtree_getf(entry, "FILE rank_0.ckpt SIZE 524294"));
    assert_non_null(kvtree_getf(entry, "FILE rank_0.ckpt CRC 0x6697d4ef"));
    assert_int_equal(kvtree_size(entry), 1);
    kvtree_delete(&entry);
}

static void test_files(void **state)
{
    int count = 0;
    filo_file *files = NULL;
    kvtree *entry = sample_entry();
    assert_int_equal(filo_map_check(entry, NULL), 0);
    assert_int_equal(filo_map_files(entry, &count, &files), 0);
    assert_int_equal(count, 2);
    assert_string_equal(files[0].name, "rank_0.ckpt");
    assert_int_equal(files[0].crc, 0x6697d4ef);
    assert_int_equal(files[0].has_crc, 1);
    assert_string_equal(files[1].name, "a/b c");
    assert_true(files[1].size == UINT64_MAX);
    assert_int_equal(files[1].has_crc, 0);
    assert_null(filo_files_free(count, files));
    kvtree_delete(&entry);
}

static void test_no_files(void **state)
{
    int count = 77;
    filo_file *files = NULL;
    kvtree *entry = filo_map_entry(0, NULL);
    assert_non_null(kvtree_get(entry, "FILE"));
    assert_int_equal(filo_map_check(entry, NULL), 0);
    assert_int_equal(filo_map_files(entry, &count, &files), 0);
    assert_int_equal(count, 0);
    filo_files_free(count, files);
    kvtree_delete(&entry);
    assert_int_equal(filo_map_check(NULL, NULL), 0);
}

static void test_refused(void **state)
{
    char err[ERRTEXT_SIZE] = "";
    kvtree *entry = sample_entry();
    kvtree *odd = kvtree_getf(entry, "FILE rank_0.ckpt");
    kvtree_util_set_str(odd, "CRC", "0x1g");
    assert_int_equal(filo_map_check(entry, err), FILO_DAMAGED);
    assert_string_equal(err, "file \"rank_0.ckpt\" has no valid CRC");
    kvtree_unset(odd, "SIZE");
    assert_int_equal(filo_map_check(entry, err), FILO_DAMAGED);
    assert_string_equal(err, "file \"rank_0.ckpt\" has no valid SIZE");
    kvtree_unset(kvtree_get(entry, "FILE"), "rank_0.ckpt");
    kvtree_set(kvtree_get(entry, "FILE"), "/x", NULL);
    assert_int_equal(filo_map_check(entry, err), FILO_DAMAGED);
    kvtree_delete(&entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
