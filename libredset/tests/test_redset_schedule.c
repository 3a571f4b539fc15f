/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: all members of a set do their tasks as flow_engine.c does them, with
 * messages that need a receiver before they go. Nothing is computed here, only who waits
 * for whom.
 */
#include "src/codec/schedule.h"

#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MEMBERS = 7, PIECES = 4, TURNS = PIECES * MEMBERS };

/* One member: its tasks for each piece in a row. */
typedef struct worker {
    redset_schedule *schedule;
    const redset_task *turn[TURNS];
    int turns, now, ahead; /* how many there are, are done, have a slot */
    int received[TURNS];   /* number, between its two members, of the message it takes */
    int sent[TURNS][MEMBERS];
} worker;

static worker workers[MEMBERS];
static const redset_task *sending[MEMBERS][MEMBERS][TURNS]; /* in the order of sends */
static int sends[MEMBERS][MEMBERS], receives[MEMBERS][MEMBERS];

static int is_sent(int member, int turn)
{
    const redset_task *task = workers[member].turn[turn];
    for (int i = 0; i < task->messages; i++)
        if (workers[member].sent[turn][i] >= receives[member][task->to[i]]) return 0;
    return 1;
}

/* Takes a slot, if the turn that had it is over, and receives. */
static int prepare(int member, int slots)
{
    worker *w = &workers[member];
    if (w->ahead >= slots && !is_sent(member, w->ahead - slots)) return 0;
    int from = w->turn[w->ahead]->from;
    if (from >= 0) w->received[w->ahead] = receives[from][member]++;
    w->ahead++;
    return 1;
}

/* Does the next task, if what it needs has come. */
static int work(int member)
{
    worker *w = &workers[member];
    const redset_task *task = w->turn[w->now];
    if (task->from >= 0) {
        int number = w->received[w->now];
        if (number >= sends[task->from][member]) return 0;
        const redset_task *source = sending[task->from][member][number];
        assert_int_equal(source->flow, task->flow);
        assert_int_equal(source->stage + 1, task->stage);
        assert_int_equal(source->messages == 1 && !task->is_target ? source->sums : 1,
                         task->sums);
    }
    for (int i = 0; i < task->messages; i++) {
        int to = task->to[i], number = sends[member][to]++;
        assert_int_not_equal(to, member);
        sending[member][to][number] = task;
        w->sent[w->now][i] = number;
    }
    w->now++;
    return 1;
}

static int advance(int member, int reach)
{
    worker *w = &workers[member];
    int moved = 0;
    while (w->ahead < w->turns && w->ahead < w->now + reach && prepare(member, 2 * reach))
        moved = 1;
    int ready = w->ahead == w->turns || w->ahead == w->now + reach;
    return (ready && w->now < w->turns && work(member)) || moved;
}

static void begin(const redset_shape *shape, const uint8_t lost[], int member)
{
    uint64_t length[MEMBERS];
    worker *w = &workers[member];
    /* copies are of different lengths */
    for (int i = 0; i < shape->members; i++)
        length[i] = shape->scheme == REDSET_PARTNER ? (uint64_t)(i % PIECES) : PIECES;
    *w = (worker){.schedule = redset_schedule_new(shape)};
    assert_non_null(w->schedule);
    redset_schedule_member(w->schedule, lost, length, member);
    for (uint64_t piece = 0; piece < PIECES; piece++)
        for (int i = 0; i < w->schedule->count; i++)
            if (piece < w->schedule->tasks[i].length)
                w->turn[w->turns++] = &w->schedule->tasks[i];
}

static void check_progress(const redset_shape *shape, const uint8_t lost[])
{
    int reach = redset_schedule_reach(shape), moved = 1;
    memset(sends, 0, sizeof sends);
    memset(receives, 0, sizeof receives);
    for (int m = 0; m < shape->members; m++)
        begin(shape, lost, m);
    while (moved) {
        moved = 0;
        for (int m = 0; m < shape->members; m++)
            moved |= advance(m, reach);
    }
    for (int m = 0; m < shape->members; m++) {
        assert_int_equal(workers[m].now, workers[m].turns); /* else all wait */
        for (int to = 0; to < shape->members; to++)
            assert_int_equal(sends[m][to], receives[m][to]);
        redset_schedule_free(workers[m].schedule);
    }
}

static void check_all(redset_scheme scheme, int members, int failures)
{
    const redset_shape shape = {scheme, members, failures};
    uint8_t lost[MEMBERS];
    check_progress(&shape, NULL);
    for (unsigned pattern = 1; pattern < 1u << members; pattern++) {
        for (int m = 0; m < members; m++)
            lost[m] = pattern >> m & 1;
        if (redset_shape_can_rebuild(&shape, lost)) check_progress(&shape, lost);
    }
}

static void nobody_waits_for_ever(void **state)
{
    for (int members = 2; members <= MEMBERS; members++) {
        check_all(REDSET_XOR, members, 1);
        for (int failures = 1; failures < members; failures++) {
            check_all(REDSET_RS, members, failures);
            check_all(REDSET_PARTNER, members, failures);
        }
    }
}

/* What the reach is for: tasks in a row that are of one stage. */
static void stages_are_short(void **state)
{
    for (int members = 2; members <= MEMBERS; members++)
        for (int failures = 1; failures < members; failures++)
            for (unsigned pattern = 0; pattern < 1u << members; pattern++) {
                const redset_shape shape = {REDSET_RS, members, failures};
                uint8_t lost[MEMBERS];
                uint64_t length[MEMBERS];
                for (int m = 0; m < members; m++) {
                    lost[m] = pattern >> m & 1;
                    length[m] = 1;
                }
                if (!redset_shape_can_rebuild(&shape, lost)) continue;
                for (int m = 0; m < members; m++) {
                    redset_schedule *s = redset_schedule_new(&shape);
                    redset_schedule_member(s, lost, length, m);
                    for (int i = 0, run = 0; i < s->count && !lost[m]; i++) {
                        run =
                            i && s->tasks[i - 1].stage == s->tasks[i].stage ? run + 1 : 1;
                        assert_in_range(run, 1, redset_schedule_reach(&shape) - 1);
                    }
                    redset_schedule_free(s);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_waits_for_ever),
                                       cmocka_unit_test(stages_are_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
