/* SPDX-License-Identifier: BSD-3-Clause */
/* The optimum time between checkpoints: golden values, and that no other time wastes
 * less. */
#include "plan/interval.h"
#include "records.h"
#include <math.h>

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
        assert_near(scr_interval_young(5 * MINUTE, cases[i].mtbf * MINUTE) / MINUTE,
                    cases[i].young, half);
        assert_near(scr_interval_daly(5 * MINUTE, cases[i].mtbf * MINUTE) / MINUTE,
                    cases[i].daly, half);
    }
}

static void costly_checkpoints(void **state)
{
    assert_near(scr_interval_daly(200, 100), 100, 0);
    assert_near(scr_interval_daly(1e9, 100), 100, 0);
    /* at C = 2 M the formula itself gives M * (2 * (1 + 1/3 + 1/9) - 2) */
    assert_near(scr_interval_daly(200 - 1e-9, 100), 100 * 8 / 9.0, 1e-6);
}

static void nothing_known(void **state)
{
    static const double none[] = {0, -1, -1e300, NAN};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_near(scr_interval_daly(none[i], 100), 0, 0);
        assert_near(scr_interval_daly(100, none[i]), 0, 0);
        assert_near(scr_interval_young(none[i], 100), 0, 0);
    }
}

/* Wall time per second of work, where a segment is the work of tau seconds, its
 * checkpoint, and what is done again after failures that come with rate 1 / M: Daly's
 * equation 20 without the time of a restart. */
static double waste(double tau, double cost, double mtbf)
{
    return mtbf * (exp((tau + cost) / mtbf) - 1) / tau;
}

static void nothing_wastes_less(void **state)
{
    for (double mtbf = 60; mtbf < 1e7; mtbf *= 3.7)
        for (double cost = mtbf * 1e-5; cost < mtbf / 2; cost *= 2.3) {
            double best = scr_interval_daly(cost, mtbf), least = waste(best, cost, mtbf);
            for (double factor = 0.05; factor < 20; factor *= 1.03)
                if (waste(best * factor, cost, mtbf) < least * 0.998)
                    fail_msg("C %g M %g: %g is better than %g", cost, mtbf, best * factor,
                             best);
        }
}

static void differences(void **state)
{
    assert_int_equal(scr_interval_differs(100, 100), 0);
    assert_int_equal(scr_interval_differs(100, 119), 0);
    assert_int_equal(scr_interval_differs(119, 100), 0);
    assert_int_equal(scr_interval_differs(100, 121), 1);
    assert_int_equal(scr_interval_differs(121, 100), 1);
    assert_int_equal(scr_interval_differs(1e-3, 0), 1); /* the first one */
}

static void means(void **state)
{
    double mean = 0;
    for (int n = 1; n <= 10; n++)
        mean = scr_interval_mean(mean, n, n);
    assert_near(mean, 5.5, 1e-12);
    /* one in ten is flushed, and costs 11 more */
    mean = 0;
    for (int n = 1; n <= 400; n++)
        mean = scr_interval_mean(mean, n, n % 10 ? 1 : 12);
    assert_near(mean, 2.1, 0.4);
    /* a program that grows is followed */
    for (int n = 401; n <= 500; n++)
        mean = scr_interval_mean(mean, n, 100);
    assert_near(mean, 100, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_values), cmocka_unit_test(costly_checkpoints),
        cmocka_unit_test(nothing_known), cmocka_unit_test(nothing_wastes_less),
        cmocka_unit_test(differences),   cmocka_unit_test(means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
