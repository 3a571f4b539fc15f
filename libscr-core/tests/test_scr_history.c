/* SPDX-License-Identifier: BSD-3-Clause */
/* Learning from the log: runs and failures in it, whatever else is there; and the
 * estimate of the time between failures. */
#include "records.h"
#include "report/history.h"
#include "report/log.h"
#include <errno.h>
#include <math.h>

#define HOUR 3600000000 /* microseconds */
#define BEGIN (1795257190 * (int64_t)1000000)
#define LATER (BEGIN + 10000 * HOUR)

static void assert_near(double is, double wanted)
{
    if (!(fabs(is - wanted) <= 1e-6 * fabs(wanted)))
        fail_msg("%.6f is not %.6f", is, wanted);
}

/* ---- logs as SCR writes them ---- */

static scr_log *open_log(const struct scratch *s)
{
    scr_log_options options = {.set.targets = 1u << SCR_LOG_TEXT,
                               .prefix = s->dir,
                               .run = "none",
                               .user = "me",
                               .job_id = "17",
                               .host = "n1"};
    scr_log *log;
    assert_int_equal(scr_log_open(&options, &log), 0);
    return log;
}

static void put(scr_log *log, scr_log_kind kind, const char *run, int64_t time)
{
    scr_log_event e = {.kind = kind,
                       .run = run,
                       .time = time,
                       .prefix = "/p/run=\"x\" nodes=9",
                       .ranks = 8,
                       .nodes = 4,
                       .dset = 1,
                       .name = "c\" RUN_END secs=1 \\",
                       .type = "checkpoint",
                       .secs = 2};
    scr_log_write(log, &e);
}

/* Hours of a run of 4 nodes that begins at an hour; last: how it ends, or RUN_READY when
 * it is interrupted after its last checkpoint. */
static void put_run(scr_log *log, const char *run, int begin, int hours,
                    scr_log_kind last)
{
    int64_t start = BEGIN + begin * HOUR, end = start + hours * HOUR;
    put(log, SCR_LOG_RUN_START, run, start);
    put(log, SCR_LOG_RUN_READY, run, start + 1);
    put(log, SCR_LOG_OUTPUT_START, run, end - 1);
    put(log, SCR_LOG_OUTPUT_COMPLETE, run, end);
    if (last != SCR_LOG_RUN_READY) put(log, last, run, end);
}

static scr_history read_log(struct scratch *s, const char *own)
{
    scr_history h = {.runs = 77};
    assert_int_equal(scr_history_read(s->dir, own, LATER, &h, &s->err), 0);
    assert_string_equal(s->err.text, "");
    return h;
}

static void runs_and_failures(void **state)
{
    struct scratch *s = *state;
    scr_log *log = open_log(s);
    put_run(log, "r1", 0, 10, SCR_LOG_RUN_READY);
    put_run(log, "r2", 11, 5, SCR_LOG_RUN_END);
    put_run(log, "r3", 17, 2, SCR_LOG_HALT);
    put_run(log, "r4", 20, 3, SCR_LOG_ERROR);
    put(log, SCR_LOG_RUN_START, "never ready", BEGIN + 30 * HOUR);
    put_run(log, "own", 40, 100, SCR_LOG_RUN_READY);
    scr_log_close(log);
    scr_history h = read_log(s, "own");
    assert_int_equal(h.runs, 4);
    assert_int_equal(h.interrupted, 2);
    assert_near(h.node_seconds, 20 * 3600 * 4);
    assert_int_equal(h.ckpts, 1); /* of r4 alone */
    assert_near(h.ckpt_seconds, 2);
    h = read_log(s, NULL);
    assert_int_equal(h.runs, 5);
    assert_int_equal(h.interrupted, 3);
}

/* More runs at a time than are followed: each still counts once. */
static void runs_at_the_same_time(void **state)
{
    struct scratch *s = *state;
    char run[30];
    scr_log *log = open_log(s);
    for (int i = 0; i < 30; i++) {
        snprintf(run, sizeof run, "r%d", i);
        put_run(log, run, i, 50, SCR_LOG_RUN_READY);
    }
    scr_log_close(log);
    scr_history h = read_log(s, NULL);
    assert_int_equal(h.runs, 30);
    assert_int_equal(h.interrupted, 30);
    assert_near(h.node_seconds, 30 * 50 * 3600 * 4);
}

