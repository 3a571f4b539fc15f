/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the losses of a set: a pure function, under MPI and without. */
#include "src/redset_private.h"

static int count_lost(int members, const redset_state states[], redset_plan *plan)
{
    int lost = 0;
    for (int i = members - 1; i >= 0; i--)
        if (states[i].lost) {
            plan->member = i;
            lost++;
        }
    return lost;
}

/* 1 when survivors a and b, its right neighbour, tell of two different encodes. */
static int contradict(const redset_state *a, const redset_state *b)
{
    if (a->lost || b->lost) return 0;
    return a->layout != b->layout || a->current != b->partner;
}

/* Two survivors on both sides of a lost one are not compared by contradict. */
static int differ_across(const redset_state *a, const redset_state *b)
{
    return !a->lost && !b->lost && a->layout != b->layout;
}

redset_plan redset_plan_make(redset_scheme scheme, int members,
                             const redset_state states[])
{
    redset_plan plan = {.kind = REDSET_PLAN_NOTHING, .member = -1};
    plan.lost = count_lost(members, states, &plan);
    if (plan.lost > (scheme == REDSET_XOR ? 1 : 0)) {
        plan.kind = REDSET_PLAN_HOPELESS;
        return plan;
    }
    if (plan.lost) plan.kind = REDSET_PLAN_REBUILD;
    for (int i = 0; members > 1 && i < members; i++) {
        const redset_state *next = &states[(i + 1) % members];
        const redset_state *after = &states[(i + 2) % members];
        if (contradict(&states[i], next) || differ_across(&states[i], after)) {
            plan.kind = REDSET_PLAN_MIXED;
            plan.member = i;
            return plan;
        }
    }
    return plan;
}
