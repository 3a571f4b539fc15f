/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file a name refers to. */
#include "plan/file_match.h"
#include "records.h"

/* The files of a dataset: their names below the prefix directory, and at output. */
static const char *const files[][2] = {
    {"a/rank_0", "../a/rank_0"}, {"a/deep/x", "deep/x"}, {"b/deep/y", NULL},
    {"c/deep/y", NULL},          {"z", "/old/run/z"},
};
#define FILES (sizeof files / sizeof *files)

/* The file that is found, "several" or "none". */
static const char *look_up(const char *name, const char *below)
{
    scr_file_match m;
    const char *found = "none";
    scr_file_match_begin(&m, name, below, "/pfs/me/run");
    for (size_t i = 0; i < FILES; i++)
        if (scr_file_match_try(&m, files[i][0], files[i][1])) found = files[i][0];
    return m.files > 1 ? "several" : found;
}

static void by_place(void **state)
{
    assert_string_equal(look_up("rank_0", "a/rank_0"), "a/rank_0");
    /* the place counts more than the name at output */
    assert_string_equal(look_up("deep/x", "z"), "z");
}

static void as_given(void **state)
{
    assert_string_equal(look_up("/old/run/z", NULL), "z");
    assert_string_equal(look_up("deep/x", "sub/deep/x"), "a/deep/x");
}

static void by_end(void **state)
{
    static const char *const same[] = {
        "rank_0",       "a/rank_0",        "./a//rank_0",        "../../a/rank_0",
        "run/a/rank_0", "me/run/a/rank_0", "pfs/me/run/a/rank_0"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_string_equal(look_up(same[i], "elsewhere"), "a/rank_0");
    assert_string_equal(look_up("y", NULL), "several");
    assert_string_equal(look_up("deep/y", NULL), "several");
    assert_string_equal(look_up("b/deep/y", NULL), "b/deep/y");
}

static void not_at_all(void **state)
{
    static const char *const wrong[] = {
        "ank_0", "rank_00", "b/rank_0", "un/a/rank_0", "x/run/z",
        "..",    ".",       "deep",     "/a/rank_0",   "../other/z"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_string_equal(look_up(wrong[i], NULL), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_place),
        cmocka_unit_test(as_given),
        cmocka_unit_test(by_end),
        cmocka_unit_test(not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
