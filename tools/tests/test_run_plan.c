/* SPDX-License-Identifier: BSD-3-Clause */
/* The next step in an allocation: each end, the chosen nodes, and the distribution of
 * ranks; and when a run hangs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "run/run_plan.h"
#include "run/run_progress.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 9 };

/* A letter per node: '.' fine, 'u' fine and used, 'd' down, 'D' down and used, 'l'
 * drained, 'L' drained and used, 'h' scr_run is on it, 'x' the same and it is down. */
static run_facts facts_of(const char *nodes, run_node table[MOST])
{
    run_facts f = {.runs_left = 1, .per_node = 1, .count = (int)strlen(nodes)};
    memset(table, 0, MOST * sizeof *table);
    for (int i = 0; i < f.count; i++) {
        table[i].down = strchr("dDx", nodes[i]) != NULL;
        table[i].drained = strchr("lL", nodes[i]) != NULL;
        table[i].used = strchr("uDL", nodes[i]) != NULL;
        table[i].home = strchr("hx", nodes[i]) != NULL;
    }
    f.nodes = table;
    return f;
}

/* Returns the ranks of each node, as digits. */
static const char *dealt(const run_facts *f)
{
    static char text[MOST + 1];
    for (int i = 0; i < f->count; i++)
        text[i] = f->nodes[i].chosen ? (char)('0' + f->nodes[i].ranks) : '-';
    text[f->count] = 0;
    return text;
}

/* ---- nodes and ranks ---- */

static const struct {
    const char *nodes;
    int attempts, wanted, least, last, ranks, per_node;
    const char *dealt;
} launches[] = {
    /* the first run */
    {"....", 0, 0, 0, 0, 0, 2, "2222"},
    {"....", 0, 0, 0, 0, 6, 0, "2211"},
    {".....", 0, 4, 0, 0, 8, 0, "2222-"},
    {".d...", 0, 4, 0, 0, 8, 0, "2-222"},
    {".d...", 0, 0, 3, 0, 8, 0, "2-222"},
    {"....h", 0, 4, 0, 0, 4, 0, "111-1"},
    {"h", 0, 0, 0, 0, 0, 3, "3"},
    /* used nodes have the checkpoints and come first, then spare ones */
    {"uuDu..", 1, 4, 0, 4, 8, 0, "22-22-"},
    {".uuDu.", 1, 4, 0, 4, 8, 0, "222-2-"},
    {".Duuu", 1, 4, 0, 4, 8, 0, "2-222"},
    {"uuuu.", 1, 4, 0, 4, 8, 0, "2222-"},
    /* by default, as many nodes as before */
    {"uuDu..", 1, 0, 0, 4, 8, 0, "22-22-"},
    /* crowded, if fewer nodes suffice; the number of ranks stays */
    {"uuDu", 1, 0, 3, 4, 8, 0, "33-2"},
    {"uDDu", 1, 4, 2, 4, 8, 0, "4--4"},
    {"uDDD", 1, 4, 1, 4, 7, 0, "7---"},
    /* more nodes again if there are any */
    {"u..", 1, 3, 1, 1, 3, 0, "111"},
    /* drained nodes only if too few others are left, used ones first */
    {".l...", 0, 4, 0, 0, 8, 0, "2-222"},
    {"uuLu.", 1, 4, 0, 4, 8, 0, "22-22"},
    {"uLLu.", 1, 4, 3, 4, 8, 0, "3--32"},
    {"uLLu", 1, 4, 3, 4, 8, 0, "33-2"},
    {"ulLu", 1, 3, 0, 3, 3, 0, "1-11"},
    {"uLlD", 1, 3, 0, 3, 3, 0, "111-"},
    {"llll", 0, 2, 0, 0, 2, 0, "11--"},
    /* more nodes than ranks: a launcher gets no node without ranks */
    {"....", 0, 0, 0, 0, 3, 0, "111-"},
    {".d..", 0, 0, 0, 0, 3, 0, "1-11"},
    {"....", 0, 4, 0, 0, 3, 0, "111-"},
    {"....", 0, 0, 4, 0, 1, 0, "1---"},
    {"l.ll", 0, 0, 4, 0, 2, 0, "11--"},
    {"uuD.", 1, 0, 0, 3, 3, 0, "11-1"},
};

static void test_launches(void **state)
{
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        run_node table[MOST];
        char text[RUN_TEXT_SIZE];
        run_facts f = facts_of(launches[i].nodes, table);
        f.attempts = launches[i].attempts;
        f.code = 1;
        f.wanted = launches[i].wanted;
        f.least = launches[i].least;
        f.last_nodes = launches[i].last;
        f.ranks = launches[i].ranks;
        f.per_node = launches[i].per_node;
        run_decision d = run_plan(&f);
        run_plan_describe(&f, &d, text);
        if (d.why != RUN_LAUNCH) fail_msg("%zu: %s", i, text);
        assert_string_equal(dealt(&f), launches[i].dealt);
        assert_string_equal(text, "");
        int chosen = 0;
        for (int k = 0; k < f.count; k++)
            chosen += table[k].chosen;
        assert_int_equal(d.nodes, chosen);
    }
}

