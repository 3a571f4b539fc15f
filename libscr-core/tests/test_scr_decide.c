/* SPDX-License-Identifier: BSD-3-Clause */
/* Decisions, beside plain statements of their rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "config/values.h"
#include "plan/decide.h"

#include <cmocka.h>
#include <errno.h>

/* ---- when to checkpoint ---- */

static void nothing_configured_asks_for_nothing(void **state)
{
    scr_advice a = {.calls = 1000, .since_last = 1e9, .cost = 1};
    assert_int_equal(scr_decide_checkpoint(&a), 0);
}

static void halt_asks(void **state)
{
    scr_advice a = {.halt = 1};
    assert_int_equal(scr_decide_checkpoint(&a), 1);
}

static void interval_asks_every_nth_call(void **state)
{
    for (int interval = 1; interval < 5; interval++)
        for (int calls = 0; calls < 10; calls++) {
            scr_advice a = {.calls = calls, .interval = interval};
            assert_int_equal(scr_decide_checkpoint(&a),
                             calls > 0 && calls % interval == 0);
        }
}

static void seconds_ask_when_they_are_over(void **state)
{
    scr_advice a = {.seconds = 60, .calls = 1000};
    static const double times[] = {0, 1, 59.999, 60, 60.001, 1e6};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        a.since_last = times[i];
        assert_int_equal(scr_decide_checkpoint(&a), times[i] >= 60);
    }
}

static void overhead_asks_when_it_is_low_enough(void **state)
{
    /* 5 s of every 100 s: due once 95 s have passed */
    scr_advice a = {.overhead = 5, .cost = 5, .calls = 1000};
    a.since_last = 94.9;
    assert_int_equal(scr_decide_checkpoint(&a), 0);
    a.since_last = 95.1;
    assert_int_equal(scr_decide_checkpoint(&a), 1);
    a = (scr_advice){.overhead = 5}; /* nothing measured yet */
    assert_int_equal(scr_decide_checkpoint(&a), 1);
    a = (scr_advice){.overhead = 100, .cost = 1e6};
    assert_int_equal(scr_decide_checkpoint(&a), 1);
}

static void optimum_asks_when_it_has_passed(void **state)
{
    scr_advice a = {.automatic = 1, .optimum = 117, .calls = 1000};
    static const double times[] = {0, 116.999, 117, 1e9};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        a.since_last = times[i];
        assert_int_equal(scr_decide_checkpoint(&a), times[i] >= 117);
    }
    a = (scr_advice){.automatic = 1}; /* no cost is known: one measures it */
    assert_int_equal(scr_decide_checkpoint(&a), 1);
    a = (scr_advice){.optimum = 1, .since_last = 2}; /* not asked for */
    assert_int_equal(scr_decide_checkpoint(&a), 0);
}

/* Each rule can ask on its own; none can forbid what another one asks for. */
static void any_rule_is_enough(void **state)
{
    for (int rules = 0; rules < 32; rules++) {
        scr_advice a = {.halt = rules & 1,
                        .calls = rules & 2 ? 3 : 2,
                        .interval = 3,
                        .since_last = rules & 4 ? 60 : 59,
                        .seconds = 60,
                        .cost = rules & 8 ? 0.1 : 100,
                        .overhead = 1,
                        .automatic = 1,
                        .optimum = rules & 16 ? 59 : 61};
        assert_int_equal(scr_decide_checkpoint(&a), rules != 0);
    }
}

/* ---- what to flush, and how ---- */

static void methods(void **state)
{
    assert_string_equal(scr_flush_method(NULL, 0), "sync");
    assert_string_equal(scr_flush_method("SYNC", 0), "sync");
    assert_string_equal(scr_flush_method("pthread", 0), "pthread");
    assert_string_equal(scr_flush_method("Daemon", 0), "daemon");
    /* in the background without a word about how, or with one that makes no sense */
    assert_string_equal(scr_flush_method(NULL, 1), "pthread");
    assert_string_equal(scr_flush_method("", 1), "pthread");
    assert_string_equal(scr_flush_method("SYNC", 1), "pthread");
    assert_string_equal(scr_flush_method("DAEMON", 1), "daemon");
    assert_null(scr_flush_method("BBAPI", 1));
    assert_null(scr_flush_method("swallow", 0));
}

static void flush_every_nth(void **state)
{
    for (int n = 1; n <= 20; n++) {
        assert_int_equal(scr_decide_flush(n, 0), 0);
        assert_int_equal(scr_decide_flush(n, -1), 0);
        assert_int_equal(scr_decide_flush(n, 1), 1);
        assert_int_equal(scr_decide_flush(n, 3),
                         n == 3 || n == 6 || n == 9 || n == 12 || n == 15 || n == 18);
        assert_int_equal(scr_decide_flush(n, 1000), 0);
    }
}

static void errors_that_may_pass(void **state)
{
    const int may[] = {-EIO, -ENOMEM, -EMFILE, -ENFILE, -EINTR, -EAGAIN, -ESTALE};
    const int may_not[] = {0, -ENOENT, -EBADMSG, -ENOTDIR, -ELOOP, -EINVAL, EIO, 1};
    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        assert_true(scr_decide_may_pass(may[i]));
    for (size_t i = 0; i < sizeof may_not / sizeof *may_not; i++)
        assert_false(scr_decide_may_pass(may_not[i]));
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
        cmocka_unit_test(methods),
        cmocka_unit_test(flush_every_nth),
        cmocka_unit_test(errors_that_may_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
