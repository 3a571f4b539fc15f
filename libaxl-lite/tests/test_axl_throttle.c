/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of a transfer, on a clock set by the test: ten seconds of work stay within a
 * tenth of the limit, whatever the work looks like. */
#include "src/axl_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Work for ten seconds with a certain wall time and processor time per step. */
typedef struct work {
    double bandwidth, percent; /* the limits */
    uint64_t step;             /* bytes */
    double seconds, cpu;       /* time of one step */
} work;

typedef struct sums {
    double bytes, cpu; /* per second */
} sums;

static sums run(const work *w)
{
    axl_throttle t;
    double now = 1000, bytes = 0, cpu = 0;
    axl_throttle_begin(&t, w->bandwidth, w->percent, now);
    while (now < 1010) {
        now += w->seconds;
        bytes += (double)w->step;
        cpu += w->cpu;
        now += axl_throttle_pay(&t, now, w->step, w->cpu);
    }
    return (sums){bytes / (now - 1000), cpu / (now - 1000)};
}

static void assert_near(double value, double limit)
{
    assert_true(value > 0.9 * limit && value < 1.1 * limit);
}

static void bandwidth_is_kept(void **state)
{
    for (double limit = 1e5; limit < 1e10; limit *= 10) {
        const work w = {.bandwidth = limit, .step = (uint64_t)(limit / 10)};
        assert_near(run(&w).bytes, limit);
        const work half = {.bandwidth = limit,
                           .step = (uint64_t)(limit / 100),
                           .seconds = 0.005,
                           .cpu = 0.001};
        assert_near(run(&half).bytes, limit);
    }
}

static void share_of_a_processor_is_kept(void **state)
{
    for (double percent = 1; percent < 100; percent += 7) {
        const work w = {.percent = percent, .step = 1000, .seconds = 1e-3, .cpu = 1e-3};
        assert_near(run(&w).cpu, percent / 100);
    }
    /* two workers may use more than one processor */
    const work two = {.percent = 150, .step = 1000, .seconds = 1e-3, .cpu = 2e-3};
    assert_near(run(&two).cpu, 1.5);
}

static void the_tighter_limit_counts(void **state)
{
    const work by_bytes = {1e6, 50, 10000, 1e-4, 1e-4};
    assert_near(run(&by_bytes).bytes, 1e6);
    assert_true(run(&by_bytes).cpu < 0.5);
    const work by_time = {1e9, 10, 10000, 1e-3, 1e-3};
    assert_near(run(&by_time).cpu, 0.1);
    assert_true(run(&by_time).bytes < 1e9);
}

static void slow_work_never_waits(void **state)
{
    axl_throttle t;
    axl_throttle_begin(&t, 1e6, 50, 0);
    for (double now = 1; now < 10; now++)
        assert_true(axl_throttle_pay(&t, now, 900000, 0.04) == 0);
}

/* A pause saves almost nothing. */
static void no_burst_after_a_pause(void **state)
{
    axl_throttle t;
    double now = 1000, bytes = 0;
    axl_throttle_begin(&t, 1e6, 0, 0);
    while (now < 1010) {
        now += axl_throttle_pay(&t, now, 10000, 0);
        bytes += 10000;
    }
    assert_near(bytes / 10, 1e6);
}

/* Two workers pay at the same time for parallel work. */
static void workers_side_by_side(void **state)
{
    axl_throttle t;
    axl_throttle_begin(&t, 1e6, 0, 0);
    for (double now = 0.1; now < 10; now += 0.1) {
        assert_true(axl_throttle_pay(&t, now, 45000, 0) == 0);
        assert_true(axl_throttle_pay(&t, now, 45000, 0) == 0);
    }
}

static void without_limits_nobody_waits(void **state)
{
    axl_throttle t;
    axl_throttle_begin(&t, 0, 0, 5);
    for (int i = 0; i < 100; i++)
        assert_true(axl_throttle_pay(&t, 5, UINT64_MAX, 1e9) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bandwidth_is_kept),
                                       cmocka_unit_test(share_of_a_processor_is_kept),
                                       cmocka_unit_test(the_tighter_limit_counts),
                                       cmocka_unit_test(slow_work_never_waits),
                                       cmocka_unit_test(no_burst_after_a_pause),
                                       cmocka_unit_test(workers_side_by_side),
                                       cmocka_unit_test(without_limits_nobody_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