/* ---- ends ---- */

static const struct {
    const char *nodes;
    int attempts, code, runs_left, stop;
    const char *halt, *halted;
    int wanted, least;
    run_why why;
    int exit_code;
    const char *text;
} ends[] = {
    {"..", 1, 0, 5, 0, NULL, NULL, 0, 0, RUN_DONE, 0, "the program is done"},
    {"..", 1, 0, 5, 0, "now", NULL, 0, 0, RUN_DONE, 0, "the program is done"},
    {"..", 1, 0, 5, 0, "time", "time", 0, 0, RUN_HALTED, 0,
     "the program was halted: time"},
    {"..", 1, 0, 5, 0, NULL, "SCR_SIGNAL", 0, 0, RUN_HALTED, 0,
     "the program was halted: SCR_SIGNAL"},
    {"..", 1, 0, 5, 1, NULL, "x", 0, 0, RUN_STOPPED, 0, "scr_run was told to end"},
    {"..", 1, 7, 0, 0, NULL, NULL, 0, 0, RUN_USED_UP, 7,
     "all runs are used up (SCR_RUNS)"},
    {"..", 3, 7, -1, 0, "time", NULL, 0, 0, RUN_HALTED, 7, "the job should halt: time"},
    {"..", 0, 0, 1, 0, "time", NULL, 0, 0, RUN_HALTED, 1, "the job should halt: time"},
    {"..", 1, 130, -1, 1, NULL, NULL, 0, 0, RUN_STOPPED, 130, "scr_run was told to end"},
    {"..", 0, 0, -1, 1, NULL, NULL, 0, 0, RUN_STOPPED, 1, "scr_run was told to end"},
    {".x", 1, 9, -1, 0, NULL, NULL, 1, 1, RUN_HOME_DOWN, 9,
     "the node on which scr_run itself runs is down"},
    {"uDu", 1, 9, -1, 0, NULL, NULL, 0, 0, RUN_TOO_FEW, 9,
     "2 of 3 nodes are left, 3 are needed"},
    {"uDu", 1, 9, -1, 0, NULL, NULL, 3, 3, RUN_TOO_FEW, 9,
     "2 of 3 nodes are left, 3 are needed"},
    {".d.", 0, 0, -1, 0, NULL, NULL, 0, 0, RUN_TOO_FEW, 1,
     "2 of 3 nodes are left, 3 are needed"},
    {"DD", 1, 9, -1, 0, NULL, NULL, 0, 1, RUN_TOO_FEW, 9,
     "0 of 2 nodes are left, 1 are needed"},
    /* the earlier rule prevails */
    {"DD", 1, 9, 0, 1, "x", NULL, 0, 0, RUN_STOPPED, 9, "scr_run was told to end"},
};

static void test_ends(void **state)
{
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        run_node table[MOST];
        char text[RUN_TEXT_SIZE];
        run_facts f = facts_of(ends[i].nodes, table);
        f.attempts = ends[i].attempts;
        f.code = ends[i].code;
        f.runs_left = ends[i].runs_left;
        f.stop = ends[i].stop;
        f.halt = ends[i].halt;
        f.halted = ends[i].halted;
        f.wanted = ends[i].wanted;
        f.least = ends[i].least;
        f.last_nodes = f.attempts ? f.count : 0;
        run_decision d = run_plan(&f);
        run_plan_describe(&f, &d, text);
        if (d.why != ends[i].why) fail_msg("%zu: %d, %s", i, (int)d.why, text);
        assert_int_equal(d.code, ends[i].exit_code);
        assert_string_equal(text, ends[i].text);
    }
}

/* The batch system ends the allocation: this prevails over nodes and runs, but not over
 * the program and the user. */
static void test_over(void **state)
{
    run_node table[MOST];
    char text[RUN_TEXT_SIZE];
    run_facts f = facts_of("uu", table);
    f.attempts = 1;
    f.code = 9;
    f.over = 1;
    f.halt = "time";
    f.last_nodes = 2;
    for (f.runs_left = -1; f.runs_left < 1; f.runs_left++) {
        run_decision d = run_plan(&f);
        run_plan_describe(&f, &d, text);
        assert_int_equal(d.why, RUN_OVER);
        assert_int_equal(d.code, 9);
        assert_string_equal(text, "the allocation is over");
    }
    f.stop = 1;
    assert_int_equal(run_plan(&f).why, RUN_STOPPED);
    f.stop = f.code = 0;
    assert_int_equal(run_plan(&f).why, RUN_DONE);
}

