/* SPDX-License-Identifier: BSD-3-Clause */
/* From the flows of a set to tasks. */
#include "src/codec/schedule.h"

#include <stdlib.h>

/* A column of a code is a source at the same stage in at most failures + 1 positions: the
 * stage is the column minus the number of lost and unused columns before it. With
 * PARTNER, the limit holds as well: a member is a source or a target of that number of
 * copies. */
int redset_schedule_reach(const redset_shape *shape, int members)
{
    return members * (shape->failures + 1) + 1;
}

int redset_schedule_messages(const redset_shape *shape)
{
    return shape->failures + 1;
}

int redset_schedule_sums(const redset_shape *shape, const uint8_t lost[])
{
    int sums = lost ? 0 : shape->failures;
    for (int m = 0; lost && m < shape->members; m++)
        sums += lost[m] != 0;
    return sums > 0 && redset_shape_is_coded(shape) ? sums : 1;
}

bool redset_schedule_gathers(const redset_shape *shape, const uint8_t lost[])
{
    return !lost && shape->scheme == REDSET_RS && shape->failures > 1 &&
           shape->members - shape->failures > 1;
}

redset_schedule *redset_schedule_new(const redset_shape *shape, int members)
{
    /* a member has one task per flow, and a set has as many flows as members; in one flow
     * it may gather, with one task per source */
    size_t n = 2 * (size_t)shape->members * (size_t)members;
    size_t room = (size_t)shape->failures + 1;
    redset_schedule *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->flow = redset_flow_new(shape);
    s->tasks = calloc(n, sizeof *s->tasks);
    s->to = calloc(n * room, sizeof *s->to);
    s->coefs = calloc(n * room, 1);
    if (s->flow && s->tasks && s->to && s->coefs) return s;
    return redset_schedule_free(s);
}

redset_schedule *redset_schedule_free(redset_schedule *schedule)
{
    if (!schedule) return NULL;
    redset_flow_free(schedule->flow);
    free(schedule->tasks);
    free(schedule->to);
    free(schedule->coefs);
    free(schedule);
    return NULL;
}

static redset_task *schedule_add(redset_schedule *s, int flow, int stage,
                                 redset_flow_end end, uint64_t length)
{
    redset_task *task = &s->tasks[s->count];
    int room = s->flow->shape.failures + 1;
    *task = (redset_task){.flow = flow,
                          .stage = stage,
                          .member = end.member,
                          .stream = end.stream,
                          .coefs = s->coefs + s->count * room,
                          .to = s->to + s->count * room,
                          .length = length};
    s->count++;
    if (length > s->longest) s->longest = length;
    return task;
}

static void schedule_add_source(redset_schedule *s, int number, int i, uint64_t length)
{
    const redset_flow *flow = s->flow;
    redset_task *task = schedule_add(s, number, i, flow->source[i], length);
    bool is_last = i + 1 == flow->sources;
    task->from = i > 0 ? flow->source[i - 1].member : -1;
    task->sums = flow->targets;
    task->copies = flow->sources == 1;
    for (int t = 0; t < flow->targets; t++) {
        task->coefs[t] = redset_flow_coef(flow, t, i);
        task->copies = task->copies && task->coefs[t] == 1;
    }
    task->messages = is_last ? flow->targets : 1;
    for (int t = 0; t < task->messages; t++)
        task->to[t] = is_last ? flow->target[t].member : flow->source[i + 1].member;
}

/* Adds the task of a source that sends its own bytes to the first target. */
static void schedule_add_sender(redset_schedule *s, int number, int i, uint64_t length)
{
    redset_task *task = schedule_add(s, number, 2 * i, s->flow->source[i], length);
    task->from = -1;
    task->sums = task->messages = 1;
    task->coefs[0] = 1;
    task->to[0] = s->flow->target[0].member;
}

/* Adds the task of the first target that gathers the bytes of a source. */
static void schedule_add_gather(redset_schedule *s, int number, int i, uint64_t length)
{
    const redset_flow *flow = s->flow;
    redset_task *task = schedule_add(s, number, 2 * i + 1, flow->target[0], length);
    task->from = flow->source[i].member;
    task->sums = 1;
    task->gathers = true;
    task->begins = i == 0;
    task->ends = i + 1 == flow->sources;
    for (int t = 0; t < flow->targets; t++)
        task->coefs[t] = redset_flow_coef(flow, t, i);
    task->messages = task->ends ? flow->targets - 1 : 0;
    for (int t = 0; t < task->messages; t++)
        task->to[t] = flow->target[t + 1].member;
}

static void schedule_add_target(redset_schedule *s, int number, redset_flow_end target,
                                int stage, int from, uint64_t length)
{
    redset_task *task = schedule_add(s, number, stage, target, length);
    task->from = from;
    task->is_target = true;
    task->sums = 1;
}

static bool schedule_has(int count, const int member[], int wanted)
{
    bool found = !member;
    for (int i = 0; i < count && !found; i++)
        found = member[i] == wanted;
    return found;
}

/* Adds the tasks of a flow that is gathered, in the order of their stages. */
static void schedule_add_gathered(redset_schedule *s, int number, uint64_t length,
                                  int count, const int member[])
{
    const redset_flow *flow = s->flow;
    const int first = flow->target[0].member;
    for (int i = 0; i < flow->sources; i++) {
        if (schedule_has(count, member, flow->source[i].member))
            schedule_add_sender(s, number, i, length);
        if (schedule_has(count, member, first)) schedule_add_gather(s, number, i, length);
    }
    for (int t = 1; t < flow->targets; t++)
        if (schedule_has(count, member, flow->target[t].member))
            schedule_add_target(s, number, flow->target[t], 2 * flow->sources, first,
                                length);
}

/* Adds the tasks of some members, or of all (member NULL), in a flow. */
static void schedule_add_flow(redset_schedule *s, const uint8_t lost[], int number,
                              uint64_t length, int count, const int member[])
{
    redset_flow_plan(s->flow, lost, number);
    const redset_flow *flow = s->flow;
    if (flow->targets == 0 || length == 0) return;
    if (redset_schedule_gathers(&flow->shape, lost)) {
        schedule_add_gathered(s, number, length, count, member);
        return;
    }
    for (int i = 0; i < flow->sources; i++)
        if (schedule_has(count, member, flow->source[i].member))
            schedule_add_source(s, number, i, length);
    for (int i = 0; i < flow->targets; i++) {
        if (!schedule_has(count, member, flow->target[i].member)) continue;
        schedule_add_target(s, number, flow->target[i], flow->sources,
                            flow->source[flow->sources - 1].member, length);
    }
}

static int schedule_compare(const void *x, const void *y)
{
    const redset_task *a = x, *b = y;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->flow != b->flow) return a->flow < b->flow ? -1 : 1;
    return (a->member > b->member) - (a->member < b->member);
}

void redset_schedule_members(redset_schedule *schedule, const uint8_t lost[],
                             const uint64_t length[], int count, const int member[])
{
    schedule->count = 0;
    schedule->longest = 0;
    for (int i = 0; i < schedule->flow->shape.members; i++)
        schedule_add_flow(schedule, lost, i, length[i], count, member);
    qsort(schedule->tasks, (size_t)schedule->count, sizeof *schedule->tasks,
          schedule_compare);
}

void redset_schedule_flow(redset_schedule *schedule, const uint8_t lost[],
                          const uint64_t length[], int flow)
{
    schedule->count = 0;
    schedule->longest = 0;
    schedule_add_flow(schedule, lost, flow, length[flow], 0, NULL);
}
