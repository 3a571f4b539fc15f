/* SPDX-License-Identifier: BSD-3-Clause */
/* Eviction from the cache: plans for every store of up to three datasets in all states
 * are executed to the end. The removed and the remaining datasets are compared with rules
 * on the whole case. */
#include "plan/evict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3, KINDS = 48 };

/* The actual state of a dataset; at first the facts have only its records. */
typedef struct truth {
    scr_evict_row row;
    bool can_be_flushed; /* a flush succeeds */
    bool is_lost;        /* a flush finds it damaged, and it disappears */
} truth;

typedef struct world {
    int count, capacity, most_held, spare;
    bool replaces_newest;
    truth all[MOST];
} world;

/* How a world ended. */
typedef struct outcome {
    bool there[MOST], held[MOST], saved[MOST], forced[MOST], flushed[MOST];
    int steps;
} outcome;

static truth kind_of(int kind, int id, int64_t created)
{
    truth t = {
        .row = {.age = {id, created}, .checkpoint = kind % 2, .output = kind / 2 % 2}};
    int place = kind / 4 % 3; /* saved; only here; held */
    int fate = kind / 12;     /* result of a flush: in progress; success; failure; damage
                                 found */
    t.row.saved = place == 0;
    t.row.held = place == 2;
    t.row.flushing = fate == 0 && place != 0;
    t.can_be_flushed = fate <= 1;
    t.is_lost = fate == 3;
    return t;
}

static void mark_newest(world *w)
{
    int newest = -1;
    for (int i = 0; i < w->count; i++) {
        w->all[i].row.newest = false;
        if (w->all[i].row.checkpoint &&
            (newest < 0 || w->all[i].row.age.created > w->all[newest].row.age.created))
            newest = i;
    }
    if (newest >= 0) w->all[newest].row.newest = true;
}

/* ---- playing ---- */

static int index_of(const world *w, int id)
{
    for (int i = 0; i < w->count; i++)
        if (w->all[i].row.age.id == id) return i;
    fail_msg("no dataset %d", id);
    return -1;
}

static scr_evict_facts gather(const world *w, const truth *now, const outcome *o,
                              scr_evict_row *rows)
{
    scr_evict_facts f = {.rows = rows,
                         .capacity = w->capacity,
                         .most_held = w->most_held,
                         .spare = w->spare,
                         .replaces_newest = w->replaces_newest};
    for (int i = 0; i < w->count; i++)
        if (o->there[i]) rows[f.count++] = now[i].row;
    return f;
}

static void end_flushes(world *w, truth *now)
{
    bool any = false;
    for (int i = 0; i < w->count; i++) {
        any |= now[i].row.flushing;
        if (now[i].row.flushing) now[i].row.saved = now[i].can_be_flushed;
        now[i].row.flushing = false;
    }
    assert_true(any); /* no step waits without a flush in progress */
}

static void flush(truth *now, outcome *o, int i)
{
    assert_false(now[i].row.saved);
    assert_false(now[i].row.unsaved); /* once */
    o->flushed[i] = true;
    if (now[i].is_lost) {
        o->there[i] = false;
        return;
    }
    now[i].row.saved = now[i].can_be_flushed;
    now[i].row.unsaved = !now[i].can_be_flushed;
}

static outcome play(world *w)
{
    truth now[MOST];
    outcome o = {.steps = 0};
    memcpy(now, w->all, sizeof now);
    for (int i = 0; i < w->count; i++)
        o.there[i] = true;
    for (; o.steps < 4 * MOST + 2; o.steps++) {
        scr_evict_row rows[MOST];
        const scr_evict_facts f = gather(w, now, &o, rows);
        const scr_evict_step step = scr_plan_evict(&f);
        if (step.action == SCR_EVICT_DONE) break;
        if (step.action == SCR_EVICT_WAIT) {
            end_flushes(w, now);
            continue;
        }
        int i = index_of(w, rows[step.row].age.id);
        assert_false(now[i].row.flushing); /* a flush reads its files */
        assert_false(now[i].row.held);
        if (step.action == SCR_EVICT_FLUSH) flush(now, &o, i);
        if (step.action == SCR_EVICT_HOLD) now[i].row.held = true;
        if (step.action == SCR_EVICT_REMOVE || step.action == SCR_EVICT_LOSE)
            o.there[i] = false;
        o.forced[i] |= step.action == SCR_EVICT_LOSE;
    }
    for (int i = 0; i < w->count; i++) {
        o.held[i] = now[i].row.held;
        o.saved[i] = now[i].row.saved;
    }
    return o;
}

