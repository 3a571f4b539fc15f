/* SPDX-License-Identifier: BSD-3-Clause */
/* Retention on the prefix directory: every list of up to four datasets in all states,
 * compared with the rule for one dataset. */
#include "plan/retain.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 4, FACTS = 32 };

static scr_retain_row row_of(int facts)
{
    return (scr_retain_row){.checkpoint = facts & 1,
                            .complete = facts & 2,
                            .usable = facts & 4,
                            .deleting = facts & 8,
                            .pinned = facts & 16};
}

/* Whether row i of the list leaves, according to the manual. */
static bool is_superfluous(const scr_retain_row *rows, int count, int i, int keep)
{
    int newer = 0;
    if (rows[i].deleting) return true;
    if (keep == 0 || !rows[i].checkpoint || !rows[i].complete || rows[i].pinned)
        return false;
    for (int k = i + 1; k < count; k++)
        newer += rows[k].checkpoint && rows[k].usable;
    return newer >= keep;
}

static int usable_left(const scr_retain_row *rows, int count)
{
    int left = 0;
    for (int i = 0; i < count; i++)
        left += rows[i].checkpoint && rows[i].usable && !rows[i].leaves;
    return left;
}

static void check(scr_retain_row *rows, int count)
{
    for (int keep = 0; keep <= MOST + 1; keep++) {
        int deleting = 0, usable = 0;
        scr_plan_retain(rows, count, keep);
        for (int i = 0; i < count; i++) {
            assert_int_equal(rows[i].leaves, is_superfluous(rows, count, i, keep));
            deleting += rows[i].checkpoint && rows[i].usable && rows[i].deleting;
            usable += rows[i].checkpoint && rows[i].usable;
        }
        /* a restart can choose from as many as the user wants, if there are so many */
        int wanted = keep == 0 || usable < keep ? usable : keep;
        assert_true(usable_left(rows, count) >= wanted - deleting);
    }
}

static int every_list(scr_retain_row *rows, int count, int at)
{
    int checked = 0;
    if (at == count) {
        check(rows, count);
        return 1;
    }
    for (int facts = 0; facts < FACTS; facts++) {
        rows[at] = row_of(facts);
        checked += every_list(rows, count, at + 1);
    }
    return checked;
}

static void every_small_prefix(void **state)
{
    scr_retain_row rows[MOST];
    for (int count = 0, lists = 1; count <= MOST; count++, lists *= FACTS)
        assert_int_equal(every_list(rows, count, 0), lists);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_small_prefix)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
