/* SPDX-License-Identifier: BSD-3-Clause */
/* The map entry of one rank, built and parsed, without MPI and without a disk. The map as
 * a whole: test_filo_map_mpi.c; refused maps: test_filo_hostile_mpi.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "src/filo_private.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kvtree *entry_of(int count, const filo_file files[])
{
    kvtree *entry = kvtree_new();
    assert_int_equal(filo_map_fill(entry, count, files), 0);
    return entry;
}

static kvtree *sample_entry(void)
{
    char plain[] = "rank_0.ckpt", odd[] = "a/b c";
    const filo_file files[] = {
        {.name = plain, .size = 524294, .crc = 0x6697d4ef, .has_crc = 1},
        {.name = odd,
         .size = UINT64_MAX,
         .crc = 5,
         .mtime = -3,
         .has_mtime = 1,
         .others = INT64_MAX},
    };
    kvtree *entry = entry_of(2, files);
    assert_non_null(entry);
    return entry;
}

/* The keys of the documented sample. */
static void test_entry(void **state)
{
    kvtree *entry = sample_entry();
    assert_non_null(kvtree_getf(entry, "FILE rank_0.ckpt SIZE 524294"));
    assert_non_null(kvtree_getf(entry, "FILE rank_0.ckpt CRC 0x6697d4ef"));
    assert_null(kvtree_getf(entry, "FILE rank_0.ckpt OTHERS"));
    assert_non_null(
        kvtree_getf(entry, "FILE %s OTHERS %lld", "a/b c", (long long)INT64_MAX));
    assert_int_equal(kvtree_size(entry), 1);
    kvtree_delete(&entry);
}

/* A file has the recorded time, to the nanosecond. */
static void test_times(void **state)
{
    filo_file file = {.name = NULL};
    struct stat st = {.st_mtim = {-2, 999999999}};
    assert_int_equal(filo_file_was_written(&file, &st), 0);
    filo_file_note_time(&file, &st);
    assert_int_equal(file.has_mtime, 1);
    assert_true(file.mtime == -1000000001);
    assert_int_equal(filo_file_was_written(&file, &st), 0);
    st.st_mtim.tv_nsec--;
    assert_int_equal(filo_file_was_written(&file, &st), 1);
    file.packed = 1;
    assert_int_equal(filo_file_was_written(&file, &st), 0);
    file.packed = 0;
    st.st_mtim.tv_sec = (time_t)INT64_MAX; /* cannot be represented */
    assert_int_equal(filo_file_was_written(&file, &st), 1);
    filo_file_note_time(&file, &st);
    assert_int_equal(file.has_mtime, 0);
    assert_int_equal(filo_file_was_written(&file, &st), 0);
}

static void test_files(void **state)
{
    int count = 0;
    filo_file *files = NULL;
    kvtree *entry = sample_entry();
    assert_int_equal(filo_map_check(entry, NULL, NULL), 0);
    assert_int_equal(filo_map_files(entry, &count, &files), 0);
    assert_int_equal(count, 2);
    assert_string_equal(files[0].name, "rank_0.ckpt");
    assert_int_equal(files[0].crc, 0x6697d4ef);
    assert_int_equal(files[0].has_crc, 1);
    assert_string_equal(files[1].name, "a/b c");
    assert_true(files[1].size == UINT64_MAX);
    assert_int_equal(files[1].has_crc, 0);
    assert_int_equal(files[0].has_mtime, 0);
    assert_int_equal(files[1].has_mtime, 1);
    assert_true(files[1].mtime == -3);
    assert_true(files[0].others == 0 && files[1].others == INT64_MAX);
    assert_null(filo_files_free(count, files));
    kvtree_delete(&entry);
}

static void test_no_files(void **state)
{
    int count = 77;
    filo_file *files = NULL;
    kvtree *entry = entry_of(0, NULL);
    assert_non_null(kvtree_get(entry, "FILE"));
    assert_int_equal(filo_map_check(entry, NULL, NULL), 0);
    assert_int_equal(filo_map_files(entry, &count, &files), 0);
    assert_int_equal(count, 0);
    filo_files_free(count, files);
    kvtree_delete(&entry);
    assert_int_equal(filo_map_check(NULL, NULL, NULL), 0);
}

static void test_refused(void **state)
{
    filo_error err = {""};
    kvtree *entry = sample_entry();
    kvtree *odd = kvtree_getf(entry, "FILE rank_0.ckpt");
    kvtree_util_set_str(odd, "CRC", "0x1g");
    assert_int_equal(filo_map_check(entry, NULL, &err), FILO_DAMAGED);
    assert_string_equal(err.text, "file \"rank_0.ckpt\" has no valid CRC");
    kvtree_unset(odd, "SIZE");
    assert_int_equal(filo_map_check(entry, NULL, &err), FILO_DAMAGED);
    assert_string_equal(err.text, "file \"rank_0.ckpt\" has no valid SIZE");
    kvtree_unset(kvtree_get(entry, "FILE"), "rank_0.ckpt");
    kvtree_set(kvtree_get(entry, "FILE"), "/x", NULL);
    assert_int_equal(filo_map_check(entry, NULL, &err), FILO_DAMAGED);
    kvtree_delete(&entry);
}

