/* SPDX-License-Identifier: BSD-3-Clause */
/* Which checkpoint a restart begins from: the plan of every small case is executed to the
 * end, and the result is compared with a rule on the whole case. */
#include "plan/restart.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROWS = 3, KINDS = 40, NO_ROW = -1 };

/* The actual state of a row; at first the facts have only the records. */
typedef struct truth {
    scr_age age;
    scr_copy cached, compared; /* as recorded; as found */
    scr_copy stored, fetched;
    bool exhausted, other;
} truth;

typedef struct world {
    truth rows[ROWS];
    int current; /* a row, or NO_ROW */
    scr_age below;
    bool only_older;
    int elsewhere;
} world;

/* ---- worlds ---- */

static truth row_of(int kind, int id, int64_t created)
{
    static const scr_copy cached[5][2] = {{SCR_COPY_NONE, SCR_COPY_NONE},
                                          {SCR_COPY_UNREADABLE, SCR_COPY_NONE},
                                          {SCR_COPY_THERE, SCR_COPY_READY},
                                          {SCR_COPY_THERE, SCR_COPY_NONE},
                                          {SCR_COPY_THERE, SCR_COPY_UNREADABLE}};
    static const struct {
        scr_copy stored, fetched;
        bool exhausted, other;
    } stored[8] = {{SCR_COPY_NONE, SCR_COPY_NONE, false, false},
                   {SCR_COPY_THERE, SCR_COPY_READY, false, false},
                   {SCR_COPY_THERE, SCR_COPY_NONE, false, false},
                   {SCR_COPY_THERE, SCR_COPY_UNREADABLE, false, false},
                   {SCR_COPY_THERE, SCR_COPY_READY, true, false},
                   {SCR_COPY_THERE, SCR_COPY_NONE, true, false},
                   {SCR_COPY_THERE, SCR_COPY_UNREADABLE, true, false},
                   {SCR_COPY_THERE, SCR_COPY_NONE, false, true}};
    const int c = kind % 5, s = kind / 5;
    return (truth){.age = {id, created},
                   .cached = cached[c][0],
                   .compared = cached[c][1],
                   .stored = stored[s].stored,
                   .fetched = stored[s].fetched,
                   .exhausted = stored[s].exhausted,
                   .other = stored[s].other};
}

/* ---- the rule ---- */

static bool older(scr_age a, scr_age b)
{
    /* in these cases all creation times are known, except those of limits */
    return a.created && b.created ? a.created < b.created : a.id < b.id;
}

static scr_age bound(const world *w)
{
    return w->only_older ? w->below : SCR_AGE_ANY;
}

static bool is_cached(const world *w, int i)
{
    const truth *t = &w->rows[i];
    return t->cached == SCR_COPY_THERE && t->compared == SCR_COPY_READY &&
           older(t->age, bound(w));
}

/* Whether the row may be fetched, with this result. */
static bool fetch_gives(const world *w, int i, scr_copy result)
{
    const truth *t = &w->rows[i];
    return t->stored == SCR_COPY_THERE && !t->exhausted && older(t->age, bound(w)) &&
           t->fetched == result;
}

/* The newest row that satisfies `is` and is older than limit; other copies with the id
 * copies count as well. */
static int newest(const world *w, bool (*is)(const world *w, int i), scr_age limit,
                  int copies)
{
    int best = NO_ROW;
    for (int i = 0; i < ROWS; i++)
        if (is(w, i) && (older(w->rows[i].age, limit) || w->rows[i].age.id == copies) &&
            (best == NO_ROW || older(w->rows[best].age, w->rows[i].age)))
            best = i;
    return best;
}

static bool can_fetch(const world *w, int i)
{
    return fetch_gives(w, i, SCR_COPY_READY);
}

static bool cannot_read(const world *w, int i)
{
    return fetch_gives(w, i, SCR_COPY_UNREADABLE);
}

static bool may_use(const world *w, int i)
{
    const truth *t = &w->rows[i];
    return can_fetch(w, i) ||
           (is_cached(w, i) && t->stored == SCR_COPY_THERE && !t->exhausted);
}

/* Whether too many runs failed to restart from the row, and a fetch has this result. */
static bool is_again(const world *w, int i, scr_copy result)
{
    const truth *t = &w->rows[i];
    return t->stored == SCR_COPY_THERE && t->exhausted && !t->other &&
           older(t->age, bound(w)) && t->fetched == result;
}

