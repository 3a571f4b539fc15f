/* SPDX-License-Identifier: BSD-3-Clause */
/* When to checkpoint and to flush, compared with plain statements of the rules; golden
 * values of the optimum time, and a search for a better one. */
#include "plan/cadence.h"
#include "records.h"
#include <math.h>

/* ---- when to checkpoint ---- */

static void nothing_configured_asks_for_nothing(void **state)
{
    scr_cadence a = {.calls = 1000, .since_last = 1e9, .cost = 1};
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 0);
}

static void halt_asks(void **state)
{
    scr_cadence a = {.halt = 1};
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 1);
}

static void interval_asks_every_nth_call(void **state)
{
    for (int interval = 1; interval < 5; interval++)
        for (int calls = 0; calls < 10; calls++) {
            scr_cadence a = {.calls = calls, .interval = interval};
            assert_int_equal(scr_cadence_is_checkpoint_due(&a),
                             calls > 0 && calls % interval == 0);
        }
}

static void seconds_ask_when_they_are_over(void **state)
{
    scr_cadence a = {.seconds = 60, .calls = 1000};
    static const double times[] = {0, 1, 59.999, 60, 60.001, 1e6};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        a.since_last = times[i];
        assert_int_equal(scr_cadence_is_checkpoint_due(&a), times[i] >= 60);
    }
}

static void overhead_asks_when_it_is_low_enough(void **state)
{
    /* 5 s of every 100 s: due once 95 s have passed */
    scr_cadence a = {.overhead = 5, .cost = 5, .calls = 1000};
    a.since_last = 94.9;
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 0);
    a.since_last = 95.1;
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 1);
    a = (scr_cadence){.overhead = 5}; /* nothing measured yet */
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 1);
    a = (scr_cadence){.overhead = 100, .cost = 1e6};
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 1);
}

static void optimum_asks_when_it_has_passed(void **state)
{
    scr_cadence a = {.automatic = 1, .optimum = 117, .calls = 1000};
    static const double times[] = {0, 116.999, 117, 1e9};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        a.since_last = times[i];
        assert_int_equal(scr_cadence_is_checkpoint_due(&a), times[i] >= 117);
    }
    a = (scr_cadence){.automatic = 1}; /* no cost is known: one checkpoint measures it */
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 1);
    a = (scr_cadence){.optimum = 1, .since_last = 2}; /* not asked for */
    assert_int_equal(scr_cadence_is_checkpoint_due(&a), 0);
}

/* Each rule can request a checkpoint by itself; none can prevent one that another rule
 * requests. */
static void any_rule_is_enough(void **state)
{
    for (int rules = 0; rules < 32; rules++) {
        scr_cadence a = {.halt = rules & 1,
                         .calls = rules & 2 ? 3 : 2,
                         .interval = 3,
                         .since_last = rules & 4 ? 60 : 59,
                         .seconds = 60,
                         .cost = rules & 8 ? 0.1 : 100,
                         .overhead = 1,
                         .automatic = 1,
                         .optimum = rules & 16 ? 59 : 61};
        assert_int_equal(scr_cadence_is_checkpoint_due(&a), rules != 0);
    }
}

/* ---- when to flush ---- */

static void flush_every_nth(void **state)
{
    for (int n = 1; n <= 20; n++) {
        assert_int_equal(scr_cadence_is_flush_due(n, 0), 0);
        assert_int_equal(scr_cadence_is_flush_due(n, -1), 0);
        assert_int_equal(scr_cadence_is_flush_due(n, 1), 1);
        assert_int_equal(scr_cadence_is_flush_due(n, 3),
                         n == 3 || n == 6 || n == 9 || n == 12 || n == 15 || n == 18);
        assert_int_equal(scr_cadence_is_flush_due(n, 1000), 0);
    }
}

/* ---- the optimum time ---- */

#define MINUTE 60.0

static void assert_near(double is, double wanted, double most)
{
    if (!(fabs(is - wanted) <= most)) fail_msg("%.6f is not %.6f", is, wanted);
}

