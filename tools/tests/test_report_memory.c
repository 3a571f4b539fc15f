/* SPDX-License-Identifier: BSD-3-Clause */
/* Status and report without memory: each allocation fails once, from reading the records
 * to printing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "nth_each.h"
#include "prefix/flush_file.h"
#include "report/metrics.h"
#include "report/report.h"
#include "report/status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static int dir;

static void put_event(scr_log *log, scr_log_kind kind, const char *run, int64_t time)
{
    const scr_log_event e = {.kind = kind,
                             .run = run,
                             .time = (1795257190 + time) * 1000000,
                             .nodes = 4,
                             .ranks = 8,
                             .dset = 1,
                             .name = "c",
                             .type = "checkpoint",
                             .node = "n3",
                             .bytes = 1000,
                             .secs = 2};
    scr_log_write(log, &e);
}

static void put_log(void)
{
    static const scr_log_kind kinds[] = {SCR_LOG_RUN_START,      SCR_LOG_RUN_READY,
                                         SCR_LOG_OUTPUT_START,   SCR_LOG_OUTPUT_COMPLETE,
                                         SCR_LOG_FLUSH_COMPLETE, SCR_LOG_NODE_LOST};
    const scr_log_options options = {.set.targets = 1u << SCR_LOG_TEXT, .prefix = dir};
    scr_log *log;
    assert_int_equal(scr_log_open(&options, &log), 0);
    for (int i = 0; i < 12; i++)
        put_event(log, kinds[i % 6], i < 6 ? "r1" : "r2", 10 * i);
    scr_log_close(log);
}

static int setup(void **state)
{
    kvtree_error err;
    strcpy(folder, "/tmp/scr-test-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || mkdirat(dir, ".scr", 0700) != 0) return -1;
    put_log();
    kvtree *flush = kvtree_new();
    scr_flush_file_set(flush, 1, "c", SCR_LOCATION_CACHE, 1);
    scr_flush_file_set_kind(flush, 1, true, false);
    int rc = scr_flush_file_write(dir, flush, &err);
    kvtree_delete(&flush);
    return rc;
}

static int teardown(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    close(dir);
    return system(command);
}

static int do_report(void *arg)
{
    scr_ledger l;
    char *text = NULL;
    size_t size;
    int rc = scr_ledger_read(dir, &l, &nth_text);
    if (rc) return rc;
    const report r = {folder, &l, scr_ledger_add_up(&l)};
    assert_int_equal(r.sum.runs, 2);
    assert_int_equal(r.sum.checkpoints, 2);
    assert_int_equal(l.nodes_lost, 2);
    int held = nth_hold(); /* the C library has no error for a stream without memory */
    FILE *out = open_memstream(&text, &size);
    report_write_html(out, &r);
    scr_metrics_write(out, r.prefix, r.ledger, &r.sum);
    fclose(out);
    assert_non_null(strstr(text, "# EOF"));
    free(text);
    countdown = held;
    scr_ledger_done(&l);
    return 0;
}

static int do_status(void *arg)
{
    tool_prefix prefix = {.dir = -1};
    status s;
    bool is_open = tool_prefix_configure(&prefix, folder) == COMMAND_GOOD;
    int rc = is_open && status_read(&prefix, NULL, &s) == 0 ? 0 : -ENOMEM;
    if (!rc && s.problem_count)
        rc = strstr(s.problems[0].err.text, "memory") ? -ENOMEM : -EPROTO;
    if (!rc) {
        assert_string_equal(s.run.id, "r2");
        assert_string_equal(s.run.lost, "n3");
        assert_int_equal(s.cached.id, 1);
        assert_int_equal(s.risks, 1);
    }
    if (is_open) status_done(&s);
    tool_prefix_close(&prefix);
    return rc;
}

static void without_memory(void **state)
{
    unsetenv("SCR_PREFIX");
    nth_each("report", do_report, NULL, 4);
    nth_each("status", do_status, NULL, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_memory, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
