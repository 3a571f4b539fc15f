/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan that follows from the losses of a set. */
#include "src/set/plan.h"

#include "scratch.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 8 };

/* States of a set, one after the other. */
static uint32_t states[MOST * (MOST + 2)];

static redset_state *state_of(const redset_shape *shape, int member)
{
    return (redset_state *)redset_state_at(shape, states, member);
}

/* States as they are after an encode. */
static void healthy(const redset_shape *shape)
{
    for (int m = 0; m < shape->members; m++) {
        redset_state *state = state_of(shape, m);
        *state = (redset_state){.layout = 99};
        for (int d = 0; d <= shape->failures; d++)
            state->list[d] = 100 + (uint32_t)((m + shape->members - d) % shape->members);
    }
}

static void lose(const redset_shape *shape, int member)
{
    memset(state_of(shape, member), 0, redset_state_size(shape));
    state_of(shape, member)->lost = 1;
}

/* Sets *shape to the i-th shape of the tests; returns 0 after the last one. */
static int shape_number(int i, redset_shape *shape)
{
    for (int members = 2; members <= MOST; members++)
        for (int failures = 1; failures < members; failures++)
            for (int scheme = REDSET_PARTNER; scheme <= REDSET_RS; scheme++) {
                *shape = (redset_shape){(redset_scheme)scheme, members, failures};
                if (redset_shape_check(shape) == 0 && i-- == 0) return 1;
            }
    return 0;
}

static void test_losses(void **state)
{
    redset_shape shape;
    uint8_t lost[MOST];
    for (int i = 0; shape_number(i, &shape); i++)
        for (unsigned pattern = 0; pattern < 1u << shape.members; pattern++) {
            int count = 0;
            healthy(&shape);
            for (int m = 0; m < shape.members; m++)
                if (pattern >> m & 1) {
                    lose(&shape, m);
                    count++;
                }
            redset_plan plan = redset_plan_make(&shape, states, lost);
            for (int m = 0; m < shape.members; m++)
                assert_int_equal(lost[m], pattern >> m & 1);
            assert_int_equal(plan.lost, count);
            assert_int_equal(plan.kind, count == 0 ? REDSET_PLAN_NOTHING
                                        : redset_shape_can_rebuild(&shape, lost)
                                            ? REDSET_PLAN_REBUILD
                                            : REDSET_PLAN_HOPELESS);
        }
}

/* An unread member counts as lost; if the loss is then too large, the plan is to wait. */
static void test_unread(void **state)
{
    redset_shape shape;
    uint8_t all[MOST], gone[MOST], lost[MOST];
    int seen[REDSET_PLAN_MIXED + 1] = {0};
    for (int i = 0; shape_number(i, &shape); i++)
        for (unsigned pattern = 1; pattern < 1u << shape.members; pattern++)
            for (unsigned unread = pattern; unread; unread = (unread - 1) & pattern) {
                healthy(&shape);
                for (int m = 0; m < shape.members; m++) {
                    if (pattern >> m & 1) lose(&shape, m);
                    if (unread >> m & 1) state_of(&shape, m)->lost = REDSET_UNREAD;
                    all[m] = pattern >> m & 1;
                    gone[m] = all[m] && !(unread >> m & 1);
                }
                redset_plan plan = redset_plan_make(&shape, states, lost);
                assert_memory_equal(lost, all, (size_t)shape.members);
                assert_int_equal(plan.kind, redset_shape_can_rebuild(&shape, all)
                                                ? REDSET_PLAN_REBUILD
                                            : redset_shape_can_rebuild(&shape, gone)
                                                ? REDSET_PLAN_WAIT
                                                : REDSET_PLAN_HOPELESS);
                seen[plan.kind]++;
            }
    for (int kind = REDSET_PLAN_REBUILD; kind <= REDSET_PLAN_HOPELESS; kind++)
        assert_true(seen[kind] > 0);
}

static void test_verdicts(void **state)
{
    static const int verdicts[] = {[REDSET_PLAN_NOTHING] = 0,
                                   [REDSET_PLAN_REBUILD] = REDSET_RECOVERABLE,
                                   [REDSET_PLAN_WAIT] = -EIO,
                                   [REDSET_PLAN_HOPELESS] = REDSET_UNRECOVERABLE};
    for (int kind = REDSET_PLAN_NOTHING; kind <= REDSET_PLAN_HOPELESS; kind++) {
        const redset_plan plan = {.kind = (redset_plan_kind)kind};
        assert_int_equal(redset_plan_verdict(&plan), verdicts[kind]);
    }
}

static void test_single(void **state)
{
    const redset_shape shape = {REDSET_SINGLE, 1, 0};
    uint8_t lost;
    healthy(&shape);
    assert_int_equal(redset_plan_make(&shape, states, &lost).kind, REDSET_PLAN_NOTHING);
    lose(&shape, 0);
    assert_int_equal(redset_plan_make(&shape, states, &lost).kind, REDSET_PLAN_HOPELESS);
}

/* The plan when a member is of another encode and `gone` is lost (-1: none). */
static redset_plan plan_of(const redset_shape *shape, int gone)
{
    uint8_t lost[MOST];
    if (gone >= 0) lose(shape, gone);
    return redset_plan_make(shape, states, lost);
}

static int other_survivors(const redset_shape *shape, int gone)
{
    return shape->members - 1 - (gone >= 0);
}

static void test_mixed_encodes(void **state)
{
    redset_shape shape;
    for (int i = 0; shape_number(i, &shape); i++)
        for (int odd = 0; odd < shape.members; odd++)
            for (int gone = -1; gone < shape.members; gone++) {
                if (gone == odd || other_survivors(&shape, gone) == 0) continue;
                healthy(&shape);
                state_of(&shape, odd)->layout = 1;
                assert_int_equal(plan_of(&shape, gone).kind, REDSET_PLAN_MIXED);
                healthy(&shape);
                state_of(&shape, odd)->list[0] = 1; /* other members kept another list of
                                                       this member */
                redset_plan plan = plan_of(&shape, gone);
                if (shape.failures == 1 && gone == (odd + 1) % shape.members)
                    continue; /* no member left with the other list */
                assert_int_equal(plan.kind, REDSET_PLAN_MIXED);
                assert_int_equal(plan.member, odd);
            }
}

/* Two survivors have different lists of a lost member. */
static void test_heirs_that_differ(void **state)
{
    const redset_shape shape = {REDSET_RS, 5, 2};
    healthy(&shape);
    state_of(&shape, 4)->list[2] = 1; /* of member 2 */
    redset_plan plan = plan_of(&shape, 2);
    assert_int_equal(plan.kind, REDSET_PLAN_MIXED);
    assert_int_equal(plan.member, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_verdicts),      cmocka_unit_test(test_single),
        cmocka_unit_test(test_mixed_encodes), cmocka_unit_test(test_heirs_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
