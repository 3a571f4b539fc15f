/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of nodes, against names that are written out. */
#include "records.h"

#include "config/host_range.h"
#include "configs.h"

static void members(void **state)
{
    static const char *const in[][2] = {
        {"atlas[1-48]", "atlas1"},  {"atlas[1-48]", "atlas48"},
        {"atlas[1-48]", "atlas10"}, {"n[007,010-120]", "n007"},
        {"n[007,010-120]", "n010"}, {"n[007,010-120]", "n099"},
        {"n[007,010-120]", "n120"}, {"[1-3]", "2"},
        {"r1n[1-3]-ib", "r1n3-ib"}, {"n[08-12]", "n08"},
        {"n[08-12]", "n12"},        {"n[8-120]", "n120"},
        {"x[1]2", "x12"},           {"plain", "plain"},
        {"n[0-1]", "n0"},
    };
    static const char *const out[][2] = {
        {"atlas[1-48]", "atlas0"}, {"atlas[1-48]", "atlas49"}, {"atlas[1-48]", "atlas01"},
        {"atlas[1-48]", "atlas"},  {"atlas[1-48]", "atlas1x"}, {"n[007,010-120]", "n7"},
        {"n[007-120]", "n0007"},   {"n[007,010-120]", "n008"}, {"r1n[1-3]-ib", "r1n3"},
        {"x[1]2", "x2"},           {"x[12]2", "x12"},          {"n[1-3]", "m1"},
        {"n[1-3]", "n1000000001"}, {"plain", "plain1"},        {"n[1-3]", "n[1-3]"},
    };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        assert_true(scr_host_range_is_valid(in[i][0]));
        assert_true(scr_host_range_has(in[i][0], in[i][1]));
    }
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        assert_false(scr_host_range_has(out[i][0], out[i][1]));
}

static void all_of_a_range(void **state)
{
    for (int n = 0; n < 1200; n++) {
        char plain[32], padded[32];
        snprintf(plain, sizeof plain, "n%d", n);
        snprintf(padded, sizeof padded, "n%03d", n);
        assert_int_equal(scr_host_range_has("n[95-1010]", plain), n >= 95 && n <= 1010);
        assert_int_equal(scr_host_range_has("n[095-1010]", padded), n >= 95 && n <= 1010);
    }
}

static void refused(void **state)
{
    static const char *const wrong[] = {
        "n[",     "n]",    "n[]",   "n[1",           "n[1-]",    "n[-1]",
        "n[3-1]", "n[1,]", "n[,1]", "n[a]",          "n[1-2-3]", "n[1][2]",
        "n]1[",   "n[1]]", "n[[1]", "n[1234567890]", "n[1 ]",    "n[010-9]"};
    struct conf c;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(scr_host_range_is_valid(wrong[i]));
    conf_of(&c, "GROUPS=n[1-2] POWER=p\n");
    assert_null(scr_groups_value(&c.descs.groups, "POWER", "n3"));
    conf_done(&c);
}

/* A node of its own comes before ranges, and the first range before others. */
static void in_groups(void **state)
{
    struct conf c;
    conf_of(&c,
            "GROUPS=atlas[1-48] POWER=p1 RACK=r1\nGROUPS=atlas[40-96] POWER=p2 RACK=r2\n"
            "GROUPS=atlas7 POWER=p9\n");
    const scr_groups *g = &c.descs.groups;
    assert_string_equal(scr_groups_value(g, "POWER", "atlas1"), "p1");
    assert_string_equal(scr_groups_value(g, "POWER", "atlas45"), "p1");
    assert_string_equal(scr_groups_value(g, "RACK", "atlas96"), "r2");
    assert_string_equal(scr_groups_value(g, "POWER", "atlas7"), "p9");
    assert_string_equal(scr_groups_value(g, "RACK", "atlas7"), "r1");
    assert_null(scr_groups_value(g, "POWER", "atlas97"));
    assert_int_equal(kvtree_size(g->nodes), 1); /* rows, not nodes, take memory */
    assert_int_equal(kvtree_size(g->ranges), 2);
    conf_answers(&c, "GROUPS=atlas45 POWER", "p1");
    conf_answers(&c, "GROUPS", "atlas7\natlas[1-48]\natlas[40-96]");
    conf_done(&c);
}

/* What a rank keeps of them: all that its node has, and the names of all groups. */
static void of_one_node(void **state)
{
    struct conf c;
    conf_of(&c, "GROUPS=atlas[1-48] POWER=p1 RACK=r1\nGROUPS=atlas7 POWER=p9\n"
                "GROUPS=other SWITCH=s\n");
    scr_groups *g = &c.descs.groups;
    kvtree *row = kvtree_new();
    assert_int_equal(scr_groups_row(g, "atlas7", row), 0);
    assert_int_equal(scr_groups_keep(g, "atlas7", row), 0);
    assert_string_equal(scr_groups_value(g, "POWER", "atlas7"), "p9");
    assert_string_equal(scr_groups_value(g, "RACK", "atlas7"), "r1");
    assert_null(scr_groups_value(g, "SWITCH", "atlas7"));
    assert_null(scr_groups_value(g, "RACK", "atlas8"));
    assert_true(scr_groups_has(g, "SWITCH"));
    conf_answers(&c, "GROUPS", "atlas7");
    conf_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),     cmocka_unit_test(all_of_a_range),
        cmocka_unit_test(refused),     cmocka_unit_test(in_groups),
        cmocka_unit_test(of_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