static void no_log(void **state)
{
    struct scratch *s = *state;
    scr_history h = {.runs = 77};
    assert_int_equal(scr_history_read(s->dir, NULL, LATER, &h, &s->err), -ENOENT);
    assert_int_equal(h.runs, 77);
    assert_int_equal(symlinkat("/etc/passwd", s->dir, ".scr/log"), 0);
    assert_true(scr_history_read(s->dir, NULL, LATER, &h, &s->err) < 0);
    assert_int_equal(unlinkat(s->dir, ".scr/log", 0), 0);
    assert_int_equal(mkfifoat(s->dir, ".scr/log", 0600), 0);
    assert_true(scr_history_read(s->dir, NULL, LATER, &h, &s->err) < 0);
    assert_int_equal(unlinkat(s->dir, ".scr/log", 0), 0);
    scratch_put(s, ".scr/log", "", 0);
    s->err.text[0] = 0;
    h = read_log(s, NULL);
    assert_int_equal(h.runs, 0);
}

/* ---- logs as they should not be ---- */

#define START "2026-11-21T10:00:00.000000Z RUN_START run=\"r\" nodes=2\n"
#define READY "2026-11-21T10:00:01.000000Z RUN_READY run=\"r\"\n"
#define AT_12 "2026-11-21T12:00:00.000000Z OUTPUT_START run=\"r\"\n"

static void other_lines(void **state)
{
    static const char *const texts[] = {
        "\n\n\n",
        "no line of a log\n",
        "2026-11-21T11:00:00.000000Z",
        "2026-11-21T13:00:00.000000Z RUN_END\n",
        "2026-11-21T13:00:00.000000 RUN_END run=\"r\"\n",
        "2026-13-21T13:00:00.000000Z RUN_END run=\"r\"\n",
        "2026-11-21T13:00:00.000000Z RUN_END run=\"r\" name=\"torn\n",
        "2026-11-21T13:00:00.000000Z RUN_END run=\"r\" name=\"torn\\\n",
        "2026-11-21T13:00:00.000000Z RUN_END run=\"r\" name\n",
        "2026-11-21T13:00:00.000000Z RUN_END run=\"r\"name=\"a\"\n",
        "2026-11-21T13:00:00.000000Z RUN_END note=\"run=\\\"r\\\"\"\n",
        "2026-11-21T13:00:00.000000Z RUN_END run=\"another\"\n",
        "2926-11-21T13:00:00.000000Z RUN_END run=\"r\"\n", /* after now */
        "2026-11-21T13:00:00.000000Z RUN_START run=\"x\" nodes=0\n",
        "2026-11-21T13:00:00.000000Z RUN_START run=\"x\" nodes=none\n",
        "2026-11-21T13:00:00.000000Z RUN_START run=\"x\"\n",
        "2026-11-21T13:00:00.000000Z RUN_READY run=\"x\"\n",
        "2026-11-21T11:00:00.000000Z OUTPUT_COMPLETE run=\"r\" type=\"output\" secs=7\n",
        "2026-11-21T11:00:00.000000Z OUTPUT_COMPLETE run=\"r\" type=\"checkpoint\" "
        "secs=-7\n",
        "2026-11-21T11:00:00.000000Z OUTPUT_COMPLETE run=\"r\" type=\"checkpoint\" "
        "secs=inf\n",
        "2026-11-21T11:00:00.000000Z OUTPUT_COMPLETE run=\"r\" type=\"checkpoint\"\n",
        "2026-11-21T09:00:00.000000Z OUTPUT_START run=\"r\"\n", /* before the start */
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[1000];
        int n = snprintf(text, sizeof text, "%s%s%s%s", START READY, texts[i],
                         strchr(texts[i], '\n') ? "" : "\n", AT_12);
        scratch_put(s, ".scr/log", text, (size_t)n);
        scr_history h = read_log(s, NULL);
        if (h.runs != 1 || h.interrupted != 1 || h.node_seconds != 2 * 2 * 3600.0 ||
            h.ckpts != 0)
            fail_msg("%s: %d runs, %d interrupted, %.0f s, %d checkpoints", texts[i],
                     h.runs, h.interrupted, h.node_seconds, h.ckpts);
    }
}