/* Checkpoints of 5 minutes on machines of 24 hours, 6 hours and 15 minutes. */
static void golden_values(void **state)
{
    static const struct {
        double mtbf, young, daly;
    } cases[] = {{24 * 60, 120, 117}, {6 * 60, 60, 57}, {15, 12.2, 9.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double half = i < 2 ? 0.5 : 0.05; /* of the last digit */
        assert_near(scr_cadence_young(5 * MINUTE, cases[i].mtbf * MINUTE) / MINUTE,
                    cases[i].young, half);
        assert_near(scr_cadence_daly(5 * MINUTE, cases[i].mtbf * MINUTE) / MINUTE,
                    cases[i].daly, half);
    }
}

static void costly_checkpoints(void **state)
{
    assert_near(scr_cadence_daly(200, 100), 100, 0);
    assert_near(scr_cadence_daly(1e9, 100), 100, 0);
    /* at C = 2 M the formula itself gives M * (2 * (1 + 1/3 + 1/9) - 2) */
    assert_near(scr_cadence_daly(200 - 1e-9, 100), 100 * 8 / 9.0, 1e-6);
}

static void nothing_known(void **state)
{
    static const double none[] = {0, -1, -1e300, NAN};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_near(scr_cadence_daly(none[i], 100), 0, 0);
        assert_near(scr_cadence_daly(100, none[i]), 0, 0);
        assert_near(scr_cadence_young(none[i], 100), 0, 0);
    }
}

/* Wall time per second of work, where a segment consists of tau seconds of work, its
 * checkpoint, and the work that is repeated after failures, which occur at rate 1 / M:
 * Daly's equation 20 without the restart time. */
static double waste(double tau, double cost, double mtbf)
{
    return mtbf * (exp((tau + cost) / mtbf) - 1) / tau;
}

static void nothing_wastes_less(void **state)
{
    for (double mtbf = 60; mtbf < 1e7; mtbf *= 3.7)
        for (double cost = mtbf * 1e-5; cost < mtbf / 2; cost *= 2.3) {
            double best = scr_cadence_daly(cost, mtbf), least = waste(best, cost, mtbf);
            for (double factor = 0.05; factor < 20; factor *= 1.03)
                if (waste(best * factor, cost, mtbf) < least * 0.998)
                    fail_msg("C %g M %g: %g is better than %g", cost, mtbf, best * factor,
                             best);
        }
}

static void differences(void **state)
{
    assert_int_equal(scr_cadence_differs(100, 100), 0);
    assert_int_equal(scr_cadence_differs(100, 119), 0);
    assert_int_equal(scr_cadence_differs(119, 100), 0);
    assert_int_equal(scr_cadence_differs(100, 121), 1);
    assert_int_equal(scr_cadence_differs(121, 100), 1);
    assert_int_equal(scr_cadence_differs(1e-3, 0), 1); /* the first one */
}

static void means(void **state)
{
    double mean = 0;
    for (int n = 1; n <= 10; n++)
        mean = scr_cadence_mean(mean, n, n);
    assert_near(mean, 5.5, 1e-12);
    /* one in ten is flushed, and costs 11 more */
    mean = 0;
    for (int n = 1; n <= 400; n++)
        mean = scr_cadence_mean(mean, n, n % 10 ? 1 : 12);
    assert_near(mean, 2.1, 0.4);
    /* the mean follows a program that grows */
    for (int n = 401; n <= 500; n++)
        mean = scr_cadence_mean(mean, n, 100);
    assert_near(mean, 100, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_configured_asks_for_nothing),
        cmocka_unit_test(halt_asks),
        cmocka_unit_test(interval_asks_every_nth_call),
        cmocka_unit_test(seconds_ask_when_they_are_over),
        cmocka_unit_test(overhead_asks_when_it_is_low_enough),
        cmocka_unit_test(optimum_asks_when_it_has_passed),
        cmocka_unit_test(any_rule_is_enough),
        cmocka_unit_test(flush_every_nth),
        cmocka_unit_test(golden_values),
        cmocka_unit_test(costly_checkpoints),
        cmocka_unit_test(nothing_known),
        cmocka_unit_test(nothing_wastes_less),
        cmocka_unit_test(differences),
        cmocka_unit_test(means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
