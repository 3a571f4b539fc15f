/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a long operation: amounts, rate, time left, and a bar of any width. */
#include "records.h"
#include "report/meter.h"

static scr_meter meter_of(const char *unit, uint64_t done, uint64_t total, double seconds)
{
    scr_meter m;
    scr_meter_begin(&m, unit, 100);
    scr_meter_update(&m, done, total, 100 + seconds);
    return m;
}

static void expect_line(const scr_meter *m, const char *wanted)
{
    char text[SCR_METER_SIZE];
    assert_string_equal(scr_meter_line(m, text), wanted);
}

static void lines_have_what_is_known(void **state)
{
    static const struct {
        const char *unit;
        uint64_t done, total;
        double seconds;
        const char *wanted;
    } cases[] = {
        {NULL, 0, 0, 10, "10 s so far"},
        {NULL, 0, 5000, 10, "0%, 0 B of 5.0 kB, 10 s so far"},
        {NULL, 1000, 0, 10, "1.0 kB, 100 B/s, 10 s so far"},
        {NULL, 1000, 4000, 10, "25%, 1.0 kB of 4.0 kB, 100 B/s, 30 s left"},
        {NULL, 3999999999u, 4000000000u, 10,
         "99%, 4.0 GB of 4.0 GB, 400 MB/s, 0.0 s left"},
        {NULL, 4000, 4000, 10, "100%, 4.0 kB of 4.0 kB, 400 B/s, 10 s so far"},
        {NULL, 5000, 4000, 10, "100%, 5.0 kB of 4.0 kB, 500 B/s, 10 s so far"},
        {NULL, 1000000000000, 3600000000000000, 100,
         "0%, 1.0 TB of 3.6 PB, 10.0 GB/s, 4 d 3 h left"},
        {"files", 3, 12, 30, "25%, 3 of 12 files, 1 min 30 s left"},
        {"nodes", 0, 4, 30, "0%, 0 of 4 nodes, 30 s so far"},
        {"nodes", 2, 0, 30, "2 nodes, 30 s so far"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const scr_meter m =
            meter_of(cases[i].unit, cases[i].done, cases[i].total, cases[i].seconds);
        expect_line(&m, cases[i].wanted);
    }
    const scr_meter most = meter_of(NULL, UINT64_MAX - 1, UINT64_MAX, 1e-6);
    char text[SCR_METER_SIZE];
    assert_true(strlen(scr_meter_line(&most, text)) < SCR_METER_SIZE - 1);
}

/* The rate follows what is going on, and one look more changes nothing. */
static void rate_is_that_of_late(void **state)
{
    scr_meter m;
    scr_meter_begin(&m, NULL, 0);
    for (int s = 1; s <= 100; s++)
        scr_meter_update(&m, (uint64_t)(s * 1000), 1000000, s);
    assert_true(m.rate > 999.9 && m.rate < 1000.1);
    for (int s = 101; s <= 200; s++) /* ten times as slow */
        scr_meter_update(&m, (uint64_t)(100000 + (s - 100) * 100), 1000000, s);
    assert_true(m.rate > 100 && m.rate < 110);
    for (int s = 201; s <= 300; s++) /* and not at all */
        scr_meter_update(&m, 110000, 1000000, s);
    assert_true(m.rate > 0 && m.rate < 1);
    const double before = m.rate;
    scr_meter_update(&m, 110000, 1000000, 300);
    assert_true(m.rate == before);
    /* however often it is looked at, ten seconds at 50 per second are that rate */
    for (int looks = 1; looks <= 100; looks *= 10) {
        scr_meter_begin(&m, NULL, 0);
        for (int i = 1; i <= looks; i++)
            scr_meter_update(&m, (uint64_t)(500 * i / looks), 1000, 10.0 * i / looks);
        assert_true(m.rate > 49.9 && m.rate < 50.1);
    }
}

static void an_operation_may_begin_again(void **state)
{
    scr_meter m = meter_of(NULL, 9000, 10000, 10);
    scr_meter_update(&m, 100, 10000, 111);
    assert_true(m.rate == 0 && m.start == 111);
    scr_meter_update(&m, 200, 10000, 112);
    expect_line(&m, "2%, 200 B of 10.0 kB, 100 B/s, 1 min 38 s left");
}

/* Every width from nothing to more than there is. */
static void bars_fit(void **state)
{
    const scr_meter m = meter_of(NULL, 1000, 4000, 10),
                    unknown = meter_of(NULL, 7, 0, 10);
    char text[SCR_METER_BAR_MAX];
    for (int columns = -1; columns < 2 * SCR_METER_BAR_MAX; columns++) {
        const size_t most = columns < 0 ? 0 : (size_t)columns;
        assert_true(strlen(scr_meter_bar(&m, "verify", columns, text)) <= most);
        if (columns < 61) assert_null(strchr(text, '['));
        if (columns >= 61) assert_non_null(strstr(text, "30 s left"));
        if (columns >= 61 && columns <= 101) assert_int_equal(strlen(text), columns);
        assert_null(strchr(scr_meter_bar(&unknown, "verify", columns, text), '['));
    }
    assert_string_equal(scr_meter_bar(&m, "verify", 79, text),
                        "verify [=======>                    ] 25%, 1.0 kB of 4.0 kB, "
                        "100 B/s, 30 s left");
    assert_string_equal(scr_meter_bar(&m, "verify", 20, text), "verify 25%, 1.0 kB o");
}

static void bars_grow_with_what_is_done(void **state)
{
    size_t before = 0;
    for (uint64_t done = 0; done <= 40; done++) {
        char text[SCR_METER_BAR_MAX];
        const scr_meter m = meter_of("nodes", done, 40, 10);
        const size_t length =
            strspn(strchr(scr_meter_bar(&m, "x", 200, text), '[') + 1, "=");
        assert_true(length >= before && length == 50 * (size_t)(100 * done / 40) / 100);
        assert_int_equal(strchr(text, '>') != NULL, done < 40);
        before = length;
    }
    assert_int_equal(before, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_what_is_known),
        cmocka_unit_test(rate_is_that_of_late),
        cmocka_unit_test(an_operation_may_begin_again),
        cmocka_unit_test(bars_fit),
        cmocka_unit_test(bars_grow_with_what_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
