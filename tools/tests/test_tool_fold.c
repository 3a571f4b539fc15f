/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for all nodes with the same message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/tool_fold.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static void expect(const tool_fold *fold, int line, int nodes, const char *names,
                   const char *text)
{
    assert_true(line < fold->count);
    char *list = hostlist_compress(&fold->list[line].nodes);
    assert_int_equal(fold->list[line].nodes.count, nodes);
    assert_string_equal(list, names);
    free(list);
    assert_string_equal(fold->list[line].text, text);
}

static void test_folded(void **state)
{
    static const char *const said[][2] = {{"n1", "no answer: n1: Host is down"},
                                          {"n12", "exit code 7"},
                                          {"n3", "no answer: n3: Host is down"},
                                          {"n2", "no answer: n2: Host is down"},
                                          {"n4", "no answer: n1: Host is down"},
                                          {"a-b", "n1: exit code 7"},
                                          {"n13", "exit code 7"},
                                          {"n1", "n12: exit code 7"}};
    tool_fold fold = {0};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        assert_int_equal(tool_fold_add(&fold, said[i][0], said[i][1]), 0);
    assert_int_equal(fold.count, 5);
    expect(&fold, 0, 3, "n[1-3]", "no answer: Host is down");
    expect(&fold, 1, 2, "n[12-13]", "exit code 7");
    expect(&fold, 2, 1, "n4", "no answer: n1: Host is down");
    expect(&fold, 3, 1, "a-b", "n1: exit code 7");
    expect(&fold, 4, 1, "n1", "n12: exit code 7");
    tool_fold_done(&fold);
    assert_int_equal(fold.count, 0);
}

static void test_alone(void **state)
{
    tool_fold fold = {0};
    assert_int_equal(tool_fold_add(&fold, "n1", "n1: Host is down"), 0);
    expect(&fold, 0, 1, "n1", "n1: Host is down");
    tool_fold_done(&fold);
    tool_fold_done(&fold);
}

static void test_many(void **state)
{
    char node[16], text[64];
    tool_fold fold = {0};
    for (int i = 1; i <= 500; i++) {
        snprintf(node, sizeof node, "n%d", i);
        snprintf(text, sizeof text, "%s: %s", node, i % 2 ? "odd" : "even");
        assert_int_equal(tool_fold_add(&fold, node, text), 0);
    }
    assert_int_equal(fold.count, 2);
    assert_int_equal(fold.list[0].nodes.count, 250);
    assert_string_equal(fold.list[1].text, "even");
    tool_fold_done(&fold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_folded),
                                       cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
