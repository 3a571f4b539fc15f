/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which files are sent: all small cases, and large ones of typical forms,
 * are executed and compared with the rules of plan/bring.h. */
#include "plan/bring.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FILES = 3, MOST = 4 };

/* Executes the plan of count wants; wants has no spare room. Returns the number of
 * rounds. */
static int play(int procs, int files, int count, scr_bring_want wants[])
{
    bool *has = calloc((size_t)procs * (size_t)files, 1);
    int *last = calloc((size_t)procs, sizeof *last), rounds = 0;
    assert_non_null(has);
    assert_non_null(last);
    for (int i = 0; i < count; i++)
        has[wants[i].holder * files + (int)wants[i].file] = true;
    assert_int_equal(scr_plan_bring(procs, count, wants), 0);
    for (int i = 0; i < count; i++) {
        const scr_bring_want *w = &wants[i];
        assert_true(w->round + 1 >= rounds); /* sorted */
        rounds = w->round + 1;
        assert_true(w->from != w->to);
        assert_true(has[w->from * files + (int)w->file]);
        assert_false(has[w->to * files + (int)w->file]);
        has[w->to * files + (int)w->file] = true;
        /* a process sends or receives one file at a time */
        assert_true(last[w->from] < rounds);
        assert_true(last[w->to] < rounds);
        last[w->from] = last[w->to] = rounds;
    }
    free(has);
    free(last);
    return rounds;
}

/* Each of up to three files is at one process, and any others want it. */
static void test_small_worlds(void **state)
{
    (void)state;
    long all = 1;
    for (int i = 0; i < FILES; i++)
        all *= MOST << MOST;
    for (long n = 0; n < all; n++) {
        scr_bring_want wants[FILES * MOST];
        int count = 0, degree[MOST] = {0}, most = 0;
        long rest = n;
        for (int f = 0; f < FILES; f++) {
            const int holder = (int)(rest % MOST);
            for (int to = 0; to < MOST; to++)
                if (rest / MOST >> to & 1 && to != holder) {
                    wants[count++] =
                        (scr_bring_want){.file = (uint64_t)f, .holder = holder, .to = to};
                    degree[to]++;
                }
            rest /= MOST << MOST;
        }
        const int rounds = play(MOST, FILES, count, wants);
        for (int i = 0; i < count; i++)
            degree[wants[i].from]++;
        for (int p = 0; p < MOST; p++)
            if (degree[p] > most) most = degree[p];
        assert_true(rounds <= 2 * most + 2);
        assert_true(count == 0 || rounds >= most);
    }
}

/* All processes want one file: its holders double in each round. */
static void test_one_for_all(void **state)
{
    enum { PROCS = 1000 };
    static scr_bring_want wants[PROCS];
    int count = 0;
    (void)state;
    for (int p = 0; p < PROCS; p++)
        if (p != 17) wants[count++] = (scr_bring_want){.file = 0, .holder = 17, .to = p};
    assert_int_equal(play(PROCS, 1, count, wants), 10); /* 2^10 > 1000 */
}

/* Each process has three files, each of which one of three neighbors wants: there are no
 * long chains. */
static void test_neighbors(void **state)
{
    enum { PROCS = 500, SHIFTS = 3 };
    static scr_bring_want wants[PROCS * SHIFTS];
    int count = 0;
    (void)state;
    for (int p = 0; p < PROCS; p++)
        for (int k = 0; k < SHIFTS; k++, count++)
            wants[count] = (scr_bring_want){
                .file = (uint64_t)count, .holder = p, .to = (p + 1 + k) % PROCS};
    assert_true(play(PROCS, PROCS * SHIFTS, count, wants) < 2 * 2 * SHIFTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_worlds),
                                       cmocka_unit_test(test_one_for_all),
                                       cmocka_unit_test(test_neighbors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
