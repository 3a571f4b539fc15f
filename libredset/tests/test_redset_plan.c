/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the losses of a set. */
#include "src/redset_private.h"

#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 8 };

/* States as they are after an encode. */
static void healthy(int members, redset_state states[])
{
    for (int i = 0; i < members; i++)
        states[i] = (redset_state){0, 99, (uint32_t)(100 + i),
                                   (uint32_t)(100 + (i + members - 1) % members)};
}

static void test_losses(void **state)
{
    redset_state states[MOST];
    for (int members = 2; members <= MOST; members++)
        for (unsigned lost = 0; lost < 1u << members; lost++) {
            int count = 0, first = -1;
            healthy(members, states);
            for (int i = members - 1; i >= 0; i--)
                if (lost >> i & 1) {
                    states[i] = (redset_state){.lost = 1};
                    first = i;
                    count++;
                }
            redset_plan plan = redset_plan_make(REDSET_XOR, members, states);
            assert_int_equal(plan.kind, count == 0   ? REDSET_PLAN_NOTHING
                                        : count == 1 ? REDSET_PLAN_REBUILD
                                                     : REDSET_PLAN_HOPELESS);
            assert_int_equal(plan.lost, count);
            assert_int_equal(plan.member, first);
        }
}

static void test_single(void **state)
{
    redset_state one = {0, 5, 6, 7};
    assert_int_equal(redset_plan_make(REDSET_SINGLE, 1, &one).kind, REDSET_PLAN_NOTHING);
    one = (redset_state){.lost = 1};
    assert_int_equal(redset_plan_make(REDSET_SINGLE, 1, &one).kind, REDSET_PLAN_HOPELESS);
}

static void test_mixed_encodes(void **state)
{
    redset_state states[MOST];
    for (int members = 2; members <= MOST; members++)
        for (int odd = 0; odd < members; odd++)
            for (int lost = -1; lost < members; lost++) {
                if (lost == odd || (lost >= 0 && members == 2)) continue;
                healthy(members, states);
                states[odd].layout = 1;
                if (lost >= 0) states[lost] = (redset_state){.lost = 1};
                assert_int_equal(redset_plan_make(REDSET_XOR, members, states).kind,
                                 REDSET_PLAN_MIXED);
                healthy(members, states);
                states[odd].current = 1; /* its right neighbour kept another list */
                if (lost >= 0) states[lost] = (redset_state){.lost = 1};
                if (lost == (odd + 1) % members) continue; /* nobody left to tell */
                assert_int_equal(redset_plan_make(REDSET_XOR, members, states).kind,
                                 REDSET_PLAN_MIXED);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_mixed_encodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
