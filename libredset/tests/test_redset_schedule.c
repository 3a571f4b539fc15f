/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules: all members of a set execute their tasks like flow_engine.c, with messages
 * that need a receiver before they are sent. Nothing is computed here, only which task
 * waits for which message. */
#include "src/codec/schedule.h"

#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MEMBERS = 7, PIECES = 4, TURNS = 2 * PIECES * MEMBERS };

/* A process: the tasks of its members for each piece in a row. */
typedef struct worker {
    redset_schedule *schedule;
    int count, members[MEMBERS];
    const redset_task *turn[MEMBERS * TURNS];
    int turns, now, ahead; /* numbers of turns: all, done, with a slot */
    /* number of the message that a turn receives, among the messages between its two
     * members */
    int received[MEMBERS * TURNS];
    int sent[MEMBERS * TURNS][MEMBERS];
} worker;

static worker workers[MEMBERS];
static const redset_task *sending[MEMBERS][MEMBERS][TURNS]; /* in the order of sends */
static int sends[MEMBERS][MEMBERS], receives[MEMBERS][MEMBERS];

static int is_sent(const worker *w, int turn)
{
    const redset_task *task = w->turn[turn];
    for (int i = 0; i < task->messages; i++)
        if (w->sent[turn][i] >= receives[task->member][task->to[i]]) return 0;
    return 1;
}

/* Takes a slot, if the sends of its earlier turn are complete, and posts the receive. */
static int prepare(worker *w, int slots)
{
    if (w->ahead >= slots && !is_sent(w, w->ahead - slots)) return 0;
    const redset_task *task = w->turn[w->ahead];
    if (task->from >= 0) w->received[w->ahead] = receives[task->from][task->member]++;
    w->ahead++;
    return 1;
}

/* Executes the next task, if its message has arrived. */
static int work(worker *w)
{
    const redset_task *task = w->turn[w->now];
    const int member = task->member;
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

static int advance(worker *w, int reach)
{
    int moved = 0;
    while (w->ahead < w->turns && w->ahead < w->now + reach && prepare(w, 2 * reach))
        moved = 1;
    int ready = w->ahead == w->turns || w->ahead == w->now + reach;
    return (ready && w->now < w->turns && work(w)) || moved;
}

static void begin(const redset_shape *shape, const uint8_t lost[], int most, worker *w)
{
    uint64_t length[MEMBERS];
    /* copies are of different lengths */
    for (int i = 0; i < shape->members; i++)
        length[i] = shape->scheme == REDSET_PARTNER ? (uint64_t)(i % PIECES) : PIECES;
    w->schedule = redset_schedule_new(shape, most);
    w->turns = w->now = w->ahead = 0;
    assert_non_null(w->schedule);
    redset_schedule_members(w->schedule, lost, length, w->count, w->members);
    for (uint64_t piece = 0; piece < PIECES; piece++)
        for (int i = 0; i < w->schedule->count; i++)
            if (piece < w->schedule->tasks[i].length)
                w->turn[w->turns++] = &w->schedule->tasks[i];
}

/* owner[m]: the process of member m, counted from 0. */
static void check_progress(const redset_shape *shape, const uint8_t lost[],
                           const int owner[])
{
    int moved = 1, processes = 0, most = 0;
    memset(sends, 0, sizeof sends);
    memset(receives, 0, sizeof receives);
    for (int i = 0; i < MEMBERS; i++)
        workers[i].count = 0;
    for (int m = 0; m < shape->members; m++) {
        worker *w = &workers[owner[m]];
        w->members[w->count++] = m;
        if (w->count > most) most = w->count;
        if (owner[m] >= processes) processes = owner[m] + 1;
    }
    int reach = redset_schedule_reach(shape, most);
    for (int i = 0; i < processes; i++)
        begin(shape, lost, most, &workers[i]);
    while (moved) {
        moved = 0;
        for (int i = 0; i < processes; i++)
            moved |= advance(&workers[i], reach);
    }
    for (int i = 0; i < processes; i++) {
        assert_int_equal(workers[i].now, workers[i].turns); /* else all processes wait */
        redset_schedule_free(workers[i].schedule);
    }
    for (int m = 0; m < shape->members; m++)
        for (int to = 0; to < shape->members; to++)
            assert_int_equal(sends[m][to], receives[m][to]);
}

static void check_losses(const redset_shape *shape, const int owner[])
{
    uint8_t lost[MEMBERS];
    check_progress(shape, NULL, owner);
    for (unsigned pattern = 1; pattern < 1u << shape->members; pattern++) {
        for (int m = 0; m < shape->members; m++)
            lost[m] = pattern >> m & 1;
        if (redset_shape_can_rebuild(shape, lost)) check_progress(shape, lost, owner);
    }
}

/* Tries every distribution of the members over processes; the first m members are already
 * assigned. */
static void check_spread(const redset_shape *shape, int owner[], int m, int processes)
{
    if (m == shape->members) {
        check_losses(shape, owner);
        return;
    }
    for (owner[m] = 0; owner[m] <= processes; owner[m]++)
        check_spread(shape, owner, m + 1,
                     owner[m] == processes ? processes + 1 : processes);
}

static void check_all(redset_scheme scheme, int members, int failures)
{
    const redset_shape shape = {scheme, members, failures};
    int owner[MEMBERS];
    if (members <= 5) {
        check_spread(&shape, owner, 0, 0);
        return;
    }
    for (int processes = 1; processes <= members; processes++)
        for (int in_blocks = 0; in_blocks <= 1; in_blocks++) {
            for (int m = 0; m < members; m++)
                owner[m] = in_blocks ? m * processes / members : m % processes;
            check_losses(&shape, owner);
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

/* The reach exceeds the number of consecutive tasks of one stage. */
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
                    redset_schedule *s = redset_schedule_new(&shape, 1);
                    redset_schedule_members(s, lost, length, 1, &m);
                    for (int i = 0, run = 0; i < s->count && !lost[m]; i++) {
                        run =
                            i && s->tasks[i - 1].stage == s->tasks[i].stage ? run + 1 : 1;
                        assert_in_range(run, 1, redset_schedule_reach(&shape, 1) - 1);
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