static bool can_fetch_again(const world *w, int i)
{
    return is_again(w, i, SCR_COPY_READY);
}

static bool cannot_read_again(const world *w, int i)
{
    return is_again(w, i, SCR_COPY_UNREADABLE);
}

static int better(const world *w, int a, int b)
{
    if (a == NO_ROW || b == NO_ROW) return a == NO_ROW ? b : a;
    return older(w->rows[a].age, w->rows[b].age) ? b : a;
}

/* The rule if the run would begin anew. A checkpoint that cannot be read now keeps older
 * ones from being tried, as the plan does not know whether it is usable. */
static int rule_again(const world *w, scr_restart_action *end)
{
    const int best = newest(w, can_fetch_again, SCR_AGE_ANY, 0);
    const int unreadable = newest(w, cannot_read_again, SCR_AGE_ANY, 0);
    if (unreadable != NO_ROW && better(w, best, unreadable) == unreadable) {
        *end = SCR_RESTART_FAIL_PREFIX;
        return NO_ROW;
    }
    if (best != NO_ROW) *end = SCR_RESTART_OFFER;
    return best;
}

static int rule(const world *w, scr_restart_action *end)
{
    const scr_age all = SCR_AGE_ANY;
    const int cached = newest(w, is_cached, all, 0);
    int current = w->below.id == INT_MAX ? w->current : NO_ROW, stored, copies = 0;
    scr_age limit = w->below;
    if (current != NO_ROW && w->rows[current].other) current = NO_ROW;
    if (current != NO_ROW) limit = w->rows[current].age, copies = limit.id;
    /* no other copy is as good as the current one, wherever it is */
    stored = current != NO_ROW && may_use(w, current)
                 ? current
                 : newest(w, can_fetch, limit, copies);
    int best = better(w, cached, stored);
    if (best == NO_ROW && newest(w, cannot_read, limit, copies) == NO_ROW) {
        limit = all;
        best = newest(w, can_fetch, all, 0);
    }
    *end = SCR_RESTART_OFFER;
    if (w->elsewhere > (best == NO_ROW ? 0 : w->rows[best].age.id)) {
        *end = SCR_RESTART_FAIL_ELSEWHERE;
    } else if (best == NO_ROW) {
        *end = SCR_RESTART_ANEW;
        for (int i = 0; i < ROWS; i++)
            if (w->rows[i].cached == SCR_COPY_UNREADABLE ||
                (w->rows[i].cached == SCR_COPY_THERE &&
                 w->rows[i].compared == SCR_COPY_UNREADABLE &&
                 older(w->rows[i].age, bound(w))))
                *end = SCR_RESTART_FAIL_CACHE;
        if (newest(w, cannot_read, limit, copies) != NO_ROW)
            *end = SCR_RESTART_FAIL_PREFIX;
        if (*end == SCR_RESTART_ANEW) best = rule_again(w, end);
    }
    return best;
}

/* ---- playing ---- */

static scr_restart_step play(const world *w)
{
    scr_restart_row rows[ROWS];
    scr_restart_step step = {SCR_RESTART_ANEW, NO_ROW, false};
    scr_restart_facts facts = {.count = ROWS,
                               .rows = rows,
                               .below = w->below,
                               .only_older = w->only_older,
                               .elsewhere = w->elsewhere};
    for (int i = 0; i < ROWS; i++)
        rows[i] = (scr_restart_row){.age = w->rows[i].age,
                                    .cached = w->rows[i].cached,
                                    .stored = w->rows[i].stored,
                                    .exhausted = w->rows[i].exhausted,
                                    .is_current = w->current == i,
                                    .is_of_other_ranks = w->rows[i].other};
    for (int steps = 0; steps <= 2 * ROWS; steps++) {
        step = scr_plan_restart(&facts);
        if (step.action == SCR_RESTART_COMPARE) {
            assert_int_equal(rows[step.row].cached, SCR_COPY_THERE);
            rows[step.row].cached = w->rows[step.row].compared;
        } else if (step.action == SCR_RESTART_FETCH) {
            assert_int_equal(rows[step.row].stored, SCR_COPY_THERE);
            rows[step.row].stored = w->rows[step.row].fetched;
            if (w->rows[step.row].fetched == SCR_COPY_READY)
                rows[step.row].cached = SCR_COPY_READY;
        } else {
            return step;
        }
    }
    fail_msg("the plan does not end");
    return step;
}

