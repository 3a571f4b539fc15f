/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of a log that goes on are those of the whole log, read again: after each
 * event of random runs, which are killed, restart from any checkpoint, overlap, begin
 * before the log, and have clocks that are set back. */
#include "comma.h"
#include "records.h"
#include "report/ledger.h"
#include "report/metrics.h"
#include <time.h>

enum { EVENTS = 80, SEQUENCES = 400, RUNS = 40 };

static unsigned below(unsigned *seed, unsigned n)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % n;
}

/* What a run of these events is about; most of them are of the newest run. */
static scr_log_event random_event(unsigned *seed, int64_t *time, unsigned *run)
{
    static const scr_log_kind kinds[] = {
        SCR_LOG_RUN_READY,        SCR_LOG_OUTPUT_START,
        SCR_LOG_OUTPUT_COMPLETE,  SCR_LOG_OUTPUT_START,
        SCR_LOG_OUTPUT_COMPLETE,  SCR_LOG_OUTPUT_FAILED,
        SCR_LOG_FLUSH_START,      SCR_LOG_FLUSH_COMPLETE,
        SCR_LOG_FLUSH_STOPPED,    SCR_LOG_RESTART_START,
        SCR_LOG_RESTART_COMPLETE, SCR_LOG_RESTART_COMPLETE,
        SCR_LOG_RESTART_FAILED,   SCR_LOG_HALT,
        SCR_LOG_RUN_END,          SCR_LOG_LAUNCH_END,
        SCR_LOG_NODE_LOST,        SCR_LOG_RUN_INTERRUPTED};
    static const char *const ids[RUNS] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",
                                          "8",  "9",  "10", "11", "12", "13", "14", "15",
                                          "16", "17", "18", "19", "20", "21", "22", "23",
                                          "24", "25", "26", "27", "28", "29", "30", "31",
                                          "32", "33", "34", "35", "36", "37", "38", "39"};
    const bool begins = below(seed, 15) == 0 && *run + 1 < RUNS;
    const unsigned older = below(seed, 6) == 0 && *run ? below(seed, *run) : *run;
    *time += below(seed, 3000000);
    if (below(seed, 10) == 0) *time -= 1000000 + below(seed, 3000000);
    if (begins) ++*run;
    return (scr_log_event){.kind = begins
                                       ? SCR_LOG_RUN_START
                                       : kinds[below(seed, sizeof kinds / sizeof *kinds)],
                           .time = *time,
                           .run = ids[begins ? *run : older],
                           .ranks = 4,
                           .nodes = 2,
                           .dset = below(seed, 6),
                           .type = below(seed, 5) ? "checkpoint" : "output",
                           .method = below(seed, 3) ? "synchronous" : "background",
                           .bytes = below(seed, 1000),
                           .secs = below(seed, 100) / 10.0 - 1,
                           .compute = below(seed, 100) / 10.0 - 1};
}

static char *metrics_of(const scr_ledger *l, const scr_ledger_sum *sum)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    scr_metrics_write(out, "/p", l, sum);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Of a closed ledger, from its spans. */
static void check_spans(const scr_ledger *l, const scr_ledger_sum *sum)
{
    int64_t kinds[LEDGER_KINDS] = {0};
    for (int i = 0; i < l->span_count; i++)
        kinds[l->spans[i].kind] += l->spans[i].to - l->spans[i].from;
    for (int k = 0; k < LEDGER_KINDS; k++)
        assert_true(sum->kinds[k] == (double)kinds[k] / 1e6);
}

/* Returns what was lost, in seconds. */
static double check_sums(const scr_ledger *l, const scr_log_event events[], int count)
{
    scr_ledger whole = {0};
    scr_ledger_sum now, sum;
    for (int i = 0; i < count; i++)
        scr_ledger_take(&whole, &events[i]);
    scr_ledger_close(&whole);
    sum = scr_ledger_add_up(&whole);
    check_spans(&whole, &sum);
    assert_int_equal(scr_ledger_sum_now(l, &now), 0);
    char *one = metrics_of(l, &now), *other = metrics_of(&whole, &sum);
    assert_string_equal(one, other);
    free(one);
    free(other);
    scr_ledger_done(&whole);
    return sum.kinds[LEDGER_LOST];
}

static void figures_of_random_runs(void **state)
{
    int lost = 0;
    for (unsigned number = 0; number < SEQUENCES; number++) {
        scr_log_event events[EVENTS];
        scr_ledger l = {0};
        int64_t at = 1795257190000000;
        unsigned seed = number, run = 0;
        for (int i = 0; i < EVENTS; i++) {
            events[i] = random_event(&seed, &at, &run);
            scr_ledger_take(&l, &events[i]);
            lost += check_sums(&l, events, i + 1) > 0;
        }
        scr_ledger_done(&l);
    }
    assert_true(lost > EVENTS * SEQUENCES / 4);
}

/* A log of one run with that number of checkpoints. */
static void fill(scr_ledger *l, int checkpoints)
{
    scr_log_event e = {.kind = SCR_LOG_RUN_START, .time = 1000000, .run = "r"};
    scr_ledger_take(l, &e);
    e.type = "checkpoint";
    for (int i = 0; i < 2 * checkpoints; i++) {
        e.kind = i % 2 ? SCR_LOG_OUTPUT_COMPLETE : SCR_LOG_OUTPUT_START;
        e.time += 1000000;
        e.dset = 1 + i / 2;
        scr_ledger_take(l, &e);
    }
}

/* Prometheus takes a decimal point only. */
static void metrics_do_not_depend_on_the_locale(void **state)
{
    scr_ledger l = {0};
    scr_ledger_sum sum;
    if (!use_decimal_comma()) {
        print_message("no definitions of locales here\n");
        skip();
    }
    fill(&l, 3);
    assert_int_equal(scr_ledger_sum_now(&l, &sum), 0);
    char *text = metrics_of(&l, &sum);
    setlocale(LC_NUMERIC, "C");
    assert_non_null(strstr(text, "\nscr_checkpoints{prefix=\"/p\"} 3.000000\n"));
    free(text);
    scr_ledger_done(&l);
}

/* Processor time of that many sums. */
static double cost_of_sums(const scr_ledger *l, int times)
{
    scr_ledger_sum sum;
    const clock_t start = clock();
    for (int i = 0; i < times; i++)
        assert_int_equal(scr_ledger_sum_now(l, &sum), 0);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* With 1,000 times as many events, a sum that reads them all costs 1,000 times as much.
 */
static void cost_is_that_of_runs(void **state)
{
    scr_ledger few = {0}, many = {0};
    fill(&few, 100);
    fill(&many, 100000);
    assert_true(cost_of_sums(&many, 20000) < 0.005 + 20 * cost_of_sums(&few, 20000));
    scr_ledger_done(&few);
    scr_ledger_done(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_random_runs),
        cmocka_unit_test(metrics_do_not_depend_on_the_locale),
        cmocka_unit_test(cost_is_that_of_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