static void test_dataset(void **state)
{
    filo_error err = {""};
    kvtree *entry = sample_entry();
    assert_int_equal(filo_map_check(entry, "2.1795", &err),
                     0); /* map of an earlier version */
    assert_int_equal(filo_map_set_dataset(entry, NULL), 0);
    assert_int_equal(filo_map_set_dataset(entry, ""), 0);
    assert_null(kvtree_get(entry, "DATASET"));
    assert_int_equal(filo_map_set_dataset(entry, "2.1795"), 0);
    assert_int_equal(filo_map_check(entry, "2.1795", &err), 0);
    assert_int_equal(filo_map_check(entry, NULL, &err), 0);
    assert_int_equal(filo_map_check(entry, "", &err), 0);
    assert_int_equal(filo_map_check(entry, "3.1795", &err), FILO_DAMAGED);
    assert_string_equal(err.text, "it is of dataset 2.1795, not of 3.1795");
    kvtree_delete(&entry);
}

/* A packed file: the keys of the documented sample, built and parsed. */
static void test_segments(void **state)
{
    char name[] = "rank_2.ckpt", one[] = ".scr/ctr.1.scr", two[] = ".scr/ctr.2.scr",
         three[] = ".scr/ctr.3.scr";
    filo_segment segments[] = {
        {one, 224295, 75705}, {two, 0, 300000}, {three, 0, 148591}};
    const filo_file file = {.name = name,
                            .size = 524296,
                            .packed = 1,
                            .mode = 0640,
                            .segments = 3,
                            .segment = segments};
    int count;
    filo_file *files;
    kvtree *entry = entry_of(1, &file);
    assert_non_null(kvtree_getf(entry, "FILE rank_2.ckpt MODE 0640"));
    assert_non_null(kvtree_getf(entry, "FILE rank_2.ckpt SEG 0 FILE .scr/ctr.1.scr"));
    assert_non_null(kvtree_getf(entry, "FILE rank_2.ckpt SEG 0 OFFSET 224295"));
    assert_non_null(kvtree_getf(entry, "FILE rank_2.ckpt SEG 2 LENGTH 148591"));
    assert_int_equal(filo_map_check(entry, NULL, NULL), 0);
    assert_int_equal(filo_map_files(entry, &count, &files), 0);
    assert_int_equal(files[0].packed, 1);
    assert_int_equal(files[0].mode, 0640);
    assert_int_equal(files[0].segments, 3);
    assert_string_equal(files[0].segment[1].container, two);
    assert_int_equal(files[0].segment[0].offset, 224295);
    assert_int_equal(files[0].segment[2].length, 148591);
    filo_files_free(count, files);
    kvtree_delete(&entry);
}

static void test_empty_packed_file(void **state)
{
    char name[] = "empty";
    int count;
    filo_file *files;
    const filo_file file = {.name = name, .packed = 1, .mode = 0600};
    kvtree *entry = entry_of(1, &file);
    assert_int_equal(filo_map_check(entry, NULL, NULL), 0);
    assert_int_equal(filo_map_files(entry, &count, &files), 0);
    assert_int_equal(files[0].packed, 1);
    assert_int_equal(files[0].segments, 0);
    filo_files_free(count, files);
    kvtree_delete(&entry);
}

/* An entry of a file in two segments, with one error at a time. */
static void refuse_segments(const char *what, const char *key, const char *value)
{
    char name[] = "f", container[] = ".scr/ctr.0.scr";
    filo_error err = {""};
    filo_segment segments[] = {{container, 10, 60}, {container, 70, 40}};
    const filo_file file = {
        .name = name, .size = 100, .packed = 1, .segments = 2, .segment = segments};
    kvtree *entry = entry_of(1, &file);
    assert_int_equal(filo_map_check(entry, NULL, NULL), 0);
    char path[32];
    snprintf(path, sizeof path, "FILE f%s", what);
    kvtree *place = kvtree_getf(entry, path);
    assert_non_null(place);
    kvtree_unset(place, key);
    if (value) assert_non_null(kvtree_set_kv(place, key, value));
    assert_int_equal(filo_map_check(entry, NULL, &err), FILO_DAMAGED);
    assert_non_null(strstr(err.text, "file \"f\""));
    kvtree_delete(&entry);
}

static void test_refused_segments(void **state)
{
    refuse_segments("", "SIZE", "101");
    refuse_segments("", "SIZE", "99");
    refuse_segments("", "SIZE", "59");
    refuse_segments("", "MODE", "888");
    refuse_segments("", "MODE", "7777");
    refuse_segments("", "MODE", "0");
    refuse_segments(" SEG", "0", NULL);
    refuse_segments(" SEG", "1", NULL);
    refuse_segments(" SEG", "7", "x");
    refuse_segments(" SEG 1", "FILE", "../ctr.0.scr");
    refuse_segments(" SEG 1", "FILE", "/etc/passwd");
    refuse_segments(" SEG 1", "FILE", NULL);
    refuse_segments(" SEG 1", "OFFSET", "-1");
    refuse_segments(" SEG 1", "OFFSET", "9223372036854775800");
    refuse_segments(" SEG 1", "OFFSET", NULL);
    refuse_segments(" SEG 1", "LENGTH", "18446744073709551615");
    refuse_segments(" SEG 1", "LENGTH", "41");
    refuse_segments(" SEG 1", "LENGTH", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_empty_packed_file),
        cmocka_unit_test(test_refused_segments),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_dataset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
