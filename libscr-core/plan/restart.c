/* SPDX-License-Identifier: BSD-3-Clause */
/* Which checkpoint a restart begins from; see plan/restart.h. */
#include "plan/restart.h"

/* The newer of two rows; -1: none. */
static int restart_newer(const scr_restart_facts *f, int a, int b)
{
    if (a < 0) return b;
    return b >= 0 && scr_age_is_older(f->rows[a].age, f->rows[b].age) ? b : a;
}

static bool restart_is_usable(scr_copy copy)
{
    return copy == SCR_COPY_THERE || copy == SCR_COPY_READY;
}

/* Only older checkpoints are candidates. */
static scr_age restart_bound(const scr_restart_facts *f)
{
    return f->only_older ? f->below : SCR_AGE_ANY;
}

static int restart_newest_cached(const scr_restart_facts *f)
{
    int newest = -1;
    for (int i = 0; i < f->count; i++)
        if (restart_is_usable(f->rows[i].cached) &&
            scr_age_is_older(f->rows[i].age, restart_bound(f)))
            newest = restart_newer(f, newest, i);
    return newest;
}

static bool restart_can_fetch(const scr_restart_facts *f, int i, bool exhausted)
{
    const scr_restart_row *r = &f->rows[i];
    return r->stored == SCR_COPY_THERE && r->exhausted == exhausted &&
           !r->is_of_other_ranks && scr_age_is_older(r->age, restart_bound(f));
}

/* Whether row i is tried before the last resort. Copies with the id of the current
 * checkpoint are as good as the current one. current -1: none. */
static bool restart_is_in_turn(const scr_restart_facts *f, int i, int current)
{
    const scr_age age = f->rows[i].age;
    if (current < 0) return scr_age_is_older(age, f->below);
    return age.id == f->rows[current].age.id ||
           scr_age_is_older(age, f->rows[current].age);
}

/* The current checkpoint; -1: there is none, or this run cannot use it. */
static int restart_current(const scr_restart_facts *f)
{
    for (int i = 0; i < f->count && f->below.id == SCR_AGE_ANY.id; i++)
        if (f->rows[i].is_current && !f->rows[i].is_of_other_ranks) return i;
    return -1;
}

/* The next row to fetch unless a newer one is cached; -1: none. */
static int restart_next_stored(const scr_restart_facts *f, int cached, bool *rises)
{
    const int current = restart_current(f);
    int next = -1, last_resort = -1;
    bool unreadable = false;
    *rises = false;
    if (current >= 0 && (restart_can_fetch(f, current, false) ||
                         f->rows[current].stored == SCR_COPY_READY))
        return current;
    for (int i = 0; i < f->count; i++) {
        const bool in_turn = restart_is_in_turn(f, i, current);
        unreadable |= in_turn && f->rows[i].stored == SCR_COPY_UNREADABLE;
        if (!restart_can_fetch(f, i, false)) continue;
        last_resort = restart_newer(f, last_resort, i);
        if (in_turn) next = restart_newer(f, next, i);
    }
    if (next >= 0 || cached >= 0 || unreadable) return next;
    *rises = last_resort >= 0;
    return last_resort;
}

/* The step if only checkpoints are left from which too many runs failed to restart. */
static scr_restart_step restart_again(const scr_restart_facts *f)
{
    scr_restart_step step = {SCR_RESTART_ANEW, -1, false};
    for (int i = 0; i < f->count; i++)
        if (restart_can_fetch(f, i, true)) step.row = restart_newer(f, step.row, i);
    if (step.row >= 0) step.action = SCR_RESTART_FETCH;
    return step;
}

static scr_restart_step restart_none(const scr_restart_facts *f)
{
    scr_restart_step step = {SCR_RESTART_ANEW, -1, false};
    bool stored = false;
    for (int i = 0; i < f->count; i++) {
        stored |= f->rows[i].stored == SCR_COPY_UNREADABLE;
        if (f->rows[i].cached == SCR_COPY_UNREADABLE)
            step.action = SCR_RESTART_FAIL_CACHE;
    }
    if (stored) step.action = SCR_RESTART_FAIL_PREFIX;
    return step.action == SCR_RESTART_ANEW ? restart_again(f) : step;
}

scr_restart_step scr_plan_restart(const scr_restart_facts *f)
{
    scr_restart_step step;
    int cached = restart_newest_cached(f),
        stored = restart_next_stored(f, cached, &step.rises);
    step.row = cached;
    if (stored >= 0 && restart_newer(f, cached, stored) == stored && stored != cached) {
        step.row = stored;
        step.action = SCR_RESTART_FETCH;
        return step;
    }
    if (cached >= 0 && f->rows[cached].cached == SCR_COPY_THERE) {
        step.action = SCR_RESTART_COMPARE;
        return step;
    }
    if (f->elsewhere > (cached < 0 ? 0 : f->rows[cached].age.id)) {
        step.action = SCR_RESTART_FAIL_ELSEWHERE;
        return step;
    }
    if (cached < 0) return restart_none(f);
    step.action = SCR_RESTART_OFFER;
    return step;
}

bool scr_plan_restart_leaves_current(const scr_restart_facts *f, int row)
{
    bool leaves = false;
    int current = -1;
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].is_current) current = i;
    for (int i = 0; i < f->count; i++) {
        const scr_restart_row *r = &f->rows[i];
        if (r->stored == SCR_COPY_THERE && r->is_of_other_ranks && !r->exhausted &&
            scr_age_is_older(f->rows[row].age, r->age) &&
            (current < 0 || !scr_age_is_older(f->rows[current].age, r->age)))
            leaves = true;
    }
    return leaves;
}