/* Each byte changed, and cut off everywhere: never more than what there was. */
static void damaged(void **state)
{
    static const char text[] = START READY AT_12
        "2026-11-21T13:00:00.000000Z OUTPUT_COMPLETE run=\"r\" type=\"checkpoint\" "
        "secs=7\n";
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (int how = 0; how < 4; how++) {
            static const char bytes[] = {0, '\n', '"'};
            char copy[sizeof text];
            size_t size = how == 3 ? i : sizeof text - 1;
            memcpy(copy, text, sizeof text);
            if (how < 3) copy[i] = bytes[how];
            scratch_put(s, ".scr/log", copy, size);
            scr_history h = read_log(s, NULL);
            assert_in_range(h.runs, 0, 1);
            assert_in_range(h.interrupted, 0, 1);
            assert_true(h.node_seconds >= 0 && h.node_seconds <= 9 * 3 * 3600.0);
        }
}

/* A large log is not read from its begin, and a line without end costs no memory. */
static void large(void **state)
{
    struct scratch *s = *state;
    static const char line[] =
        "2026-11-21T10:00:00.000000Z OUTPUT_START run=\"s\" name=\"x\"\n";
    size_t count = 3 * SCR_HISTORY_BYTES / (sizeof line - 1);
    FILE *out = fdopen(openat(s->dir, ".scr/log", O_WRONLY | O_CREAT, 0600), "w");
    fputs("2026-11-21T01:00:00.000000Z RUN_START run=\"old\" nodes=1\n"
          "2026-11-21T01:00:00.000000Z RUN_READY run=\"old\"\n",
          out);
    for (size_t i = 0; i < count; i++)
        fputs(line, out);
    fputs(START READY, out);
    for (int i = 0; i < 200000; i++)
        fputc('x', out);
    fputs("\n" AT_12, out);
    fclose(out);
    scr_history h = read_log(s, NULL);
    assert_int_equal(h.runs, 1);
    assert_near(h.node_seconds, 2 * 2 * 3600);
}

/* ---- the estimate ---- */

static void estimates(void **state)
{
    const double day = SCR_HISTORY_MTBF, hour = 3600;
    scr_history none = {0};
    assert_near(scr_history_mtbf(&none, 4, 0), day);
    assert_near(scr_history_mtbf(&none, 4, 5 * day), 5 * day);
    /* 100 hours of 8 nodes without a failure are 200 of 4 */
    scr_history good = {.runs = 1, .node_seconds = 800 * hour};
    assert_near(scr_history_mtbf(&good, 4, 0), 200 * hour);
    assert_near(scr_history_mtbf(&good, 16, 0), 50 * hour);
    scr_history bad = {.runs = 10, .interrupted = 9, .node_seconds = 9 * 4 * hour};
    assert_near(scr_history_mtbf(&bad, 4, 0), pow(pow(hour, 9) * day, 0.1));
    assert_near(scr_history_mtbf(&bad, 4, 9 * hour), pow(pow(2 * hour, 9) * day, 0.1));
    /* many failures: what is assumed does not matter any more */
    scr_history many = {.runs = 2000, .interrupted = 2000, .node_seconds = 2e6};
    double is = scr_history_mtbf(&many, 1, 0);
    assert_true(is > 990 && is < 1010);
    /* one that came at once is no reason to do nothing but checkpoints */
    scr_history quick = {.runs = 1, .interrupted = 1, .node_seconds = 0};
    is = scr_history_mtbf(&quick, 1, 0);
    assert_true(is > 200 && is < day);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(runs_and_failures),
        scratch_test(runs_at_the_same_time),
        scratch_test(no_log),
        scratch_test(other_lines),
        scratch_test(damaged),
        scratch_test(large),
        cmocka_unit_test(estimates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
