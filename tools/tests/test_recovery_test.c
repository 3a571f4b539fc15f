/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts from the log about scr_run and a lost node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "run/recovery_test.h"
#include <cmocka.h>
#include <string.h>

#define AT "2026-11-21T21:40:27.123456Z "
#define WHO " user=\"tester\" jobid=\"17\" host=\"n1\""
#define START(nodes) AT "LAUNCH_START" WHO " ranks=8 nodes=4 note=\"" nodes "\"\n"
#define END(code) AT "LAUNCH_END" WHO " secs=1.5 code=" code " note=\"it failed\"\n"
#define LOST(node) AT "NODE_LOST" WHO " node=\"" node "\" note=\"no answer\"\n"
#define REBUILT(name) AT "REBUILD_COMPLETE" WHO " dset=4 name=\"" name "\" secs=1\n"

static void test_whole(void **state)
{
    recovery_log log;
    recovery_parse_log(START("n[1-4]") AT
                       "OUTPUT_COMPLETE" WHO " dset=4 name=\"ckpt.4\"\n" END("9")
                           LOST("n2") START("n[1,3-5]") REBUILT("ckpt.4") END("0"),
                       "n2", &log);
    assert_int_equal(log.launches, 2);
    assert_true(log.ended && log.lost);
    assert_int_equal(log.code, 9);
    assert_string_equal(log.why, "it failed");
    assert_string_equal(log.found, "no answer");
    assert_string_equal(log.second, "n[1,3-5]");
    assert_string_equal(log.dataset, "ckpt.4");
}

/* Each event that may be missing. */
static void test_parts(void **state)
{
    recovery_log log;
    recovery_parse_log("", "n2", &log);
    assert_true(!log.launches && !log.ended && !log.lost);
    recovery_parse_log(START("n[1-4]"), "n2", &log);
    assert_true(log.launches == 1 && !log.ended);
    recovery_parse_log(START("n[1-4]") END("0"), "n2", &log);
    assert_true(log.ended && log.code == 0 && !log.lost && !*log.second);
    /* another node */
    recovery_parse_log(START("n[1-4]") END("1") LOST("n20") START("n[1-4]"), "n2", &log);
    assert_true(!log.lost && log.launches == 2);
    /* a dataset of the first launch does not count */
    recovery_parse_log(START("n1") REBUILT("ckpt.1") END("1") LOST("n2") START("n3"),
                       "n2", &log);
    assert_string_equal(log.dataset, "");
}

/* Names may contain anything, and lines may be truncated. */
static void test_odd_lines(void **state)
{
    recovery_log log;
    recovery_parse_log(START("n1") "\n\x01\n" AT "\n" AT "NODE_LOST\n" AT
                                   "NODE_LOST node=\"n2\n" END("x"),
                       "n1", &log);
    assert_true(log.launches == 1 && !log.lost && log.ended && !log.code);
    recovery_parse_log(
        AT "FETCH_COMPLETE name=\"a \\\" note=\\\" name=\\\"b\" from=\"x y\"\n" AT
           "NODE_LOST note=\"node=\\\"n2\\\" node=n2\" node=\"n3\"",
        "n3", &log);
    assert_string_equal(log.dataset, "a \\\" note=\\\" name=\\\"b");
    assert_string_equal(log.found, "node=\\\"n2\\\" node=n2");
    assert_true(log.lost);
    char line[2 * RECOVERY_TEXT_SIZE] = AT "NODE_LOST node=\"n1\" note=\"";
    size_t length = strlen(line);
    memset(line + length, 'x', sizeof line - length - 1);
    line[sizeof line - 1] = 0;
    recovery_parse_log(line, "n1", &log);
    assert_int_equal(strlen(log.found), RECOVERY_TEXT_SIZE - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_odd_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
