/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process acts for which rank: all cases of up to four processes and four ranks, in
 * which each process may hold a copy of the files of each rank, intact or damaged. */
#include "plan/adopt.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 4, FORMS = 3 }; /* a copy is absent, intact or damaged */

typedef struct world {
    int procs, ranks;
    int at[MOST][MOST]; /* [process][rank] */
    int actor[MOST], load[MOST];
} world;

static void play(world *w)
{
    scr_distribute_copy copies[MOST * MOST];
    int count = 0;
    for (int cell = w->procs * w->ranks; cell-- > 0;) {
        const int p = cell / w->ranks, r = cell % w->ranks;
        if (w->at[p][r])
            copies[count++] =
                (scr_distribute_copy){.holder = p, .rank = r, .intact = w->at[p][r] == 1};
    }
    scr_plan_adopt(w->procs, w->ranks, count, copies, w->actor, w->load);
}

static int lowest_holder(const world *w, int rank)
{
    for (int p = 0; p < w->procs; p++)
        if (w->at[p][rank] == 1) return p;
    return -1;
}

/* A lost rank is assigned to a process that acts for no more ranks than any other in the
 * end. */
static void judge(const world *w)
{
    int acts[MOST] = {0}, lost[MOST] = {0};
    for (int r = 0; r < w->ranks; r++) {
        assert_in_range(w->actor[r], 0, w->procs - 1);
        acts[w->actor[r]]++;
        if (lowest_holder(w, r) >= 0)
            assert_int_equal(w->actor[r], lowest_holder(w, r));
        else
            lost[w->actor[r]]++;
    }
    for (int p = 0; p < w->procs; p++)
        for (int q = 0; q < w->procs; q++)
            if (lost[p]) assert_true(acts[p] <= acts[q] + 1);
}

static void test_all_worlds(void **state)
{
    long worlds = 0;
    (void)state;
    for (int procs = 1; procs <= MOST; procs++)
        for (int ranks = 1; ranks <= MOST && procs * ranks <= 12; ranks++) {
            long all = 1;
            for (int i = 0; i < procs * ranks; i++)
                all *= FORMS;
            for (long n = 0; n < all; n++, worlds++) {
                world w = {.procs = procs, .ranks = ranks};
                long rest = n;
                for (int cell = 0; cell < procs * ranks; cell++, rest /= FORMS)
                    w.at[cell / ranks][cell % ranks] = (int)(rest % FORMS);
                play(&w);
                judge(&w);
            }
        }
    assert_true(worlds > 1000000);
}

/* If no process has a copy, the ranks are distributed evenly. */
static void test_nothing_is_left(void **state)
{
    int actor[1000], load[7];
    (void)state;
    scr_plan_adopt(7, 1000, 0, NULL, actor, load);
    for (int p = 0; p < 7; p++)
        assert_in_range(load[p], 142, 143);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_worlds),
                                       cmocka_unit_test(test_nothing_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
