/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the losses of a set: a pure function, under MPI and without. */
#include "src/redset_private.h"

#include <errno.h>

size_t redset_state_size(const redset_shape *shape)
{
    return sizeof(redset_state) + ((size_t)shape->failures + 1) * sizeof(uint32_t);
}

const redset_state *redset_state_of(const redset_shape *shape, const void *states,
                                    int member)
{
    return (const void *)((const char *)states +
                          (size_t)member * redset_state_size(shape));
}

/* Whether all survivors that have the list of member have the same one. */
static bool agree_on_list(const redset_shape *shape, const void *states, int member)
{
    const uint32_t *first = NULL;
    for (int d = 0; d <= shape->failures; d++) {
        int holder = (member + d) % shape->members;
        const redset_state *state = redset_state_of(shape, states, holder);
        if (state->lost) continue;
        if (first && *first != state->list[d]) return false;
        first = &state->list[d];
    }
    return true;
}

/* Whether member, a survivor, is of the same encode as the first one. */
static bool agree_on_layout(const redset_shape *shape, const void *states, int member)
{
    const redset_state *state = redset_state_of(shape, states, member);
    for (int m = 0; m < member && !state->lost; m++) {
        const redset_state *first = redset_state_of(shape, states, m);
        if (!first->lost) return first->layout == state->layout;
    }
    return true;
}

/* Fills lost[members], with 1 for losses up to that kind; returns how many. */
static int find_lost(const redset_shape *shape, const void *states,
                     enum redset_loss at_most, uint8_t lost[])
{
    int count = 0;
    for (int m = 0; m < shape->members; m++) {
        uint32_t loss = redset_state_of(shape, states, m)->lost;
        lost[m] = loss != 0 && loss <= at_most;
        count += lost[m];
    }
    return count;
}

static redset_plan_kind kind_of(const redset_shape *shape, const void *states,
                                uint8_t lost[], int *count)
{
    find_lost(shape, states, REDSET_LOST, lost);
    bool could = redset_can_rebuild(shape, lost);
    *count = find_lost(shape, states, REDSET_UNREAD, lost);
    if (*count == 0) return REDSET_PLAN_NOTHING;
    if (redset_can_rebuild(shape, lost)) return REDSET_PLAN_REBUILD;
    return could ? REDSET_PLAN_WAIT : REDSET_PLAN_HOPELESS;
}

int redset_plan_verdict(const redset_plan *plan)
{
    if (plan->kind == REDSET_PLAN_NOTHING) return 0;
    if (plan->kind == REDSET_PLAN_WAIT) return -EIO;
    return plan->kind == REDSET_PLAN_REBUILD ? REDSET_RECOVERABLE : REDSET_UNRECOVERABLE;
}

redset_plan redset_plan_make(const redset_shape *shape, const void *states,
                             uint8_t lost[])
{
    redset_plan plan = {.kind = REDSET_PLAN_NOTHING};
    plan.kind = kind_of(shape, states, lost, &plan.lost);
    bool hopeless = plan.kind == REDSET_PLAN_HOPELESS || plan.kind == REDSET_PLAN_WAIT;
    for (int m = 0; m < shape->members && !hopeless; m++)
        if (!agree_on_list(shape, states, m) || !agree_on_layout(shape, states, m))
            return (redset_plan){REDSET_PLAN_MIXED, plan.lost, m};
    return plan;
}
