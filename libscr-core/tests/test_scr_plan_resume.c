/* SPDX-License-Identifier: BSD-3-Clause */
/* Which interrupted flush is resumed: plans for all cases of three datasets and three
 * nodes are executed to the end, also if resuming fails, and the result is compared with
 * a rule on the whole case. */
#include "plan/resume.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DATASETS = 3, NODES = 3, KINDS = 13, MARKS = 4, NONE = -1 };

/* A dataset, and its flush in a stage. */
typedef struct truth {
    bool staged, foreign, cached, stored;
} truth;

/* The state files on a node: of its own rank, and of a rank that runs on another node
 * now. */
typedef struct marks {
    bool own, other;
} marks;

typedef struct world {
    truth datasets[DATASETS];
    marks nodes[NODES];
    int order[DATASETS]; /* order in which the stages are listed */
} world;

static truth kind_of(int kind)
{
    if (kind == 0) return (truth){.staged = false};
    kind--;
    return (truth){.staged = true,
                   .foreign = kind / 4 == 1,
                   .cached = kind & 1 && kind / 4 != 2, /* 2: without a record */
                   .stored = kind & 2};
}

/* ---- the rule ---- */

static bool can_resume(const world *w, int i)
{
    const truth *t = &w->datasets[i];
    bool copied = false;
    for (int n = 0; n < NODES; n++)
        copied |= w->nodes[n].own;
    return t->staged && !t->foreign && t->cached && !t->stored && copied;
}

static int rule(const world *w)
{
    for (int i = DATASETS - 1; i >= 0; i--)
        if (can_resume(w, i)) return i;
    return NONE;
}

/* ---- playing ---- */

typedef struct outcome {
    int resumed;
    bool left[DATASETS]; /* stages */
    marks running[NODES];
} outcome;

static int gather(const world *w, scr_resume_flush *rows, int *datasets)
{
    int count = 0;
    for (int k = 0; k < DATASETS; k++) {
        const int i = w->order[k];
        const truth *t = &w->datasets[i];
        if (!t->staged) continue;
        datasets[count] = i;
        rows[count++] = (scr_resume_flush){.age = {i + 1, 10},
                                           .is_foreign = t->foreign,
                                           .is_cached = t->cached,
                                           .is_stored = t->stored};
    }
    return count;
}

/* Plans the transfers on a node, alone. */
static void play_node(const world *w, scr_resume_facts facts, int node, outcome *out)
{
    scr_resume_transfer list[2];
    const marks *m = &w->nodes[node];
    facts.transfers = list;
    if (m->own)
        list[facts.transfer_count++] =
            (scr_resume_transfer){.rank = node, .is_here = true};
    if (m->other)
        list[facts.transfer_count++] = (scr_resume_transfer){.rank = (node + 1) % NODES};
    scr_plan_resume(&facts);
    out->running[node] = (marks){false, false};
    for (int i = 0; i < facts.transfer_count; i++) {
        if (list[i].is_stopped) continue;
        if (list[i].is_here)
            out->running[node].own = true;
        else
            out->running[node].other = true;
    }
}

static outcome play(const world *w, bool fails)
{
    outcome out = {.resumed = NONE};
    scr_resume_flush rows[DATASETS];
    int datasets[DATASETS] = {0}, steps = 0;
    scr_resume_facts facts = {.flushes = rows};
    facts.flush_count = gather(w, rows, datasets);
    for (int n = 0; n < NODES; n++)
        facts.has_transfer |= w->nodes[n].own;
    for (int i = 0; i < DATASETS; i++)
        out.left[i] = w->datasets[i].staged;
    for (;;) {
        assert_true(steps++ < 2);
        const int row = scr_plan_resume(&facts);
        for (int i = 0; i < facts.flush_count; i++)
            if (rows[i].is_removed) out.left[datasets[i]] = false;
        for (int n = 0; n < NODES; n++)
            play_node(w, facts, n, &out);
        out.resumed = row < 0 ? NONE : datasets[row];
        if (row < 0 || !fails) return out;
        for (int i = 0; i < facts.flush_count; i++)
            rows[i].is_cached = false;
    }
}

/* Checks conditions at the end that hold under any rule. */
static void check_outcome(const world *w, const outcome *out, int resumed)
{
    assert_int_equal(out->resumed, resumed);
    for (int i = 0; i < DATASETS; i++) {
        const truth *t = &w->datasets[i];
        assert_int_equal(out->left[i], t->staged && (t->foreign || i == resumed));
    }
    for (int n = 0; n < NODES; n++) {
        assert_false(out->running[n].other);
        assert_int_equal(out->running[n].own, resumed != NONE && w->nodes[n].own);
    }
}

static void every_small_world(void **state)
{
    static const int orders[2][DATASETS] = {{0, 1, 2}, {2, 0, 1}};
    int resumed = 0;
    (void)state;
    for (int n = 0; n < KINDS * KINDS * KINDS; n++) {
        world w;
        w.datasets[0] = kind_of(n % KINDS);
        w.datasets[1] = kind_of(n / KINDS % KINDS);
        w.datasets[2] = kind_of(n / KINDS / KINDS);
        for (int m = 0; m < 2 * MARKS * MARKS * MARKS; m++) {
            for (int k = 0, rest = m / 2; k < NODES; k++, rest /= MARKS)
                w.nodes[k] = (marks){rest & 1, rest & 2};
            memcpy(w.order, orders[m % 2], sizeof w.order);
            outcome out = play(&w, false);
            check_outcome(&w, &out, rule(&w));
            resumed += out.resumed != NONE;
            out = play(&w, true);
            check_outcome(&w, &out, NONE);
        }
    }
    assert_true(resumed > 10000);
}

/* Two flushes of one id: the later dataset wins. */
static void same_id(void **state)
{
    scr_resume_flush rows[2] = {{.age = {4, 20}, .is_cached = true},
                                {.age = {4, 10}, .is_cached = true}};
    const scr_resume_facts facts = {
        .has_transfer = true, .flush_count = 2, .flushes = rows};
    (void)state;
    assert_int_equal(scr_plan_resume(&facts), 0);
    assert_false(rows[0].is_removed);
    assert_true(rows[1].is_removed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_id),
        cmocka_unit_test(every_small_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
