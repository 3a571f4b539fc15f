/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files SCR may remove: every fact about a file is changed by itself. */
#include "plan/own_file.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { USER = 1000, SECONDS = 1795257190 };

static struct stat a_file(void)
{
    struct stat st = {.st_mode = S_IFREG | 0644,
                      .st_uid = USER,
                      .st_ino = 17,
                      .st_size = 100,
                      .st_mtim = {SECONDS, 731827450},
                      .st_ctim = {SECONDS, 731827450}};
    return st;
}

/* ---- the file of a map ---- */

static void differs(const filo_file *file, const struct stat *st, const char *why)
{
    kvtree_error err = {""};
    assert_int_equal(scr_file_compare(file, st, &err), FILO_DAMAGED);
    assert_non_null(strstr(err.text, "\"out/rank_0\" "));
    assert_non_null(strstr(err.text, why));
}

static void compared_with_its_map(void **state)
{
    (void)state;
    char name[] = "out/rank_0";
    struct stat st = a_file();
    filo_file file = {.name = name, .size = 100};
    filo_file_note_time(&file, &st);
    st.st_uid++; /* a copy has another owner, inode and status change time */
    st.st_ino++;
    st.st_ctim.tv_sec++;
    assert_int_equal(scr_file_compare(&file, &st, NULL), 0);

    st.st_mtim.tv_nsec++;
    differs(&file, &st, "was written since");
    st = a_file();
    st.st_mtim.tv_sec--;
    differs(&file, &st, "was written since");
    st = a_file();
    st.st_size++;
    differs(&file, &st, "has 101 bytes, not 100");
    st = a_file();
    st.st_mode = S_IFLNK | 0777;
    differs(&file, &st, "is not a regular file");
}

/* A map of earlier versions: only the size counts. */
static void compared_with_a_map_without_times(void **state)
{
    (void)state;
    char name[] = "out/rank_0";
    struct stat st = a_file();
    filo_file file = {.name = name, .size = 100};
    assert_int_equal(scr_file_compare(&file, &st, NULL), 0);
    file.size = 99;
    differs(&file, &st, "has 100 bytes, not 99");
}

/* ---- the mark of a file ---- */

static const struct stat folder = {.st_mode = S_IFDIR | 0755, .st_dev = 5, .st_ino = 3};

static void nothing_was_there(void **state)
{
    (void)state;
    char mark[SCR_FILE_MARK_SIZE];
    struct stat st = a_file();
    scr_file_mark(&folder, NULL, mark);
    assert_true(scr_file_is_written(mark, &folder, &st, USER));
    assert_false(scr_file_is_written(mark, &folder, &st, USER + 1));
    st.st_mode = S_IFDIR | 0755;
    assert_false(scr_file_is_written(mark, &folder, &st, USER));
}

static void something_was_there(void **state)
{
    (void)state;
    char mark[SCR_FILE_MARK_SIZE];
    struct stat st = a_file();
    scr_file_mark(&folder, &st, mark);
    assert_false(scr_file_is_written(mark, &folder, &st, USER));
    st.st_ctim.tv_sec++; /* chmod, or a rename */
    assert_false(scr_file_is_written(mark, &folder, &st, USER));

    st.st_mtim.tv_nsec++;
    assert_true(scr_file_is_written(mark, &folder, &st, USER));
    st = a_file();
    st.st_mtim.tv_sec++;
    assert_true(scr_file_is_written(mark, &folder, &st, USER));
    st = a_file();
    st.st_size = 0;
    assert_true(scr_file_is_written(mark, &folder, &st, USER));
    st = a_file();
    st.st_ino++;
    assert_true(scr_file_is_written(mark, &folder, &st, USER));
    assert_false(scr_file_is_written(mark, &folder, &st, USER + 1));
}

/* Whatever the directory contains. */
static void another_folder(void **state)
{
    (void)state;
    char mark[SCR_FILE_MARK_SIZE];
    struct stat other[] = {folder, folder}, st = a_file();
    other[0].st_ino = 33;
    other[1].st_dev = 55;
    for (int i = 0; i < 4; i++) {
        scr_file_mark(&folder, i % 2 ? &st : NULL, mark);
        assert_true(scr_file_is_in(mark, &folder));
        assert_false(scr_file_is_in(mark, &other[i / 2]));
        assert_false(scr_file_is_written(mark, &other[i / 2], &st, USER));
    }
    assert_false(scr_file_is_in("", &folder));
}

/* The longest numbers. */
static void marks_are_not_cut(void **state)
{
    (void)state;
    char mark[SCR_FILE_MARK_SIZE];
    struct stat st = {.st_ino = UINT64_MAX,
                      .st_size = INT64_MIN,
                      .st_mtim = {.tv_sec = INT64_MIN, .tv_nsec = 999999999}};
    const struct stat far = {.st_dev = UINT64_MAX, .st_ino = UINT64_MAX};
    scr_file_mark(&far, &st, mark);
    assert_true(strlen(mark) + 1 < sizeof mark);
    assert_string_equal(mark + strlen(mark) - 10, ".999999999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compared_with_its_map),
        cmocka_unit_test(compared_with_a_map_without_times),
        cmocka_unit_test(nothing_was_there),
        cmocka_unit_test(something_was_there),
        cmocka_unit_test(another_folder),
        cmocka_unit_test(marks_are_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
