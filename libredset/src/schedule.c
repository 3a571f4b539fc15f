/* SPDX-License-Identifier: BSD-3-Clause */
/* From the flows of a set to the tasks of one member; see schedule.h. */
#include "src/schedule.h"

#include <stdlib.h>
#include <string.h>

/* A column of a code is source at the same stage in at most failures + 1 positions, as
 * the stage is the column less those among the lost and unused before it; copies make a
 * member source or target of as many flows. */
int redset_schedule_reach(const redset_shape *shape)
{
    return shape->failures + 2;
}

static redset_task *add_task(redset_schedule *s, const redset_flow *flow, int number,
                             int stage, int stream)
{
    redset_task *task = &s->tasks[s->count];
    int room = flow->shape.failures + 1;
    *task = (redset_task){.flow = number,
                          .stage = stage,
                          .stream = stream,
                          .from = -1,
                          .coefs = s->coefs + s->count * room,
                          .to = s->members + s->count * room};
    s->count++;
    return task;
}

/* The part of source number i. */
static void add_source_task(redset_schedule *s, const redset_flow *flow, int number,
                            int i)
{
    redset_task *task = add_task(s, flow, number, i, flow->source[i].stream);
    bool last = i + 1 == flow->sources;
    if (i > 0) task->from = flow->source[i - 1].member;
    task->sums = flow->targets;
    task->copies = flow->sources == 1;
    for (int t = 0; t < flow->targets; t++) {
        task->coefs[t] = redset_coef(flow, t, i);
        task->copies = task->copies && task->coefs[t] == 1;
    }
    task->messages = last ? flow->targets : 1;
    for (int t = 0; t < task->messages; t++)
        task->to[t] = last ? flow->target[t].member : flow->source[i + 1].member;
    if (!task->copies && task->sums > s->sums) s->sums = task->sums;
    if (task->messages > s->messages) s->messages = task->messages;
}

static void add_target_task(redset_schedule *s, const redset_flow *flow, int number,
                            int i)
{
    redset_task *task = add_task(s, flow, number, flow->sources, flow->target[i].stream);
    task->target = true;
    task->from = flow->source[flow->sources - 1].member;
    task->sums = 1;
}

static void add_tasks(redset_schedule *s, const redset_flow *flow, int number,
                      uint64_t length, int member)
{
    int before = s->count;
    if (flow->targets == 0 || length == 0) return;
    for (int i = 0; i < flow->sources; i++)
        if (flow->source[i].member == member) add_source_task(s, flow, number, i);
    for (int i = 0; i < flow->targets; i++)
        if (flow->target[i].member == member) add_target_task(s, flow, number, i);
    for (int i = before; i < s->count; i++)
        s->tasks[i].length = length;
    if (s->count > before && length > s->longest) s->longest = length;
}

static int in_order(const void *x, const void *y)
{
    const redset_task *a = x, *b = y;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    return a->flow < b->flow ? -1 : a->flow > b->flow;
}

static redset_schedule *schedule_new(const redset_shape *shape)
{
    size_t n = (size_t)shape->members, room = (size_t)shape->failures + 1;
    redset_schedule *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->sums = 1;
    s->tasks = calloc(n, sizeof *s->tasks); /* a member has one part in a flow */
    s->members = calloc(n * room, sizeof *s->members);
    s->coefs = calloc(n * room, 1);
    return s->tasks && s->members && s->coefs ? s : redset_schedule_free(s);
}

redset_schedule *redset_schedule_new(const redset_shape *shape, const uint8_t lost[],
                                     const uint64_t length[], int member)
{
    redset_flow *flow = redset_flow_new(shape);
    redset_schedule *s = flow ? schedule_new(shape) : NULL;
    for (int i = 0; s && i < shape->members; i++) {
        if (lost)
            redset_flow_rebuild(flow, lost, i);
        else
            redset_flow_encode(flow, i);
        add_tasks(s, flow, i, length[i], member);
    }
    redset_flow_free(flow);
    if (s) qsort(s->tasks, (size_t)s->count, sizeof *s->tasks, in_order);
    return s;
}

redset_schedule *redset_schedule_free(redset_schedule *schedule)
{
    if (!schedule) return NULL;
    free(schedule->tasks);
    free(schedule->members);
    free(schedule->coefs);
    free(schedule);
    return NULL;
}