static void compare(const world *w)
{
    scr_restart_action end;
    const int best = rule(w, &end);
    const scr_restart_step step = play(w);
    if (step.action == end && (end != SCR_RESTART_OFFER || step.row == best)) return;
    for (int i = 0; i < ROWS; i++) {
        const truth *t = &w->rows[i];
        print_error("row %d: id %d, cached %d (%d), stored %d (%d)%s%s%s\n", i, t->age.id,
                    t->cached, t->compared, t->stored, t->fetched,
                    t->exhausted ? ", exhausted" : "", t->other ? ", of other ranks" : "",
                    w->current == i ? ", current" : "");
    }
    fail_msg("below %d, elsewhere %d: action %d of row %d, not %d of %d", w->below.id,
             w->elsewhere, step.action, step.row, end, best);
}

/* Three checkpoints; or two, one of which has two copies; or two and one with a higher id
 * of an earlier calculation. */
static void every_small_world(void **state)
{
    enum { LISTS = 3 };
    static const scr_age ages[LISTS][ROWS] = {{{1, 10}, {2, 20}, {3, 30}},
                                              {{1, 10}, {2, 20}, {2, 30}},
                                              {{1, 20}, {2, 30}, {3, 10}}};
    (void)state;
    for (int n = 0; n < LISTS * KINDS * KINDS * KINDS; n++) {
        const scr_age *age = ages[n % LISTS];
        const int kinds[ROWS] = {n / LISTS % KINDS, n / LISTS / KINDS % KINDS,
                                 n / LISTS / KINDS / KINDS};
        world w;
        for (int i = 0; i < ROWS; i++)
            w.rows[i] = row_of(kinds[i], age[i].id, age[i].created);
        for (int more = 0; more < 4 * 4 * 2 * 3; more++) {
            w.current = more % 4 - 1;
            w.below = more / 4 % 4 ? age[more / 4 % 4 - 1] : SCR_AGE_ANY;
            w.only_older = more / 16 % 2;
            w.elsewhere = (more / 32) * 2;
            compare(&w);
        }
    }
}

static void nothing_known(void **state)
{
    const scr_restart_facts none = {.below = SCR_AGE_ANY};
    (void)state;
    assert_int_equal(scr_plan_restart(&none).action, SCR_RESTART_ANEW);
}

/* A fetched checkpoint does not become the current one if a newer one is for another
 * number of ranks. */
static void left_to_others(void **state)
{
    scr_restart_row rows[ROWS] = {{.age = {1, 10}, .stored = SCR_COPY_THERE},
                                  {.age = {2, 20}, .stored = SCR_COPY_THERE},
                                  {.age = {3, 30}, .stored = SCR_COPY_THERE}};
    const scr_restart_facts f = {.count = ROWS, .rows = rows, .below = SCR_AGE_ANY};
    (void)state;
    assert_false(scr_plan_restart_leaves_current(&f, 0));
    rows[2].is_of_other_ranks = rows[2].is_current = true;
    assert_true(scr_plan_restart_leaves_current(&f, 0));
    assert_true(scr_plan_restart_leaves_current(&f, 1));
    rows[2].is_current = false;
    assert_true(scr_plan_restart_leaves_current(&f, 1));
    /* an older one was chosen */
    rows[1].is_current = true;
    assert_false(scr_plan_restart_leaves_current(&f, 1));
    assert_false(scr_plan_restart_leaves_current(&f, 0));
    rows[1].is_current = false;
    /* the one of other ranks is exhausted, unreadable, or older */
    rows[2].exhausted = true;
    assert_false(scr_plan_restart_leaves_current(&f, 1));
    rows[2].exhausted = false;
    rows[2].stored = SCR_COPY_UNREADABLE;
    assert_false(scr_plan_restart_leaves_current(&f, 1));
    rows[0].is_of_other_ranks = true;
    assert_false(scr_plan_restart_leaves_current(&f, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_known),
        cmocka_unit_test(left_to_others),
        cmocka_unit_test(every_small_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