/* A process died, according to the exit code, or a used node did. */
static void test_struck(void **state)
{
    static const struct {
        const char *nodes;
        int attempts, code, struck;
    } rows[] = {{"uu", 1, 137, 1}, {"uu", 1, 139, 1}, {"uu", 1, 143, 0},
                {"uu", 1, 128, 0}, {"uu", 1, 1, 0},   {"uu", 1, 0, 0},
                {"uD", 1, 1, 1},   {"uD", 1, 143, 1}, {"ud", 1, 1, 0},
                {"..", 0, 137, 0}, {"L.", 1, 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_node table[MOST];
        run_facts f = facts_of(rows[i].nodes, table);
        f.attempts = rows[i].attempts;
        f.code = rows[i].code;
        if (run_plan_was_struck(&f) != rows[i].struck) fail_msg("row %zu", i);
    }
}

/* If a program that needs a drained node never starts, such a node counts as down. */
static void test_drained_waits(void **state)
{
    run_node table[MOST];
    for (int waits = 0; waits <= 1; waits++) {
        run_facts f = facts_of("...", table);
        f.runs_left = 1;
        f.wanted = 3;
        f.drained_waits = waits;
        table[1].drained = 1;
        run_decision d = run_plan(&f);
        assert_int_equal(d.why, waits ? RUN_TOO_FEW : RUN_LAUNCH);
        assert_int_equal(d.healthy, waits ? 2 : 3);
        f.wanted = 2;
        assert_int_equal(run_plan(&f).why, RUN_LAUNCH);
        assert_true(table[0].chosen && !table[1].chosen && table[2].chosen);
    }
}

/* A job of 6 nodes, 4 of which run, loses one node after the other: it never uses a node
 * that is down, and distributes all ranks. */
static void test_stories(void **state)
{
    for (unsigned story = 0; story < 720; story++) {
        run_node table[MOST];
        run_facts f = facts_of("......", table);
        f.runs_left = -1;
        f.wanted = 4;
        f.least = 2;
        f.ranks = 9;
        unsigned rest = story;
        for (int lost = 0; lost < 6; lost++) {
            run_decision d = run_plan(&f);
            assert_int_equal(d.why, lost <= 4 ? RUN_LAUNCH : RUN_TOO_FEW);
            if (d.why != RUN_LAUNCH) break;
            int ranks = 0, nodes = 0, fresh = 0;
            for (int i = 0; i < 6; i++) {
                assert_false(table[i].chosen && table[i].down);
                if (table[i].chosen) ranks += table[i].ranks;
                nodes += table[i].chosen;
                fresh += table[i].chosen && !table[i].used;
            }
            assert_int_equal(ranks, 9);
            assert_int_equal(nodes, lost <= 2 ? 4 : 6 - lost);
            assert_true(f.attempts == 0 || fresh <= 1);
            for (int i = 0; i < 6; i++)
                table[i].used = table[i].chosen;
            f.attempts++;
            f.code = 9;
            f.last_nodes = nodes;
            int victim = (int)(rest % (unsigned)(6 - lost));
            rest /= (unsigned)(6 - lost);
            for (int i = 0; i < 6; i++)
                if (!table[i].down && victim-- == 0) table[i].down = 1;
        }
    }
}

/* ---- hangs ---- */

static void test_watchdog(void **state)
{
    watchdog w = {.timeout = 10, .timeout_pfs = 100, .since = 1000};
    run_progress none = {0}, first = {.latest = 1}, flush = {.latest = 1, .flushing = 1};
    double seconds;
    assert_int_equal(watchdog_has_expired(&w, &none, 1010, &seconds), 0);
    assert_int_equal(watchdog_has_expired(&w, &none, 1011, &seconds), 1);
    assert_true(seconds > 10.9 && seconds < 11.1);
    /* a new dataset, and the start of a flush, are progress */
    assert_int_equal(watchdog_has_expired(&w, &first, 1012, &seconds), 0);
    assert_int_equal(watchdog_has_expired(&w, &first, 1022, &seconds), 0);
    assert_int_equal(watchdog_has_expired(&w, &flush, 1023, &seconds), 0);
    assert_int_equal(watchdog_has_expired(&w, &flush, 1123, &seconds), 0);
    assert_int_equal(watchdog_has_expired(&w, &flush, 1124, &seconds), 1);
    assert_int_equal(watchdog_has_expired(&w, &first, 1125, &seconds), 0);
    assert_int_equal(watchdog_has_expired(&w, &first, 1136, &seconds), 1);
}

/* A program that restarts with any number of ranks: fewer nodes get as many ranks
 * each. */
static void test_any_ranks(void **state)
{
    static const struct {
        const char *nodes;
        int ranks, per_node;
        const char *dealt;
    } rows[] = {
        {"uuDu", 0, 2, "22-2"},
        {"uuDD", 10, 0, "32--"},
        {"uDDD", 3, 0, "1---"}, /* one rank on each of three nodes before */
        {"uuuu", 8, 0, "2222"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_node table[MOST];
        run_facts f = facts_of(rows[i].nodes, table);
        f.attempts = 1;
        f.code = 1;
        f.least = 1;
        f.last_nodes = 4;
        f.any_ranks = 1;
        f.ranks = rows[i].ranks;
        f.per_node = rows[i].per_node;
        assert_int_equal(run_plan(&f).why, RUN_LAUNCH);
        assert_string_equal(dealt(&f), rows[i].dealt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches), cmocka_unit_test(test_any_ranks),
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_over),
        cmocka_unit_test(test_struck),   cmocka_unit_test(test_drained_waits),
        cmocka_unit_test(test_stories),  cmocka_unit_test(test_watchdog)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