/* ---- the rules ---- */

static int left_in(const world *w, const outcome *o)
{
    int left = 0;
    for (int i = 0; i < w->count; i++)
        left += o->there[i] && !o->held[i];
    return left;
}

static int held_in(const world *w, const outcome *o)
{
    int held = 0;
    for (int i = 0; i < w->count; i++)
        held += o->there[i] && o->held[i];
    return held;
}

/* A dataset that the run needs is lost for good only if the store holds too many of
 * them. */
static void check_safety(const world *w, const outcome *o)
{
    for (int i = 0; i < w->count; i++) {
        const scr_evict_row *row = &w->all[i].row;
        bool needed = row->output || (row->newest && !w->replaces_newest);
        if (o->there[i] || w->all[i].is_lost) continue;
        if (needed && !o->forced[i]) assert_true(o->saved[i]);
        if (o->forced[i]) assert_true(held_in(w, o) >= w->most_held);
        assert_true(row->age.id != w->spare);
    }
}

/* There is room in the end, unless only the spared dataset is left. */
static void check_liveness(const world *w, const outcome *o)
{
    assert_true(o->steps < 4 * MOST + 2);
    if (left_in(w, o) < w->capacity) return;
    assert_true(w->capacity <= 0 || w->spare);
    if (w->spare) assert_true(o->there[index_of(w, w->spare)]);
}

/* A dataset that left is newer than one that stayed only if the latter is held, being
 * flushed, spared, or a checkpoint. */
static void check_order(const world *w, const outcome *o)
{
    for (int i = 0; i < w->count; i++)
        for (int k = 0; k < w->count; k++) {
            const scr_evict_row *gone = &w->all[i].row, *left = &w->all[k].row;
            if (o->there[i] || !o->there[k] || w->all[i].is_lost) continue;
            if (gone->age.created <= left->age.created || o->held[k] || left->flushing)
                continue;
            assert_true(left->age.id == w->spare || left->newest || left->checkpoint);
        }
}

/* No more datasets leave than necessary, and no more are flushed than necessary. */
static void check_frugality(const world *w, const outcome *o)
{
    int before = 0, held = 0;
    for (int i = 0; i < w->count; i++) {
        const scr_evict_row *row = &w->all[i].row;
        before += !row->held;
        held += row->held;
        if (o->flushed[i])
            assert_true(row->output || (row->newest && !w->replaces_newest));
        /* the newest checkpoint is the last to leave */
        if (row->newest && !o->there[i] && !w->all[i].is_lost)
            assert_int_equal(left_in(w, o), 0);
    }
    assert_true(held_in(w, o) <= (held > w->most_held ? held : w->most_held));
    if (before < w->capacity) assert_int_equal(o->steps, 0);
    int gone = 0;
    for (int i = 0; i < w->count; i++)
        gone += !o->there[i] && !w->all[i].is_lost;
    int surplus = before - (w->capacity > 0 ? w->capacity - 1 : 0);
    assert_true(gone <= (surplus > 0 ? surplus : 0));
}

static int check_world(world *w)
{
    mark_newest(w);
    int worlds = 0;
    for (w->capacity = 0; w->capacity <= w->count + 1; w->capacity++)
        for (w->most_held = 1; w->most_held <= 2; w->most_held++)
            for (int spare = 0; spare <= w->count; spare++)
                for (int replaces = 0; replaces < 2; replaces++) {
                    w->spare = spare ? w->all[spare - 1].row.age.id : 0;
                    w->replaces_newest = replaces;
                    const outcome o = play(w);
                    check_safety(w, &o);
                    check_liveness(w, &o);
                    check_order(w, &o);
                    check_frugality(w, &o);
                    worlds++;
                }
    return worlds;
}

static int every_world(world *w, int at)
{
    int worlds = 0;
    if (at == w->count) return check_world(w);
    for (int kind = 0; kind < KINDS; kind++) {
        /* lists may be unsorted: the second dataset is the oldest, regardless of its
         * id */
        static const scr_age ages[MOST] = {{3, 60}, {6, 30}, {9, 90}};
        w->all[at] = kind_of(kind, ages[at].id, ages[at].created);
        worlds += every_world(w, at + 1);
    }
    return worlds;
}

static void every_small_store(void **state)
{
    int worlds = 0;
    for (int count = 0; count <= MOST; count++) {
        world w = {.count = count};
        worlds += every_world(&w, 0);
    }
    assert_true(worlds > 8 * 1000 * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_small_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
