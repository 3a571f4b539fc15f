/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that contain their rank need no comparison, however many files there are; equal
 * names of two ranks are always found. */
#include "plan/name_set.h"
#include "records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether names are distinct: names of each rank, from a format of its rank and the
 * number of the file, and of one more file of rank 0 (NULL: none). */
static bool are_distinct(const char *format, int ranks, int files, const char *of_root)
{
    scr_name_set *all = calloc(1, sizeof *all), *own = calloc(1, sizeof *own);
    char name[100];
    for (int rank = 0; rank < ranks; rank++) {
        memset(own, 0, sizeof *own);
        for (int i = 0; i < files; i++) {
            snprintf(name, sizeof name, format, rank, i);
            scr_name_set_add(own, name, rank, ranks);
        }
        if (rank == 0 && of_root) scr_name_set_add(own, of_root, rank, ranks);
        scr_name_set_unite(all, own);
    }
    const bool distinct = scr_name_set_is_distinct(all);
    free(all);
    free(own);
    return distinct;
}

static void test_names_with_ranks_are_free(void **state)
{
    static const char *const formats[] = {
        "rank_%d",           "ckpt.7/rank_%d.dat",   "ckpt.7/rank_%d_%d.h5",
        "a1/b2/%06d/part%d", "%d/1/2/3/4/5/6/7/x%d", "ckpt-12-of-50/field%2$d/%1$d.bin"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const int files = strstr(formats[i], "%d") && i < 2 ? 1 : 8;
        assert_true(are_distinct(formats[i], 8, files, NULL));
        assert_true(are_distinct(formats[i], 10000, files, NULL));
        assert_true(are_distinct(formats[i], 10000, files, "global"));
    }
    assert_true(are_distinct("ckpt.7/rank_%d", 10000, 1, "ckpt.7/global"));
}

static void test_other_names_are_compared(void **state)
{
    assert_false(are_distinct("same", 2, 1, NULL));
    assert_false(are_distinct("rank_%d", 10000, 1, "rank_7"));
    assert_false(are_distinct("r/%d", 10000, 1, "r/00007") &&
                 are_distinct("r/%d", 10000, 1, "r/7"));
    /* no place has the rank: the larger set is sufficient for few names */
    assert_true(are_distinct("x_%x_y", 8, 1, "z"));
}

/* Draws a short name of few digits and letters, so that many names are equal. */
static void draw_name(char name[8])
{
    static const char alphabet[] = "0123a/";
    const int n = 1 + rand() % 4;
    for (int i = 0; i < n; i++)
        name[i] = alphabet[rand() % 6];
    name[n] = 0;
}

/* Compared with a comparison of all names. */
static void test_equal_names_are_found(void **state)
{
    enum { RANKS = 4, FILES = 3 };
    int equal_ones = 0;
    srand(8);
    for (int trial = 0; trial < 20000; trial++) {
        char names[RANKS][FILES][8];
        bool equal = false;
        scr_name_set all = {.bad = 0};
        for (int r = 0; r < RANKS; r++) {
            scr_name_set own = {.bad = 0};
            for (int f = 0; f < FILES; f++) {
                draw_name(names[r][f]);
                if (rand() % 2) snprintf(names[r][f], 8, "a%d/%d", r, f);
                scr_name_set_add(&own, names[r][f], r, RANKS);
                for (int before = 0; before < r * FILES; before++)
                    equal |=
                        strcmp(names[before / FILES][before % FILES], names[r][f]) == 0;
            }
            scr_name_set_unite(&all, &own);
        }
        if (equal) assert_false(scr_name_set_is_distinct(&all));
        equal_ones += equal;
    }
    assert_in_range(equal_ones, 1000, 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_with_ranks_are_free),
        cmocka_unit_test(test_other_names_are_compared),
        cmocka_unit_test(test_equal_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
