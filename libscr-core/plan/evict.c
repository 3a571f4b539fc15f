/* SPDX-License-Identifier: BSD-3-Clause */
/* Which dataset leaves a store of the cache; see plan/evict.h. */
#include "plan/evict.h"

/* The first row to leave; -1: none may leave before a flush ends, or at all. */
static int evict_victim(const scr_evict_facts *f, bool *flushing)
{
    int oldest = -1, newest = -1;
    *flushing = false;
    for (int i = 0; i < f->count; i++) {
        const scr_evict_row *row = &f->rows[i];
        if (row->held) continue;
        *flushing |= row->flushing;
        if (row->checkpoint &&
            (newest < 0 || scr_age_is_older(f->rows[newest].age, row->age)))
            newest = i;
    }
    for (int i = 0; i < f->count; i++) {
        const scr_evict_row *row = &f->rows[i];
        if (row->held || row->flushing || i == newest) continue;
        if (oldest < 0 || scr_age_is_older(row->age, f->rows[oldest].age)) oldest = i;
    }
    return oldest < 0 && !*flushing ? newest : oldest;
}

static scr_evict_action evict_action(const scr_evict_facts *f, const scr_evict_row *row,
                                     int held)
{
    bool needed = row->output || (row->newest && !f->replaces_newest);
    if (!needed || row->saved) return SCR_EVICT_REMOVE;
    if (!row->unsaved) return SCR_EVICT_FLUSH;
    return held < f->most_held ? SCR_EVICT_HOLD : SCR_EVICT_LOSE;
}

scr_evict_step scr_plan_evict(const scr_evict_facts *f)
{
    bool flushing;
    int held = 0, victim = evict_victim(f, &flushing);
    for (int i = 0; i < f->count; i++)
        held += f->rows[i].held;
    if (f->count - held < f->capacity) return (scr_evict_step){SCR_EVICT_DONE, -1};
    if (victim < 0)
        return (scr_evict_step){flushing ? SCR_EVICT_WAIT : SCR_EVICT_DONE, -1};
    const scr_evict_row *row = &f->rows[victim];
    if (f->spare && row->age.id == f->spare) return (scr_evict_step){SCR_EVICT_DONE, -1};
    return (scr_evict_step){evict_action(f, row, held), victim};
}
