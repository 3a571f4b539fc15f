/* SPDX-License-Identifier: BSD-3-Clause */
/* Which redundancy descriptor a dataset uses, and descriptors as trees. */
#include "config/reddesc.h"
#include "records.h"
#include <errno.h>

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
    list[1].interval = 2; /* of two alike, the first */
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 2)), 1);
    list[0].enabled = 0;
    assert_int_equal(chosen(scr_reddesc_for_checkpoint(&guide, 3)), -1);
}

/* By definition: of those enabled whose interval divides n, none has a larger one. */
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

#define GUIDE                                                                            \
    "ENABLED\n  1\nINDEX\n  0\nINTERVAL\n  1\nBASE\n  /tmp\nDIRECTORY\n"                 \
    "  /tmp/user1/scr.1145655/index.0\nTYPE\n  XOR\nHOP_DISTANCE\n  1\nSET_SIZE\n  8\n"  \
    "GROUPS\n  1\nGROUP_ID\n  0\nGROUP_SIZE\n  4\nGROUP_RANK\n  0\n"

/* Every byte counts, those behind the texts aside. */
static void assert_same(const scr_reddesc *a, const scr_reddesc *b)
{
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->enabled, b->enabled);
    assert_int_equal(a->interval, b->interval);
    assert_int_equal(a->output, b->output);
    assert_int_equal(a->bypass, b->bypass);
    assert_int_equal(a->set_size, b->set_size);
    assert_int_equal(a->set_failures, b->set_failures);
    assert_string_equal(a->type, b->type);
    assert_string_equal(a->group, b->group);
    assert_string_equal(a->store, b->store);
}

static void example_of_the_guide(void **state)
{
    char err[ERRTEXT_SIZE] = "";
    scr_reddesc d, wanted = {.enabled = 1,
                             .interval = 1,
                             .set_size = 8,
                             .set_failures = 1,
                             .type = "XOR",
                             .group = "NODE",
                             .store = "/tmp"};
    scr_reddesc_place p;
    kvtree *tree = text_tree(GUIDE);
    assert_int_equal(scr_reddesc_from_tree(tree, &d, &p, err), 0);
    assert_same(&d, &wanted);
    assert_string_equal(p.directory, "/tmp/user1/scr.1145655/index.0");
    assert_true(p.groups == 1 && p.group_id == 0 && p.group_size == 4);
    assert_int_equal(p.group_rank, 0);
    kvtree_delete(&tree);
}

static void there_and_back(void **state)
{
    char err[ERRTEXT_SIZE] = "";
    const scr_reddesc from = {.index = 3,
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
    scr_reddesc d;
    scr_reddesc_place p;
    kvtree *tree = text_tree("OLD\n  1\n");
    assert_int_equal(scr_reddesc_to_tree(&from, &place, tree), 0);
    assert_tree(tree, "INDEX\n  3\nBASE\n  /p/ssd\nTYPE\n  PARTNER\nGROUP\n  RACK 1\n"
                      "HOP_DISTANCE\n  1\nENABLED\n  0\nINTERVAL\n  7\nOUTPUT\n  1\n"
                      "BYPASS\n  1\nSET_SIZE\n  9\nSET_FAILURES\n  4\nDIRECTORY\n"
                      "  /p/ssd/me/scr.1\nGROUPS\n  5\nGROUP_ID\n  2\nGROUP_SIZE\n  9\n"
                      "GROUP_RANK\n  8\n");
    assert_int_equal(scr_reddesc_from_tree(tree, &d, &p, err), 0);
    assert_same(&d, &from);
    assert_string_equal(p.directory, place.directory);
    assert_true(p.groups == 5 && p.group_id == 2 && p.group_size == 9);
    assert_int_equal(p.group_rank, 8);
    assert_int_equal(scr_reddesc_to_tree(&from, NULL, tree), 0);
    assert_null(kvtree_get(tree, "DIRECTORY"));
    assert_int_equal(scr_reddesc_from_tree(tree, &d, NULL, err), 0);
    assert_int_equal(scr_reddesc_from_tree(tree, &d, &p, err), -EBADMSG);
    kvtree_delete(&tree);
}

/* One value of the guide's example is another; NULL: it is not there. */
static void refused(const char *key, const char *value)
{
    char err[ERRTEXT_SIZE] = "", told[128];
    scr_reddesc d = {.index = 77};
    scr_reddesc_place p = {.groups = 77};
    kvtree *tree = text_tree(GUIDE);
    kvtree_unset(tree, key);
    if (value) assert_int_equal(kvtree_util_set_str(tree, key, value), 0);
    int rc = scr_reddesc_from_tree(tree, &d, &p, err);
    snprintf(told, sizeof told, "a redundancy descriptor with an impossible %s", key);
    if (rc != -EBADMSG) fail_msg("%s %s", key, value ? value : "missing");
    assert_string_equal(err, told);
    assert_true(d.index == 77 && p.groups == 77);
    kvtree_delete(&tree);
}

static void lies(void **state)
{
    static const char *const all[][2] = {
        {"ENABLED", NULL},       {"ENABLED", "2"},
        {"ENABLED", "-1"},       {"INDEX", NULL},
        {"INDEX", "-1"},         {"INDEX", "1000"},
        {"INTERVAL", NULL},      {"INTERVAL", "0"},
        {"INTERVAL", "1.5"},     {"INTERVAL", "2147483648"},
        {"BASE", NULL},          {"BASE", "tmp"},
        {"BASE", "/tmp/../etc"}, {"BASE", "/tmp/"},
        {"BASE", "/t\nmp"},      {"DIRECTORY", NULL},
        {"DIRECTORY", "/a/./b"}, {"DIRECTORY", ""},
        {"TYPE", NULL},          {"TYPE", "xor"},
        {"TYPE", "FILE"},        {"TYPE", "XORXORXORXOR"},
        {"SET_SIZE", "1"},       {"SET_SIZE", NULL},
        {"SET_FAILURES", "0"},   {"OUTPUT", "2"},
        {"BYPASS", "x"},         {"GROUP", ""},
        {"GROUP", "a\tb"},       {"GROUPS", "0"},
        {"GROUPS", NULL},        {"GROUP_ID", "-1"},
        {"GROUP_SIZE", "0"},     {"GROUP_RANK", "4"},
        {"GROUP_RANK", "-1"},    {"GROUP_RANK", NULL},
    };
    char longer[SCR_DESC_PATH_SIZE + 1] = "/";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        refused(all[i][0], all[i][1]);
    memset(longer + 1, 'x', sizeof longer - 2);
    longer[sizeof longer - 1] = 0;
    refused("BASE", longer);
    refused("DIRECTORY", longer);
    longer[SCR_DESC_NAME_SIZE] = 0;
    refused("GROUP", longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(for_checkpoint), cmocka_unit_test(for_any_checkpoint),
        cmocka_unit_test(for_output),     cmocka_unit_test(example_of_the_guide),
        cmocka_unit_test(there_and_back), cmocka_unit_test(lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
