/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan that follows from the losses of a set, and the text that describes it. */
#include "src/set/plan.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum redset_loss redset_loss_of(int code)
{
    if (code >= 0 || code == -ENOMEM || code == -EMFILE || code == -ENFILE ||
        code == -ECOMM)
        return 0;
    return err_is_damage(code) ? REDSET_LOST : REDSET_UNREAD;
}

/* ---- states ---- */

size_t redset_state_size(const redset_shape *shape)
{
    return sizeof(redset_state) + ((size_t)shape->failures + 1) * sizeof(uint32_t);
}

redset_state *redset_state_at(const redset_shape *shape, void *states, int member)
{
    return (void *)((char *)states + (size_t)member * redset_state_size(shape));
}

int redset_state_set(redset_state *state, const redset_header *header)
{
    static const char *const common[] = {"DSET",  "TYPE",  "FAILURES", "CHECKSUMS",
                                         "RANKS", "GROUP", "CHUNK",    "ENCODE"};
    int rc = 0;
    memset(state, 0, redset_state_size(&header->shape));
    for (size_t i = 0; !rc && i < sizeof common / sizeof common[0]; i++)
        rc = redset_tree_crc(kvtree_get(header->tree, common[i]), &state->layout);
    for (int d = 0; !rc && d <= header->shape.failures; d++)
        rc = redset_tree_crc(redset_header_list(header->tree, d), &state->list[d]);
    return rc;
}

/* ---- plans ---- */

/* Whether all survivors that keep the list of member have the same list. */
static bool plan_is_list_same(const redset_shape *shape, void *states, int member)
{
    const uint32_t *first = NULL;
    for (int d = 0; d <= shape->failures; d++) {
        int holder = redset_shape_member(shape, member, d);
        const redset_state *state = redset_state_at(shape, states, holder);
        if (state->lost) continue;
        if (first && *first != state->list[d]) return false;
        first = &state->list[d];
    }
    return true;
}

/* Whether member, if it survives, is of the same encode as the first survivor. */
static bool plan_is_layout_same(const redset_shape *shape, void *states, int member)
{
    const redset_state *state = redset_state_at(shape, states, member);
    for (int m = 0; m < member && !state->lost; m++) {
        const redset_state *first = redset_state_at(shape, states, m);
        if (!first->lost) return first->layout == state->layout;
    }
    return true;
}

/* Sets lost[members] to 1 for losses up to that kind. Returns their number. */
static int plan_find_lost(const redset_shape *shape, void *states,
                          enum redset_loss at_most, uint8_t lost[])
{
    int count = 0;
    for (int m = 0; m < shape->members; m++) {
        uint32_t loss = redset_state_at(shape, states, m)->lost;
        lost[m] = loss != 0 && loss <= at_most;
        count += lost[m];
    }
    return count;
}

redset_plan redset_plan_make(const redset_shape *shape, void *states, uint8_t lost[])
{
    plan_find_lost(shape, states, REDSET_LOST, lost);
    bool could = redset_shape_can_rebuild(shape, lost);
    redset_plan plan = {.lost = plan_find_lost(shape, states, REDSET_UNREAD, lost)};
    if (!redset_shape_can_rebuild(shape, lost)) {
        plan.kind = could ? REDSET_PLAN_WAIT : REDSET_PLAN_HOPELESS;
        return plan;
    }
    plan.kind = plan.lost ? REDSET_PLAN_REBUILD : REDSET_PLAN_NOTHING;
    for (int m = 0; m < shape->members; m++)
        if (!plan_is_list_same(shape, states, m) ||
            !plan_is_layout_same(shape, states, m))
            return (redset_plan){REDSET_PLAN_MIXED, plan.lost, m};
    return plan;
}

int redset_plan_verdict(const redset_plan *plan)
{
    if (plan->kind == REDSET_PLAN_NOTHING) return 0;
    if (plan->kind == REDSET_PLAN_WAIT) return -EIO;
    return plan->kind == REDSET_PLAN_REBUILD ? REDSET_RECOVERABLE : REDSET_UNRECOVERABLE;
}

/* ---- texts ---- */

/* Maximum number of members that a text names. */
enum { PLAN_NAMED = 8 };

/* Appends to the text, truncated to fit. */
__attribute__((format(printf, 2, 3))) static void plan_append(redset_error *err,
                                                              const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list args;
    va_start(args, format);
    vsnprintf(err->text + used, sizeof err->text - used, format, args);
    va_end(args);
}

void redset_plan_describe_lost(const redset_layout *layout, const uint8_t lost[],
                               redset_error *err)
{
    int count = 0;
    err_set(err, 0, "set %d (%s over %d ranks) lost", layout->place.id,
            redset_scheme_name(layout->place.scheme), layout->place.members);
    for (int i = 0; i < layout->place.members; i++) {
        if (!lost[i]) continue;
        if (count++ < PLAN_NAMED)
            plan_append(err, "%s %d (rank %d)", count > 1 ? "," : " members", i,
                        layout->members[i]);
    }
    if (count > PLAN_NAMED) plan_append(err, " and %d more", count - PLAN_NAMED);
}

void redset_plan_add_reason(int rank, const char *reason, redset_error *err)
{
    plan_append(err, "; rank %d: %.*s", rank, REDSET_REASON_SIZE - 1, reason);
}

void redset_plan_describe_mixed(const redset_layout *layout, const redset_plan *plan,
                                redset_error *err)
{
    err_set(err, 0,
            "set %d (%s over %d ranks) has redundancy files of different encodes: they "
            "disagree on member %d (rank %d)",
            layout->place.id, redset_scheme_name(layout->place.scheme),
            layout->place.members, plan->member, layout->members[plan->member]);
}
