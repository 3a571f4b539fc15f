/* SPDX-License-Identifier: BSD-3-Clause */
/* Which redundancy descriptor a dataset uses, and descriptors as trees. */
#include "config/reddesc.h"
#include "records.h"

/* ---- choices ---- */

#define DESC(number, on, every, out)                                                     \
    {                                                                                    \
        .index = number, .enabled = on, .interval = every, .output = out                 \
    }

static int chosen(const scr_reddesc *desc)
{
    return desc ? desc->index : -1;
}

static void for_checkpoint(void **state)
{
    scr_reddesc list[] = {DESC(0, 1, 1, 0), DESC(1, 1, 4, 0), DESC(2, 1, 8, 0),
                          DESC(3, 0, 2, 0)};
    const scr_reddescs guide = {4, list, 0};
    static const int expected[] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2};
    for (int n = 1; n <= 16; n++)
        assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, n)), expected[n - 1]);
    list[2].enabled = 0;
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 8)), 1);
    list[3].enabled = 1;
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 2)), 3);
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 2147483644)), 1);
    list[1].interval = 2; /* of two equal ones, the first */
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 2)), 1);
    list[0].enabled = 0;
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 3)), -1);
}

/* By definition: no other enabled descriptor whose interval divides n has a larger
 * interval. */
static void for_any_checkpoint(void **state)
{
    unsigned random = 1;
    for (int round = 0; round < 20000; round++) {
        scr_reddesc list[5];
        int best = -1, n;
        for (int i = 0; i < 5; i++) {
            random = random * 1103515245 + 12345;
            list[i] = (scr_reddesc)DESC(i, (random >> 16) % 4 != 0,
                                        1 + (int)(random >> 20) % 12, 0);
        }
        n = 1 + (int)(random >> 8) % 100;
        for (int every = 12; every >= 1 && best < 0; every--)
            for (int i = 4; i >= 0; i--)
                if (list[i].enabled && list[i].interval == every && n % every == 0)
                    best = i;
        const scr_reddescs all = {5, list, 0};
        assert_int_equal(chosen(scr_reddesc_for_checkpoint(&all, n)), best);
    }
}

static void for_output(void **state)
{
    scr_reddesc list[] = {DESC(0, 1, 4, 0), DESC(1, 1, 1, 0), DESC(2, 0, 1, 1),
                          DESC(3, 1, 9, 1)};
    const scr_reddescs all = {4, list, 0};
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 0, 1)), 3);
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 4, 1)), 3);
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 4, 0)), 0);
    list[2].enabled = 1;
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 0, 1)), 2);
    list[2].output = list[3].output = 0;
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 0, 1)), 1);
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 8, 1)), 0);
    assert_int_equal(chosen(scr_reddesc_for_dataset(&all, 0, 0)), 1);
}

/* ---- as a tree ---- */

static void as_tree(void **state)
{
    const scr_reddesc desc = {.index = 3,
                              .enabled = 0,
                              .interval = 7,
                              .output = 1,
                              .bypass = 1,
                              .set_size = 9,
                              .set_failures = 4,
                              .type = "PARTNER",
                              .group = "RACK 1",
                              .store = "/p/ssd"};
    const scr_reddesc_place place = {"/p/ssd/me/scr.1", 5, 2, 9, 8};
    kvtree *tree = text_tree("OLD\n  1\n");
    assert_int_equal(scr_reddesc_to_tree(&desc, &place, tree), 0);
    assert_tree(tree, "INDEX\n  3\nBASE\n  /p/ssd\nTYPE\n  PARTNER\nGROUP\n  RACK 1\n"
                      "HOP_DISTANCE\n  1\nENABLED\n  0\nINTERVAL\n  7\nOUTPUT\n  1\n"
                      "BYPASS\n  1\nSET_SIZE\n  9\nSET_FAILURES\n  4\nDIRECTORY\n"
                      "  /p/ssd/me/scr.1\nGROUPS\n  5\nGROUP_ID\n  2\nGROUP_SIZE\n  9\n"
                      "GROUP_RANK\n  8\n");
    kvtree_delete(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_checkpoint),
        cmocka_unit_test(for_any_checkpoint),
        cmocka_unit_test(for_output),
        cmocka_unit_test(as_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
