/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the losses of a set: a pure function, under MPI and without. */
#include "src/redset_private.h"

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

redset_plan redset_plan_make(const redset_shape *shape, const void *states,
                             uint8_t lost[])
{
    redset_plan plan = {.kind = REDSET_PLAN_NOTHING};
    for (int m = 0; m < shape->members; m++) {
        lost[m] = redset_state_of(shape, states, m)->lost != 0;
        plan.lost += lost[m];
    }
    if (plan.lost)
        plan.kind =
            redset_can_rebuild(shape, lost) ? REDSET_PLAN_REBUILD : REDSET_PLAN_HOPELESS;
    for (int m = 0; m < shape->members && plan.kind != REDSET_PLAN_HOPELESS; m++)
        if (!agree_on_list(shape, states, m) || !agree_on_layout(shape, states, m))
            return (redset_plan){REDSET_PLAN_MIXED, plan.lost, m};
    return plan;
}
