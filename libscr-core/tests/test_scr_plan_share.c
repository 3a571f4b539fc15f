/* SPDX-License-Identifier: BSD-3-Clause */
/* How the part of a node in a background flush is divided: rows by hand, and conditions
 * for all small jobs. */
#include "plan/share.h"
#include "records.h"
#include <limits.h>

#define BANDWIDTH 1200.0
#define PERCENT 60.0

static scr_share share(int ranks, int node_ranks, bool leads, int width)
{
    const scr_share_facts f = {.ranks = ranks,
                               .node_ranks = node_ranks,
                               .leads = leads,
                               .width = width,
                               .bandwidth = BANDWIDTH,
                               .percent = PERCENT};
    return scr_plan_share(&f);
}

static void rows(void **state)
{
    static const struct {
        int ranks, node_ranks;
        bool leads;
        int width, turns, copying;
    } table[] = {
        /* the width is enough for all ranks */
        {1, 1, 0, 1, 0, 1},
        {8, 4, 0, 8, 0, 4},
        {8, 4, 0, 256, 0, 4},
        {8, 4, 0, INT_MAX, 0, 4},
        /* a node has its part of the width */
        {8, 4, 0, 7, 3, 3},
        {8, 4, 0, 4, 2, 2},
        {8, 4, 0, 3, 1, 1},
        /* but at least one process */
        {8, 4, 0, 1, 1, 1},
        {64, 1, 0, 2, 1, 1},
        /* nodes of different sizes: 6 and 2 ranks */
        {8, 6, 0, 4, 3, 3},
        {8, 2, 0, 4, 1, 1},
        /* a leader has all limits of its node, with any width */
        {8, 4, 1, 256, 0, 1},
        {8, 4, 1, 4, 2, 1},
        {8, 4, 1, 1, 1, 1},
        /* the product of two numbers of 31 bits */
        {INT_MAX, INT_MAX, 0, INT_MAX - 1, INT_MAX - 1, INT_MAX - 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const scr_share s =
            share(table[i].ranks, table[i].node_ranks, table[i].leads, table[i].width);
        if (s.turns != table[i].turns) fail_msg("row %zu: %d turns", i, s.turns);
        assert_true(s.bandwidth == BANDWIDTH / table[i].copying);
        assert_true(s.percent == PERCENT / table[i].copying);
    }
}

static void no_limits(void **state)
{
    const scr_share_facts f = {.ranks = 8, .node_ranks = 4, .width = 4};
    const scr_share s = scr_plan_share(&f);
    assert_true(s.bandwidth == 0 && s.percent == 0);
}

/* Equal nodes together do not exceed the width, unless it is less than one process per
 * node, and use the width up to less than one process per node. No node exceeds its
 * limits. */
static void all_small_jobs(void **state)
{
    for (int nodes = 1; nodes <= 6; nodes++)
        for (int each = 1; each <= 6; each++)
            for (int width = 1; width <= 40; width++) {
                const int ranks = nodes * each;
                const scr_share s = share(ranks, each, false, width);
                const int at_a_time = s.turns ? s.turns : each;
                assert_true(at_a_time >= 1 && at_a_time <= each);
                assert_true(at_a_time == 1 || nodes * at_a_time <= width);
                assert_true(at_a_time == each || nodes * (at_a_time + 1) > width);
                assert_float_equal(s.bandwidth * at_a_time, BANDWIDTH, 1e-3);
                assert_float_equal(s.percent * at_a_time, PERCENT, 1e-3);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(no_limits),
        cmocka_unit_test(all_small_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
