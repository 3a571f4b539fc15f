/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do, as pure functions: where data lies in an XOR set, and what follows from the
 * losses of a set. Under MPI or not, whoever encodes or rebuilds executes these answers.
 *
 * In a set of N members every member's files are cut into N-1 chunks, and an empty chunk
 * is put at the position that equals the member's number. The XOR over all members at one
 * position is the parity that the member without data there keeps (SCR Developer Guide
 * 1.2, section 2.11.1). */
#include "src/redset_private.h"

uint64_t redset_xor_chunk_size(int members, uint64_t largest)
{
    uint64_t data = (uint64_t)members - 1;
    return largest / data + (largest % data != 0);
}

int redset_xor_chunk_at(int member, int position)
{
    if (position == member) return -1;
    return position < member ? position : position - 1;
}

int redset_xor_position(int member, int members, int step)
{
    return (member - 1 - step + 2 * members) % members;
}

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
