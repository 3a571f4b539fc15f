/* SPDX-License-Identifier: BSD-3-Clause */
/* The log is read as it was written: each kind of event, with any text. What is no log is
 * tested by test_scr_history.c, which reads through the same functions. */
#include "records.h"
#include "report/log.h"
#include "report/log_read.h"
#include <errno.h>

static const char *const texts[] = {"plain",
                                    "",
                                    "a \"b\" c=d",
                                    "\\x41 \\n",
                                    "tab\tnew\nline",
                                    "\xff\xfe\x01",
                                    "\xc3\xa4 \xe2\x80\xae"};
enum { TEXTS = sizeof texts / sizeof *texts, EVENTS = SCR_LOG_KINDS * TEXTS };

static scr_log_event event_of(int number)
{
    const char *text = texts[number % TEXTS];
    return (scr_log_event){.kind = (scr_log_kind)(number / TEXTS),
                           .time = 1795257190123456 + number,
                           .run = "r1",
                           .user = "me",
                           .job_id = "17",
                           .host = "n1",
                           .ranks = 8,
                           .nodes = 4,
                           .dset = 1 + number,
                           .name = text,
                           .type = "checkpoint",
                           .bytes = INT64_MAX,
                           .secs = 1.5,
                           .compute = 2.25,
                           .note = text};
}

static void assert_text(const char *is, const char *wanted)
{
    if (is && *wanted) assert_string_equal(is, wanted);
}

static void take(void *arg, const scr_log_event *e)
{
    int *count = arg;
    scr_log_event wanted = event_of(*count);
    assert_int_equal(e->kind, wanted.kind);
    assert_true(e->time == wanted.time);
    assert_string_equal(e->run, "r1");
    assert_string_equal(e->host, "n1");
    assert_text(e->name, wanted.name);
    assert_text(e->note, wanted.note);
    if (e->kind == SCR_LOG_OUTPUT_COMPLETE) {
        assert_true(e->bytes == INT64_MAX && e->secs == 1.5 && e->dset == 1 + *count);
        assert_true(e->compute < 0); /* it has none */
        assert_string_equal(e->type, "checkpoint");
        assert_true((e->name != NULL) == (*wanted.name != 0));
    }
    if (e->kind == SCR_LOG_OUTPUT_START) assert_true(e->compute == 2.25);
    if (e->kind == SCR_LOG_RUN_READY) assert_null(e->name);
    ++*count;
}

static void round_trip(void **state)
{
    struct scratch *s = *state;
    scr_log_options options = {.set.targets = 1u << SCR_LOG_TEXT, .prefix = s->dir};
    scr_log *log;
    int count = 0;
    assert_int_equal(scr_log_open(&options, &log), 0);
    for (int i = 0; i < EVENTS; i++) {
        scr_log_event e = event_of(i);
        scr_log_write(log, &e);
    }
    scr_log_close(log);
    assert_int_equal(scr_log_read(s->dir, 0, take, &count, &s->err), 0);
    assert_int_equal(count, EVENTS);
}

/* Of a newer version, or with values that are none. */
static void other_lines(void **state)
{
    (void)state;
    scr_log_event e;
    char newer[] = "2026-11-21T10:00:00.000000Z NEWER what=\"x\" run=\"r\" dset=7";
    char wrong[] = "2026-11-21T10:00:00.000000Z RUN_END dset=x secs=none name=3 code=-2";
    char none[] = "2026-11-21T10:00:00.000000Z RUN_END dset";
    assert_int_equal(scr_log_parse(newer, &e), 0);
    assert_int_equal(e.kind, SCR_LOG_OTHER);
    assert_int_equal(e.dset, 7);
    assert_string_equal(e.run, "r");
    assert_int_equal(scr_log_parse(wrong, &e), 0);
    assert_int_equal(e.kind, SCR_LOG_RUN_END);
    assert_true(e.dset == 0 && e.secs < 0 && e.code == -2);
    assert_int_equal(scr_log_parse(none, &e), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {scratch_test(round_trip),
                                       cmocka_unit_test(other_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
