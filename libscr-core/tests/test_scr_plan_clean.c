/* SPDX-License-Identifier: BSD-3-Clause */
/* What SCR_Init cleans up: every state of a directory in the index, the cache and a
 * search, with all possible contents, compared with a rule on the states before and
 * after. */
#include "plan/clean.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KINDS = 36 };

/* The state of a directory. */
typedef struct truth {
    enum { UNKNOWN, INCOMPLETE, COMPLETE, DELETING } entry; /* in the index */
    bool cached, staged;
    enum { NOTHING, STAGE, STAGE_AND_FILES } holds;
} truth;

typedef struct remains {
    bool dataset, stage, directory;
} remains;

static truth kind_of(int kind)
{
    return (truth){.entry = kind % 4,
                   .cached = kind / 4 % 3 == 1,
                   .staged = kind / 4 % 3 == 2,
                   .holds = kind / 12};
}

/* The rule: nothing else is lost, and nothing is left that no later run would find. */
static remains rule(const truth *t, bool purge)
{
    remains r = {.dataset = t->entry != UNKNOWN && !purge && t->entry != DELETING,
                 .stage = t->holds != NOTHING,
                 .directory = t->entry != UNKNOWN || t->holds != NOTHING};
    const bool is_whole = t->entry == COMPLETE;
    if (!is_whole || t->cached || t->staged) r.stage = false;
    if (t->entry == UNKNOWN && t->holds == STAGE) r.directory = false;
    return r;
}

/* Executes the plan. No flush is resumed, so all inspected stages are removed. */
static remains play(const truth *t, bool purge)
{
    const scr_clean_facts facts = {.is_indexed = t->entry != UNKNOWN,
                                   .is_complete = t->entry == COMPLETE,
                                   .is_deleting = t->entry == DELETING,
                                   .is_cached = t->cached,
                                   .is_staged = t->staged,
                                   .purge = purge};
    const scr_clean_plan plan = scr_plan_clean(&facts);
    remains r = {.dataset = t->entry != UNKNOWN, .stage = t->holds != NOTHING};
    r.directory = r.dataset || r.stage;
    if (plan.inspects) r.stage = false;
    if (plan.vacates && t->holds != STAGE_AND_FILES) r.directory = r.dataset;
    if (plan.deletes) r.dataset = false;
    if (plan.vacates) assert_true(plan.inspects && !facts.is_indexed);
    if (plan.deletes) assert_true(facts.is_indexed);
    return r;
}

static void every_directory(void **state)
{
    (void)state;
    for (int n = 0; n < 2 * KINDS; n++) {
        const truth t = kind_of(n / 2);
        const remains got = play(&t, n % 2), want = rule(&t, n % 2);
        assert_int_equal(got.dataset, want.dataset);
        assert_int_equal(got.stage, want.stage);
        assert_int_equal(got.directory, want.directory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_directory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
